import { useId } from "preact/hooks";
import { formatEstimateWithUnit, NO_INTERVAL } from "../format/estimate";
import { placeText, upperFirst } from "../format/place";
import { BANDS } from "../format/words";
import type { Axis, Estimate, Series } from "../generated/report";
import { Glyph, Marker } from "../series/glyph";
import type { Identity } from "../series/identity";
import { ChartCaption } from "./chart";
import { type DotRow, dotGroups, percentOn } from "./dot-rows";
import { isUnrepeated, type Metric } from "./metrics";
import { absence } from "./sweep-chart";
import { type ValueScale, valueScale } from "./value-scale";

interface DotChartProps {
  metric: Metric;
  axis: Axis;
  series: readonly Series[];
  identities: ReadonlyMap<string, Identity>;
}

/**
 * A metric at one place of the axis, or two: a row for each series. It is a table, so that it reads,
 * prints and reflows as text, with the drawing in its middle column.
 */
export function DotChart({ metric, axis, series, identities }: DotChartProps) {
  const id = useId();
  const groups = dotGroups(series, metric);
  const values = groups.flatMap((group) =>
    group.rows.flatMap(({ figure }) =>
      figure === null ? [] : [figure.value, figure.low, figure.high],
    ),
  );
  const scale = valueScale(metric, values, 5);
  const at = percentOn(scale);
  const unrepeated = isUnrepeated(series);
  const longest = Math.max(0, ...series.map((one) => one.label.length));
  const place = groups.length === 1 && groups[0] ? `at ${placeText(axis, groups[0].x)}` : "";
  const note = [place, metric.note].filter(Boolean).join("; ");
  return (
    <figure class="chart chart-dots">
      <ChartCaption id={id} title={metric.title} note={note} detail={metric.description} />
      <table
        aria-labelledby={id}
        style={{ "--track": trackBackground(metric, scale, at), "--label": `${longest}ch` }}
      >
        <colgroup>
          <col class="dots-label" />
          <col />
          <col class="dots-value" />
        </colgroup>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Series</th>
            <th scope="col">Position</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        {groups.map((group) => (
          <tbody key={group.x}>
            {groups.length > 1 && (
              <tr class="dots-heading">
                <th scope="rowgroup" colSpan={3}>
                  {upperFirst(placeText(axis, group.x))}
                </th>
              </tr>
            )}
            {group.rows.map((row) => (
              <SeriesRow
                key={row.series.key}
                row={row}
                metric={metric}
                scale={scale}
                unrepeated={unrepeated}
                identity={identities.get(row.series.key)}
              />
            ))}
          </tbody>
        ))}
        <Ticks scale={scale} />
      </table>
    </figure>
  );
}

/** The scale below the rows; screen readers have the values. */
function Ticks({ scale }: { scale: ValueScale }) {
  const at = percentOn(scale);
  return (
    <tfoot aria-hidden="true">
      <tr>
        <td />
        <td class="dots-ticks">
          <span>
            {scale.ticks.map((tick) => (
              <span key={tick} style={{ left: `${at(tick)}%` }}>
                {scale.format(tick)}
              </span>
            ))}
          </span>
        </td>
        <td />
      </tr>
    </tfoot>
  );
}

interface SeriesRowProps {
  row: DotRow;
  metric: Metric;
  scale: ValueScale;
  /** No figure has an interval, which is said once for all. */
  unrepeated: boolean;
  identity: Identity | undefined;
}

function SeriesRow({ row, metric, scale, unrepeated, identity }: SeriesRowProps) {
  const { figure, series, point } = row;
  const text = figure === null ? null : formatEstimateWithUnit(figure, metric.unit);
  const silent = text?.interval === NO_INTERVAL && (unrepeated || series.origin === "published");
  return (
    <tr class={row.starts ? "starts" : undefined}>
      <th scope="row">
        <Glyph identity={identity} line={false} />
        <span>{series.label}</span>
      </th>
      <td class="dots-track" aria-hidden="true">
        <span>
          {figure !== null && identity !== undefined && (
            <Place figure={figure} scale={scale} identity={identity} />
          )}
        </span>
      </td>
      <td class="number">
        {text === null ? (
          <span class="absent">{absence(point)}</span>
        ) : (
          <>
            {text.value} <span class="interval">{silent ? "" : text.interval}</span>
          </>
        )}
      </td>
    </tr>
  );
}

interface PlaceProps {
  figure: Estimate;
  scale: ValueScale;
  identity: Identity;
}

/** A stem from zero where there is a zero, the interval as a bar, the value as the series' marker. */
function Place({ figure, scale, identity }: PlaceProps) {
  const at = percentOn(scale);
  const { bound } = figure;
  const [low, high, value] = [at(figure.low), at(figure.high), at(figure.value)];
  const zero = at(0);
  const colour = { color: identity.colour };
  const stem = { left: `${Math.min(zero, value)}%`, width: `${Math.abs(value - zero)}%` };
  const spread = bound === "range" || ((bound == null || bound === "min") && figure.runs > 1);
  return (
    <>
      {scale.type === "linear" && (
        <span class={identity.hollow ? "stem printed" : "stem"} style={{ ...stem, ...colour }} />
      )}
      {spread && (
        <span class="arms" style={{ left: `${low}%`, width: `${high - low}%`, ...colour }} />
      )}
      {(bound === "below" || bound === "max") && (
        <span class="limit" style={{ left: `${value}%`, ...colour }}>
          ←
        </span>
      )}
      {bound === "min" && (
        <span class="limit lower" style={{ left: `${value}%`, ...colour }}>
          →
        </span>
      )}
      <span class="spot" style={{ left: `${value}%` }}>
        <Marker identity={identity} />
      </span>
    </>
  );
}

/** Bands, grid and border as layers of one background, the same in every row. */
function trackBackground(metric: Metric, scale: ValueScale, at: (value: number) => number): string {
  const line = (value: number, colour: string, width: number) =>
    `linear-gradient(${colour},${colour}) ${at(value)}% 0/${width}px 100% no-repeat`;
  const layers = [
    ...(metric.backdrop === "full-core" ? [line(100, "var(--border-line)", 1.5)] : []),
    ...scale.ticks.map((tick) => line(tick, "var(--grid)", 1)),
  ];
  if (metric.backdrop === "bands") {
    const stops = BANDS.filter((band) => band.from < scale.domain[1]).map(
      (band, index) =>
        `var(--band-${index + 1}) ${at(Math.max(band.from, scale.domain[0]))}% ${at(Math.min(band.below, scale.domain[1]))}%`,
    );
    layers.push(`linear-gradient(to right,${stops.join(",")})`);
  }
  return layers.join(",");
}
