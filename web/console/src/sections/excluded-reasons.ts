import { LACKING_WORDS } from "../format/lacking";
import type { Row } from "./results-columns";

export interface Excluded {
  label: string;
  x: number;
  kind: "failed" | "void" | "without latency" | "not reached" | "too few";
  reason: string;
  /** Runs of this cell with this reason; 0 where it is about all of them together. */
  count: number;
}

/** Failed and void runs, those without some of their figures, and figures that are not there, in the order of the rows, equal reasons of a cell counted together. */
export function excludedRuns(rows: readonly Row[]): Excluded[] {
  return rows.flatMap(({ series, point }) => {
    const cell = { label: series.label, x: point.x };
    return [
      ...counted(point.failures).map(([reason, count]) => ({
        ...cell,
        kind: "failed" as const,
        reason,
        count,
      })),
      ...counted(point.voids).map(([reason, count]) => ({
        ...cell,
        kind: "void" as const,
        reason,
        count,
      })),
      ...counted(point.withheld ?? []).map(([reason, count]) => ({
        ...cell,
        kind: "without latency" as const,
        reason,
        count,
      })),
      ...Object.entries(point.lacking ?? {}).flatMap(([metric, { why, detail }]) =>
        // What was withheld has been told by run.
        why === "withheld"
          ? []
          : [{ ...cell, kind: LACKING_WORDS[why], reason: `${metric}: ${detail}`, count: 0 }],
      ),
    ];
  });
}

function counted(reasons: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts];
}
