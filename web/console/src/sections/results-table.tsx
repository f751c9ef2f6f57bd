import { useMemo } from "preact/hooks";
import { BANDS } from "../format/words";
import type { Sort } from "../view/view-state";
import { ExcludedRuns } from "./excluded-runs";
import type { ExperimentProps } from "./experiment-section";
import { SeriesCell, TableCell } from "./results-cells";
import { COLUMNS, SERIES_COLUMN } from "./results-columns";
import { nextSort, rowsOf, sortRows } from "./results-order";

/** Every figure of the experiment, one row for each series and client count. */
export function ResultsTable({ experiment, identities, view, update }: ExperimentProps) {
  const titleId = `${experiment.name}-figures`;
  const rows = useMemo(() => rowsOf(experiment), [experiment]);
  const sort = view.sorts[experiment.name];
  const sorted = sortRows(rows, sort);
  const columns = COLUMNS.filter((column) => view.columns === "all" || column.extra !== true);

  const press = (column: string) => {
    const { [experiment.name]: _, ...others } = view.sorts;
    const next = nextSort(sort, column);
    update({ sorts: next === undefined ? others : { ...others, [experiment.name]: next } });
  };

  return (
    <section aria-labelledby={`${titleId} ${experiment.name}-title`}>
      <h3 id={titleId}>All figures</h3>
      <div class="controls">
        <label>
          <input
            type="checkbox"
            checked={view.columns === "all"}
            onChange={(event) => update({ columns: event.currentTarget.checked ? "all" : "main" })}
          />
          All columns
        </label>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <section class="scroll" tabIndex={0} aria-label={`Figures of ${experiment.title}`}>
        <table class={view.columns === "all" ? "results results-all" : "results"}>
          <caption>
            <span>
              Estimates with their 95 % intervals below them. Regime: stress is a server at one full
              core. Feels: {BANDS.map((band) => `${band.name} ${band.range}`).join(", ")}. Press a
              heading to sort.
            </span>
          </caption>
          <thead>
            <tr>
              <Heading id={SERIES_COLUMN} title="Series" sort={sort} press={press} />
              {columns.map((column) => (
                <Heading
                  key={column.id}
                  id={column.id}
                  title={column.title}
                  unit={column.unit}
                  sort={sort}
                  press={press}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.map((row, index) => (
              <tr
                key={`${row.series.key}@${row.point.clients}`}
                class={row.series !== sorted[index - 1]?.series ? "starts" : undefined}
              >
                <SeriesCell row={row} identity={identities.get(row.series.key)} />
                {columns.map((column) => (
                  <TableCell key={column.id} column={column} row={row} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <ExcludedRuns rows={rows} />
    </section>
  );
}

interface HeadingProps {
  id: string;
  title: string;
  unit?: string | undefined;
  sort: Sort | undefined;
  press: (column: string) => void;
}

function Heading({ id, title, unit, sort, press }: HeadingProps) {
  const active = sort?.column === id;
  const direction = !active ? "none" : sort.descending ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={direction} class={`col-${id}`}>
      <button type="button" onClick={() => press(id)}>
        {title}
        {unit !== undefined && <span class="unit"> {unit}</span>}
        <span class="arrow" aria-hidden="true">
          {active ? (sort.descending ? "▼" : "▲") : ""}
        </span>
      </button>
    </th>
  );
}
