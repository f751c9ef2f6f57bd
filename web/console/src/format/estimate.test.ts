import { expect, test } from "vitest";
import type { Bound } from "../generated/report";
import {
  formatDifference,
  formatEstimate,
  formatEstimateWithUnit,
  intervalOf,
  NO_INTERVAL,
  soundEstimate,
} from "./estimate";

const figure = (value: number, low: number, high: number, runs = 10) => ({
  value,
  low,
  high,
  runs,
});

test("one run has no interval and says so", () => {
  expect(intervalOf(figure(5, 5, 5, 1))).toEqual({ kind: "none" });
  expect(formatEstimate(figure(5, 5, 5, 1)).interval).toBe(NO_INTERVAL);
});

test("equal runs have an interval of no width, which is not the same as none", () => {
  expect(formatEstimate(figure(5, 5, 5)).interval).toBe("±0");
});

test("nearly even arms are written as one", () => {
  expect(formatEstimate(figure(12.3, 11.9, 12.8))).toEqual({ value: "12.3", interval: "±0.5" });
});

test("skewed arms are written apart", () => {
  expect(formatEstimate(figure(12.3, 12.1, 13.5)).interval).toBe("+1.2 −0.2");
});

test("skewed arms that look alike are written as one", () => {
  expect(formatEstimate(figure(0.5, 0.494, 0.51)).interval).toBe("±0.01");
});

test("an arm too small for the decimals of its value gets more of them", () => {
  expect(formatEstimate(figure(200, 199.7, 200.3)).interval).toBe("±0.3");
});

test("the unit is scaled for value and interval alike", () => {
  const text = formatEstimateWithUnit(figure(1500, 1400, 1600), "ms");
  expect(text).toEqual({ value: "1.50\u202fs", interval: "±0.10" });
});

test.each<[Bound, number, number, number, string]>([
  ["about", 50, 50, 50, "≈ 50"],
  ["below", 10, 10, 10, "< 10"],
  ["range", 3, 2, 4, "2–4"],
  ["max", 800, 800, 800, "≤ 800"],
])("a published value that is %s its number says so", (bound, value, low, high, text) => {
  expect(formatEstimate({ value, low, high, runs: 1, bound })).toEqual({
    value: text,
    interval: "",
  });
});

test("a lower bound says so and keeps its interval", () => {
  const bound = "min" as const;
  const rate = { ...figure(900, 890, 910), bound };
  expect(formatEstimate(rate)).toEqual({ value: "≥ 900", interval: "±10" });
  expect(formatEstimate({ ...figure(900, 900, 900, 1), bound }).value).toBe("≥ 900");
});

test("a bound moves to the unit that reads best", () => {
  const range = { value: 1500, low: 1000, high: 2000, runs: 1, bound: "range" as const };
  expect(formatEstimateWithUnit(range, "ms").value).toBe("1–2\u202fs");
});

test("a single whole number claims no decimals", () => {
  expect(formatEstimate(figure(16, 16, 16, 1)).value).toBe("16");
  expect(formatEstimate(figure(16, 15, 17)).value).toBe("16.0");
});

test("a difference has its sign", () => {
  expect(formatDifference(figure(3.2, 3, 3.4)).value).toBe("+3.20");
  expect(formatDifference(figure(-3.2, -3.4, -3)).value).toBe("−3.20");
  expect(formatDifference(figure(0, -1, 1)).value).toBe("0");
});

test("what is not a number is no figure, and an end that is none is the value", () => {
  const holed = { value: null, low: null, high: null, runs: 3 } as never;
  expect(soundEstimate(holed)).toBeNull();
  expect(soundEstimate(undefined)).toBeNull();
  expect(soundEstimate(figure(5, Number.NaN, 6))).toEqual(figure(5, 5, 6));
});
