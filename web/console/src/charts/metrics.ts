import type { Figure, Point } from "../generated/report";
import type { ViewState } from "../view/view-state";

/** A chart of one figure against clients. */
export interface Metric {
  id: string;
  title: string;
  /** What exactly is drawn, with its unit: stands under the title. */
  note: string;
  unit: string;
  scale: "log" | "linear";
  figure: (point: Point) => Figure | null;
  /** Response time has bands; CPU has the border between load and stress. */
  backdrop?: "bands" | "full-core";
}

const RESPONSE: Metric = {
  id: "response",
  title: "Response time",
  note: "of a ping while the load runs, median; log scale",
  unit: "ms",
  scale: "log",
  figure: (point) => point.response_median ?? null,
  backdrop: "bands",
};

const LATENCY: Record<ViewState["latency"], Metric> = {
  median: {
    id: "latency",
    title: "Delivery latency",
    note: "publication to subscriber, median; log scale",
    unit: "ms",
    scale: "log",
    figure: (point) => point.latency_median ?? null,
  },
  p99: {
    id: "latency",
    title: "Delivery latency",
    note: "publication to subscriber, 99th percentile; log scale",
    unit: "ms",
    scale: "log",
    figure: (point) => point.latency_p99 ?? null,
  },
};

const CPU: Metric = {
  id: "cpu",
  title: "Server CPU",
  note: "per cent of one core, while loaded",
  unit: "%",
  scale: "linear",
  figure: (point) => point.cpu ?? null,
  backdrop: "full-core",
};

const MEMORY: Metric = {
  id: "memory",
  title: "Server memory",
  note: "highest resident while loaded, MiB",
  unit: "MiB",
  scale: "linear",
  figure: (point) => point.memory ?? null,
};

const DELIVERED: Metric = {
  id: "delivered",
  title: "Deliveries",
  note: "per second, received and checked by the clients",
  unit: "/s",
  scale: "linear",
  figure: (point) => point.delivered ?? null,
};

/** The charts of an experiment in reading order; the first is the widest. */
export function chartMetrics(latency: ViewState["latency"]): Metric[] {
  return [RESPONSE, LATENCY[latency], CPU, MEMORY, DELIVERED];
}
