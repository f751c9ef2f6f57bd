import { expect, test } from "vitest";
import { formatMoney, moneyText, parseMoney, quickBids } from "./money";

test("amounts have their cents", () => {
  expect(formatMoney(123_450)).toBe("€1,234.50");
  expect(formatMoney(5)).toBe("€0.05");
});

test("what one types is read with a point or a comma", () => {
  expect(parseMoney("12.5")).toBe(1250);
  expect(parseMoney(" 12,05 ")).toBe(1205);
  expect(parseMoney("€ 7")).toBe(700);
  expect(parseMoney("0.29")).toBe(29);
});

test("what could mean another amount is refused", () => {
  for (const text of ["", "1,234", "1 000", "-5", "1e3", "12.345", "five", "99999999999"]) {
    expect(parseMoney(text), text).toBeUndefined();
  }
});

test("an amount survives being typed", () => {
  for (const cents of [0, 1, 29, 1999, 123_456_789])
    expect(parseMoney(moneyText(cents))).toBe(cents);
});

test("quick bids begin with the least and rise in round steps", () => {
  expect(quickBids(1001)).toEqual([1001, 1050, 1100]);
  expect(quickBids(100_001)).toEqual([100_001, 105_000, 110_000]);
  for (let least = 1; least < 5_000_000; least = Math.ceil(least * 1.07)) {
    const bids = quickBids(least);
    expect(bids).toHaveLength(3);
    expect(bids).toEqual([...new Set(bids)].sort((a, b) => a - b));
    expect(bids[0]).toBe(least);
  }
});
