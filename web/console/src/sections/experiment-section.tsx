import { useMemo } from "preact/hooks";
import type { Metrics } from "../charts/metrics";
import { formatCount, formatExact, joinUnit, plural } from "../format/number";
import { lowerFirst, placeText } from "../format/place";
import type { Axis, ExperimentReport } from "../generated/report";
import type { Identity } from "../series/identity";
import type { UpdateView } from "../view/use-view";
import type { ViewState } from "../view/view-state";
import { Alarms } from "./alarms";
import { Charts } from "./charts";
import { DataTables } from "./data-tables";
import { Expectations } from "./expectations";
import { Rankings } from "./rankings";
import { ResultsTable } from "./results-table";
import { TimelineSection } from "./timeline-section";

export interface ExperimentProps {
  experiment: ExperimentReport;
  metrics: Metrics;
  identities: ReadonlyMap<string, Identity>;
  view: ViewState;
  update: UpdateView;
}

export function ExperimentSection(props: ExperimentProps) {
  const { experiment, metrics, identities, view, update } = props;
  const series = useMemo(
    () =>
      experiment.series.filter((one) => view.published === "shown" || one.origin !== "published"),
    [experiment, view.published],
  );
  return (
    <section class="experiment" id={experiment.name} tabIndex={-1} aria-label={experiment.title}>
      <h2>{experiment.title}</h2>
      {experiment.description !== "" && <p class="lead">{withCode(experiment.description)}</p>}
      <p class="facts">
        <code>{experiment.name}</code> <Extent experiment={experiment} />
        {experiment.completeness === "partial" && <span class="tag tag-warning">unfinished</span>}
      </p>
      {experiment.networks.length > 0 && (
        <p class="facts">Network: {experiment.networks.join("; ")}</p>
      )}
      {experiment.clocks !== undefined && (
        <p class="facts">Clocks: {experiment.clocks.join("; ")}</p>
      )}
      {experiment.study != null && experiment.study !== "" && (
        <p class="facts">Repeats {experiment.study}</p>
      )}
      {experiment.series.length === 0 ? (
        <p class="empty">No run has been recorded yet.</p>
      ) : (
        <>
          <Expectations experiment={experiment} />
          <Alarms experiment={experiment} />
          <Charts {...props} series={series} />
          <DataTables experiment={experiment} />
          <ResultsTable {...props} series={series} />
          <Rankings experiment={experiment} metrics={metrics} identities={identities} />
          <TimelineSection experiment={experiment} view={view} update={update} />
        </>
      )}
    </section>
  );
}

/** Descriptions have names between backticks, as other texts of the project do. */
function withCode(text: string) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}

function Extent({ experiment }: { experiment: ExperimentReport }) {
  const measured = experiment.series.filter((one) => one.origin !== "published");
  const places = measured.flatMap((one) => one.points.map((point) => point.x));
  const subjects = new Set(measured.map((one) => one.subject));
  const parts = [...subjects];
  if (places.length > 0) parts.push(spanText(experiment.axis, places));
  parts.push(`${formatCount(experiment.runs_done)} of ${plural(experiment.runs_planned, "run")}`);
  return <span>{parts.join(", ")}</span>;
}

function spanText(axis: Axis, places: readonly number[]): string {
  const [least, most] = [Math.min(...places), Math.max(...places)];
  if (least === most) return placeText(axis, most);
  if (axis.name === "clients") return `${formatCount(least)} to ${placeText(axis, most)}`;
  const to = joinUnit(formatExact(most), axis.unit);
  return `${lowerFirst(axis.title)} ${formatExact(least)} to ${to}`;
}
