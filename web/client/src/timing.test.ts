import { afterEach, expect, test, vi } from "vitest";
import { forSeeds } from "../test/random.ts";
import { backoff, readRetryAfter, startDeadline, startTimer, TIMING } from "./timing.ts";

afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ["a timer", startTimer],
  ["a deadline", startDeadline],
])("%s waits as long as a timer can, and can be stopped", async (_, start) => {
  vi.useFakeTimers();
  const called: number[] = [];
  const delays = [1_000, 2 ** 31, 1e12, Number.POSITIVE_INFINITY];
  for (const delay of delays) start(delay, () => called.push(delay));
  start(500, () => called.push(500))();
  await vi.advanceTimersByTimeAsync(2 ** 31 - 2);
  expect(called).toEqual([1_000]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(called).toEqual(delays);
});

test("a deadline that is over can be stopped until what waits in the event loop has had its turn", () => {
  vi.useFakeTimers();
  const called = vi.fn();
  const stop = startDeadline(1_000, called);
  vi.advanceTimersByTime(1_000);
  stop();
  vi.advanceTimersByTime(1_000);
  expect(called).not.toHaveBeenCalled();
});

test("delays stay between the floor and a ceiling that doubles up to its cap", () => {
  forSeeds(200, (random) => {
    for (let attempt = 0; attempt < 2000; attempt = attempt * 2 + 1) {
      const delay = backoff(TIMING, attempt, random());
      const ceiling = Math.min(TIMING.retryMax, TIMING.retry * 2 ** attempt);
      expect(delay).toBeGreaterThanOrEqual(TIMING.retryMin);
      expect(delay).toBeLessThanOrEqual(ceiling);
    }
  });
});

test("the jitter survives the cap", () => {
  const buckets = new Set<number>();
  forSeeds(300, (random) => {
    buckets.add(Math.floor((backoff(TIMING, 50, random()) / TIMING.retryMax) * 10));
  });
  expect(buckets.size).toBe(10);
});

test("what the server asks for comes before the jitter", () => {
  forSeeds(100, (random) => {
    const delay = backoff(TIMING, 0, random(), 2000);
    expect(delay).toBeGreaterThanOrEqual(2000);
    expect(delay).toBeLessThanOrEqual(4000);
  });
});

test("Retry-After is seconds or a date, and not for ever", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(readRetryAfter(null, now)).toBe(0);
  expect(readRetryAfter("2", now)).toBe(2000);
  expect(readRetryAfter("Thu, 01 Jan 2026 00:00:03 GMT", now)).toBe(3000);
  expect(readRetryAfter("Wed, 31 Dec 2025 00:00:03 GMT", now)).toBe(0);
  for (const text of ["", "-1", "soon", "NaN"]) expect(readRetryAfter(text, now)).toBe(0);
  expect(readRetryAfter("9".repeat(400), now)).toBe(300_000);
});
