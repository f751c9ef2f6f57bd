import { expect, test } from "vitest";
import { chartSize } from "./charts";

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])("%d charts fill their rows", (count) => {
  const sizes = Array.from({ length: count }, (_, index) => chartSize(index, count));
  const number = (size: string) => sizes.filter((one) => one === size).length;
  expect(number("normal") % 2).toBe(0);
  expect(number("small") % 3).toBe(0);
  expect(number("wide") + number("normal")).toBeLessThanOrEqual(5);
  expect(sizes.indexOf("wide")).toBeLessThanOrEqual(0);
});
