import { expect, test } from "vitest";
import { clientScale, fittingTicks, linearDomain, logDomain, logTicks } from "./axis";

test("steps get a linear axis, factors a log axis", () => {
  expect(clientScale([1, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500])).toBe("linear");
  expect(clientScale([100, 300, 1000, 3000, 10_000, 30_000])).toBe("log");
  expect(clientScale([60])).toBe("linear");
  expect(clientScale([])).toBe("linear");
});

test("no log axis for a count of zero", () => {
  expect(clientScale([0, 1, 1000])).toBe("linear");
});

test("a log domain is rounded outwards and ignores what it cannot show", () => {
  expect(logDomain([0.42, 1800, 0, Number.NaN], [1, 1000])).toEqual([0.2, 2000]);
  expect(logDomain([], [1, 1000])).toEqual([1, 1000]);
});

test("log ticks stand at decades, and between them when these are few", () => {
  expect(logTicks([0.2, 2000])).toEqual([1, 10, 100, 1000]);
  expect(logTicks([1, 20])).toEqual([1, 2, 5, 10, 20]);
});

test("a linear domain starts at zero and survives no data", () => {
  expect(linearDomain([10, Number.NaN], 100)).toEqual([0, 105]);
  expect(linearDomain([])).toEqual([0, 1]);
});

test("ticks that would touch are left out, the largest never", () => {
  expect(fittingTicks([1, 50, 100, 500], (count) => count, 60)).toEqual([1, 100, 500]);
});
