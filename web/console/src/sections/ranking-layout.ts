import type { Estimate, Place } from "../generated/report";

/** Above this ratio between the largest and smallest value a linear scale would hide the small ones. */
const LINEAR_RATIO_MAX = 20;

export interface RangeScale {
  log: boolean;
  /** Per cent of the track's width, 0 to 100. */
  place: (value: number) => number;
}

/** A scale on which all intervals of a ranking fit. */
export function rangeScale(figures: readonly Estimate[]): RangeScale {
  const lows = figures.map((figure) => figure.low);
  const low = Math.min(...lows);
  const high = Math.max(...figures.map((figure) => figure.high));
  const log = low > 0 && high / low > LINEAR_RATIO_MAX;
  const measure = log ? Math.log : (value: number) => value;
  const from = log ? measure(low) : Math.min(0, low);
  const span = measure(high) - from || 1;
  // Six per cent on either side keep the dots inside the track.
  return { log, place: (value) => 6 + (88 * (measure(value) - from)) / span };
}

/** Places of equal rank together, in the order given. */
export function tieGroups(places: readonly Place[]): Place[][] {
  const groups: Place[][] = [];
  for (const place of places) {
    const last = groups.at(-1);
    if (last?.[0]?.rank === place.rank) last.push(place);
    else groups.push([place]);
  }
  return groups;
}
