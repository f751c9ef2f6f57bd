import { expect, test } from "vitest";
import { RESULTS } from "../../fixtures/console-results";
import type { ResultSummary } from "../generated/console";
import { comparisonHref, hintOf, obstacleOf } from "./comparison";

function result(id: number): ResultSummary {
  const found = RESULTS.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no result ${id}`);
  return found;
}

const chat = result(6);
const tls = result(3);

test("two results that share a transport can be compared", () => {
  expect(obstacleOf(chat, tls)).toBeNull();
  expect(comparisonHref(chat, tls)).toBe("/reports/compare?baseline=6&candidate=3");
});

test("a result alone can when it has several subjects", () => {
  expect(obstacleOf(chat, null)).toBeNull();
  expect(comparisonHref(chat, null)).toBe("/reports/compare?baseline=6");
  expect(obstacleOf(tls, null)).toContain("candidate");
});

test("what cannot be compared says why", () => {
  expect(obstacleOf(null, tls)).toContain("baseline");
  expect(obstacleOf(chat, chat)).toContain("same");
  expect(obstacleOf(chat, { ...tls, transports: ["polling"] })).toContain("no transport");
});

test("what to mind is said", () => {
  expect(hintOf(chat, tls)).toContain("different experiments");
  expect(hintOf(chat, { ...chat, id: 9, runs_done: 1 })).toContain("Not all runs");
  expect(hintOf(chat, { ...chat, id: 9 })).toBe("");
  expect(hintOf(chat, null)).toContain("pushlab with");
});
