import type { Series } from "../generated/report";
import type { Sort } from "../view/view-state";
import type { ResultColumn, Row } from "./results-columns";

/** The cells of an experiment in natural order: by series, then by place. */
export function rowsOf(series: readonly Series[]): Row[] {
  return series.flatMap((one, order) => one.points.map((point) => ({ series: one, order, point })));
}

/** Sorted rows; cells without a value stay at the end in both directions. */
export function sortRows(
  rows: readonly Row[],
  columns: readonly ResultColumn[],
  sort: Sort | undefined,
): Row[] {
  const by = columns.find((column) => column.id === sort?.column)?.sortBy;
  if (sort === undefined || by === undefined) return [...rows];
  const direction = sort.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = by(a);
    const right = by(b);
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return (left - right) * direction;
  });
}

/** What pressing a column's header leads to: ascending, descending, natural order. */
export function nextSort(current: Sort | undefined, column: string): Sort | undefined {
  if (current?.column !== column) return { column, descending: false };
  return current.descending ? undefined : { column, descending: true };
}
