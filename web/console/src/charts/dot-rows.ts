import type { Estimate, Point, Series } from "../generated/report";
import { type Scale, shareOn } from "./axis";
import { estimateOf, type Metric, placesOf } from "./metrics";

/** Up to so many places on the axis a chart has a row for each series instead of a line. */
const PLACES_MAX = 2;

/** Whether an experiment swept nothing that a line could follow. */
export function isSinglePoint(series: readonly Series[]): boolean {
  return placesOf(series).length <= PLACES_MAX;
}

export interface DotRow {
  series: Series;
  point: Point;
  figure: Estimate | null;
  /** Whether another transport begins here. */
  starts: boolean;
}

export interface DotGroup {
  x: number;
  rows: DotRow[];
}

/** Rows by place and transport, what was measured before what a study printed. */
export function dotGroups(series: readonly Series[], metric: Metric): DotGroup[] {
  const ordered = byTransport(series);
  return placesOf(series).flatMap((x) => {
    const rows = ordered.flatMap((one) => {
      const point = one.points.find((candidate) => candidate.x === x);
      if (point === undefined) return [];
      const figure = estimateOf(point, metric.name);
      // That a study did not measure something is no news.
      if (figure === null && one.origin === "published") return [];
      return { series: one, point, figure, starts: false };
    });
    for (const [index, row] of rows.entries()) {
      const before = rows[index - 1];
      row.starts = before !== undefined && before.series.transport !== row.series.transport;
    }
    return rows.some((row) => row.figure !== null) ? { x, rows } : [];
  });
}

function byTransport(series: readonly Series[]): Series[] {
  const transports = [...new Set(series.map((one) => one.transport))];
  const order = (one: Series) =>
    transports.indexOf(one.transport) * 2 + Number(one.origin === "published");
  return [...series].sort((a, b) => order(a) - order(b));
}

/** Per cent of the track's width. */
export function percentOn(scale: Scale): (value: number) => number {
  const share = shareOn(scale);
  return (value) => Math.min(100, Math.max(0, Number((share(value) * 100).toFixed(2))));
}
