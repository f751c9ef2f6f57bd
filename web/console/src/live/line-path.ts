/** How values become places in a drawing. */
export interface LineScale {
  /** How many values the width stands for, 2 or more. */
  length: number;
  /** The value at the upper edge, above 0. */
  top: number;
  width: number;
  height: number;
}

/** Ends of scales: their halves are round too. */
const STEPS = [1, 2, 3, 4, 6, 8, 10];

/** An SVG path through the latest values, the newest at the right edge; a null breaks it. */
export function linePath(values: readonly (number | null)[], scale: LineScale): string {
  const { length, top, width, height } = scale;
  const latest = values.slice(-length);
  let path = "";
  let isDown = false;
  for (const [index, value] of latest.entries()) {
    if (value === null) {
      isDown = false;
      continue;
    }
    const x = width * (1 - (latest.length - 1 - index) / (length - 1));
    const y = height * (1 - Math.min(1, Math.max(0, value / top)));
    // A lone value is a dot: a line of no length with round ends.
    path += isDown ? `L${round(x)} ${round(y)}` : `M${round(x)} ${round(y)}h0`;
    isDown = true;
  }
  return path;
}

/** The least of {@link STEPS} times a power of ten that is not below the value; 1 for nothing. */
export function niceCeiling(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = STEPS.find((factor) => factor * power >= value) ?? 10;
  return step * power;
}

function round(place: number): number {
  return Math.round(place * 10) / 10;
}
