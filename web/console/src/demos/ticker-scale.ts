import type { Domain } from "../charts/axis";
import { changeOf, type Point, type Quote, WINDOW_MS } from "./ticker-state";

/** Coordinates of the drawing: tenths of a second to the right, and so many downwards. */
export const UNIT_MS = 100;
export const WIDTH = WINDOW_MS / UNIT_MS;
export const HEIGHT = 1000;

/** Stocks in the chart at once. */
export const MAX_CHOSEN = 6;
/** Those that are in it before anybody chooses. */
const FIRST_CHOSEN = 4;
/** Smallest height of the scale in percent: less would make noise look like news. */
const MIN_SPAN = 0.5;
const STEPS = [1, 2, 5, 10];

/** The symbols that an address names, of those that there are; the first few where it names none. */
export function readChosen(text: string | null, symbols: readonly string[]): string[] {
  if (text === null) return symbols.slice(0, FIRST_CHOSEN);
  const wanted = new Set(text.split(","));
  return symbols.filter((symbol) => wanted.has(symbol)).slice(0, MAX_CHOSEN);
}

/** How an address names them; `none` keeps an empty choice from being the default. */
export function writeChosen(chosen: readonly string[]): string {
  return chosen.length === 0 ? "none" : chosen.join(",");
}

/** A place in the palette for each symbol; one that had a place keeps it. */
export function assignSlots(
  before: ReadonlyMap<string, number>,
  chosen: readonly string[],
): Map<string, number> {
  const slots = new Map<string, number>();
  for (const symbol of chosen) {
    const slot = before.get(symbol);
    if (slot !== undefined) slots.set(symbol, slot);
  }
  for (const symbol of chosen) {
    if (slots.has(symbol)) continue;
    const taken = new Set(slots.values());
    let slot = 0;
    while (taken.has(slot)) slot++;
    slots.set(symbol, slot);
  }
  return slots;
}

/** From a round percentage below the lowest change to one above the highest. */
export function changeDomain(quotes: readonly Quote[]): Domain {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const quote of quotes) {
    for (const { cents } of quote.points) {
      const change = changeOf(quote, cents);
      low = Math.min(low, change);
      high = Math.max(high, change);
    }
  }
  if (low > high) return [-MIN_SPAN, MIN_SPAN];
  const rough = Math.max(high - low, MIN_SPAN) / 4;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = decade * (STEPS.find((one) => one * decade >= rough) ?? 10);
  const bottom = Math.floor(low / step) * step;
  const top = Math.ceil(high / step) * step;
  return [bottom, top > bottom ? top : bottom + step];
}

/** Where a change stands, from 0 at the top to `HEIGHT` at the bottom. */
export function heightOf(change: number, [low, high]: Domain): number {
  return ((high - change) / (high - low)) * HEIGHT;
}

/**
 * A line of steps, because a price holds until the next: in units since `base`, and on to the right without end, so
 * that moving the drawing is all that time does to it.
 */
export function stepPath(quote: Quote, domain: Domain, base: number): string {
  const [first, ...rest] = quote.points;
  if (first === undefined) return "";
  const y = ({ cents }: Point) => round(heightOf(changeOf(quote, cents), domain));
  const x = ({ at }: Point) => round((at - base) / UNIT_MS);
  let path = `M${x(first)} ${y(first)}`;
  for (const point of rest) path += `H${x(point)}V${y(point)}`;
  return `${path}h${2 * WIDTH}`;
}

/** A line through the prices, from edge to edge of a box. */
export function sparkPath(points: readonly Point[], width: number, height: number): string {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return "";
  const prices = points.map((point) => point.cents);
  const low = Math.min(...prices);
  const span = Math.max(...prices) - low;
  const y = (cents: number) => round(span === 0 ? height / 2 : height * (1 - (cents - low) / span));
  if (first === last) return `M0 ${y(first.cents)}H${width}`;
  // As many points as the box has places: the rest would not be seen.
  const skip = Math.max(1, Math.floor(points.length / width));
  const shown = points.filter((point, index) => index % skip === 0 || point === last);
  const x = (at: number) => round((width * (at - first.at)) / (last.at - first.at));
  return `M${shown.map((point) => `${x(point.at)} ${y(point.cents)}`).join("L")}`;
}

function round(place: number): number {
  return Math.round(place * 10) / 10;
}
