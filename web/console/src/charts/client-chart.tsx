import { useMemo, useState } from "preact/hooks";
import { formatFigureWithUnit } from "../format/figure";
import { plural } from "../format/number";
import type { Point, Series } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { Identity } from "../series/identity";
import { Chart } from "./chart";
import { drawClientPlot } from "./client-plot";
import type { Metric } from "./metrics";
import type { TooltipContent } from "./tooltip";

interface ClientChartProps {
  metric: Metric;
  series: readonly Series[];
  identities: ReadonlyMap<string, Identity>;
  focus: string | null;
  wide?: boolean;
}

export function ClientChart({ metric, series, identities, focus, wide = false }: ClientChartProps) {
  const [cursor, setCursor] = useState<number | null>(null);
  const draw = useMemo(
    () => (width: number, height: number) =>
      drawClientPlot({ metric, series, identities, focus }, width, height),
    [metric, series, identities, focus],
  );
  const stops = useMemo(
    () =>
      [...new Set(series.flatMap((one) => one.points.map((point) => point.clients)))].sort(
        (a, b) => a - b,
      ),
    [series],
  );

  const tooltip = (clients: number): TooltipContent => {
    const rows = series.flatMap((one) => {
      const point = one.points.find((candidate) => candidate.clients === clients);
      if (point === undefined) return [];
      const figure = metric.figure(point);
      const text = figure === null ? null : formatFigureWithUnit(figure, metric.unit);
      return {
        order: figure?.value ?? Number.NEGATIVE_INFINITY,
        key: one.key,
        mark: <Glyph identity={identities.get(one.key)} />,
        label: one.label,
        value: text?.value ?? "–",
        aside: text?.interval ?? absence(point),
      };
    });
    // As in the chart: the highest line on top.
    rows.sort((a, b) => b.order - a.order);
    return { heading: plural(clients, "client"), rows };
  };

  return (
    <Chart
      title={metric.title}
      note={metric.note}
      description={`${metric.title} ${metric.note}, against the number of clients, for ${series
        .map((one) => one.label)
        .join(", ")}. The table below holds the same figures.`}
      wide={wide}
      draw={draw}
      stops={stops}
      cursor={cursor}
      onCursor={setCursor}
      tooltip={tooltip}
    />
  );
}

function absence(point: Point): string {
  if (point.runs > 0) return "not measured";
  if (point.voids.length > 0) return "void";
  if (point.failures.length > 0) return "failed";
  return "not run";
}
