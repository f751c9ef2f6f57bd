import { useEffect, useMemo } from "preact/hooks";
import { indexMetrics } from "../charts/metrics";
import type { Report } from "../generated/report";
import { identify } from "../series/identity";
import { useView } from "../view/use-view";
import { ComparisonSection } from "./comparison-section";
import { Environment } from "./environment";
import { ExperimentSection } from "./experiment-section";
import { LeaderboardSection } from "./leaderboard-section";
import { MetricsSection } from "./metrics-section";
import { NotSeen } from "./not-seen";
import { RepeatSection } from "./repeat-section";
import { opensWithCard, ReportHeader, Verdict } from "./report-header";
import { ScorecardSection } from "./scorecard-section";
import { SectionNav } from "./section-nav";
import { useOpenDetailsInPrint } from "./use-open-details-in-print";
import { Warnings } from "./warnings";

/** The whole report, from the verdict down to how to repeat it. */
export function Page({ report, seed }: { report: Report; seed: string }) {
  const [view, update] = useView();
  const identities = useMemo(() => identify(report.experiments), [report]);
  const metrics = useMemo(() => indexMetrics(report.metrics), [report]);
  useOpenDetailsInPrint();
  useEffect(() => {
    document.title = `${report.title} – Pushlab`;
  }, [report]);

  return (
    <>
      <ReportHeader report={report} view={view} />
      <main>
        {report.comparison != null && (
          <ComparisonSection
            comparison={report.comparison}
            metrics={metrics}
            view={view}
            update={update}
          />
        )}
        {report.card != null && <ScorecardSection card={report.card} view={view} update={update} />}
        {opensWithCard(report) && (
          <div class="after-card">
            <Verdict report={report} />
            <SectionNav report={report} view={view} />
          </div>
        )}
        {report.leaderboard != null && (
          <LeaderboardSection board={report.leaderboard} view={view} update={update} />
        )}
        {report.experiments.map((experiment) => (
          <ExperimentSection
            key={experiment.name}
            experiment={experiment}
            metrics={metrics}
            identities={identities}
            view={view}
            update={update}
          />
        ))}
        <NotSeen unobserved={report.unobserved} />
        <Warnings warnings={report.warnings} />
        <MetricsSection metrics={report.metrics} />
        <Environment facts={report.environment} />
        <RepeatSection repeat={report.repeat} seed={seed} />
      </main>
    </>
  );
}
