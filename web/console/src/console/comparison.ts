import type { ResultSummary } from "../generated/console";
import { hrefOf } from "./router";

/** Whether a result has subjects that can be compared with each other. */
export function hasSubjects(result: ResultSummary | null): boolean {
  return result !== null && result.subjects.length > 1;
}

/** Why two results, or the subjects of one, cannot be compared; null when they can. */
export function obstacleOf(
  baseline: ResultSummary | null,
  candidate: ResultSummary | null,
): string | null {
  if (baseline === null) return "Choose a baseline and a candidate.";
  if (candidate === null) return hasSubjects(baseline) ? null : "Choose a candidate.";
  if (baseline.id === candidate.id) return "Both are the same result: choose another one.";
  const shares = baseline.transports.some((one) => candidate.transports.includes(one));
  return shares ? null : "They have no transport in common: nothing can be compared.";
}

/** What to mind about a comparison that can be made. */
export function hintOf(baseline: ResultSummary, candidate: ResultSummary | null): string {
  if (candidate === null) return `${baseline.subjects[0]} with the others of the same result.`;
  if (baseline.name !== candidate.name) {
    return "They come from different experiments: only cells that both have are compared.";
  }
  const isUnfinished = [baseline, candidate].some((one) => one.runs_done < one.runs_planned);
  return isUnfinished ? "Not all runs are done: intervals are wider than they will be." : "";
}

/** The report of the comparison. */
export function comparisonHref(baseline: ResultSummary, candidate: ResultSummary | null): string {
  return hrefOf("/reports/compare", {
    baseline: String(baseline.id),
    candidate: candidate === null ? null : String(candidate.id),
  });
}
