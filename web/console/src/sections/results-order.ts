import type { ExperimentReport } from "../generated/report";
import type { Sort } from "../view/view-state";
import { COLUMNS, type Row, SERIES_COLUMN } from "./results-columns";

/** The cells of an experiment in natural order: by series, then by clients. */
export function rowsOf(experiment: ExperimentReport): Row[] {
  return experiment.series.flatMap((series, order) =>
    series.points.map((point) => ({ series, order, point })),
  );
}

/** Sorted rows; cells without a value stay at the end in both directions. */
export function sortRows(rows: readonly Row[], sort: Sort | undefined): Row[] {
  if (sort === undefined) return [...rows];
  const by =
    sort.column === SERIES_COLUMN
      ? (row: Row) => row.order
      : COLUMNS.find((column) => column.id === sort.column)?.sortBy;
  if (by === undefined) return [...rows];
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
