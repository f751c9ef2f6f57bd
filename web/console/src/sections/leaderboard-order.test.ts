import { expect, test } from "vitest";
import { random } from "../../fixtures/random";
import { sampleLeaderboard } from "../../fixtures/sample-leaderboard";
import type { LeaderboardRow } from "../generated/report";
import {
  aboutSubject,
  bestFirst,
  effectiveSort,
  filterRows,
  marksOf,
  pressedSort,
  rankText,
  SUBJECT_COLUMN,
  sortBoard,
  TRANSPORT_COLUMN,
  transportsOf,
  withoutFigure,
} from "./leaderboard-order";

const board = sampleLeaderboard(random(7));
const at = (metric: string) => board.columns.findIndex((column) => column.metric === metric);
const valuesOf = (rows: LeaderboardRow[], metric: string) =>
  rows.map((row) => row.standings[at(metric)]?.figure.value ?? null);

test("what is not ranked gives no order of its own", () => {
  const rates = { ...board, columns: board.columns.slice(at("due")) };
  expect(effectiveSort(rates, undefined)).toEqual({ column: "latency_median", descending: false });
});

test("a row is marked with its warnings, and one that is not explained is named all the same", () => {
  const marked = board.rows.filter((row) => marksOf(board, row).length > 0);
  expect(marked.map((row) => row.subject)).toContain("pushlab");
  expect(marked.length).toBeLessThan(board.rows.length);
  const row = { ...marked[0], warnings: ["unstable", "unheard-of"] } as LeaderboardRow;
  expect(marksOf(board, row)).toEqual([
    { code: "unstable", meaning: "a figure still rose or fell while it was measured" },
    { code: "unheard-of", meaning: "" },
  ]);
});

test("what has no figure stands below those that have one, in the order of the reasons, and says why", () => {
  const row = (subject: string, lacking: LeaderboardRow["lacking"]): LeaderboardRow => ({
    ...{ subject, transport: "sse", standings: board.columns.map(() => null), warnings: [] },
    ...{ is_ours: false, lacking },
  });
  const failed = { why: "failed", detail: "it died" } as const;
  const rows = [
    row("failed", { delivered: failed, memory_per_client: failed }),
    row("too-few", { delivered: { why: "too-few", detail: "10 of 100" } }),
    row("absent", {}),
    row("late", { delivered: { why: "not-reached", detail: "2 % never came" } }),
  ];
  const all = { ...board, rows: [...rows, ...board.rows] };
  for (const descending of [false, true]) {
    const sorted = sortBoard(all, all.rows, { column: "delivered", descending });
    const last = sorted.slice(-4).map(({ subject }) => subject);
    expect(last).toEqual(["late", "too-few", "absent", "failed"]);
  }
  expect(withoutFigure({ ...board, rows })).toEqual([
    { subject: "failed · sse", reason: "failed: it died" },
    { subject: "too-few · sse", reason: "Deliveries on one core: too few: 10 of 100" },
    { subject: "late · sse", reason: "Deliveries on one core: not reached: 2 % never came" },
  ]);
});

test("a subject is told by title, version and platform, as far as they are known", () => {
  const known = { name: "signalr", title: "SignalR in Go", platform: "Go", version: "0.11.0" };
  expect(aboutSubject({ ...known, commands: [] })).toBe("SignalR in Go 0.11.0 · Go");
  const unknown = { name: "chat", title: null, platform: null, version: null, commands: [] };
  expect(aboutSubject(unknown)).toBe("version not known");
});

test("the report's own order is the first ranked column, the best first", () => {
  const sort = effectiveSort(board, undefined);
  expect(sort).toEqual({ column: "delivered", descending: true });
  expect(sortBoard(board, board.rows, sort)).toEqual(board.rows);
  expect(effectiveSort(board, { column: "no-such-column", descending: false })).toEqual(sort);
});

test.each([false, true])("rows without a figure come last (descending: %s)", (descending) => {
  const sorted = sortBoard(board, board.rows, { column: "latency_p99", descending });
  const values = valuesOf(sorted, "latency_p99");
  expect(values.at(-1)).toBeNull();
  const numbers = values.flatMap((value) => value ?? []);
  expect(numbers).toHaveLength(board.rows.length - 1);
  expect(numbers).toEqual([...numbers].sort((a, b) => (descending ? b - a : a - b)));
});

test("names are sorted as texts, and equal ones keep the report's order", () => {
  const sorted = sortBoard(board, board.rows, { column: TRANSPORT_COLUMN, descending: false });
  expect(sorted[0]?.transport).toBe("http-streaming");
  const sockets = sorted.filter((row) => row.transport === "websocket");
  expect(sockets).toEqual(board.rows.filter((row) => row.transport === "websocket"));
  const last = sortBoard(board, board.rows, { column: SUBJECT_COLUMN, descending: true })[0];
  expect(last?.subject).toBe("sockjs");
});

test("a heading brings the best to the top, then turns around, and the own order needs no URL", () => {
  const own = effectiveSort(board, undefined);
  expect(pressedSort(board, own, "delivered")).toEqual({ column: "delivered", descending: false });
  const latency = pressedSort(board, own, "latency_median");
  expect(latency).toEqual({ column: "latency_median", descending: false });
  expect(pressedSort(board, latency ?? own, "latency_median")?.descending).toBe(true);
  expect(pressedSort(board, latency ?? own, "delivered")).toBeUndefined();
  expect(bestFirst(board, "generator_cpu").descending).toBe(false);
});

test("a transport leaves only its rows, and one that nobody has leaves all", () => {
  expect(transportsOf(board)).toContain("long-polling");
  const own = filterRows(board, "long-polling");
  expect(own.map((row) => row.transport)).toEqual(Array(own.length).fill("long-polling"));
  expect(own.length).toBeGreaterThan(1);
  expect(filterRows(board, null)).toEqual(board.rows);
  expect(filterRows(board, "carrier-pigeon")).toEqual(board.rows);
});

test("ties are equal ranks", () => {
  expect(rankText({ rank: 2, is_tied: true })).toBe("2=");
  expect(rankText({ rank: 12, is_tied: false })).toBe("12");
  const sockets = filterRows(board, "websocket");
  const ranks = sockets.flatMap((row) => row.standings[0]?.of_transport ?? []);
  const texts = ranks.map(rankText);
  expect(texts.slice(0, 2)).toEqual(["1=", "1="]);
  expect(texts.filter((text) => !text.endsWith("="))).not.toHaveLength(0);
});
