import { describe, expect, test } from "vitest";
import {
  formatChance,
  formatChange,
  formatCount,
  formatExact,
  formatNumber,
  formatQuantity,
  formatTick,
  plural,
  scaleUnit,
} from "./number";

/** Thin spaces as plain ones, for legible expectations. */
const spaced = (text: string) => text.replaceAll("\u202f", " ");

describe("formatNumber", () => {
  test.each([
    [0, "0"],
    [0.0004321, "0.00043"],
    [0.0123, "0.012"],
    [0.4, "0.40"],
    [1.234, "1.23"],
    [12.34, "12.3"],
    [123.4, "123"],
    [1234.4, "1 234"],
    [123_456, "123 500"],
    [-1234, "−1 234"],
    [Number.NaN, "–"],
    [Number.POSITIVE_INFINITY, "–"],
  ])("%d is %s", (value, text) => {
    expect(spaced(formatNumber(value))).toBe(text);
  });
});

describe("formatQuantity", () => {
  test.each([
    [12.34, "ms", "12.3 ms"],
    [1500, "ms", "1.50 s"],
    [1500, "µs", "1.50 ms"],
    [2_000_000, "µs", "2.00 s"],
    [1536, "MiB", "1.50 GiB"],
    [1_572_864, "B", "1.50 MiB"],
    [20_000, "/s", "20 000/s"],
    [99.5, "%", "99.5 %"],
  ])("%d %s is %s", (value, unit, text) => {
    expect(spaced(formatQuantity(value, unit))).toBe(text);
  });

  test("keeps the factor between the units", () => {
    expect(scaleUnit(3_145_728, "B")).toEqual({ value: 3, unit: "MiB", factor: 1_048_576 });
  });
});

test("ticks have no trailing zeros", () => {
  expect(spaced(formatTick(100, "ms"))).toBe("100 ms");
  expect(spaced(formatTick(10_000, "ms"))).toBe("10 s");
  expect(spaced(formatTick(0.5, "ms"))).toBe("0.5 ms");
  expect(spaced(formatTick(0.1 + 0.2))).toBe("0.3");
});

test("counts are written in full", () => {
  expect(spaced(formatCount(1_234_567))).toBe("1 234 567");
  expect(plural(1, "run")).toBe("1 run");
  expect(plural(0, "run")).toBe("0 runs");
});

test("a place is written as it was chosen", () => {
  expect(spaced(formatExact(12_345))).toBe("12 345");
  expect(formatExact(0.1 + 0.2)).toBe("0.3");
});

test("a change has its sign, a chance is never nought", () => {
  expect(spaced(formatChange(12.4))).toBe("+12 %");
  expect(spaced(formatChange(-0.42))).toBe("−0.4 %");
  expect(spaced(formatChange(0))).toBe("0.0 %");
  expect([0, 0.004, 0.0423, 1].map(formatChance)).toEqual(["< 0.001", "0.004", "0.04", "1.00"]);
});
