import { expect, test } from "vitest";
import { timelineSpan, valueAt } from "./timeline-panels";

const line = { label: "sent", colour: "", t: [0.5, 1.5, 2.5], values: [10, null, 30] };

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
  const empty = {
    ...{ phases: [], t: [], published: [], server_received: [], server_sent: [], delivered: [] },
    ...{ latency_median: [], latency_p99: [], queued_bytes: [] },
    ...{ probe_t: [], cpu: [], memory: [], generator_cpu: [] },
  };
  expect(timelineSpan(empty)).toEqual([0, 1]);
  const phases = [{ name: "load", start: 0, end: 25 }];
  expect(timelineSpan({ ...empty, phases, probe_t: [26] })).toEqual([0, 26]);
});
