import * as Plot from "@observablehq/plot";
import type { Bound, Series } from "../generated/report";
import type { Identity } from "../series/identity";
import { type Corner, symbolCorners } from "../series/symbols";
import { estimateOf } from "./metrics";

/** A figure at its place. */
export interface Dot {
  x: number;
  y: number;
  low: number;
  high: number;
  runs: number;
  bound: Bound | null;
}

export interface SeriesStyle {
  identity: Identity;
  /** Another series stands out. */
  faint: boolean;
  /** So many lines that their bands would cover each other. */
  crowded: boolean;
  /** Lowest value of the vertical axis. */
  floor: number;
}

/** A place without a figure becomes a gap in the line, not a bridge over it. */
export function dotsOf(series: Series, metric: string): Dot[] {
  const dots = series.points.map((point) => {
    const figure = estimateOf(point, metric);
    const value = figure?.value ?? Number.NaN;
    return {
      x: point.x,
      y: value,
      low: figure?.low ?? value,
      high: figure?.high ?? value,
      runs: figure?.runs ?? 0,
      bound: figure?.bound ?? null,
    };
  });
  // A study leaves places out that were measured here; its line goes on over them.
  const known = series.origin === "published" ? dots.filter((dot) => Number.isFinite(dot.y)) : dots;
  return known.sort((a, b) => a.x - b.x);
}

/** Interval band, line and markers. */
export function seriesMarks(dots: readonly Dot[], style: SeriesStyle): Plot.Markish[] {
  const { identity, faint, crowded, floor } = style;
  const { colour, hollow, dash } = identity;
  const opacity = faint ? 0.22 : 1;
  const banded = dots.map((dot) =>
    dot.runs > 1 && (dot.bound === null || dot.bound === "min")
      ? dot
      : { ...dot, low: Number.NaN, high: Number.NaN },
  );
  const shown = dots.filter((dot) => Number.isFinite(dot.y));
  return [
    Plot.areaY(banded, {
      x: "x",
      y1: (dot: Dot) => Math.max(dot.low, floor),
      y2: "high",
      fill: colour,
      fillOpacity: faint ? 0.03 : crowded || hollow ? 0.08 : 0.16,
    }),
    Plot.line(dots, {
      x: "x",
      y: "y",
      stroke: colour,
      strokeWidth: hollow ? 1.4 : 1.75,
      strokeOpacity: opacity,
      ...(dash === undefined ? {} : { strokeDasharray: dash }),
    }),
    ...boundMarks(shown, colour, opacity),
    ...markers(shown, identity, opacity),
  ];
}

/** What a figure leaves open: a bar over a range, an arrow down from an upper limit, one up from a lower. */
function boundMarks(dots: readonly Dot[], colour: string, opacity: number): Plot.Markish[] {
  const limits = dots.filter((dot) => dot.bound === "below" || dot.bound === "max");
  const lower = dots.filter((dot) => dot.bound === "min");
  const arrow = (rotate: number) => ({
    ...{ x: "x", y: "y", length: 18, rotate, anchor: "start" as const, r: 3 },
    ...{ stroke: colour, strokeOpacity: opacity, strokeWidth: 1.4 },
  });
  return [
    Plot.ruleX(
      dots.filter((dot) => dot.bound === "range"),
      { x: "x", y1: "low", y2: "high", stroke: colour, strokeOpacity: opacity, strokeWidth: 3 },
    ),
    Plot.vector(limits, arrow(180)),
    Plot.vector(lower, arrow(0)),
  ];
}

function markers(dots: readonly Dot[], identity: Identity, opacity: number): Plot.Markish[] {
  const place = { x: "x", y: "y", symbol: plotSymbol(symbolCorners(identity.symbol)) };
  if (identity.hollow) {
    const stroke = { stroke: identity.colour, strokeOpacity: opacity, strokeWidth: 1.4 };
    return [Plot.dot(dots, { ...place, ...stroke, r: 3.4, fill: "var(--page)" })];
  }
  const fill = { fill: identity.colour, fillOpacity: opacity, stroke: "none" };
  return [
    Plot.dot(
      dots.filter((dot) => dot.runs > 1),
      { ...place, ...fill, r: 4 },
    ),
    // Small: a single run, nothing is known about its spread.
    Plot.dot(
      dots.filter((dot) => dot.runs <= 1),
      { ...place, ...fill, r: 2.6 },
    ),
  ];
}

function plotSymbol(corners: readonly Corner[]) {
  return {
    draw(context: { moveTo: Pen; lineTo: Pen; closePath: () => void }, size: number) {
      const radius = Math.sqrt(size / Math.PI);
      corners.forEach(([x, y], index) => {
        if (index === 0) context.moveTo(x * radius, y * radius);
        else context.lineTo(x * radius, y * radius);
      });
      context.closePath();
    },
  };
}

type Pen = (x: number, y: number) => void;
