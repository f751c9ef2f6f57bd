import { useMemo } from "preact/hooks";
import { formatQuantity, joinUnit } from "../format/number";
import type { Timeline } from "../generated/report";
import { Chart } from "./chart";
import { timelineSpan, valueAt } from "./timeline-panels";
import { drawTimelinePlot, type TimelineLine, type TimelinePanel } from "./timeline-plot";
import type { TooltipContent } from "./tooltip";

interface TimelineChartProps {
  panel: TimelinePanel;
  timeline: Timeline;
  /** Shared by the panels, so that one instant can be read in all of them. */
  cursor: number | null;
  onCursor: (instant: number | null) => void;
}

export function TimelineChart({ panel, timeline, cursor, onCursor }: TimelineChartProps) {
  const draw = useMemo(() => {
    const span = timelineSpan(timeline);
    return (width: number, height: number) =>
      drawTimelinePlot(panel, timeline.phases, span, width, height);
  }, [panel, timeline]);

  const tooltip = (instant: number): TooltipContent => ({
    heading: `${joinUnit(String(Number(instant.toFixed(2))), "s")}${phaseAt(timeline, instant)}`,
    rows: panel.lines.map((line) => {
      const value = valueAt(line, instant);
      return {
        key: line.label,
        mark: <LineGlyph line={line} />,
        label: line.label,
        value: value === null ? "–" : formatQuantity(value, panel.unit),
      };
    }),
  });

  return (
    <div class="timeline-chart">
      <Chart
        title={panel.title}
        note={panel.note}
        description={`${panel.title} ${panel.note}, over the seconds of the run: ${panel.lines
          .map((line) => line.label)
          .join(", ")}.`}
        draw={draw}
        stops={timeline.t}
        cursor={cursor}
        onCursor={onCursor}
        tooltip={tooltip}
      />
      <ul class="line-legend">
        {panel.lines.map((line) => (
          <li key={line.label}>
            <LineGlyph line={line} />
            {line.label}
            {line.values.every((value) => value === null) && " (not read in this run)"}
          </li>
        ))}
      </ul>
    </div>
  );
}

function LineGlyph({ line }: { line: TimelineLine }) {
  return (
    <svg class="glyph" width="26" height="14" viewBox="0 0 26 14" aria-hidden="true">
      <line x1="1" x2="25" y1="7" y2="7" stroke={line.colour} stroke-dasharray={line.dash} />
    </svg>
  );
}

function phaseAt(timeline: Timeline, instant: number): string {
  const phase = timeline.phases.find((one) => one.start <= instant && instant < one.end);
  return phase === undefined ? "" : `, ${phase.name}`;
}
