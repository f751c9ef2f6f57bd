import type { PublishedSeconds, Timeline } from "../generated/report";
import type { TimelineLine, TimelinePanel } from "./timeline-plot";

const FIRST = "var(--line-1)";
const SECOND = "var(--line-2)";
const THIRD = "var(--line-3)";
const DASH = "5 3";
const LONG = "9 3";
const DOTS = "2 3";

/**
 * The panels of a timeline. Publications and deliveries stand apart, because a broadcast turns one
 * into hundreds; within a panel the two lines should coincide, and where they part something waits.
 * What a study gives of its seconds begins where the load does.
 */
export function timelinePanels(
  timeline: Timeline,
  study: PublishedSeconds | null = null,
): TimelinePanel[] {
  const { t, probe_t } = timeline;
  const begin = timeline.phases.find((phase) => phase.name === "load")?.start ?? 0;
  const inStudy = (label: string, colour: string, values: readonly number[] = []) =>
    values.length === 0
      ? []
      : [
          line(
            `${label} in the study`,
            colour,
            values.map((_, second) => begin + second),
            values,
            DOTS,
          ),
        ];
  return [
    {
      id: "publications",
      title: "Publications",
      note: "per second",
      unit: "/s",
      scale: "linear",
      lines: [
        line("published", FIRST, t, timeline.published),
        line("received by the server", SECOND, t, timeline.server_received, DASH),
        ...inStudy("published", FIRST, study?.published),
        ...inStudy("received by the server", SECOND, study?.server_received),
      ],
    },
    {
      id: "deliveries",
      title: "Deliveries",
      note: "per second",
      unit: "/s",
      scale: "linear",
      lines: [
        line("sent by the server", FIRST, t, timeline.server_sent),
        line("delivered to clients", SECOND, t, timeline.delivered, DASH),
        ...inStudy("sent by the server", FIRST, study?.server_sent),
      ],
    },
    {
      id: "latency",
      title: "Delivery latency",
      note: "of each second; log scale",
      unit: "ms",
      scale: "log",
      lines: [
        line("median", FIRST, t, timeline.latency_median),
        line("99th percentile", SECOND, t, timeline.latency_p99, DASH),
        ...ownLine(timeline),
        ...inStudy("own publications, mean,", THIRD, study?.latency_own_mean),
      ],
    },
    {
      id: "queue",
      title: "Queued in the server",
      note: "bytes for slow subscribers",
      unit: "B",
      scale: "linear",
      least: 4096,
      lines: [line("queued", FIRST, t, timeline.queued_bytes)],
    },
    {
      id: "cpu",
      title: "CPU",
      note: "per cent of one core",
      unit: "%",
      scale: "linear",
      border: 100,
      lines: [
        line("server", FIRST, probe_t, timeline.cpu),
        line("load generator", SECOND, probe_t, timeline.generator_cpu, DASH),
      ],
    },
    {
      id: "memory",
      title: "Server memory",
      note: "resident, MiB",
      unit: "MiB",
      scale: "linear",
      lines: [line("server", FIRST, probe_t, timeline.memory), ...heapLines(timeline)],
    },
    ...runtimePanels(timeline),
  ];
}

/** Only foreign servers are asked for these, and only by some experiments. */
function runtimePanels(timeline: Timeline): TimelinePanel[] {
  const { t, collector_time, collector_pause_max, event_loop_lag } = timeline;
  const panels: TimelinePanel[] = [
    {
      id: "collector",
      title: "Garbage collection",
      note: "ms of each second in which the server stood still",
      unit: "ms",
      scale: "linear",
      lines: [
        line("all pauses", FIRST, t, collector_time),
        line("longest pause", SECOND, t, collector_pause_max, DASH),
      ],
    },
    {
      id: "event-loop-lag",
      title: "Event-loop lag of the server",
      note: "highest of each second",
      unit: "ms",
      scale: "linear",
      lines: [line("lag", FIRST, t, event_loop_lag)],
    },
  ];
  return panels.filter((panel) =>
    panel.lines.some((one) => one.values.some((value) => value !== null)),
  );
}

/** Only some foreign servers tell their memory by kind, where they are asked to. */
function heapLines(timeline: Timeline): TimelineLine[] {
  const { t, memory_heap_total, memory_heap, memory_external } = timeline;
  const lines = [
    line("total heap", SECOND, t, memory_heap_total, DASH),
    line("used heap", SECOND, t, memory_heap, DOTS),
    line("outside the heap", THIRD, t, memory_external, LONG),
  ];
  return lines.filter((one) => one.values.some((value) => value !== null));
}

/** Only clients that publish see their own publications come back. */
function ownLine({ t, latency_own_median }: Timeline): TimelineLine[] {
  return latency_own_median.some((value) => value !== null)
    ? [line("own publications, median", THIRD, t, latency_own_median, LONG)]
    : [];
}

/** From the first to the last second of a run. */
export function timelineSpan(timeline: Timeline): [number, number] {
  const ends = [
    ...timeline.phases.map((phase) => phase.end),
    timeline.t.at(-1) ?? 0,
    timeline.probe_t.at(-1) ?? 0,
  ];
  return [0, Math.max(1, ...ends)];
}

/** The value nearest to an instant, or null beyond half a step. */
export function valueAt(line: TimelineLine, instant: number): number | null {
  const index = nearestIndex(line.t, instant);
  const time = line.t[index];
  if (time === undefined || Math.abs(time - instant) > 1) return null;
  return line.values[index] ?? null;
}

function nearestIndex(sorted: readonly number[], wanted: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  const before = sorted[low - 1];
  const here = sorted[low];
  if (before === undefined || here === undefined) return low;
  return wanted - before < here - wanted ? low - 1 : low;
}

function line(
  label: string,
  colour: string,
  t: readonly number[],
  values: readonly (number | null)[],
  dash?: string,
): TimelineLine {
  return dash === undefined ? { label, colour, t, values } : { label, colour, t, values, dash };
}
