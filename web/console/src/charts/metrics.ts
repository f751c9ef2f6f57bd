import { soundEstimate } from "../format/estimate";
import type { Estimate, ExperimentReport, MetricInfo, Point, Series } from "../generated/report";

/** Response time has bands; CPU has the border between load and stress. */
export type Backdrop = "bands" | "full-core";

/** A metric as charts and tables need it. */
export interface Metric {
  name: string;
  title: string;
  unit: string;
  scale: "log" | "linear";
  /** Unit, direction and scale in a line; may be empty. */
  note: string;
  /** What exactly is measured; may be empty. */
  description: string;
  backdrop: Backdrop | undefined;
}

export type Metrics = ReadonlyMap<string, MetricInfo>;

export function indexMetrics(metrics: readonly MetricInfo[]): Metrics {
  return new Map(metrics.map((metric) => [metric.name, metric]));
}

/** A metric by its name; one that the report does not describe is shown under its name. */
export function metricOf(metrics: Metrics, name: string): Metric {
  const info = metrics.get(name);
  const unit = info?.unit ?? "";
  const log = info?.is_logarithmic ?? false;
  const notes = [unit, DIRECTIONS[info?.better ?? "neither"], log ? "log scale" : ""];
  return {
    name,
    title: info?.title || name,
    unit,
    scale: log ? "log" : "linear",
    note: notes.filter(Boolean).join("; "),
    description: info?.description ?? "",
    backdrop: backdropOf(name, unit, log),
  };
}

const DIRECTIONS: Record<MetricInfo["better"], string> = {
  lower: "lower is better",
  higher: "higher is better",
  neither: "",
};

/** The only metrics known by name: what a response time feels like, and where a core is full. */
function backdropOf(name: string, unit: string, log: boolean): Backdrop | undefined {
  if (name === "cpu") return "full-core";
  return name.startsWith("response") && unit === "ms" && log ? "bands" : undefined;
}

/** The figure of a point, if it was measured. */
export function estimateOf(point: Point, name: string): Estimate | null {
  return Object.hasOwn(point.figures, name) ? soundEstimate(point.figures[name]) : null;
}

/** Charts that have something to draw. */
export function chartsOf(experiment: ExperimentReport, metrics: Metrics): Metric[] {
  return experiment.charts
    .filter((name) => hasEstimate(experiment.series, name))
    .map((name) => metricOf(metrics, name));
}

export function hasEstimate(series: readonly Series[], name: string): boolean {
  return series.some((one) => one.points.some((point) => estimateOf(point, name) !== null));
}

/** Places on the axis at which anything stands, ascending. */
export function placesOf(series: readonly Series[]): number[] {
  const places = new Set(series.flatMap((one) => one.points.map((point) => point.x)));
  return [...places].sort((a, b) => a - b);
}

/** Whether nothing was measured twice, so that no figure has an interval. */
export function isUnrepeated(series: readonly Series[]): boolean {
  const measured = series.filter((one) => one.origin !== "published");
  return measured.every((one) => one.points.every((point) => point.runs <= 1));
}
