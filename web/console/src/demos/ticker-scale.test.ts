import { expect, test } from "vitest";
import {
  assignSlots,
  changeDomain,
  HEIGHT,
  heightOf,
  MAX_CHOSEN,
  readChosen,
  sparkPath,
  stepPath,
  WIDTH,
  writeChosen,
} from "./ticker-scale";
import type { Quote } from "./ticker-state";

const SYMBOLS = ["A", "B", "C", "D", "E", "F", "G", "H"];

function quote(...prices: number[]): Quote {
  const points = prices.map((cents, index) => ({ at: 1000 * (index + 1), cents }));
  return { symbol: "A", name: "First", price_cents: 0, open_cents: 1000, points };
}

test("a choice survives the address, and none is a choice too", () => {
  expect(readChosen(writeChosen(["B", "C"]), SYMBOLS)).toEqual(["B", "C"]);
  expect(readChosen(writeChosen([]), SYMBOLS)).toEqual([]);
  expect(readChosen(null, SYMBOLS)).toEqual(["A", "B", "C", "D"]);
});

test("what an address names and is not there is left out, and so is what is too much", () => {
  expect(readChosen("Z,B,<script>,B", SYMBOLS)).toEqual(["B"]);
  expect(readChosen(SYMBOLS.join(","), SYMBOLS)).toHaveLength(MAX_CHOSEN);
});

test("a line keeps its colour while others come and go", () => {
  const first = assignSlots(new Map(), ["A", "B", "C"]);
  const second = assignSlots(first, ["B", "C", "D"]);
  expect(Object.fromEntries(second)).toEqual({ B: 1, C: 2, D: 0 });
});

test("the scale is round, holds every line and is never flat", () => {
  const [low, high] = changeDomain([quote(1003, 1011), quote(991, 1000)]);
  expect(low).toBeCloseTo(-1);
  expect(high).toBeCloseTo(1.5);
  const [bottom, top] = changeDomain([quote(1000)]);
  expect(top).toBeGreaterThan(bottom);
  expect(changeDomain([])).toEqual([-0.5, 0.5]);
});

test("the upper edge is at nothing", () => {
  expect(heightOf(2, [-2, 2])).toBe(0);
  expect(heightOf(-2, [-2, 2])).toBe(HEIGHT);
});

test("a price holds until the next, and the last one for ever", () => {
  const path = stepPath(quote(1000, 1010), [0, 1], 0);
  expect(path).toBe(`M10 ${HEIGHT}H20V0h${2 * WIDTH}`);
  expect(stepPath(quote(), [0, 1], 0)).toBe("");
});

test("a sparkline goes from edge to edge", () => {
  expect(sparkPath(quote(1, 3, 2).points, 100, 20)).toBe("M0 20L50 0L100 10");
  expect(sparkPath(quote(5, 5).points, 100, 20)).toBe("M0 10L100 10");
  expect(sparkPath(quote(5).points, 100, 20)).toBe("M0 10H100");
  expect(sparkPath([], 100, 20)).toBe("");
});

test("a sparkline has no more points than places", () => {
  const many = quote(...Array.from({ length: 900 }, (_, index) => index));
  expect(sparkPath(many.points, 100, 20).split("L").length).toBeLessThanOrEqual(102);
});
