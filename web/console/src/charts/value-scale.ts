import { formatTick } from "../format/number";
import { type Domain, linearDomain, linearTicks, logDomain, logTicks, type Scale } from "./axis";
import type { Metric } from "./metrics";

/** Leaves room above the full core for its label. */
const FULL_CORE_TOP = 116;
const RESPONSE_DOMAIN: Domain = [1, 1000];
const LATENCY_DOMAIN: Domain = [1, 10];

export interface ValueScale extends Scale {
  ticks: number[];
  format: (tick: number) => string;
}

/** The scale of a metric's values: log or linear, wide enough for its backdrop. */
export function valueScale(metric: Metric, values: readonly number[], ticks: number): ValueScale {
  if (metric.scale === "log") {
    const domain = logDomain(values, logInclude(metric));
    return {
      ...{ type: "log", domain, ticks: logTicks(domain) },
      format: (tick) => formatTick(tick, metric.unit),
    };
  }
  const domain = linearDomain(values, metric.backdrop === "full-core" ? FULL_CORE_TOP : 0);
  return {
    ...{ type: "linear", domain, ticks: linearTicks(domain, ticks) },
    format: (tick) => formatTick(tick),
  };
}

function logInclude(metric: Metric): Domain | undefined {
  if (metric.backdrop === "bands") return RESPONSE_DOMAIN;
  return metric.unit === "ms" ? LATENCY_DOMAIN : undefined;
}
