import type { Row } from "./results-columns";

export interface Excluded {
  label: string;
  x: number;
  kind: "failed" | "void" | "without latency";
  reason: string;
  /** Runs of this cell with this reason. */
  count: number;
}

/** Failed and void runs, and those without some of their figures, in the order of the rows, equal reasons of a cell counted together. */
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
    ];
  });
}

function counted(reasons: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts];
}
