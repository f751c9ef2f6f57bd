import { expect, test } from "vitest";
import { stripScale } from "./strip-scale";

test("the axis has whole decades around all values", () => {
  const { ticks, place } = stripScale([0.7, 30, 950]);
  expect(ticks).toEqual([0.1, 1, 10, 100, 1000]);
  expect(place(0.1)).toBe(0);
  expect(place(10)).toBeCloseTo(50);
  expect(place(1000)).toBe(100);
});

test("a single value has a decade around it", () => {
  expect(stripScale([10]).ticks).toEqual([10, 100]);
  expect(stripScale([12]).ticks).toEqual([10, 100]);
});

test("a latency that was rounded to zero is drawn at the edge", () => {
  const { ticks, place } = stripScale([0, 0.5]);
  expect(ticks).toEqual([0.1, 1]);
  expect(place(0)).toBe(0);
});

test("without values there is an axis to keep the place", () => {
  expect(stripScale([]).ticks).toEqual([1, 10, 100, 1000]);
});
