import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import type { ExperimentReport } from "../generated/report";
import { excludedRuns } from "./excluded-reasons";
import { rangeScale, tieGroups } from "./ranking-layout";
import { nextSort, rowsOf, sortRows } from "./results-order";

const broadcast = sampleReport().experiments[0] as ExperimentReport;
const rows = rowsOf(broadcast);

test("rows stand by series and clients until sorted", () => {
  expect(sortRows(rows, undefined)).toEqual(rows);
  expect(sortRows(rows, { column: "no-such-column", descending: false })).toEqual(rows);
});

test.each([false, true])("cells without a value come last (descending: %s)", (descending) => {
  const sorted = sortRows(rows, { column: "cpu", descending });
  expect(sorted.at(-1)?.point.runs).toBe(0);
  const values = sorted.flatMap((row) => row.point.cpu?.value ?? []);
  expect(values).toEqual([...values].sort((a, b) => (descending ? b - a : a - b)));
});

test("pressing a heading goes up, down and back", () => {
  const first = nextSort(undefined, "cpu");
  expect(first).toEqual({ column: "cpu", descending: false });
  const second = nextSort(first, "cpu");
  expect(second).toEqual({ column: "cpu", descending: true });
  expect(nextSort(second, "cpu")).toBeUndefined();
  expect(nextSort(second, "memory")).toEqual({ column: "memory", descending: false });
});

test("equal reasons of a cell are counted together", () => {
  const excluded = excludedRuns(rows);
  expect(excluded.map((one) => [one.label, one.clients, one.kind, one.count])).toEqual([
    ["sse", 500, "failed", 1],
    ["long-polling", 450, "void", 3],
    ["long-polling", 500, "void", 10],
  ]);
});

test("equal ranks form a tie", () => {
  const figure = { value: 1, low: 1, high: 1, runs: 1 };
  const places = [1, 2, 2, 4].map((rank, index) => ({ rank, key: `${index}`, label: "", figure }));
  expect(tieGroups(places).map((group) => group.length)).toEqual([1, 2, 1]);
});

test("a ranking's scale holds every interval, on a log scale when they are far apart", () => {
  const near = rangeScale([{ value: 10, low: 9, high: 12, runs: 3 }]);
  expect(near.log).toBe(false);
  const far = rangeScale([
    { value: 1, low: 0.9, high: 1.1, runs: 3 },
    { value: 900, low: 800, high: 1000, runs: 3 },
  ]);
  expect(far.log).toBe(true);
  expect(far.place(0.9)).toBeCloseTo(6);
  expect(far.place(1000)).toBeCloseTo(94);
});
