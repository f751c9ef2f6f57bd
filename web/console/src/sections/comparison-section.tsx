import { type Metrics, metricOf } from "../charts/metrics";
import { formatDifference, NO_INTERVAL, soundEstimate } from "../format/estimate";
import { formatChance, formatChange, formatCount, joinUnit } from "../format/number";
import type { Comparison, ComparisonRow } from "../generated/report";
import type { UpdateView } from "../view/use-view";
import type { ViewState } from "../view/view-state";
import { Badge, Tally } from "./badge";
import { EstimateCell } from "./results-cells";
import { ScrollBox } from "./scroll-box";

interface ComparisonProps {
  comparison: Comparison;
  metrics: Metrics;
  view: ViewState;
  update: UpdateView;
}

/** What results differ in; rows that are equivalent wait behind a button. */
export function ComparisonSection({ comparison, metrics, view, update }: ComparisonProps) {
  const { baseline, candidates, summary, missing, rows } = comparison;
  const equivalent = rows.filter((row) => row.change === "equivalent").length;
  const all = view.unchanged === "shown";
  const shown = all ? rows : rows.filter((row) => row.change !== "equivalent");
  return (
    <section id="comparison" tabIndex={-1} aria-labelledby="comparison-title">
      <h2 id="comparison-title">Comparison</h2>
      <p class="facts">
        {candidates.join(", ")} against {baseline}
      </p>
      {summary !== "" && <p class="lead summary">{summary}</p>}
      {missing.length > 0 && (
        <>
          <p>Cells without a run that counts any more:</p>
          <ul>
            {missing.map((cell) => (
              <li key={cell}>{cell}</li>
            ))}
          </ul>
        </>
      )}
      <Tally
        kinds={["worse", "better", "different", "undecided", "unknown", "equivalent"]}
        of={rows.map((row) => row.change)}
      />
      {shown.length > 0 && (
        <ScrollBox label="Differences">
          <ComparisonTable comparison={comparison} rows={shown} metrics={metrics} />
        </ScrollBox>
      )}
      {equivalent > 0 && (
        <p>
          <button
            type="button"
            class="more"
            aria-expanded={all}
            onClick={() => update({ unchanged: all ? "hidden" : "shown" })}
          >
            {all ? "Hide" : "Show"} {formatCount(equivalent)} equivalent
          </button>
        </p>
      )}
      <p class="note">
        Difference: candidate minus baseline, with its 95 % interval. Relative: with intervals wide
        enough to hold for all rows together. p: how likely a difference this large would be if
        there were none, corrected for the number of rows. Equivalent: within the margin that was
        fixed beforehand, shown by two one-sided tests. Undecided: neither was shown.
      </p>
    </section>
  );
}

interface ComparisonTableProps {
  comparison: Comparison;
  rows: readonly ComparisonRow[];
  metrics: Metrics;
}

function ComparisonTable({ comparison, rows, metrics }: ComparisonTableProps) {
  const several = comparison.candidates.length > 1;
  return (
    <table class="data comparison">
      <thead>
        <tr>
          <th scope="col">Cell</th>
          {several && <th scope="col">Candidate</th>}
          <th scope="col">Metric</th>
          <th scope="col">Change</th>
          <th scope="col" class="number">
            Difference
          </th>
          <th scope="col" class="number">
            Relative
          </th>
          <th scope="col">Effect</th>
          <th scope="col" class="number">
            p
          </th>
          <th scope="col" class="number">
            {several ? "Baseline" : comparison.baseline}
          </th>
          <th scope="col" class="number">
            {several ? "Candidate" : (comparison.candidates[0] ?? "Candidate")}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <ComparisonRowView
            key={`${row.candidate} ${row.cell} ${row.metric}`}
            row={row}
            several={several}
            metrics={metrics}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  row: ComparisonRow;
  several: boolean;
  metrics: Metrics;
}

function ComparisonRowView({ row, several, metrics }: RowProps) {
  const { title, unit } = metricOf(metrics, row.metric);
  return (
    <tr>
      <th scope="row">{row.cell}</th>
      {several && <td class="text">{row.candidate}</td>}
      <td class="text">{title}</td>
      <td>
        <Badge kind={row.change} />
      </td>
      <DifferenceCell row={row} unit={unit} />
      <RelativeCell row={row} />
      <td>{row.magnitude}</td>
      <td class="number">{row.p_value == null ? "–" : formatChance(row.p_value)}</td>
      <EstimateCell figure={soundEstimate(row.baseline)} />
      <EstimateCell figure={soundEstimate(row.value)} />
    </tr>
  );
}

function DifferenceCell({ row, unit }: { row: ComparisonRow; unit: string }) {
  const difference = soundEstimate(row.difference);
  if (difference === null) return <td class="number absent">–</td>;
  const text = formatDifference(difference);
  return (
    <td class="number">
      <strong>{joinUnit(text.value, unit)}</strong>{" "}
      <span class="interval">{text.interval === NO_INTERVAL ? "no interval" : text.interval}</span>
    </td>
  );
}

function RelativeCell({ row: { relative_percent, factor } }: { row: ComparisonRow }) {
  const percent = (times: number) => formatChange((times - 1) * 100);
  return (
    <td class="number">
      {percentText(relative_percent)}
      {factor != null && (
        <span class="interval">
          {" "}
          {percent(factor.low)} to {percent(factor.high)}
        </span>
      )}
    </td>
  );
}

function percentText(percent: number | null | undefined): string {
  return percent == null || !Number.isFinite(percent) ? "–" : formatChange(percent);
}
