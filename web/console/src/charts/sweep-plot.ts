import * as Plot from "@observablehq/plot";
import { formatExact } from "../format/number";
import { axisHeading, lowerFirst } from "../format/place";
import { BANDS } from "../format/words";
import type { Axis, Series } from "../generated/report";
import type { Identity } from "../series/identity";
import { axisScale, fittingTicks, type Scale, shareOn } from "./axis";
import { addEndLabels, type EndLabel, LABEL_HEIGHT } from "./end-labels";
import { type Metric, placesOf } from "./metrics";
import { BASE_STYLE, CHARACTER, type Drawing, MARGIN } from "./plot-style";
import { type Dot, dotsOf, seriesMarks } from "./series-marks";
import { type ValueScale, valueScale } from "./value-scale";

export interface SweepPlotInput {
  metric: Metric;
  axis: Axis;
  series: readonly Series[];
  identities: ReadonlyMap<string, Identity>;
  focus: string | null;
}

interface Line {
  series: Series;
  identity: Identity;
  dots: Dot[];
  faint: boolean;
}

/** Narrower charts have no room for names beside the lines and rely on the legend. */
const LABEL_WIDTH_MIN = 620;
const LABEL_MARGIN_MAX = 240;
/** In wide charts names may take this share, since those of series with variants and numbers are long. */
const LABEL_SHARE_MAX = 0.3;
/** Room for leaders between the lines' ends and their names. */
const LEADER = 26;
/** Ticks and the name of the axis below them. */
const BOTTOM = 40;
/** Height of a band that has room for its name, pixels. */
const BAND_LABEL = 17;
/** Above so many lines the interval bands get paler. */
const CROWDED_MIN = 7;

/** Lines with interval bands and markers, one for each series, along the axis. */
export function drawSweepPlot(input: SweepPlotInput, width: number, height: number): Drawing {
  const { metric, axis, series } = input;
  const lines = linesOf(input);
  const values = lines.flatMap((line) => line.dots.flatMap((dot) => [dot.y, dot.low, dot.high]));
  const scale = valueScale(metric, values, height < 220 ? 5 : 6);
  const named = width >= LABEL_WIDTH_MIN && lines.length <= (height - BOTTOM) / LABEL_HEIGHT;
  const marginRight = named ? labelMargin(lines, width) : MARGIN.right;
  const right = width - marginRight;
  const places = placesOf(series);
  const x = axisScale(axis, places);

  const svg = Plot.plot({
    width,
    height,
    ...{ marginLeft: MARGIN.left, marginTop: MARGIN.top, marginBottom: BOTTOM, marginRight },
    style: BASE_STYLE,
    x: { type: x.type, domain: [...x.domain] },
    y: { type: scale.type, domain: [...scale.domain], clamp: scale.type === "log" },
    marks: [
      ...backdrop(metric, scale, width, height - MARGIN.top - BOTTOM),
      ...axisMarks(axis, x, places, right - MARGIN.left),
      ...valueMarks(scale),
      // The line that stands out is drawn last, above the others.
      ...[...lines]
        .sort((a, b) => Number(b.faint) - Number(a.faint))
        .flatMap(({ dots, identity, faint }) =>
          seriesMarks(dots, {
            ...{ identity, faint, floor: scale.domain[0] },
            crowded: lines.length >= CROWDED_MIN,
          }),
        ),
      ...foreground(metric),
    ],
  }) as SVGSVGElement & Plot.Plot;

  const placeX = svg.scale("x")?.apply;
  const placeY = svg.scale("y")?.apply;
  if (placeX === undefined || placeY === undefined) throw new Error("a plot has both scales");
  if (named) {
    const at = (dot: Dot) => [placeX(dot.x), placeY(Math.max(dot.y, scale.domain[0]))] as const;
    addEndLabels(svg, endLabels(lines, at, marginRight), {
      ...{ right, top: MARGIN.top, bottom: height - BOTTOM },
    });
  }
  return { svg, place: placeX, left: MARGIN.left, right, bottom: height - BOTTOM };
}

function linesOf({ metric, series, identities, focus }: SweepPlotInput): Line[] {
  return series.flatMap((one) => {
    const identity = identities.get(one.key);
    if (identity === undefined) return [];
    const faint = focus !== null && focus !== one.key;
    return { series: one, identity, dots: dotsOf(one, metric.name), faint };
  });
}

function axisMarks(axis: Axis, scale: Scale, places: number[], inner: number): Plot.Markish[] {
  const share = shareOn(scale);
  // Texts and not a format: on a logarithmic scale Plot drops every label but those near a power of ten.
  return [
    Plot.axisX({
      ticks: fittingTicks(places, (place) => share(place) * inner, 46),
      text: (tick: number) => formatExact(tick),
      tickSize: 4,
      label: null,
    }),
    Plot.text([lowerFirst(axisHeading(axis))], {
      ...{ frameAnchor: "bottom-right", textAnchor: "end", dy: 32, fill: "var(--muted)" },
    }),
  ];
}

function valueMarks({ ticks, format, domain }: ValueScale): Plot.Markish[] {
  return [
    Plot.gridY({ ticks, stroke: "var(--grid)", strokeOpacity: 1 }),
    Plot.axisY({ ticks, text: format, tickSize: 0, label: null }),
    Plot.ruleY([domain[0] < 0 ? 0 : domain[0]], { stroke: "var(--axis)" }),
  ];
}

function endLabels(
  lines: readonly Line[],
  at: (dot: Dot) => readonly [number, number],
  margin: number,
): EndLabel[] {
  const longest = Math.round((margin - LEADER) / CHARACTER);
  return lines.flatMap(({ dots, identity, faint }) => {
    const last = dots.filter((dot) => Number.isFinite(dot.y)).at(-1);
    if (last === undefined) return [];
    const [x, y] = at(last);
    return { text: shortened(identity.label, longest), colour: identity.colour, x, y, faint };
  });
}

/** Room to the right of the lines for leaders and the longest name. */
function labelMargin(lines: readonly Line[], width: number): number {
  const longest = Math.max(0, ...lines.map((line) => line.identity.label.length));
  const most = Math.max(LABEL_MARGIN_MAX, LABEL_SHARE_MAX * width);
  return Math.min(most, LEADER + longest * CHARACTER);
}

/** Without its middle: names of the same kind differ at their ends. */
function shortened(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const end = Math.floor(longest / 3);
  return `${text.slice(0, Math.max(1, longest - 1 - end))}…${text.slice(text.length - end)}`;
}

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

function backdrop(metric: Metric, scale: Scale, width: number, inner: number): Plot.Markish[] {
  if (metric.backdrop !== "bands") return [];
  const [low, high] = scale.domain;
  const share = shareOn(scale);
  return BANDS.filter((band) => band.from < high && band.below > low).flatMap((band) => {
    const top = Math.min(band.below, high);
    const thin = (share(top) - share(Math.max(band.from, low))) * inner < BAND_LABEL;
    const words = thin ? "" : width < 420 ? band.name : `${band.name}, ${band.range}`;
    return [
      Plot.rect([top], {
        ...{ y1: Math.max(band.from, low), y2: top, insetRight: 0 },
        fill: `var(--band-${BANDS.indexOf(band) + 1})`,
      }),
      Plot.text([top], {
        ...{ y: top, frameAnchor: "left", dx: 6, dy: 9, textAnchor: "start" },
        ...{ text: () => words, fill: "var(--muted)" },
      }),
    ];
  });
}
