import { expect, test } from "vitest";
import { sampleReport } from "../../fixtures/sample-report";
import { indexMetrics } from "../charts/metrics";
import type { ExperimentReport } from "../generated/report";
import { excludedRuns } from "./excluded-reasons";
import { rangeScale, tieGroups } from "./ranking-layout";
import { furtherEstimates, resultColumns } from "./results-columns";
import { nextSort, rowsOf, sortRows } from "./results-order";

const report = sampleReport();
const metrics = indexMetrics(report.metrics);
const broadcast = report.experiments[0] as ExperimentReport;
const measured = broadcast.series.filter((one) => one.origin === "measured");
const rows = rowsOf(measured);
const columns = resultColumns(broadcast, metrics, "main");

test("rows stand by series and clients until sorted", () => {
  expect(sortRows(rows, columns, undefined)).toEqual(rows);
  expect(sortRows(rows, columns, { column: "no-such-column", descending: false })).toEqual(rows);
});

test.each([false, true])("cells without a value come last (descending: %s)", (descending) => {
  const sorted = sortRows(rows, columns, { column: "cpu", descending });
  expect(sorted.at(-1)?.point.runs).toBe(0);
  const values = sorted.flatMap((row) => row.point.figures.cpu?.value ?? []);
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
  expect(excluded.map((one) => [one.label, one.x, one.kind, one.count])).toEqual([
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

test("columns are those that the report asks for and that hold figures, then all others", () => {
  const asked = { ...broadcast, columns: ["cpu", "never_measured", "latency_median"] };
  const figures = (extent: "main" | "all") =>
    resultColumns(asked, metrics, extent).flatMap((one) => (one.kind === "figure" ? one.id : []));
  expect(figures("main")).toEqual(["cpu", "latency_median"]);
  expect(figures("all")).toEqual(["cpu", "latency_median", ...furtherEstimates(asked, metrics)]);
  expect(new Set(figures("all")).size).toBe(15);
});

test("the number of clients has its column where the axis is another", () => {
  const axis = { name: "payload_bytes", title: "Payload", unit: "B", is_logarithmic: true };
  const titles = resultColumns({ ...broadcast, axis }, metrics, "main").map((one) => one.title);
  expect(titles.slice(0, 3)).toEqual(["Series", "Payload, B", "Clients"]);
  expect(columns.map((one) => one.title).slice(0, 3)).toEqual(["Series", "Clients", "Runs"]);
});
