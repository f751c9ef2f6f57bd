import { useMemo, useState } from "preact/hooks";
import { formatEstimateWithUnit, NO_INTERVAL } from "../format/estimate";
import { lowerFirst, placeText, upperFirst } from "../format/place";
import type { Axis, Point, Series } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import { Chart, type ChartSize } from "./chart";
import { estimateOf, hasEstimate, type Metric, placesOf } from "./metrics";
import { drawSweepPlot } from "./sweep-plot";
import type { TooltipContent } from "./tooltip";

interface SweepChartProps {
  metric: Metric;
  axis: Axis;
  series: readonly Series[];
  identities: ReadonlyMap<string, Identity>;
  focus: string | null;
  size: ChartSize;
}

/** A metric along the axis: a line for each series. */
export function SweepChart(props: SweepChartProps) {
  const { metric, axis, identities, focus, size } = props;
  const [cursor, setCursor] = useState<number | null>(null);
  // A study has numbers for a few metrics only; in the other charts its series would be empty rows.
  const series = useMemo(
    () =>
      props.series.filter((one) => one.origin === "measured" || hasEstimate([one], metric.name)),
    [props.series, metric],
  );
  const draw = useMemo(
    () => (width: number, height: number) =>
      drawSweepPlot({ metric, axis, series, identities, focus }, width, height),
    [metric, axis, series, identities, focus],
  );
  const stops = useMemo(() => placesOf(series), [series]);

  return (
    <Chart
      title={metric.title}
      note={metric.note}
      detail={metric.description}
      description={`${metric.title}${metric.unit === "" ? "" : `, ${metric.unit}`}, against ${lowerFirst(axis.title)}, for ${series
        .map((one) => one.label)
        .join(", ")}. The table of results holds the same figures.`}
      size={size}
      draw={draw}
      stops={stops}
      cursor={cursor}
      onCursor={setCursor}
      tooltip={(x) => tooltipAt(x, metric, axis, series, identities)}
    />
  );
}

function tooltipAt(
  x: number,
  metric: Metric,
  axis: Axis,
  series: readonly Series[],
  identities: ReadonlyMap<string, Identity>,
): TooltipContent {
  const rows = series.flatMap((one) => {
    const point = one.points.find((candidate) => candidate.x === x);
    if (point === undefined) return [];
    const figure = estimateOf(point, metric.name);
    const published = one.origin === "published";
    if (figure === null && published) return [];
    const text = figure === null ? null : formatEstimateWithUnit(figure, metric.unit);
    // A study's single value is no single run.
    const interval = published && text?.interval === NO_INTERVAL ? "" : text?.interval;
    return {
      order: figure?.value ?? Number.NEGATIVE_INFINITY,
      key: one.key,
      mark: <Glyph identity={identities.get(one.key)} />,
      label: one.label,
      value: text?.value ?? "–",
      aside: interval ?? absence(point),
    };
  });
  // As in the chart: the highest line on top.
  rows.sort((a, b) => b.order - a.order);
  return { heading: upperFirst(placeText(axis, x)), rows };
}

/** Why there is no figure. */
export function absence(point: Point): string {
  if (point.runs > 0) return "not measured";
  if (point.voids.length > 0) return "void";
  if (point.failures.length > 0) return "failed";
  return "not run";
}
