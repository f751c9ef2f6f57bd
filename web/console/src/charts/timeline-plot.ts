import * as Plot from "@observablehq/plot";
import { formatTick } from "../format/number";
import type { PhaseSpan } from "../generated/report";
import { linearDomain, logDomain, logTicks } from "./axis";
import { BASE_STYLE, CHARACTER, type Drawing, MARGIN } from "./plot-style";

/** One line of a timeline panel. */
export interface TimelineLine {
  label: string;
  colour: string;
  dash?: string;
  t: readonly number[];
  values: readonly (number | null)[];
}

export interface TimelinePanel {
  id: string;
  title: string;
  note: string;
  unit: string;
  scale: "log" | "linear";
  lines: TimelineLine[];
  /** The axis reaches at least here, so that an idle line does not look like a full one. */
  least?: number;
  /** A value worth a line of its own, e.g. the full core. */
  border?: number;
}

/** Lines over the seconds of a run, with its phases shaded and named. */
export function drawTimelinePlot(
  panel: TimelinePanel,
  phases: readonly PhaseSpan[],
  span: readonly [number, number],
  width: number,
  height: number,
): Drawing {
  const values = panel.lines.flatMap((line) => line.values.filter((value) => value !== null));
  const log = panel.scale === "log";
  const domain = log
    ? logDomain(values, [1, 10])
    : linearDomain(values, panel.border ?? panel.least);
  const inner = width - MARGIN.left - MARGIN.right;
  const marginTop = 24;
  const ticks = log ? logTicks(domain) : 4;
  const small = panel.unit === "B" ? niceBinary(domain[1]) : ticks;
  const svg = Plot.plot({
    width,
    height,
    ...{
      marginLeft: MARGIN.left,
      marginRight: MARGIN.right,
      marginTop,
      marginBottom: MARGIN.bottom,
    },
    style: BASE_STYLE,
    x: { type: "linear", domain: [...span] },
    y: { type: panel.scale, domain: [...domain], clamp: log },
    marks: [
      ...phaseMarks(phases, inner / (span[1] - span[0] || 1)),
      Plot.gridY({ ticks: small, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisY({
        ticks: small,
        tickSize: 0,
        label: null,
        text: (tick: number) => formatTick(tick, log || panel.unit === "B" ? panel.unit : ""),
      }),
      Plot.axisX({
        ticks: Math.max(3, Math.floor(inner / 80)),
        tickSize: 4,
        label: null,
        tickFormat: (tick: number) => formatTick(tick, "s"),
      }),
      Plot.ruleY([domain[0]], { stroke: "var(--axis)" }),
      ...(panel.border === undefined
        ? []
        : [Plot.ruleY([panel.border], { stroke: "var(--border-line)", strokeDasharray: "5 4" })]),
      ...panel.lines.map((line) =>
        Plot.line(
          line.t.map((t, index) => ({ t, value: line.values[index] ?? Number.NaN })),
          {
            x: "t",
            y: "value",
            stroke: line.colour,
            strokeWidth: 1.5,
            ...(line.dash === undefined ? {} : { strokeDasharray: line.dash }),
          },
        ),
      ),
    ],
  }) as SVGSVGElement & Plot.Plot;
  const place = svg.scale("x")?.apply;
  if (place === undefined) throw new Error("a plot has a horizontal scale");
  return {
    ...{ svg, place, left: MARGIN.left, right: width - MARGIN.right },
    bottom: height - MARGIN.bottom,
  };
}

function phaseMarks(phases: readonly PhaseSpan[], perSecond: number): Plot.Markish[] {
  const named = phases.filter(
    (phase) => (phase.end - phase.start) * perSecond > phase.name.length * CHARACTER + 4,
  );
  return [
    ...phases.map((phase, index) =>
      Plot.rect([phase], {
        x1: "start",
        x2: "end",
        fill: phase.name === "load" ? "var(--phase-load)" : `var(--phase-${(index % 2) + 1})`,
      }),
    ),
    Plot.text(named, {
      x: (phase: PhaseSpan) => (phase.start + phase.end) / 2,
      frameAnchor: "top",
      dy: -13,
      text: "name",
      fill: "var(--muted)",
    }),
  ];
}

/** Ticks at powers of two, because bytes are written in KiB and MiB. */
function niceBinary(high: number): number[] {
  if (high <= 1) return [0];
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(high / 4.5)));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, index) => index * step);
}
