import { describe, expect, test } from "vitest";
import type { LiveRun, LiveState } from "../generated/console";
import { addLive, beginLive, isLiveState, type LiveView, MAX_SAMPLES } from "./live-view";

const RUN: LiveRun = {
  number: 1,
  label: "chat · websocket · 100 clients",
  phase: "load",
  elapsed_ms: 4000,
  clients: 100,
  published: 20,
  delivered: 2000,
  deliveries_per_s: 500,
  latency_p50_ms: 1.5,
};

const RUNNING: LiveState = {
  state: "running",
  name: "chat",
  result: 3,
  runs_planned: 12,
  runs_done: 0,
  runs_void: 0,
  runs_failed: 0,
  run: RUN,
};

const IDLE: LiveState = { ...RUNNING, state: "idle", runs_done: 12, run: null };

const rates = (view: LiveView) => view.samples.map((one) => one.deliveriesPerS);

describe("addLive", () => {
  test("a message adds a sample; what a run does not say is nothing", () => {
    const view = addLive(beginLive(null, RUNNING), RUNNING);
    expect(view.samples).toEqual([
      {
        deliveriesPerS: 500,
        latencyP50Ms: 1.5,
        latencyP99Ms: null,
        subjectCpu: null,
        generatorCpu: null,
        subjectRssBytes: null,
      },
    ]);
  });

  test("another run breaks the lines", () => {
    const first = addLive(null, RUNNING);
    const second = addLive(first, { ...RUNNING, run: { ...RUN, number: 2, deliveries_per_s: 7 } });
    expect(rates(second)).toEqual([500, null, 7]);
  });

  test("samples are bounded, the oldest go", () => {
    let view: LiveView = addLive(null, RUNNING);
    for (let rate = 0; rate < MAX_SAMPLES + 10; rate++) {
      view = addLive(view, { ...RUNNING, run: { ...RUN, deliveries_per_s: rate } });
    }
    expect(view.samples.length).toBe(MAX_SAMPLES);
    expect(rates(view)[0]).toBe(10);
  });

  test("another campaign begins anew", () => {
    const view = addLive(addLive(null, RUNNING), { ...RUNNING, name: "feed", result: 4 });
    expect(rates(view)).toEqual([500]);
  });

  test("the end keeps the last minute", () => {
    const view = addLive(addLive(null, RUNNING), IDLE);
    expect(view.live.state).toBe("idle");
    expect(rates(view)).toEqual([500]);
  });
});

test("a snapshot after a gap keeps the minute of the same campaign, with a break", () => {
  const before = addLive(null, RUNNING);
  expect(rates(beginLive(before, RUNNING))).toEqual([500, null]);
  expect(rates(beginLive(before, { ...RUNNING, result: 4 }))).toEqual([]);
});

test("messages of another shape are told apart", () => {
  expect(isLiveState(RUNNING)).toBe(true);
  for (const data of [null, 1, [], {}, { state: "paused", runs_done: 1 }, { state: "idle" }]) {
    expect(isLiveState(data)).toBe(false);
  }
});
