import type { ExperimentReport, PublishedSeconds, Series, Timeline } from "../generated/report";
import type { TimelineChoice } from "./view-state";

/** Places on the axis where a series has a timeline, ascending. */
export function timelinePlaces(series: Series): number[] {
  return series.points.filter((point) => point.timeline != null).map((point) => point.x);
}

/** Series that have at least one timeline. */
export function timelineSeries(experiment: ExperimentReport): Series[] {
  return experiment.series.filter((series) => timelinePlaces(series).length > 0);
}

/**
 * What to show before anybody has chosen: the place that most series share, the largest of
 * those, because that is where they differ most and can still be compared.
 */
export function representativeChoice(experiment: ExperimentReport): TimelineChoice | null {
  const holders = new Map<number, number>();
  for (const series of experiment.series) {
    for (const x of timelinePlaces(series)) {
      holders.set(x, (holders.get(x) ?? 0) + 1);
    }
  }
  const best = [...holders].sort((a, b) => b[1] - a[1] || b[0] - a[0])[0];
  if (best === undefined) return null;
  const series = experiment.series.find((one) => timelinePlaces(one).includes(best[0]));
  return series === undefined ? null : { series: series.key, x: best[0] };
}

/** The wanted choice if it exists, else the nearest place of its series, else the default. */
export function resolveChoice(
  experiment: ExperimentReport,
  wanted: TimelineChoice | undefined,
): TimelineChoice | null {
  const series = timelineSeries(experiment).find((one) => one.key === wanted?.series);
  if (wanted === undefined || series === undefined) return representativeChoice(experiment);
  const nearest = timelinePlaces(series).sort(
    (a, b) => Math.abs(a - wanted.x) - Math.abs(b - wanted.x),
  )[0];
  return nearest === undefined ? null : { series: series.key, x: nearest };
}

export function timelineOf(experiment: ExperimentReport, choice: TimelineChoice): Timeline | null {
  const series = experiment.series.find((one) => one.key === choice.series);
  return series?.points.find((point) => point.x === choice.x)?.timeline ?? null;
}

/** What the study gives of the seconds of the same cell: its series has the same key and one part more, or no key of its own. */
export function publishedSecondsOf(
  experiment: ExperimentReport,
  choice: TimelineChoice,
): PublishedSeconds | null {
  const chosen = experiment.series.find((one) => one.key === choice.series);
  if (chosen === undefined) return null;
  const isMeasured = (key: string) =>
    experiment.series.some((one) => `${one.key}/published` === key);
  const isOfSame = (one: Series) =>
    one.key === `${chosen.key}/published` ||
    (one.origin === "published" &&
      one.subject === chosen.subject &&
      one.transport === chosen.transport &&
      !isMeasured(one.key));
  const points = experiment.series.filter(isOfSame).flatMap((one) => one.points);
  return points.find((point) => point.x === choice.x)?.published_seconds ?? null;
}
