import { estimateOf, hasEstimate, type Metrics, metricOf } from "../charts/metrics";
import { axisHeading } from "../format/place";
import { BANDS } from "../format/words";
import type { ExperimentReport, Point, Series } from "../generated/report";

/** One row of the table: a cell of the experiment. */
export interface Row {
  series: Series;
  /** Position of the series in the experiment, its natural order. */
  order: number;
  point: Point;
}

interface ColumnBase {
  /** A metric's name, or a name with `@` that no metric has. */
  id: string;
  title: string;
  unit?: string;
  /** What the column is sorted by; null sorts last. */
  sortBy: (row: Row) => number | null;
}

export interface EstimateColumn extends ColumnBase {
  kind: "figure";
}

/** Errors in what was delivered: zero is expected, anything else must be seen; null is not known. */
export interface ErrorColumn extends ColumnBase {
  kind: "error";
  count: (point: Point) => number | null;
}

export interface OtherColumn extends ColumnBase {
  kind: "series" | "place" | "clients" | "runs" | "judgement" | "caveats";
}

export type ResultColumn = EstimateColumn | ErrorColumn | OtherColumn;

export const SERIES_COLUMN = "@series";

const REGIMES: readonly string[] = ["load", "stress"];
/** Where a long word may break. */
const SOFT_HYPHEN = "\u00ad";

/** The columns of the table of results: who and where, the figures, what to make of them. */
export function resultColumns(
  experiment: ExperimentReport,
  metrics: Metrics,
  extent: "main" | "all",
): ResultColumn[] {
  const { axis, series } = experiment;
  const points = series.flatMap((one) => one.points);
  const figures = [
    ...mainEstimates(experiment),
    ...(extent === "all" ? furtherEstimates(experiment, metrics) : []),
  ];
  return [
    other("series", SERIES_COLUMN, "Series", (row) => row.order),
    other("place", "@place", axisHeading(axis), (row) => row.point.x),
    ...when(
      axis.name !== "clients",
      other("clients", "@clients", "Clients", (row) => row.point.clients),
    ),
    other("runs", "@runs", "Runs", (row) => row.point.runs),
    ...when(
      points.some((point) => point.regime != null),
      judgement(),
    ),
    ...figures.map((name) => estimateColumn(metrics, name)),
    errors("@lost", "Lost", (point) => point.lost ?? null),
    errors("@duplicated", `Dupli${SOFT_HYPHEN}cated`, (point) => point.duplicated ?? null),
    errors("@reordered", `Re${SOFT_HYPHEN}ordered`, (point) => point.reordered ?? null),
    ...when(
      points.some((point) => caveats(point) > 0),
      caveatsColumn(),
    ),
  ];
}

/** Figures that are measured and not among the columns that the report asks for. */
export function furtherEstimates(experiment: ExperimentReport, metrics: Metrics): string[] {
  const shown = new Set(experiment.columns);
  const measured = experiment.series.flatMap((one) =>
    one.points.flatMap((point) => Object.keys(point.figures)),
  );
  const known = [...metrics.keys()].filter((name) => hasEstimate(experiment.series, name));
  return [...new Set([...known, ...measured])].filter((name) => !shown.has(name));
}

function mainEstimates(experiment: ExperimentReport): string[] {
  return experiment.columns.filter((name) => hasEstimate(experiment.series, name));
}

function estimateColumn(metrics: Metrics, name: string): EstimateColumn {
  const { title, unit } = metricOf(metrics, name);
  return {
    ...{ kind: "figure", id: name, title, unit },
    sortBy: (row) => estimateOf(row.point, name)?.value ?? null,
  };
}

function judgement(): OtherColumn {
  return other("judgement", "@judgement", "Regime, feels", ({ point }) => {
    const regime = REGIMES.indexOf(point.regime ?? "");
    return regime < 0 ? null : regime * 10 + BANDS.findIndex((one) => one.band === point.band);
  });
}

function caveatsColumn(): OtherColumn {
  return other("caveats", "@caveats", "Caveats", (row) => caveats(row.point));
}

function caveats({ failures, voids, warnings }: Point): number {
  return failures.length * 100 + voids.length * 100 + warnings.length;
}

function errors(id: string, title: string, count: (point: Point) => number | null): ErrorColumn {
  const sortBy = (row: Row) => (row.series.origin === "published" ? null : count(row.point));
  return { kind: "error", id, title, count, sortBy };
}

function other(
  kind: OtherColumn["kind"],
  id: string,
  title: string,
  sortBy: (row: Row) => number | null,
): OtherColumn {
  return { kind, id, title, sortBy };
}

function when<T>(condition: boolean, one: T): T[] {
  return condition ? [one] : [];
}
