import { expect, test } from "vitest";
import { jsonForScript, PLACEHOLDER } from "../build/single-file";
import { random } from "../fixtures/random";
import { sampleCard } from "../fixtures/sample-card";
import { sampleLeaderboard } from "../fixtures/sample-leaderboard";
import { sampleReport } from "../fixtures/sample-report";
import { SAMPLES } from "../fixtures/samples";
import { readReport } from "./read-report";

function problemOf(text: string): string {
  const result = readReport(text);
  return result.ok ? "none" : result.problem.title;
}

test("a report is read", () => {
  const result = readReport(JSON.stringify(sampleReport()));
  expect(result).toMatchObject({ ok: true, seed: "20150601" });
});

test("what is escaped for the page is read back", () => {
  const report = { ...sampleReport(), title: "</script><b>" };
  const text = jsonForScript(report);
  expect(text).not.toContain("<");
  expect(readReport(text)).toMatchObject({ ok: true, report: { title: report.title } });
});

test("an unfilled template says so", () => {
  expect(problemOf(PLACEHOLDER)).toMatch(/empty/);
  expect(problemOf(" \n")).toMatch(/empty/);
});

test("broken JSON, other versions and missing parts each have their message", () => {
  expect(problemOf('{"version": 4,')).toMatch(/cannot be read/);
  expect(problemOf('{"version": 1}')).toMatch(/version/);
  expect(problemOf("[]")).toMatch(/version/);
  expect(problemOf('{"version": 2}')).toMatch(/version/);
  expect(problemOf('{"version": 4}')).toMatch(/incomplete/);
});

test("a seed of 64 bits keeps all its digits", () => {
  const report = sampleReport();
  report.repeat.commands = ['pushlab run --set "seed":7'];
  const text = JSON.stringify(report).replace('"seed":20150601', '"seed": 18446744073709551615');
  expect(readReport(text)).toMatchObject({ seed: "18446744073709551615" });
});

test.each(Object.keys(SAMPLES))("the sample %s is read", (name) => {
  expect(problemOf(JSON.stringify(SAMPLES[name]?.()))).toBe("none");
});

test.each<[(report: ReturnType<typeof sampleReport>) => void, string]>([
  [(report) => Object.assign(report, { metrics: null }), "report.metrics is not a list"],
  [
    (report) => Object.assign(report.experiments[1] ?? {}, { axis: undefined }),
    "report.experiments[1].axis is not a record",
  ],
  [
    (report) => Object.assign(report.experiments[0]?.series[2]?.points[1] ?? {}, { x: null }),
    "report.experiments[0].series[2].points[1].x is not a number",
  ],
  [
    (report) => Object.assign(report.experiments[0]?.expectations[0] ?? {}, { assertion: 3 }),
    "report.experiments[0].expectations[0].assertion is not text",
  ],
  [
    (report) => Object.assign(report, { comparison: { rows: [{ cell: "" }] } }),
    "report.comparison.baseline is not text",
  ],
  [
    (report) => {
      const unplaced = [{ key: "a", label: "a", why: "failed", detail: "it died" }, { key: "b" }];
      Object.assign(report.experiments[0]?.rankings[0] ?? {}, { unplaced });
    },
    "report.experiments[0].rankings[0].unplaced[1].why is not text",
  ],
  [
    (report) => {
      const board = sampleLeaderboard(random(7));
      Object.assign(board.rows[0] ?? {}, { lacking: { delivered: "it died" } });
      report.leaderboard = board;
    },
    "report.leaderboard.rows[0].lacking.delivered is not a record",
  ],
  [
    (report) => Object.assign(report, { card: { options: [{ key: "a", label: 1 }], rows: [] } }),
    "report.card.options[0].label is not text",
  ],
  [
    (report) => {
      const card = sampleCard();
      Object.assign(card.rows[0] ?? {}, { failures: { a: 426 } });
      report.card = card;
    },
    "report.card.rows[0].failures.a is not text",
  ],
])("a fault is named with its place (%#)", (harm, fault) => {
  const report = sampleReport();
  harm(report);
  const result = readReport(JSON.stringify(report));
  expect(result).toMatchObject({ ok: false, problem: { detail: fault } });
});

test("what is optional may be absent", () => {
  const report = sampleReport();
  report.comparison = undefined;
  for (const experiment of report.experiments) experiment.study = undefined;
  expect(problemOf(JSON.stringify(report))).toBe("none");
});
