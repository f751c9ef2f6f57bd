/** A scale's domain: lowest and highest value shown. */
export type Domain = readonly [low: number, high: number];

/** Above this ratio of the largest to the middle client count a sweep is geometric and needs a log axis. */
const GEOMETRIC_MIN = 4;

/** Whether client counts grow by steps (linear axis) or by factors (log axis). */
export function clientScale(counts: readonly number[]): "linear" | "log" {
  const sorted = [...counts].sort((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  const largest = sorted.at(-1);
  if (middle === undefined || largest === undefined || (sorted[0] ?? 0) <= 0) return "linear";
  return largest / middle > GEOMETRIC_MIN ? "log" : "linear";
}

const STEPS = [1, 2, 5, 10];

/** Around the positive values and always `include`, rounded outwards to 1, 2 or 5 of a decade. */
export function logDomain(values: readonly number[], include: Domain): Domain {
  let [low, high] = include;
  for (const value of values) {
    if (!(value > 0) || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const lowDecade = 10 ** Math.floor(Math.log10(low));
  const highDecade = 10 ** Math.floor(Math.log10(high));
  const below = STEPS.findLast((step) => step * lowDecade <= low) ?? 1;
  const above = STEPS.find((step) => step * highDecade >= high) ?? 10;
  return [clean(below * lowDecade), clean(above * highDecade)];
}

/** From zero to a little above the largest value. */
export function linearDomain(values: readonly number[], atLeast = 0): Domain {
  const largest = Math.max(atLeast, ...values.filter(Number.isFinite));
  return [0, largest > 0 ? largest * 1.05 : 1];
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

/** Thins client counts until their labels fit side by side; the largest always stays. */
export function fittingTicks(
  counts: readonly number[],
  place: (count: number) => number,
  gap: number,
): number[] {
  const kept: number[] = [];
  for (const count of [...counts].sort((a, b) => b - a)) {
    const last = kept[0];
    if (last === undefined || place(last) - place(count) >= gap) kept.unshift(count);
  }
  return kept;
}

/** Undoes the rounding errors of powers, so that ticks compare equal to the limits. */
function clean(value: number): number {
  return Number(value.toPrecision(6));
}
