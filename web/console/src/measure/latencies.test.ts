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

test("one hiccup of the network is no buffer", () => {
  const hiccup = steady(20, 100).map((at, index) => (index >= 5 && index < 10 ? 1900 : at));
  expect(clumpSize(hiccup, 100)).toBe((15 + 5 * 5) / 20);
  expect(isBuffered(clumpSize(hiccup, 100))).toBe(false);
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
