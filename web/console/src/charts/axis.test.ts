import { expect, test } from "vitest";
import {
  axisScale,
  fittingTicks,
  linearDomain,
  linearTicks,
  logDomain,
  logTicks,
  shareOn,
} from "./axis";

const axis = { name: "clients", title: "Clients", unit: "", is_logarithmic: false };
const log = { ...axis, is_logarithmic: true };

test("an axis is as the report says, from zero or from its first place", () => {
  expect(axisScale(axis, [50, 500])).toEqual({ type: "linear", domain: [0, 500] });
  expect(axisScale(log, [30, 5000])).toEqual({ type: "log", domain: [30, 5000] });
});

test("no log axis for a place at zero, and no empty axis", () => {
  expect(axisScale(log, [0, 1, 1000]).type).toBe("linear");
  expect(axisScale(axis, [])).toEqual({ type: "linear", domain: [0, 1] });
  expect(axisScale(log, [0]).domain).toEqual([0, 1]);
});

test("a share runs from nought to one on either scale", () => {
  expect(shareOn({ type: "linear", domain: [0, 200] })(50)).toBe(0.25);
  expect(shareOn({ type: "log", domain: [1, 100] })(10)).toBeCloseTo(0.5);
  expect(shareOn({ type: "log", domain: [1, 100] })(0)).toBe(0);
  expect(shareOn({ type: "linear", domain: [5, 5] })(5)).toBe(0);
});

test("a log domain is rounded outwards and ignores what it cannot show", () => {
  expect(logDomain([0.42, 1800, 0, Number.NaN], [1, 1000])).toEqual([0.2, 2000]);
  expect(logDomain([], [1, 1000])).toEqual([1, 1000]);
  expect(logDomain([])).toEqual([1, 10]);
});

test("a log domain around one value is a decade, not a point", () => {
  expect(logDomain([464])).toEqual([100, 1000]);
  expect(logDomain([100, 464])).toEqual([100, 500]);
});

test("log ticks stand at decades, and between them when these are few", () => {
  expect(logTicks([0.2, 2000])).toEqual([1, 10, 100, 1000]);
  expect(logTicks([1, 20])).toEqual([1, 2, 5, 10, 20]);
});

test("a linear domain starts at zero and survives no data", () => {
  expect(linearDomain([10, Number.NaN], 100)).toEqual([0, 105]);
  expect(linearDomain([])).toEqual([0, 1]);
});

test("a linear domain reaches below zero where values do", () => {
  expect(linearDomain([-20, 100])).toEqual([-21, 105]);
  expect(linearDomain([-20])).toEqual([-21, 0]);
});

test("linear ticks are round and inside the domain", () => {
  expect(linearTicks([0, 105], 6)).toEqual([0, 50, 100]);
  expect(linearTicks([-21, 0.5], 5)).toEqual([-20, -10, 0]);
  expect(linearTicks([3, 3], 5)).toEqual([3]);
});

test("ticks that would touch are left out, the largest never", () => {
  expect(fittingTicks([1, 50, 100, 500], (count) => count, 60)).toEqual([1, 100, 500]);
});
