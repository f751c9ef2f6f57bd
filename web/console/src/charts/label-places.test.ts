import { expect, test } from "vitest";
import { spreadLabels } from "./label-places";

test("labels with room stay where they want to be", () => {
  expect(spreadLabels([100, 20, 60], 14, 0, 200)).toEqual([100, 20, 60]);
});

test("labels that meet share the room around their mean", () => {
  expect(spreadLabels([100, 102], 14, 0, 200)).toEqual([94, 108]);
});

test("no two are closer than the gap, in order and within the bounds", () => {
  const wishes = [3, 1, 2, 40, 41, 199, 200, 198, 120];
  const places = spreadLabels(wishes, 14, 4, 196);
  const order = wishes.map((_, index) => index).sort((a, b) => (wishes[a] ?? 0) - (wishes[b] ?? 0));
  const sorted = order.map((index) => places[index] ?? Number.NaN);
  for (const [index, place] of sorted.entries()) {
    expect(place).toBeGreaterThanOrEqual(4);
    expect(place).toBeLessThanOrEqual(196);
    if (index > 0) expect(place - (sorted[index - 1] ?? 0)).toBeGreaterThanOrEqual(14 - 1e-9);
  }
});
