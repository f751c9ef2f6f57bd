/** The latest values, at most `length` of them: adds one and drops the oldest beyond. */
export function pushLatest<T>(values: readonly T[], value: T, length: number): readonly T[] {
  return [...values.slice(Math.max(0, values.length + 1 - length)), value];
}

/** The middle of some values, the lower of two; null without any. */
export function medianOf(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
