import { soundEstimate } from "../format/estimate";
import { LACKING_WORDS, lackingOf } from "../format/lacking";
import type {
  Leaderboard,
  LeaderboardColumn,
  LeaderboardRow,
  LeaderboardSubject,
  LeaderboardWarning,
  Rank,
} from "../generated/report";
import type { Sort } from "../view/view-state";

/** Columns of a leaderboard that hold no figure; no other has such an id. */
export const SUBJECT_COLUMN = "@subject";
export const TRANSPORT_COLUMN = "@transport";

/** The transports of a leaderboard in the order of its rows. */
export function transportsOf(board: Leaderboard): string[] {
  return [...new Set(board.rows.map((row) => row.transport))];
}

/** The rows of one transport; all where it is none of the board's. */
export function filterRows(board: Leaderboard, transport: string | null): LeaderboardRow[] {
  const own = board.rows.filter((row) => row.transport === transport);
  return own.length === 0 ? board.rows : own;
}

/** How a column is sorted when it is first pressed: what is best comes first. */
export function bestFirst(board: Leaderboard, column: string): Sort {
  const found = board.columns.find((one) => one.id === column);
  return { column, descending: found?.better === "higher" };
}

/** The chosen order if its column exists, else the report's own: the first ranked column, the best first. */
export function effectiveSort(board: Leaderboard, chosen: Sort | undefined): Sort {
  const names = [SUBJECT_COLUMN, TRANSPORT_COLUMN, ...board.columns.map((column) => column.id)];
  if (chosen !== undefined && names.includes(chosen.column)) return chosen;
  const ranked = board.columns.find((column) => column.better !== "neither");
  return bestFirst(board, ranked?.id ?? SUBJECT_COLUMN);
}

/** What pressing a heading leads to: the best first, then turned around; undefined is the report's own order. */
export function pressedSort(board: Leaderboard, current: Sort, column: string): Sort | undefined {
  const next =
    current.column === column
      ? { column, descending: !current.descending }
      : bestFirst(board, column);
  const own = effectiveSort(board, undefined);
  return next.column === own.column && next.descending === own.descending ? undefined : next;
}

/** What has no figure though it was tried, each with the reasons for it: a failure once for all columns. */
export function withoutFigure(board: Leaderboard): { subject: string; reason: string }[] {
  return board.rows.flatMap((row) => {
    const reasons = board.columns.flatMap(({ id, title }) => {
      const lacking = lackingOf(row.lacking, id);
      if (lacking === null) return [];
      const reason = `${LACKING_WORDS[lacking.why]}: ${lacking.detail}`;
      return [lacking.why === "failed" ? reason : `${title}: ${reason}`];
    });
    const subject = `${row.subject} · ${row.transport}`;
    return [...new Set(reasons)].map((reason) => ({ subject, reason }));
  });
}

/** In which order rows without a figure follow; those of which nothing is said are among the ones of which nothing is known. */
function placeWithout(row: LeaderboardRow, column: string): number {
  const why = lackingOf(row.lacking, column)?.why ?? "withheld";
  return Object.keys(LACKING_WORDS).indexOf(why);
}

/** Sorted rows; equal ones keep the report's order, rows without a figure stay at the end, and last come those that failed. */
export function sortBoard(
  board: Leaderboard,
  rows: readonly LeaderboardRow[],
  sort: Sort,
): LeaderboardRow[] {
  const direction = sort.descending ? -1 : 1;
  if (sort.column === SUBJECT_COLUMN || sort.column === TRANSPORT_COLUMN) {
    const text = (row: LeaderboardRow) =>
      sort.column === SUBJECT_COLUMN ? row.subject : row.transport;
    return [...rows].sort((a, b) => text(a).localeCompare(text(b), "en") * direction);
  }
  const at = board.columns.findIndex((column) => column.id === sort.column);
  const without = (row: LeaderboardRow) => placeWithout(row, sort.column);
  const value = (row: LeaderboardRow) => soundEstimate(row.standings[at]?.figure)?.value ?? null;
  return [...rows].sort((a, b) => {
    const left = value(a);
    const right = value(b);
    if (left === null && right === null) return without(a) - without(b);
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return (left - right) * direction;
  });
}

/** The warnings that a row is marked with; what the report does not explain is named all the same. */
export function marksOf(board: Leaderboard, row: LeaderboardRow): LeaderboardWarning[] {
  return row.warnings.map(
    (code) => board.warnings.find((warning) => warning.code === code) ?? { code, meaning: "" },
  );
}

/** `SignalR in Go 0.11.0 · Go`: what a subject is, as far as it is known. */
export function aboutSubject({ title, version, platform }: LeaderboardSubject): string {
  const what = [title, version ?? "version not known"].filter(Boolean).join(" ");
  return platform ? `${what} · ${platform}` : what;
}

/** `3`, and `3=` where others share it. */
export function rankText(rank: Rank): string {
  return rank.is_tied ? `${rank.rank}=` : String(rank.rank);
}

/** Which way a column is better, in a word for its heading. */
export function betterText(column: LeaderboardColumn): string {
  switch (column.better) {
    case "higher":
      return "higher is better";
    case "lower":
      return "lower is better";
    default:
      return "not ranked";
  }
}
