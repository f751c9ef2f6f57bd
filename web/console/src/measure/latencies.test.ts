import { expect, test } from "vitest";
import { clumpSize, isBuffered, jitter } from "./latencies";

const steady = (count: number, interval: number) =>
  Array.from({ length: count }, (_, at) => 1000 + at * interval);

test("jitter is the mean difference between neighbours", () => {
  expect(jitter([])).toBeUndefined();
  expect(jitter([5])).toBeUndefined();
  expect(jitter([5, 5, 5])).toBe(0);
  expect(jitter([1, 4, 2])).toBe(2.5);
});

test("messages that come one by one are no clump, nor are those a little late", () => {
  expect(clumpSize([], 100)).toBe(0);
  expect(clumpSize(steady(20, 100), 100)).toBe(1);
  const late = steady(20, 100).map((at, index) => at + (index % 3) * 35);
  expect(clumpSize(late, 100)).toBe(1);
  expect(isBuffered(clumpSize(late, 100))).toBe(false);
});

test.each([10, 20])("one stall among %i messages is no buffer", (count) => {
  const stall = steady(count, 100).map((at, index) => (index >= 2 && index < 7 ? 1600 : at));
  expect(clumpSize(stall, 100)).toBe(1);
  const two = steady(20, 100).map((at, index) => (index < 6 ? 1500 : index < 12 ? 2100 : at));
  expect(clumpSize(two, 100)).toBe((8 + 6 * 6) / 14);
});

test("a buffer that fills and empties makes clumps", () => {
  const byFour = steady(20, 100).map((_, index) => 1000 + 400 * Math.ceil((index + 1) / 4));
  expect(clumpSize(byFour, 100)).toBe(4);
  expect(isBuffered(clumpSize(byFour, 100))).toBe(true);
  const atOnce = steady(20, 100).map((_, index) => 9000 + index);
  expect(clumpSize(atOnce, 100)).toBe(20);
  expect(isBuffered(clumpSize(atOnce, 100))).toBe(true);
});

test("two messages cannot be told from a hiccup", () => {
  expect(isBuffered(clumpSize([1000, 1001], 100))).toBe(false);
});
