import { ClientChart } from "../charts/client-chart";
import { chartMetrics } from "../charts/metrics";
import { formatCount, plural } from "../format/number";
import type { ExperimentReport } from "../generated/report";
import type { Identity } from "../series/identity";
import type { UpdateView } from "../view/use-view";
import type { ViewState } from "../view/view-state";
import { Legend } from "./legend";
import { Rankings } from "./rankings";
import { ResultsTable } from "./results-table";
import { TimelineSection } from "./timeline-section";

export interface ExperimentProps {
  experiment: ExperimentReport;
  identities: ReadonlyMap<string, Identity>;
  view: ViewState;
  update: UpdateView;
}

export function ExperimentSection(props: ExperimentProps) {
  const { experiment, identities, view, update } = props;
  const known = experiment.series.some((one) => one.key === view.focus);
  return (
    <section
      class="experiment"
      id={experiment.name}
      tabIndex={-1}
      aria-labelledby={`${experiment.name}-title`}
    >
      <h2 id={`${experiment.name}-title`}>{experiment.title}</h2>
      <p class="lead">{experiment.description}</p>
      <p class="facts">
        <code>{experiment.name}</code> <Extent experiment={experiment} />
        {experiment.completeness === "partial" && <span class="tag tag-warning">unfinished</span>}
      </p>
      {experiment.series.length === 0 ? (
        <p class="empty">No run has been recorded yet.</p>
      ) : (
        <>
          <h3 id={`${experiment.name}-charts`}>Against clients</h3>
          <Legend {...props} />
          <div class="charts">
            {chartMetrics(view.latency).map((metric, index) => (
              <ClientChart
                key={metric.id}
                metric={metric}
                series={experiment.series}
                identities={identities}
                focus={known ? view.focus : null}
                wide={index === 0}
              />
            ))}
          </div>
          <TimelineSection experiment={experiment} view={view} update={update} />
          <Rankings experiment={experiment} identities={identities} />
          <ResultsTable {...props} />
        </>
      )}
    </section>
  );
}

function Extent({ experiment }: { experiment: ExperimentReport }) {
  const counts = experiment.series.flatMap((one) => one.points.map((point) => point.clients));
  const subjects = new Set(experiment.series.map((one) => one.subject));
  const parts = [...subjects];
  if (counts.length > 0) {
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    const upTo = plural(most, "client");
    parts.push(least === most ? upTo : `${formatCount(least)} to ${upTo}`);
  }
  parts.push(`${formatCount(experiment.runs_done)} of ${plural(experiment.runs_planned, "run")}`);
  return <span>{parts.join(", ")}</span>;
}
