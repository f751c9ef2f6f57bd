import { useMemo } from "preact/hooks";
import { BANDS } from "../format/words";
import type { Series } from "../generated/report";
import type { Sort } from "../view/view-state";
import { ExcludedRuns } from "./excluded-runs";
import type { ExperimentProps } from "./experiment-section";
import { ResultCell } from "./results-cells";
import { furtherEstimates, type ResultColumn, resultColumns } from "./results-columns";
import { nextSort, rowsOf, sortRows } from "./results-order";
import { ScrollBox } from "./scroll-box";

interface ResultsTableProps extends ExperimentProps {
  series: readonly Series[];
}

/** Every figure of the experiment, one row for each series and place on the axis. */
export function ResultsTable(props: ResultsTableProps) {
  const { experiment, series, metrics, identities, view, update } = props;
  const rows = useMemo(() => rowsOf(series), [series]);
  const columns = useMemo(
    () => resultColumns(experiment, metrics, view.columns),
    [experiment, metrics, view.columns],
  );
  const further = useMemo(() => furtherEstimates(experiment, metrics), [experiment, metrics]);
  const sort = view.sorts[experiment.name];
  const sorted = sortRows(rows, columns, sort);

  const press = (column: string) => {
    const { [experiment.name]: _, ...others } = view.sorts;
    const next = nextSort(sort, column);
    update({ sorts: next === undefined ? others : { ...others, [experiment.name]: next } });
  };

  return (
    <section aria-label={`Results of ${experiment.title}`}>
      <h3>All results</h3>
      <p class="note">
        {captionOf(columns)} <span class="on-screen">Press a heading to sort.</span>
      </p>
      {further.length > 0 && (
        <div class="controls">
          <label>
            <input
              type="checkbox"
              checked={view.columns === "all"}
              onChange={(event) =>
                update({ columns: event.currentTarget.checked ? "all" : "main" })
              }
            />
            All columns
          </label>
        </div>
      )}
      <ScrollBox label={`Figures of ${experiment.title}`}>
        <table class={`data results ${densityOf(columns.length)}`}>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading key={column.id} column={column} sort={sort} press={press} />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.map((row, index) => (
              <tr
                key={`${row.series.key}@${row.point.x}`}
                class={row.series !== sorted[index - 1]?.series ? "starts" : undefined}
              >
                {columns.map((column) => (
                  <ResultCell
                    key={column.id}
                    column={column}
                    row={row}
                    identity={identities.get(row.series.key)}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
      <ExcludedRuns rows={rows} axis={experiment.axis} />
    </section>
  );
}

/** Paper does not scroll, so there a table of many columns is set smaller. */
function densityOf(columns: number): string {
  if (columns <= 14) return "";
  return columns <= 18 ? "results-dense" : "results-packed";
}

function captionOf(columns: readonly ResultColumn[]): string {
  const bands = BANDS.map((band) => `${band.name} ${band.range}`).join(", ");
  const judged = columns.some((column) => column.kind === "judgement")
    ? ` Regime: stress is a server at one full core. Feels: ${bands}.`
    : "";
  return `Estimates with their 95 % intervals.${judged}`;
}

interface HeadingProps {
  column: ResultColumn;
  sort: Sort | undefined;
  press: (column: string) => void;
}

function Heading({ column: { id, kind, title, unit }, sort, press }: HeadingProps) {
  const active = sort?.column === id;
  const direction = !active ? "none" : sort.descending ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={direction} class={`col-${kind}`}>
      <button type="button" onClick={() => press(id)}>
        {title}
        {unit !== undefined && unit !== "" && <span class="unit"> {unit}</span>}
        <span class="arrow" aria-hidden="true">
          {active ? (sort.descending ? "▼" : "▲") : ""}
        </span>
      </button>
    </th>
  );
}
