/** Narrow no-break space: groups digits and joins a number to its unit without a line break. */
export const THIN = "\u202f";
const MINUS = "\u2212";

/** A count, in full: `12 345`. */
export function formatCount(value: number): string {
  return group(String(Math.round(value)));
}

/** Decimals that leave about three significant digits. */
export function decimalsFor(value: number): number {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return 0;
  if (size >= 10) return 1;
  if (size >= 0.1) return 2;
  if (size >= 0.01) return 3;
  return Math.min(8, 1 - Math.floor(Math.log10(size)));
}

/** Three significant digits, four from a thousand upwards; grouped in threes. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return group(String(Number(value.toPrecision(4))));
  return withDecimals(value, decimalsFor(value));
}

/** A number with the given decimals, grouped; never `-0`. */
export function withDecimals(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return group(Number(text) === 0 ? text.replace("-", "") : text);
}

/** A number in the unit that reads best: `1.50 s` for 1500 ms. */
export function formatQuantity(value: number, unit: string): string {
  const scaled = scaleUnit(value, unit);
  return joinUnit(formatNumber(scaled.value), scaled.unit);
}

/** An axis tick: no trailing zeros, because ticks are round. */
export function formatTick(value: number, unit = ""): string {
  const scaled = scaleUnit(value, unit);
  const text = Number(scaled.value.toPrecision(4));
  return joinUnit(group(plain(text)), scaled.unit);
}

export interface Scaled {
  value: number;
  unit: string;
  factor: number;
}

const LARGER: Record<string, { from: number; divide: number; unit: string }> = {
  µs: { from: 1000, divide: 1000, unit: "ms" },
  ms: { from: 1000, divide: 1000, unit: "s" },
  B: { from: 1024, divide: 1024, unit: "KiB" },
  KiB: { from: 1024, divide: 1024, unit: "MiB" },
  MiB: { from: 1024, divide: 1024, unit: "GiB" },
};

/** Moves to the next larger unit for as long as the value has four digits before the point. */
export function scaleUnit(value: number, unit: string): Scaled {
  let scaled: Scaled = { value, unit, factor: 1 };
  for (;;) {
    const larger = LARGER[scaled.unit];
    if (larger === undefined || Math.abs(scaled.value) < larger.from) return scaled;
    scaled = {
      value: scaled.value / larger.divide,
      unit: larger.unit,
      factor: scaled.factor * larger.divide,
    };
  }
}

/** Joins a number to its unit; a rate is written without a space: `200/s`. */
export function joinUnit(text: string, unit: string): string {
  if (unit === "") return text;
  return unit.startsWith("/") ? text + unit : text + THIN + unit;
}

/** A number as it was given, grouped: for places on an axis, which are chosen and not measured. */
export function formatExact(value: number): string {
  return group(plain(Number(value.toPrecision(12))));
}

/** A share with its sign: `+12 %`; small ones with a decimal. */
export function formatChange(percent: number): string {
  const text = withDecimals(percent, Math.abs(percent) < 9.95 ? 1 : 0);
  return joinUnit(percent > 0 ? `+${text}` : text, "%");
}

/** A probability, never as zero. */
export function formatChance(chance: number): string {
  return chance < 0.001 ? "< 0.001" : chance.toFixed(chance < 0.01 ? 3 : 2);
}

/** `1 run`, `2 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

function plain(value: number): string {
  return Math.abs(value) < 1e-6 && value !== 0 ? value.toExponential() : String(value);
}

function group(text: string): string {
  const [whole = "", fraction] = text.split(".");
  const grouped = whole.replace("-", MINUS).replace(/\B(?=(\d{3})+$)/g, THIN);
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}
