import { useEffect, useMemo } from "preact/hooks";
import type { Report } from "../generated/report";
import { identify } from "../series/identity";
import { useView } from "../view/use-view";
import { Doubts } from "./doubts";
import { Environment } from "./environment";
import { ExperimentSection } from "./experiment-section";
import { RepeatSection } from "./repeat-section";
import { ReportHeader } from "./report-header";
import { useOpenDetailsInPrint } from "./use-open-details-in-print";

/** The whole report, from the verdict down to how to repeat it. */
export function Page({ report, seed }: { report: Report; seed: string }) {
  const [view, update] = useView();
  const identities = useMemo(() => identify(report.experiments), [report]);
  useOpenDetailsInPrint();
  useEffect(() => {
    document.title = `${report.title} – Pushlab`;
  }, [report]);

  return (
    <>
      <ReportHeader report={report} view={view} />
      <main>
        {report.experiments.map((experiment) => (
          <ExperimentSection
            key={experiment.name}
            experiment={experiment}
            identities={identities}
            view={view}
            update={update}
          />
        ))}
        <Doubts doubts={report.doubts} />
        <Environment facts={report.environment} />
        <RepeatSection repeat={report.repeat} seed={seed} />
      </main>
    </>
  );
}
