import type { ChartSize } from "../charts/chart";
import { DotChart } from "../charts/dot-chart";
import { isSinglePoint } from "../charts/dot-rows";
import { chartsOf } from "../charts/metrics";
import { SweepChart } from "../charts/sweep-chart";
import { lowerFirst } from "../format/place";
import type { Series } from "../generated/report";
import type { ExperimentProps } from "./experiment-section";
import { Legend } from "./legend";

interface ChartsProps extends ExperimentProps {
  series: readonly Series[];
}

/** The metrics of an experiment: lines along the axis, or rows where there is nothing to follow. */
export function Charts(props: ChartsProps) {
  const { experiment, series, metrics, identities, view } = props;
  const { axis } = experiment;
  const charts = chartsOf({ ...experiment, series: [...series] }, metrics);
  if (charts.length === 0) return null;
  const single = isSinglePoint(experiment.series);
  const focus = series.some((one) => one.key === view.focus) ? view.focus : null;
  const title = single ? "Side by side" : `Against ${lowerFirst(axis.title)}`;
  return (
    <section aria-label={`${title}: ${experiment.title}`}>
      <h3>{title}</h3>
      <Legend {...props} rows={single} />
      <div class="charts">
        {charts.map((metric, index) =>
          single ? (
            <DotChart key={metric.name} {...{ metric, axis, series, identities }} />
          ) : (
            <SweepChart
              key={metric.name}
              {...{ metric, axis, series, identities, focus }}
              size={chartSize(index, charts.length)}
            />
          ),
        )}
      </div>
    </section>
  );
}

/** Up to so many charts are all large. */
const LARGE_MAX = 5;

/**
 * The first three to five charts are large, one over the full width where the others make pairs; as
 * many as leave full rows of three for the rest, which is further detail and gets less room.
 */
export function chartSize(index: number, count: number): ChartSize {
  const large = count <= LARGE_MAX ? count : LARGE_MAX - ((LARGE_MAX - (count % 3)) % 3);
  if (index >= large) return "small";
  return index === 0 && large % 2 === 1 ? "wide" : "normal";
}
