import type { Stock, Tick, TickerSnapshot } from "./interface";

/** How long prices are kept and drawn. */
export const WINDOW_MS = 90_000;
/** Points of one stock are so far apart, but for the last, so that the fastest feed keeps 903 of them. */
export const STEP_MS = 100;
/** Whole seconds over which the rate of messages is the mean. */
const RATE_SECONDS = 5;

/** A price from one moment until the next. */
export interface Point {
  /** On the page's clock, `performance.now()`. */
  readonly at: number;
  readonly cents: number;
}

/** A stock with the prices of the window, oldest first. */
export interface Quote extends Stock {
  readonly points: readonly Point[];
}

/** What the page knows of the market. */
export interface TickerState {
  /** In the server's order; undefined until the first snapshot. */
  readonly quotes: readonly Quote[] | undefined;
  /** Number of the latest message since the snapshot. */
  readonly number: number | undefined;
  readonly messages: number;
  /** Messages whose numbers were skipped although no gap was told. */
  readonly lost: number;
  /** How often prices were missed, and the list was loaded anew. */
  readonly gaps: number;
  /** The second of the first message. */
  readonly since: number | undefined;
  /** Messages in each second that had any, latest last: at most `RATE_SECONDS` and the one that runs. */
  readonly seconds: readonly { readonly second: number; readonly count: number }[];
}

export type TickerAction =
  | { kind: "snapshot"; snapshot: TickerSnapshot; at: number }
  | { kind: "tick"; tick: Tick; at: number }
  | { kind: "gap" };

export const EMPTY_TICKER: TickerState = {
  quotes: undefined,
  number: undefined,
  messages: 0,
  lost: 0,
  gaps: 0,
  since: undefined,
  seconds: [],
};

export function reduceTicker(state: TickerState, action: TickerAction): TickerState {
  switch (action.kind) {
    case "snapshot":
      return {
        ...state,
        quotes: takeSnapshot(state.quotes, action.snapshot.stocks, action.at),
        number: undefined,
      };
    case "gap":
      return { ...state, gaps: state.gaps + 1 };
    case "tick":
      return takeTick(state, action.tick, action.at);
  }
}

/** Lines go on where they were; what was missed between is a step. */
function takeSnapshot(
  before: readonly Quote[] | undefined,
  stocks: readonly Stock[],
  at: number,
): Quote[] {
  const points = new Map(before?.map((quote) => [quote.symbol, quote.points]));
  return stocks.map((stock) => ({
    ...stock,
    points: addPoint(points.get(stock.symbol) ?? [], { at, cents: stock.price_cents }),
  }));
}

function takeTick(state: TickerState, [number, prices]: Tick, at: number): TickerState {
  const before = state.number ?? number - 1;
  // Older than what is shown already.
  if (number <= before) return state;
  const changed = new Map(prices);
  const quotes = state.quotes?.map((quote) => {
    const cents = changed.get(quote.symbol);
    if (cents === undefined) return quote;
    return { ...quote, price_cents: cents, points: addPoint(quote.points, { at, cents }) };
  });
  const second = Math.floor(at / 1000);
  return {
    ...state,
    quotes,
    number,
    since: state.since ?? second,
    messages: state.messages + 1,
    lost: state.lost + number - before - 1,
    seconds: countSecond(state.seconds, second),
  };
}

/**
 * Adds a point and drops what has left the window, but for the last before it, from which the line comes in. A last
 * point that is closer to the one before than `STEP_MS` makes room for the new one.
 */
export function addPoint(points: readonly Point[], point: Point): Point[] {
  const [previous, last] = points.slice(-2);
  const isClose = previous !== undefined && last !== undefined && last.at - previous.at < STEP_MS;
  const kept = isClose ? points.slice(0, -1) : points.slice();
  kept.push(point);
  const first = kept.findIndex(({ at }) => at > point.at - WINDOW_MS);
  return first > 1 ? kept.slice(first - 1) : kept;
}

function countSecond(seconds: TickerState["seconds"], second: number): TickerState["seconds"] {
  const last = seconds.at(-1);
  if (last?.second === second) return [...seconds.slice(0, -1), { second, count: last.count + 1 }];
  return [...seconds.filter((one) => one.second >= second - RATE_SECONDS), { second, count: 1 }];
}

/** Messages a second over the last whole seconds; undefined before there was one. */
export function messagesPerSecond(state: TickerState, now: number): number | undefined {
  const second = Math.floor(now / 1000);
  const span = Math.min(RATE_SECONDS, second - (state.since ?? second) - 1);
  if (span < 1) return undefined;
  const whole = state.seconds.filter((one) => one.second < second && one.second >= second - span);
  return whole.reduce((sum, one) => sum + one.count, 0) / span;
}

/** Change since the open, in percent. */
export function changeOf(stock: Pick<Stock, "open_cents">, cents: number): number {
  return stock.open_cents > 0 ? (cents / stock.open_cents - 1) * 100 : 0;
}
