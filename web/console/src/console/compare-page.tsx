import { formatInstant } from "../format/words";
import type { ResultSummary } from "../generated/console";
import { ProblemNotice } from "../live/problem-notice";
import { useResource } from "../live/use-resource";
import { comparisonHref, hasSubjects, hintOf, obstacleOf } from "./comparison";
import { runsText, StateBadge } from "./results-page";
import { choose, usePlace } from "./router";

/** Chooses two results whose differences a report shall show. */
export function ComparePage() {
  const { data, problem, reload } = useResource<ResultSummary[]>("/api/results");
  const { query } = usePlace();
  const results = data ?? [];
  const find = (part: string) => results.find((one) => String(one.id) === query.get(part)) ?? null;
  const baseline = find("baseline");
  const candidate = find("candidate");
  const swap = () => choose({ baseline: query.get("candidate"), candidate: query.get("baseline") });

  return (
    <>
      <p class="lead">
        For each figure, the report says whether it changed from the baseline to the candidate, by
        how much, and whether chance explains it.
      </p>
      <ProblemNotice title="The results cannot be listed" problem={problem} retry={reload} />
      <div class="pickers">
        <Picker part="baseline" results={results} chosen={baseline} empty={CHOOSE} />
        <button type="button" class="swap" onClick={swap} aria-label="Swap baseline and candidate">
          ⇄
        </button>
        <Picker
          part="candidate"
          results={results}
          chosen={candidate}
          empty={hasSubjects(baseline) ? "none: its subjects with each other" : CHOOSE}
        />
      </div>
      <CompareAction baseline={baseline} candidate={candidate} isEmpty={data?.length === 0} />
    </>
  );
}

const CHOOSE = "choose a result";

interface PickerProps {
  part: "baseline" | "candidate";
  results: readonly ResultSummary[];
  chosen: ResultSummary | null;
  /** What choosing none means. */
  empty: string;
}

function Picker({ part, results, chosen, empty }: PickerProps) {
  return (
    <section class="picker" aria-label={part}>
      <label>
        <span class="picker-role">{part === "baseline" ? "Baseline" : "Candidate"}</span>
        <select
          value={String(chosen?.id ?? "")}
          onChange={(event) => choose({ [part]: event.currentTarget.value || null })}
        >
          <option value="">{empty}</option>
          {results.map((one) => (
            <option key={one.id} value={String(one.id)}>
              {one.title} · {formatInstant(new Date(one.started_ms).toISOString())}
            </option>
          ))}
        </select>
      </label>
      <div class="picker-facts">
        {chosen !== null && (
          <>
            <p>
              <StateBadge state={chosen.state} /> <span class="note">{runsText(chosen)}</span>
            </p>
            <p class="note">
              {chosen.subjects.join(", ")} over {chosen.transports.join(", ")}
            </p>
            <p>
              <a href={`/reports/${chosen.id}`}>Its report</a>
            </p>
          </>
        )}
      </div>
    </section>
  );
}

interface CompareActionProps {
  baseline: ResultSummary | null;
  candidate: ResultSummary | null;
  isEmpty: boolean;
}

function CompareAction({ baseline, candidate, isEmpty }: CompareActionProps) {
  const obstacle = isEmpty ? "There are no results yet." : obstacleOf(baseline, candidate);
  return (
    <div class="picker-action">
      {obstacle === null && baseline !== null && (
        <a class="button primary" href={comparisonHref(baseline, candidate)}>
          Open the comparison
        </a>
      )}
      <p class="note" role="status">
        {obstacle ?? (baseline !== null && hintOf(baseline, candidate))}
      </p>
    </div>
  );
}
