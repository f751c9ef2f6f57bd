import type { Axis } from "../generated/report";

/** A scale's domain: lowest and highest value shown. */
export type Domain = readonly [low: number, high: number];

/** A scale that values are measured on. */
export interface Scale {
  type: "linear" | "log";
  domain: Domain;
}

/** The horizontal scale over these places; a logarithm needs places above zero. */
export function axisScale(axis: Axis, places: readonly number[]): Scale {
  const largest = Math.max(0, ...places);
  const least = Math.min(...places);
  if (axis.is_logarithmic && least > 0) return { type: "log", domain: [least, largest] };
  return { type: "linear", domain: [Math.min(0, least), largest > 0 ? largest : 1] };
}

/** Where a value stands on a scale, as a share of its length. */
export function shareOn({ type, domain: [low, high] }: Scale): (value: number) => number {
  const measure = type === "log" ? (value: number) => Math.log(Math.max(value, low)) : Number;
  const span = measure(high) - measure(low) || 1;
  return (value) => (measure(value) - measure(low)) / span;
}

const STEPS = [1, 2, 5, 10];

/** Around the positive values and always `include`, rounded outwards to 1, 2 or 5 of a decade. */
export function logDomain(values: readonly number[], include?: Domain): Domain {
  let [low, high] = include ?? [Number.POSITIVE_INFINITY, 0];
  for (const value of values) {
    if (!(value > 0) || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(low <= high)) return [1, 10];
  const lowDecade = 10 ** Math.floor(Math.log10(low));
  const highDecade = 10 ** Math.floor(Math.log10(high));
  const below = STEPS.findLast((step) => step * lowDecade <= low) ?? 1;
  const above = STEPS.find((step) => step * highDecade >= high) ?? 10;
  const [from, to] = [clean(below * lowDecade), clean(above * highDecade)];
  // Less than a factor of five would make noise look like news.
  return to / from >= 5 ? [from, to] : [clean(lowDecade), clean(highDecade * 10)];
}

/** From zero to a little above the largest value, and as much below where values are negative. */
export function linearDomain(values: readonly number[], atLeast = 0): Domain {
  const finite = values.filter(Number.isFinite);
  const largest = Math.max(atLeast, ...finite);
  const least = Math.min(0, ...finite);
  const top = largest > 0 ? largest * 1.05 : 0;
  return [least * 1.05, top === 0 && least === 0 ? 1 : top];
}

/** Powers of ten, with 2 and 5 between them when there are few. */
export function logTicks([low, high]: Domain): number[] {
  const from = Math.floor(Math.log10(low) + 1e-9);
  const to = Math.ceil(Math.log10(high) - 1e-9);
  const steps = Math.log10(high / low) <= 2 ? [1, 2, 5] : [1];
  const ticks: number[] = [];
  for (let power = from; power <= to; power++) {
    for (const step of steps) {
      const tick = clean(step * 10 ** power);
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

/** Round values at even steps, at most `most` of them. */
export function linearTicks([low, high]: Domain, most: number): number[] {
  const rough = (high - low) / Math.max(1, most - 1);
  if (!(rough > 0)) return [low];
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = decade * (STEPS.find((one) => one * decade >= rough) ?? 10);
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++)
    ticks.push(clean(tick * step));
  return ticks;
}

/** Thins places until their labels fit side by side; the largest always stays. */
export function fittingTicks(
  places: readonly number[],
  pixel: (place: number) => number,
  gap: number,
): number[] {
  const kept: number[] = [];
  for (const place of [...places].sort((a, b) => b - a)) {
    const last = kept[0];
    if (last === undefined || pixel(last) - pixel(place) >= gap) kept.unshift(place);
  }
  return kept;
}

/** Undoes the rounding errors of powers, so that ticks compare equal to the limits. */
function clean(value: number): number {
  return Number(value.toPrecision(6));
}
