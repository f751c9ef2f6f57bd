import { formatCount } from "../format/number";
import { formatInstant } from "../format/words";
import type { Report } from "../generated/report";
import type { ViewState } from "../view/view-state";
import { besideCard } from "./scorecard-layout";
import { SectionNav } from "./section-nav";

/** Whether a console serves the page: in a stored file there is none to go back to. */
export function isServed({ protocol, pathname }: Pick<Location, "protocol" | "pathname">): boolean {
  return protocol.startsWith("http") && /^\/reports\/(\d+|compare)$/.test(pathname);
}

/** Whether the scorecard stands before everything else; what a comparison found stands before it. */
export function opensWithCard(report: Report): boolean {
  return report.card != null && report.comparison == null;
}

/** What the verdict says that the scorecard does not. */
export function Verdict({ report }: { report: Report }) {
  const sentences = besideCard(report.verdict, report.card);
  if (sentences.length === 0) return null;
  return (
    <section class="verdict" aria-label="Verdict">
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </section>
  );
}

export function ReportHeader({ report, view }: { report: Report; view: ViewState }) {
  const isCardFirst = opensWithCard(report);
  const partial = report.experiments.filter((one) => one.completeness === "partial");
  return (
    <header>
      {isServed(location) && (
        <nav aria-label="Console">
          <a href="/">← All results of this console</a>
        </nav>
      )}
      <p class="kicker">
        Pushlab report,{" "}
        <time dateTime={report.generated_at}>{formatInstant(report.generated_at)}</time>
      </p>
      <h1>{report.title}</h1>
      {!isCardFirst && <Verdict report={report} />}
      {partial.length > 0 && (
        <div class="notice" role="note">
          <strong>Unfinished. </strong>
          {partial.map((one) => (
            <span key={one.name}>
              {one.title}: {formatCount(one.runs_done)} of {formatCount(one.runs_planned)} runs are
              done.{" "}
            </span>
          ))}
          What is missing may change the verdict; the same command resumes the experiment.
        </div>
      )}
      {!isCardFirst && <SectionNav report={report} view={view} />}
    </header>
  );
}
