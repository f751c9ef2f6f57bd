import type { LiveState, Phase } from "../generated/console";
import { pushLatest } from "../live/ring";

/** Samples that a chart keeps: a minute at four a second. */
export const MAX_SAMPLES = 240;

/** The phases of a run in their order, with what happens in each. */
export const PHASES: readonly { phase: Phase; name: string; about: string }[] = [
  { phase: "connect", name: "connect", about: "clients connect and subscribe" },
  { phase: "idle", name: "idle", about: "connected and silent" },
  { phase: "warm-up", name: "warm-up", about: "load that does not count" },
  { phase: "load", name: "load", about: "load that counts" },
  { phase: "drain", name: "drain", about: "messages under way arrive" },
  { phase: "after", name: "after", about: "silent again" },
];

/** What the charts show; null where a run had nothing to say, and between runs. */
export interface LiveSample {
  deliveriesPerS: number | null;
  latencyP50Ms: number | null;
  latencyP99Ms: number | null;
  subjectCpu: number | null;
  generatorCpu: number | null;
  subjectRssBytes: number | null;
}

/** A campaign as it is now, and its latest minute. */
export interface LiveView {
  live: LiveState;
  samples: readonly LiveSample[];
}

const NOTHING: LiveSample = {
  deliveriesPerS: null,
  latencyP50Ms: null,
  latencyP99Ms: null,
  subjectCpu: null,
  generatorCpu: null,
  subjectRssBytes: null,
};

/** A view that begins with a snapshot; the minute of the one before is kept where it is the same campaign's. */
export function beginLive(before: LiveView | null, live: LiveState): LiveView {
  const isSame = before !== null && isCampaign(before.live, live);
  // What came between them is gone: the lines have a break there.
  return { live, samples: isSame ? pushLatest(before.samples, NOTHING, MAX_SAMPLES) : [] };
}

/** The view after a message of the channel. */
export function addLive(before: LiveView | null, live: LiveState): LiveView {
  if (live.state === "idle") return { live, samples: before?.samples ?? [] };
  let samples = before !== null && isCampaign(before.live, live) ? before.samples : [];
  const { run } = live;
  if (run != null && before?.live.run?.number !== run.number && samples.length > 0) {
    samples = pushLatest(samples, NOTHING, MAX_SAMPLES);
  }
  return { live, samples: pushLatest(samples, sampleOf(live), MAX_SAMPLES) };
}

/** Whether a message has what the page reads; others, from a server of another version, are left out. */
export function isLiveState(data: unknown): data is LiveState {
  const { state, runs_done } = (data ?? {}) as Partial<LiveState>;
  return (state === "idle" || state === "running") && typeof runs_done === "number";
}

function isCampaign(a: LiveState, b: LiveState): boolean {
  return (
    a.state === "running" && b.state === "running" && a.name === b.name && a.result === b.result
  );
}

function sampleOf({ run }: LiveState): LiveSample {
  if (run == null) return NOTHING;
  return {
    deliveriesPerS: run.deliveries_per_s,
    latencyP50Ms: run.latency_p50_ms ?? null,
    latencyP99Ms: run.latency_p99_ms ?? null,
    subjectCpu: run.subject_cpu ?? null,
    generatorCpu: run.generator_cpu ?? null,
    subjectRssBytes: run.subject_rss_bytes ?? null,
  };
}
