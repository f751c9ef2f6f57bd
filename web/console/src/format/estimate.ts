import type { Bound, Estimate } from "../generated/report";
import {
  decimalsFor,
  formatExact,
  formatNumber,
  formatTick,
  joinUnit,
  scaleUnit,
  withDecimals,
} from "./number";

/** What can be said about the precision of a figure. */
export type Interval =
  | { kind: "none" }
  | { kind: "symmetric"; half: number }
  | { kind: "skewed"; below: number; above: number };

/** Above this ratio between its longer and shorter arm an interval is written with both. */
const SKEW_MAX = 1.3;

/** A figure that can be drawn, or null: what is not a number is null in JSON. */
export function soundEstimate(figure: Estimate | null | undefined): Estimate | null {
  if (figure == null || !Number.isFinite(figure.value)) return null;
  const { value, low, high } = figure;
  if (Number.isFinite(low) && Number.isFinite(high)) return figure;
  return {
    ...figure,
    low: Number.isFinite(low) ? low : value,
    high: Number.isFinite(high) ? high : value,
  };
}

export function intervalOf(figure: Estimate): Interval {
  if (figure.runs <= 1) return { kind: "none" };
  const below = Math.max(0, figure.value - figure.low);
  const above = Math.max(0, figure.high - figure.value);
  const longer = Math.max(below, above);
  const shorter = Math.min(below, above);
  if (longer > 0 && longer > shorter * SKEW_MAX) return { kind: "skewed", below, above };
  return { kind: "symmetric", half: (below + above) / 2 };
}

export interface EstimateText {
  value: string;
  /** `±0.4`, `+1.2 −0.4`, or the admission that one run has none; empty beside what a study says less than a number of. */
  interval: string;
}

export const NO_INTERVAL = "1 run, no interval";

/** Value and interval with equal decimals, in the figure's own unit (for columns headed by the unit). */
export function formatEstimate(figure: Estimate): EstimateText {
  const { bound } = figure;
  if (bound != null && bound !== "min") return { value: formatBound(figure, bound), interval: "" };
  // A single whole number is given as it is: decimals would claim a precision that nobody measured.
  const whole = figure.runs <= 1 && Number.isInteger(figure.value);
  const value = whole ? formatExact(figure.value) : formatNumber(figure.value);
  return {
    // A rate that the load set, with the spread that it had over the runs.
    value: bound === "min" ? `≥ ${value}` : value,
    interval: formatInterval(intervalOf(figure), figure.value),
  };
}

/** As `formatEstimate`, with the unit that reads best attached to the value. */
export function formatEstimateWithUnit(figure: Estimate, unit: string): EstimateText {
  const { factor, unit: shown } = scaleUnit(figure.value, unit);
  const text = formatEstimate({
    ...figure,
    value: figure.value / factor,
    low: figure.low / factor,
    high: figure.high / factor,
  });
  return { value: joinUnit(text.value, shown), interval: text.interval };
}

/** A difference with its sign, because the sign is the news. */
export function formatDifference(figure: Estimate): EstimateText {
  const text = formatEstimate(figure);
  return { ...text, value: figure.value > 0 ? `+${text.value}` : text.value };
}

/** As a study prints it: no decimals that it does not have. */
function formatBound(figure: Estimate, bound: Exclude<Bound, "min">): string {
  switch (bound) {
    case "about":
      return `≈ ${formatTick(figure.value)}`;
    case "below":
      return `< ${formatTick(figure.value)}`;
    case "max":
      return `≤ ${formatTick(figure.value)}`;
    case "range":
      return `${formatTick(figure.low)}–${formatTick(figure.high)}`;
  }
}

function formatInterval(interval: Interval, value: number): string {
  switch (interval.kind) {
    case "none":
      return NO_INTERVAL;
    case "symmetric":
      return `±${arm(interval.half, value)}`;
    case "skewed":
      return skewed(arm(interval.above, value), arm(interval.below, value));
  }
}

/** Arms that differ by less than is shown are one arm. */
function skewed(above: string, below: string): string {
  return above === below ? `±${above}` : `+${above} −${below}`;
}

/** An arm has the decimals of its value, and more where it would otherwise read as nothing. */
function arm(size: number, value: number): string {
  if (size === 0) return "0";
  const decimals = Math.abs(value) >= 1000 ? 0 : decimalsFor(value);
  if (Number(size.toFixed(decimals)) === 0) {
    return withDecimals(size, Math.min(12, -Math.floor(Math.log10(size))));
  }
  return size >= 1000 ? formatNumber(size) : withDecimals(size, decimals);
}
