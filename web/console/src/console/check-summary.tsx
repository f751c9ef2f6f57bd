import { formatDuration } from "../format/duration";
import { plural } from "../format/number";
import { ProblemNotice } from "../live/problem-notice";
import type { CheckState } from "./use-check";

/** How many runs an experiment has and how long they take, or what stands in its way; read aloud when it changes. */
export function CheckSummary({ state }: { state: CheckState }) {
  const { check, problem, isCurrent } = state;
  return (
    <div class="check" aria-busy={!isCurrent}>
      <div role="status">
        <p class="check-line">
          {check === null ? (
            "Looking at the file…"
          ) : check.problems.length > 0 ? (
            <span class="badge badge-bad">{plural(check.problems.length, "problem")}</span>
          ) : (
            <>
              <strong>{plural(check.runs, "run")}</strong>, about{" "}
              {formatDuration(check.estimated_s)}
            </>
          )}
        </p>
        {check !== null && (
          <>
            <ul class="check-problems">
              {check.problems.map((one) => (
                <li key={one}>{one}</li>
              ))}
            </ul>
            {check.left_out.length > 0 && (
              <>
                <p class="note">Left out:</p>
                <ul class="check-left-out note">
                  {check.left_out.map((one) => (
                    <li key={one}>{one}</li>
                  ))}
                </ul>
              </>
            )}
          </>
        )}
      </div>
      <ProblemNotice title="It cannot be checked" problem={problem} />
    </div>
  );
}
