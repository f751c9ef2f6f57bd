import { expect, test } from "vitest";
import { jsonForScript, PLACEHOLDER } from "../build/single-file";
import { sampleReport } from "../fixtures/sample-report";
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
  expect(problemOf('{"version": 1,')).toMatch(/cannot be read/);
  expect(problemOf('{"version": 2}')).toMatch(/version/);
  expect(problemOf("[]")).toMatch(/version/);
  expect(problemOf('{"version": 1}')).toMatch(/incomplete/);
});

test("a seed of 64 bits keeps all its digits", () => {
  const report = sampleReport();
  report.repeat.commands = ['pushlab run --set "seed":7'];
  const text = JSON.stringify(report).replace('"seed":20150601', '"seed": 18446744073709551615');
  expect(readReport(text)).toMatchObject({ seed: "18446744073709551615" });
});
