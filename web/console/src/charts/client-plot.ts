import * as Plot from "@observablehq/plot";
import { formatTick } from "../format/number";
import { BANDS } from "../format/words";
import type { Series } from "../generated/report";
import type { Identity } from "../series/identity";
import { type Corner, symbolCorners } from "../series/symbols";
import { clientScale, type Domain, fittingTicks, linearDomain, logDomain, logTicks } from "./axis";
import { addEndLabels, type EndLabel } from "./end-labels";
import type { Metric } from "./metrics";
import { BASE_STYLE, CHARACTER, type Drawing, MARGIN } from "./plot-style";

export interface ClientPlotInput {
  metric: Metric;
  series: readonly Series[];
  identities: ReadonlyMap<string, Identity>;
  focus: string | null;
}

interface Dot {
  x: number;
  y: number;
  low: number;
  high: number;
  runs: number;
}

/** Narrower charts have no room for names beside the lines and rely on the legend. */
const LABEL_WIDTH_MIN = 620;
const LABEL_MARGIN_MAX = 240;
/** Leaves room above the full core for its label. */
const FULL_CORE_TOP = 116;
/** Ticks and the name of the axis below them. */
const BOTTOM = 40;
const RESPONSE_DOMAIN: Domain = [1, 1000];
const LATENCY_DOMAIN: Domain = [1, 10];

/** Lines with interval bands and markers, one for each series, against clients. */
export function drawClientPlot(input: ClientPlotInput, width: number, height: number): Drawing {
  const { metric, series, identities, focus } = input;
  const lines = series.map((one) => ({ series: one, dots: dotsOf(one, metric) }));
  const counts = [...new Set(series.flatMap((one) => one.points.map((point) => point.clients)))];
  const values = lines.flatMap((line) => line.dots.flatMap((dot) => [dot.y, dot.low, dot.high]));
  const domain = valueDomain(metric, values);
  const named = width >= LABEL_WIDTH_MIN;
  const marginRight = named ? labelMargin(series) : MARGIN.right;
  const xType = clientScale(counts);
  const x = { type: xType, domain: clientDomain(counts, xType) } as const;
  const inner = width - MARGIN.left - marginRight;
  const ticks = fittingTicks(counts, placing(x.type, x.domain, inner), 46);

  const marks: Plot.Markish[] = [...backdrop(metric, domain, width)];
  marks.push(
    Plot.gridY({
      ...(metric.scale === "log" ? { ticks: logTicks(domain) } : { ticks: 5 }),
      stroke: "var(--grid)",
      strokeOpacity: 1,
    }),
    Plot.axisY({
      ...(metric.scale === "log" ? { ticks: logTicks(domain) } : { ticks: 5 }),
      tickFormat: (tick: number) => formatTick(tick, metric.scale === "log" ? metric.unit : ""),
      tickSize: 0,
      label: null,
    }),
    Plot.axisX({
      ...{ ticks, tickFormat: (tick: number) => formatTick(tick), tickSize: 4 },
      label: null,
    }),
    Plot.text(["clients"], { frameAnchor: "bottom-right", textAnchor: "end", dy: 32 }),
    Plot.ruleY([domain[0]], { stroke: "var(--axis)" }),
  );
  // The line that stands out is drawn last, above the others.
  const order = [...lines].sort((a, b) => rankOf(a.series, focus) - rankOf(b.series, focus));
  for (const { series: one, dots } of order) {
    const identity = identities.get(one.key);
    if (identity === undefined) continue;
    const faint = focus !== null && focus !== one.key;
    marks.push(...seriesMarks(dots, identity, faint, domain[0]));
  }

  marks.push(...foreground(metric));

  const svg = Plot.plot({
    width,
    height,
    ...{ marginLeft: MARGIN.left, marginTop: MARGIN.top, marginBottom: BOTTOM, marginRight },
    style: BASE_STYLE,
    x,
    y: { type: metric.scale, domain: [...domain], clamp: metric.scale === "log" },
    marks,
  }) as SVGSVGElement & Plot.Plot;

  const placeX = svg.scale("x")?.apply;
  const placeY = svg.scale("y")?.apply;
  if (placeX === undefined || placeY === undefined) throw new Error("a plot has both scales");
  if (named) {
    addEndLabels(svg, endLabels(), {
      right: width - marginRight,
      top: MARGIN.top,
      bottom: height - BOTTOM,
    });
  }
  return {
    ...{ svg, place: placeX, left: MARGIN.left, right: width - marginRight },
    bottom: height - BOTTOM,
  };

  function endLabels(): EndLabel[] {
    return lines.flatMap(({ series: one, dots }) => {
      const last = dots.filter((dot) => Number.isFinite(dot.y)).at(-1);
      const identity = identities.get(one.key);
      if (last === undefined || identity === undefined) return [];
      return {
        text: identity.label,
        colour: identity.colour,
        x: placeX?.(last.x),
        y: placeY?.(Math.max(last.y, domain[0])),
        faint: focus !== null && focus !== one.key,
      };
    });
  }
}

/** A count without a figure becomes a gap in the line, not a bridge over it. */
function dotsOf(series: Series, metric: Metric): Dot[] {
  return series.points.map((point) => {
    const figure = metric.figure(point);
    const value = figure?.value ?? Number.NaN;
    return {
      x: point.clients,
      y: value,
      low: figure?.low ?? value,
      high: figure?.high ?? value,
      runs: figure?.runs ?? 0,
    };
  });
}

/** Room to the right of the lines for leaders and the longest name. */
function labelMargin(series: readonly Series[]): number {
  const longest = Math.max(...series.map((one) => one.label.length));
  return Math.min(LABEL_MARGIN_MAX, 26 + longest * CHARACTER);
}

function valueDomain(metric: Metric, values: number[]): Domain {
  if (metric.scale === "log") {
    return logDomain(values, metric.backdrop === "bands" ? RESPONSE_DOMAIN : LATENCY_DOMAIN);
  }
  return linearDomain(values, metric.backdrop === "full-core" ? FULL_CORE_TOP : 0);
}

function clientDomain(counts: readonly number[], type: "linear" | "log"): [number, number] {
  const largest = Math.max(1, ...counts);
  if (type === "linear") return [0, largest];
  return [Math.min(...counts), largest];
}

function placing(type: "linear" | "log", [low, high]: readonly [number, number], inner: number) {
  const measure = type === "log" ? Math.log : (value: number) => value;
  const span = measure(high) - measure(low) || 1;
  return (count: number) => ((measure(count) - measure(low)) / span) * inner;
}

function rankOf(series: Series, focus: string | null): number {
  return series.key === focus ? 1 : 0;
}

function seriesMarks(
  dots: Dot[],
  identity: Identity,
  faint: boolean,
  floor: number,
): Plot.Markish[] {
  const opacity = faint ? 0.22 : 1;
  const many = dots.map((dot) =>
    dot.runs > 1 ? dot : { ...dot, low: Number.NaN, high: Number.NaN },
  );
  const symbol = plotSymbol(symbolCorners(identity.symbol));
  const shown = dots.filter((dot) => Number.isFinite(dot.y));
  return [
    Plot.areaY(many, {
      x: "x",
      y1: (dot: Dot) => Math.max(dot.low, floor),
      y2: "high",
      fill: identity.colour,
      fillOpacity: faint ? 0.04 : 0.16,
    }),
    Plot.line(dots, {
      x: "x",
      y: "y",
      stroke: identity.colour,
      strokeWidth: 1.75,
      strokeOpacity: opacity,
      ...(identity.dash === undefined ? {} : { strokeDasharray: identity.dash }),
    }),
    Plot.dot(
      shown.filter((dot) => dot.runs > 1),
      { x: "x", y: "y", symbol, r: 4, fill: identity.colour, fillOpacity: opacity, stroke: "none" },
    ),
    // Hollow: a single run, nothing is known about its spread.
    Plot.dot(
      shown.filter((dot) => dot.runs <= 1),
      {
        ...{ x: "x", y: "y", symbol, r: 3.6, strokeWidth: 1.4, fill: "var(--page)" },
        ...{ stroke: identity.colour, strokeOpacity: opacity },
      },
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

/** Above the lines, because they all end up at the full core. */
function foreground(metric: Metric): Plot.Markish[] {
  if (metric.backdrop !== "full-core") return [];
  return [
    Plot.ruleY([100], { stroke: "var(--border-line)", strokeWidth: 1.25, strokeDasharray: "5 4" }),
    Plot.text([100], {
      ...{ y: 100, frameAnchor: "left", dx: 6, dy: -13, textAnchor: "start" },
      ...{ text: () => "one full core: stress from here", fill: "var(--muted)" },
      ...{ stroke: "var(--page)", strokeWidth: 4 },
    }),
  ];
}

function backdrop(metric: Metric, [low, high]: Domain, width: number): Plot.Markish[] {
  if (metric.backdrop !== "bands") return [];
  return BANDS.filter((band) => band.from < high && band.below > low).flatMap((band, index) => {
    const top = Math.min(band.below, high);
    const words = width < 420 ? band.name : `${band.name}, ${band.range}`;
    return [
      Plot.rect([top], {
        ...{ y1: Math.max(band.from, low), y2: top, insetRight: 0 },
        fill: `var(--band-${index + 1})`,
      }),
      Plot.text([top], {
        ...{ y: top, frameAnchor: "left", dx: 6, dy: 9, textAnchor: "start" },
        ...{ text: () => words, fill: "var(--muted)" },
      }),
    ];
  });
}
