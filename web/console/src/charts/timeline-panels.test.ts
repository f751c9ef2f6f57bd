import { expect, test } from "vitest";
import { timelinePanels, timelineSpan, valueAt } from "./timeline-panels";

const line = { label: "sent", colour: "", t: [0.5, 1.5, 2.5], values: [10, null, 30] };

const empty = {
  ...{ phases: [], t: [], published: [], server_received: [], server_sent: [], delivered: [] },
  ...{ latency_median: [], latency_p99: [], latency_own_median: [], queued_bytes: [] },
  ...{ collector_time: [], collector_pause_max: [], event_loop_lag: [] },
  ...{ memory_heap: [], memory_heap_total: [], memory_external: [] },
  ...{ probe_t: [], cpu: [], memory: [], generator_cpu: [] },
};

test("a value is that of the nearest instant", () => {
  expect(valueAt(line, 0.9)).toBe(10);
  expect(valueAt(line, 2.4)).toBe(30);
});

test("no value where none was read, or far from any", () => {
  expect(valueAt(line, 1.5)).toBeNull();
  expect(valueAt(line, 9)).toBeNull();
  expect(valueAt({ ...line, t: [], values: [] }, 1)).toBeNull();
});

test("the span covers phases and probe, and is never empty", () => {
  expect(timelineSpan(empty)).toEqual([0, 1]);
  const phases = [{ name: "load", start: 0, end: 25 }];
  expect(timelineSpan({ ...empty, phases, probe_t: [26] })).toEqual([0, 26]);
});

test("a study's seconds begin with the load", () => {
  const timeline = { ...empty, phases: [{ name: "load", start: 7, end: 25 }] };
  const study = {
    published: [120, 118],
    server_received: [],
    server_sent: [7200],
    latency_own_mean: [9],
  };
  const lines = timelinePanels(timeline, study).flatMap((panel) => panel.lines);
  const own = lines.filter((one) => one.label.endsWith("in the study"));
  expect(own.map((one) => one.label)).toEqual([
    "published in the study",
    "sent by the server in the study",
    "own publications, mean, in the study",
  ]);
  expect(own[0]?.t).toEqual([7, 8]);
  expect(own[0]?.values).toEqual([120, 118]);
});

test("own publications have a line where any came back", () => {
  const labels = (timeline: typeof empty) =>
    timelinePanels(timeline)
      .find((panel) => panel.id === "latency")
      ?.lines.map((one) => one.label);
  expect(labels(empty)).toEqual(["median", "99th percentile"]);
  const own = { ...empty, latency_own_median: [null, 3] as never[] };
  expect(labels(own)).toContain("own publications, median");
});

test("memory by kind has lines where a runtime told it", () => {
  const labels = (timeline: typeof empty) =>
    timelinePanels(timeline)
      .find((panel) => panel.id === "memory")
      ?.lines.map((one) => one.label);
  expect(labels(empty)).toEqual(["server"]);
  const heap = { memory_heap: [5] as never[], memory_heap_total: [8] as never[] };
  expect(labels({ ...empty, ...heap, memory_external: [null] as never[] })).toEqual([
    "server",
    "total heap",
    "used heap",
  ]);
});

test("what a runtime tells has panels where it told anything", () => {
  const ids = (timeline: typeof empty) => timelinePanels(timeline).map((panel) => panel.id);
  expect(ids(empty)).not.toContain("collector");
  expect(ids({ ...empty, event_loop_lag: [null] as never[] })).not.toContain("event-loop-lag");
  const told = { ...empty, collector_time: [0, 12] as never[] };
  expect(ids(told)).toContain("collector");
  expect(ids({ ...told, event_loop_lag: [null, 3] as never[] }).at(-1)).toBe("event-loop-lag");
});
