import { describe, expect, test } from "vitest";
import { linePath, niceCeiling } from "./line-path";
import { pushLatest } from "./ring";

const SCALE = { length: 3, top: 10, width: 100, height: 50 };

describe("linePath", () => {
  test("the newest is at the right, zero at the bottom", () => {
    expect(linePath([0, 5, 10], SCALE)).toBe("M0 50h0L50 25L100 0");
    expect(linePath([5], SCALE)).toBe("M100 25h0");
  });

  test("a null breaks the line", () => {
    expect(linePath([5, null, 5], SCALE)).toBe("M0 25h0M100 25h0");
    expect(linePath([null, null], SCALE)).toBe("");
  });

  test("what is older than the width and beyond the top stays outside", () => {
    expect(linePath([1, 99, 0, -1], SCALE)).toBe("M0 0h0L50 50L100 50");
  });
});

test.each([
  [0, 1],
  [Number.NaN, 1],
  [Number.POSITIVE_INFINITY, 1],
  [0.35, 0.4],
  [1, 1],
  [1.1, 2],
  [99, 100],
  [101, 200],
  [4500, 6000],
])("a scale for %d ends at %d", (value, top) => {
  expect(niceCeiling(value)).toBeCloseTo(top, 12);
});

test("the latest are kept, the oldest go", () => {
  expect(pushLatest([1, 2, 3], 4, 3)).toEqual([2, 3, 4]);
  expect(pushLatest([1, 2, 3, 4, 5], 6, 3)).toEqual([4, 5, 6]);
  expect(pushLatest([], 1, 3)).toEqual([1]);
});
