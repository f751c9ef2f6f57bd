import { BANDS } from "../format/words";
import type { Figure, Point, Series } from "../generated/report";

/** One row of the table: a cell of the experiment. */
export interface Row {
  series: Series;
  /** Position of the series in the experiment, its natural order. */
  order: number;
  point: Point;
}

interface ColumnBase {
  id: string;
  title: string;
  unit?: string;
  /** Only shown with all columns. */
  extra?: boolean;
  /** What the column is sorted by; null sorts last. */
  sortBy: (row: Row) => number | null;
}

export interface FigureColumn extends ColumnBase {
  kind: "figure";
  figure: (point: Point) => Figure | null;
}

/** Errors in what was delivered: zero is expected, anything else must be seen. */
export interface ErrorColumn extends ColumnBase {
  kind: "error";
  count: (point: Point) => number;
}

export interface OtherColumn extends ColumnBase {
  kind: "clients" | "runs" | "judgement" | "caveats";
}

export type Column = FigureColumn | ErrorColumn | OtherColumn;

export const SERIES_COLUMN = "series";

const REGIMES: readonly string[] = ["load", "stress"];
/** Where a long word may break. */
const SOFT_HYPHEN = "\u00ad";

export const COLUMNS: readonly Column[] = [
  other("clients", "Clients", (row) => row.point.clients),
  other("runs", "Runs", (row) => row.point.runs),
  figure("response_median", "Response, median", "ms", (point) => point.response_median),
  figure("response_p99", "Response, p99", "ms", (point) => point.response_p99, true),
  figure("response_mean", "Response, mean", "ms", (point) => point.response_mean, true),
  figure("response_idle", "Response, idle", "ms", (point) => point.response_idle_median, true),
  other("judgement", "Regime, feels", (row) => {
    const regime = REGIMES.indexOf(row.point.regime ?? "");
    return regime < 0 ? null : regime * 10 + BANDS.findIndex((one) => one.band === row.point.band);
  }),
  figure("latency_median", "Latency, median", "ms", (point) => point.latency_median),
  figure("latency_p99", "Latency, p99", "ms", (point) => point.latency_p99),
  figure("latency_mean", "Latency, mean", "ms", (point) => point.latency_mean, true),
  figure("latency_first", "First subscriber", "ms", (point) => point.latency_first, true),
  figure("latency_last", "Last subscriber", "ms", (point) => point.latency_last, true),
  figure("cpu", "CPU", "% of core", (point) => point.cpu),
  figure("cpu_idle", "CPU, idle", "% of core", (point) => point.cpu_idle, true),
  figure("cpu_per_delivery", "CPU per delivery", "µs", (point) => point.cpu_per_delivery),
  figure("memory", "Memory", "MiB", (point) => point.memory),
  figure("memory_after", "Memory, after", "MiB", (point) => point.memory_after, true),
  figure("delivered", "Deliveries", "/s", (point) => point.delivered),
  figure("published", "Publications", "/s", (point) => point.published, true),
  figure("bytes", "Per delivery", "bytes", (point) => point.bytes_per_delivery, true),
  figure("generator_cpu", "Generator CPU", "% of core", (point) => point.generator_cpu, true),
  errors("lost", "Lost", (point) => point.lost),
  errors("duplicated", `Dupli${SOFT_HYPHEN}cated`, (point) => point.duplicated),
  errors("reordered", `Re${SOFT_HYPHEN}ordered`, (point) => point.reordered),
  other("caveats", "Caveats", (row) => {
    const { failures, voids, doubts } = row.point;
    return failures.length * 100 + voids.length * 100 + doubts.length;
  }),
];

function figure(
  id: string,
  title: string,
  unit: string,
  read: (point: Point) => Figure | null | undefined,
  extra = false,
): FigureColumn {
  const value = (point: Point) => read(point) ?? null;
  const sortBy = (row: Row) => value(row.point)?.value ?? null;
  return { kind: "figure", id, title, unit, extra, figure: value, sortBy };
}

function errors(id: string, title: string, count: (point: Point) => number): ErrorColumn {
  return { kind: "error", id, title, count, sortBy: (row) => count(row.point) };
}

function other(
  kind: OtherColumn["kind"],
  title: string,
  sortBy: (row: Row) => number | null,
): OtherColumn {
  return { kind, id: kind, title, sortBy };
}
