import { expect, test } from "vitest";
import type { Tick } from "./interface";
import {
  addPoint,
  changeOf,
  EMPTY_TICKER,
  messagesPerSecond,
  type Point,
  reduceTicker,
  STEP_MS,
  type TickerState,
  WINDOW_MS,
} from "./ticker-state";

const SNAPSHOT = {
  cursor: "a.1",
  stocks: [
    { symbol: "AAA", name: "First", price_cents: 10_000, open_cents: 8_000 },
    { symbol: "BBB", name: "Second", price_cents: 500, open_cents: 500 },
  ],
};

function started(): TickerState {
  return reduceTicker(EMPTY_TICKER, { kind: "snapshot", snapshot: SNAPSHOT, at: 1000 });
}

function tick(state: TickerState, at: number, ...message: Tick): TickerState {
  return reduceTicker(state, { kind: "tick", tick: message, at });
}

test("a tick changes the prices it names and no others", () => {
  const state = tick(started(), 2000, 7, [["BBB", 525]]);
  expect(state.quotes?.map((quote) => quote.price_cents)).toEqual([10_000, 525]);
  expect(state.quotes?.[1]?.points).toEqual([
    { at: 1000, cents: 500 },
    { at: 2000, cents: 525 },
  ]);
  expect(state.number).toBe(7);
});

test("a stock that the snapshot does not have is left out", () => {
  expect(tick(started(), 2000, 1, [["ZZZ", 1]]).quotes).toEqual(started().quotes);
});

test("a tick before the snapshot is counted and nothing else", () => {
  const state = tick(EMPTY_TICKER, 0, 1, [["AAA", 1]]);
  expect(state.quotes).toBeUndefined();
  expect(state.messages).toBe(1);
});

test("a message that comes late or twice changes nothing, and skipped ones are counted", () => {
  const state = tick(tick(started(), 2000, 7, [["BBB", 525]]), 2250, 10, [["BBB", 530]]);
  expect(state.lost).toBe(2);
  expect(tick(state, 2500, 8, [["BBB", 1]])).toBe(state);
  expect(tick(state, 2500, 10, [["BBB", 1]])).toBe(state);
});

test("numbers begin anew with a snapshot, as they do when the server was restarted", () => {
  const before = tick(started(), 2000, 700, [["BBB", 525]]);
  const again = reduceTicker(before, { kind: "snapshot", snapshot: SNAPSHOT, at: 3000 });
  const state = tick(again, 4000, 1, [["BBB", 540]]);
  expect(state.quotes?.[1]?.price_cents).toBe(540);
  expect(state.lost).toBe(0);
});

test("a snapshot after a gap goes on with the lines", () => {
  const before = tick(started(), 2000, 1, [["AAA", 10_100]]);
  const missed = reduceTicker(before, { kind: "gap" });
  const snapshot = { ...SNAPSHOT, stocks: [{ ...SNAPSHOT.stocks[0], price_cents: 10_300 }] };
  const state = reduceTicker(missed, {
    kind: "snapshot",
    snapshot: snapshot as typeof SNAPSHOT,
    at: 9000,
  });
  expect(state.gaps).toBe(1);
  expect(state.quotes).toHaveLength(1);
  expect(state.quotes?.[0]?.points.map((point) => point.cents)).toEqual([10_000, 10_100, 10_300]);
});

test("the fastest feed keeps a bounded number of points", () => {
  let points: Point[] = [];
  for (let at = 0; at < 3 * WINDOW_MS; at += 5) points = addPoint(points, { at, cents: at });
  expect(points.length).toBeLessThanOrEqual(WINDOW_MS / STEP_MS + 3);
  expect(points.length).toBeGreaterThan(WINDOW_MS / STEP_MS - 3);
  expect(points.at(-1)?.at).toBe(3 * WINDOW_MS - 5);
});

test("a slow feed keeps the point before the window, from which the line comes in", () => {
  let points = addPoint([], { at: 0, cents: 1 });
  points = addPoint(points, { at: 1000, cents: 2 });
  points = addPoint(points, { at: WINDOW_MS + 5000, cents: 3 });
  expect(points.map((point) => point.cents)).toEqual([2, 3]);
});

test("messages a second are the mean of the last whole seconds", () => {
  let state = started();
  for (let at = 0; at < 20_000; at += 250) state = tick(state, at, at + 1, []);
  expect(messagesPerSecond(state, 20_100)).toBe(4);
  expect(state.seconds.length).toBeLessThanOrEqual(6);
  expect(messagesPerSecond(state, 40_000)).toBe(0);
  expect(messagesPerSecond(EMPTY_TICKER, 40_000)).toBeUndefined();
});

test("before there are so many seconds the mean is of those that there are", () => {
  let state = started();
  for (let at = 500; at < 3200; at += 250) state = tick(state, at, at, []);
  expect(messagesPerSecond(state, 1900)).toBeUndefined();
  expect(messagesPerSecond(state, 3200)).toBe(4);
});

test("the change is in percent of the open, and none where there was no open", () => {
  expect(changeOf({ open_cents: 8_000 }, 10_000)).toBeCloseTo(25);
  expect(changeOf({ open_cents: 0 }, 10_000)).toBe(0);
});
