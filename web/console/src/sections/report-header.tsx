import { formatCount, plural } from "../format/number";
import { formatInstant } from "../format/words";
import type { Report } from "../generated/report";
import type { ViewState } from "../view/view-state";
import { SectionLink } from "./section-link";

/** Whether a console serves the page: in a stored file there is none to go back to. */
export function isServed({ protocol, pathname }: Pick<Location, "protocol" | "pathname">): boolean {
  return protocol.startsWith("http") && /^\/reports\/(\d+|compare)$/.test(pathname);
}

export function ReportHeader({ report, view }: { report: Report; view: ViewState }) {
  const partial = report.experiments.filter((one) => one.completeness === "partial");
  const voids = report.warnings.filter((warning) => warning.severity === "void").length;
  const warnings =
    report.warnings.length === 0
      ? "No warnings"
      : plural(report.warnings.length, "warning") +
        (voids > 0 ? `, ${formatCount(voids)} void` : "");
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
      {report.verdict.length > 0 && (
        <section class="verdict" aria-label="Verdict">
          {report.verdict.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </section>
      )}
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
      <nav aria-label="Sections">
        <ul>
          {report.comparison != null && (
            <li>
              <SectionLink view={view} section="comparison">
                Comparison
              </SectionLink>
            </li>
          )}
          {report.leaderboard != null && (
            <li>
              <SectionLink view={view} section="leaderboard">
                Leaderboard
              </SectionLink>
            </li>
          )}
          {report.experiments.map((one) => (
            <li key={one.name}>
              <SectionLink view={view} section={one.name}>
                {one.title}
              </SectionLink>
            </li>
          ))}
          {report.unobserved.length > 0 && (
            <li>
              <SectionLink view={view} section="not-seen">
                Not seen
              </SectionLink>
            </li>
          )}
          <li>
            <SectionLink view={view} section="warnings">
              {warnings}
            </SectionLink>
          </li>
          <li>
            <SectionLink view={view} section="environment">
              Environment
            </SectionLink>
          </li>
          <li>
            <SectionLink view={view} section="repeat">
              Repeat it
            </SectionLink>
          </li>
        </ul>
      </nav>
    </header>
  );
}
