import { expect, test } from "vitest";
import { formatFigure, formatFigureWithUnit, intervalOf, NO_INTERVAL } from "./figure";

const figure = (value: number, low: number, high: number, runs = 10) => ({
  value,
  low,
  high,
  runs,
});

test("one run has no interval and says so", () => {
  expect(intervalOf(figure(5, 5, 5, 1))).toEqual({ kind: "none" });
  expect(formatFigure(figure(5, 5, 5, 1)).interval).toBe(NO_INTERVAL);
});

test("equal runs have an interval of no width, which is not the same as none", () => {
  expect(formatFigure(figure(5, 5, 5)).interval).toBe("±0");
});

test("nearly even arms are written as one", () => {
  expect(formatFigure(figure(12.3, 11.9, 12.8))).toEqual({ value: "12.3", interval: "±0.5" });
});

test("skewed arms are written apart", () => {
  expect(formatFigure(figure(12.3, 12.1, 13.5)).interval).toBe("+1.2 −0.2");
});

test("skewed arms that look alike are written as one", () => {
  expect(formatFigure(figure(0.5, 0.494, 0.51)).interval).toBe("±0.01");
});

test("an arm too small for the decimals of its value gets more of them", () => {
  expect(formatFigure(figure(200, 199.7, 200.3)).interval).toBe("±0.3");
});

test("the unit is scaled for value and interval alike", () => {
  const text = formatFigureWithUnit(figure(1500, 1400, 1600), "ms");
  expect(text).toEqual({ value: "1.50\u202fs", interval: "±0.10" });
});
