import { expect, test } from "vitest";
import { median } from "./median";

test("the median is the middle, whatever the order", () => {
  expect(median([])).toBeUndefined();
  expect(median([7])).toBe(7);
  expect(median([9, 1, 5])).toBe(5);
  expect(median([100, 1, 2, 3])).toBe(2.5);
});
