import type { Band, Regime } from "../generated/report";

export interface BandWords {
  band: Band;
  name: string;
  range: string;
  /** Limits of the response time, ms. */
  from: number;
  below: number;
}

/** Nielsen's limits: how a response time feels. */
export const BANDS: readonly BandWords[] = [
  { band: "instant", name: "instant", range: "below 0.1 s", from: 0, below: 100 },
  { band: "noticeable", name: "noticeable", range: "0.1 to 1 s", from: 100, below: 1000 },
  { band: "slow", name: "slow", range: "1 to 10 s", from: 1000, below: 10_000 },
  {
    band: "lost",
    name: "lost",
    range: "10 s or more",
    from: 10_000,
    below: Number.POSITIVE_INFINITY,
  },
];

export const REGIME_WORDS: Record<Regime, { name: string; meaning: string }> = {
  load: { name: "Load", meaning: "the server stayed below one full core" },
  stress: { name: "Stress", meaning: "the server reached one full core" },
};

/** `2026-03-05 14:07 UTC`; the text as it is when it is no date. */
export function formatInstant(rfc3339: string): string {
  const instant = new Date(rfc3339);
  if (Number.isNaN(instant.getTime())) return rfc3339;
  return `${instant.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
