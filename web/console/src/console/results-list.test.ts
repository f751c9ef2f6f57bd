import { describe, expect, test } from "vitest";
import { RESULTS } from "../../fixtures/console-results";
import {
  comparisonOf,
  filterResults,
  occurring,
  readChosen,
  readFilter,
  toggleChosen,
} from "./results-list";

const filtered = (query: string) =>
  filterResults(RESULTS, readFilter(new URLSearchParams(query))).map((one) => one.id);

describe("filterResults", () => {
  test("without a choice everything is there, newest first", () => {
    expect(filtered("")).toEqual(RESULTS.map((one) => one.id));
  });

  test("every word must occur, in whatever field", () => {
    expect(filtered("text=CHAT+node")).toEqual([6]);
    expect(filtered("text=chat+nowhere")).toEqual([]);
  });

  test("state, transport and subject narrow together", () => {
    expect(filtered("state=complete&transport=sse&subject=node-bare")).toEqual([6]);
    expect(filtered("state=running")).toEqual([7]);
  });

  test.each([
    ["oldest", [...RESULTS].reverse().map((one) => one.id)],
    ["newest", RESULTS.map((one) => one.id)],
  ])("order %s", (order, ids) => {
    expect(filtered(`order=${order}`)).toEqual(ids);
  });

  test("an unknown order is the usual one, and the list given is left as it was", () => {
    const before = [...RESULTS];
    expect(filtered("order=constructor")).toEqual(filtered(""));
    filtered("order=title");
    expect(RESULTS).toEqual(before);
  });
});

test("what occurs is named once", () => {
  expect(occurring(RESULTS, (one) => one.subjects)).toContain("node-bare");
  expect(new Set(occurring(RESULTS, (one) => one.transports)).size).toBe(
    occurring(RESULTS, (one) => one.transports).length,
  );
});

describe("choosing two", () => {
  test("a third takes the place of the first", () => {
    expect(toggleChosen([3, 5], 6)).toEqual([5, 6]);
    expect(toggleChosen([3, 5], 3)).toEqual([5]);
  });

  test("the older one is the baseline, however they were chosen", () => {
    const chosen = readChosen(new URLSearchParams("chosen=6,3"), RESULTS);
    const { baseline, candidate } = comparisonOf(chosen) ?? {};
    expect([baseline?.id, candidate?.id]).toEqual([3, 6]);
  });

  test("what is no result is not chosen", () => {
    expect(readChosen(new URLSearchParams("chosen=x,999,-1"), RESULTS)).toEqual([]);
    expect(comparisonOf([])).toBeNull();
  });
});
