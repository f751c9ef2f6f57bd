import { expect, test } from "vitest";
import { clockOf, wayDown } from "./server-clock";

test("the fastest round trip says how far the clocks are apart, and how well that is known", () => {
  expect(clockOf([])).toBeNull();
  const slow = { sent: 10.5, came: 90.5, now_ms: 1_000_080 };
  const fast = { sent: 100.5, came: 104.5, now_ms: 1_000_102.5 };
  expect(clockOf([slow, fast])).toEqual({ ahead: 1_000_000, error: 2.1 });
  expect(clockOf([slow])?.error).toBeCloseTo(40.1);
});

test("the true difference is within the error, wherever in the round trip the server answered", () => {
  for (const up of [0, 1, 3, 4]) {
    const clock = clockOf([{ sent: 100.5, came: 104.5, now_ms: 5_000_100.5 + up }]);
    expect(Math.abs((clock?.ahead ?? 0) - 5_000_000)).toBeLessThanOrEqual(clock?.error ?? 0);
  }
});

test("a clock that shows whole milliseconds is known no better than that", () => {
  expect(clockOf([{ sent: 7, came: 7, now_ms: 1_000 }])?.error).toBe(1);
});

test("a message's way is told by the two clocks", () => {
  const clock = { ahead: 1_000_000, error: 1 };
  const message = { sent_ms: 1_000_500, at: 512, openedAt: 400 };
  expect(wayDown(message, clock)).toBe(12);
  expect(wayDown({ ...message, at: 499.5 }, clock), "within the error").toBe(0);
  expect(wayDown({ ...message, sent_ms: null }, clock), "it does not say when").toBeNull();
  expect(wayDown({ ...message, openedAt: 501 }, clock), "from the history").toBeNull();
  expect(wayDown(message, null), "the clock is not known yet").toBeNull();
});
