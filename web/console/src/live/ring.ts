/** The latest values, at most `length` of them: adds one and drops the oldest beyond. */
export function pushLatest<T>(values: readonly T[], value: T, length: number): readonly T[] {
  return [...values.slice(Math.max(0, values.length + 1 - length)), value];
}
