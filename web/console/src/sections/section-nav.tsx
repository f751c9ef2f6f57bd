import { formatCount, plural } from "../format/number";
import type { Report } from "../generated/report";
import type { ViewState } from "../view/view-state";
import { SectionLink } from "./section-link";

/** Links to the sections of a report. */
export function SectionNav({ report, view }: { report: Report; view: ViewState }) {
  const voids = report.warnings.filter((warning) => warning.severity === "void").length;
  const warnings =
    report.warnings.length === 0
      ? "No warnings"
      : plural(report.warnings.length, "warning") +
        (voids > 0 ? `, ${formatCount(voids)} void` : "");
  return (
    <nav aria-label="Sections">
      <ul>
        {report.comparison != null && (
          <li>
            <SectionLink view={view} section="comparison">
              Comparison
            </SectionLink>
          </li>
        )}
        {report.card != null && (
          <li>
            <SectionLink view={view} section="scorecard">
              Scorecard
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
  );
}
