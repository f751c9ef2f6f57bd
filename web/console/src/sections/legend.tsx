import { isUnrepeated } from "../charts/metrics";
import type { Bound, Series } from "../generated/report";
import { Glyph } from "../series/glyph";
import type { ExperimentProps } from "./experiment-section";

interface LegendProps extends ExperimentProps {
  /** Series that are drawn. */
  series: readonly Series[];
  /** Whether each series has a row with its name, so that lines need not be named here. */
  rows: boolean;
}

/** Names the lines of all charts below; a name is a button that makes its line stand out. */
export function Legend(props: LegendProps) {
  const { experiment, series, rows, identities, view, update } = props;
  const published = experiment.series.some((one) => one.origin === "published");
  return (
    <div class="legend">
      {!rows && (
        <ul aria-label="Series; press one to make it stand out">
          {series.map((one) => (
            <li key={one.key}>
              <button
                type="button"
                aria-pressed={view.focus === one.key}
                onClick={() => update({ focus: view.focus === one.key ? null : one.key })}
              >
                <Glyph identity={identities.get(one.key)} />
                <span>{one.label}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {published && (
        <label class="toggle">
          <input
            type="checkbox"
            checked={view.published === "shown"}
            onChange={(event) =>
              update({ published: event.currentTarget.checked ? "shown" : "hidden" })
            }
          />
          Published numbers
        </label>
      )}
      <p class="note">{noteOf(series, rows)}</p>
    </div>
  );
}

function noteOf(series: readonly Series[], rows: boolean): string {
  const measured = series.filter((one) => one.origin !== "published");
  const notes: string[] = [];
  if (isUnrepeated(series)) notes.push("One run each: no intervals.");
  else {
    const single = measured.some((one) => one.points.some((point) => point.runs === 1));
    notes.push(`${rows ? "Bar" : "Shaded"}: 95 % interval over the repeats.`);
    if (single && !rows) notes.push("Small marker: one run, no interval.");
  }
  if (measured.length < series.length) {
    notes.push(
      rows ? "Hollow: printed in the study." : "Dashed, with hollow markers: printed in the study.",
    );
  }
  if (hasBound(series, ["below", "max"])) notes.push("Arrow towards smaller values: at most this.");
  if (hasBound(series, ["min"])) {
    notes.push(
      "Arrow towards larger values, ≥: at least this; the load generator reached its limit first.",
    );
  }
  return notes.join(" ");
}

function hasBound(series: readonly Series[], bounds: readonly Bound[]): boolean {
  const figures = series.flatMap((one) =>
    one.points.flatMap((point) => Object.values(point.figures)),
  );
  return figures.some(({ bound }) => bound != null && bounds.includes(bound));
}
