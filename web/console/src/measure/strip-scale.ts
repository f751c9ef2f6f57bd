/** A logarithmic axis of whole decades. */
export interface StripScale {
  /** Powers of ten, from the lower edge to the upper. */
  ticks: readonly number[];
  /** Where a value is, in percent of the width. */
  place: (value: number) => number;
}

/** Browsers round times, some to a whole millisecond: what is below a tenth is drawn there. */
const LEAST = 0.1;

/** An axis on which all of some latencies find a place, at least one decade wide. */
export function stripScale(values: readonly number[]): StripScale {
  const clamped = values.length === 0 ? [1, 1000] : values.map((one) => Math.max(LEAST, one));
  const low = Math.floor(Math.log10(Math.min(...clamped)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...clamped))));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => Number(`1e${low + at}`));
  const place = (value: number) =>
    (100 * (Math.log10(Math.max(LEAST, value)) - low)) / (high - low);
  return { ticks, place };
}
