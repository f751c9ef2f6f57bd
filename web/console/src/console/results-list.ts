import type { ResultSummary } from "../generated/console";

/** Orders of the list by the value they have in the address. */
export const ORDERS = {
  newest: "Newest first",
  oldest: "Oldest first",
  title: "By title",
  runs: "Most runs first",
} as const;

export type Order = keyof typeof ORDERS;

/** The states by what people call them. */
export const STATE_NAMES: Readonly<Record<ResultSummary["state"], string>> = {
  complete: "complete",
  interrupted: "interrupted",
  running: "running",
  imported: "imported",
};

/** What the list is narrowed to, as the address has it. */
export interface ResultFilter {
  /** Words, each of which the name, title, subjects or transports contain. */
  text: string;
  state: string | null;
  transport: string | null;
  subject: string | null;
  order: Order;
}

export function readFilter(query: URLSearchParams): ResultFilter {
  const order = query.get("order") ?? "";
  return {
    text: query.get("text") ?? "",
    state: query.get("state"),
    transport: query.get("transport"),
    subject: query.get("subject"),
    order: Object.hasOwn(ORDERS, order) ? (order as Order) : "newest",
  };
}

/** The results that a filter leaves, in its order. */
export function filterResults(
  results: readonly ResultSummary[],
  filter: ResultFilter,
): ResultSummary[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const left = results.filter((one) => {
    if (filter.state !== null && one.state !== filter.state) return false;
    const transports: readonly string[] = one.transports;
    if (filter.transport !== null && !transports.includes(filter.transport)) return false;
    if (filter.subject !== null && !one.subjects.includes(filter.subject)) return false;
    const all = [one.name, one.title, ...one.subjects, ...one.transports].join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return left.sort(COMPARERS[filter.order]);
}

const newest = (a: ResultSummary, b: ResultSummary) => b.started_ms - a.started_ms || b.id - a.id;

const COMPARERS: Record<Order, (a: ResultSummary, b: ResultSummary) => number> = {
  newest,
  oldest: (a, b) => newest(b, a),
  title: (a, b) => a.title.localeCompare(b.title, "en") || newest(a, b),
  runs: (a, b) => b.runs_done - a.runs_done || newest(a, b),
};

/** Everything that occurs among the results, each once, in alphabetical order. */
export function occurring(
  results: readonly ResultSummary[],
  pick: (result: ResultSummary) => readonly string[],
): string[] {
  return [...new Set(results.flatMap(pick))].sort((a, b) => a.localeCompare(b, "en"));
}

/** The results that are chosen for a comparison, as the address has them: `3,7`. */
export function readChosen(
  query: URLSearchParams,
  results: readonly ResultSummary[],
): ResultSummary[] {
  const ids = (query.get("chosen") ?? "").split(",").map(Number);
  return results.filter((one) => ids.includes(one.id)).slice(0, 2);
}

/** Chooses a result or lets it go; a third takes the place of the one that was there first. */
export function toggleChosen(chosen: readonly number[], id: number): number[] {
  if (chosen.includes(id)) return chosen.filter((one) => one !== id);
  return [...chosen, id].slice(-2);
}

/** Which of two is the baseline: the older one. */
export function comparisonOf(
  chosen: readonly ResultSummary[],
): { baseline: ResultSummary; candidate: ResultSummary } | null {
  const [baseline, candidate] = [...chosen].sort((a, b) => newest(b, a));
  return baseline === undefined || candidate === undefined ? null : { baseline, candidate };
}
