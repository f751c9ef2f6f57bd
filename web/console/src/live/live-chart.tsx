import { formatQuantity, formatTick } from "../format/number";
import { linePath, niceCeiling } from "./line-path";
import { usePace } from "./use-pace";

/** A line of a chart. A value that is null is a break in it. */
export interface LiveLine {
  name: string;
  /** Oldest first, one for each step in time. */
  values: readonly (number | null)[];
  /** Which of the line colours. */
  look: 1 | 2 | 3;
}

interface LiveChartProps {
  title: string;
  unit: string;
  /** How many values the width stands for. */
  length: number;
  lines: readonly LiveLine[];
  /** The top of the scale, where it does not follow the values. */
  ceiling?: number;
}

const WIDTH = 400;
const HEIGHT = 96;

/** The latest values as lines from zero upwards, the newest at the right; the newest are written above them too. */
export function LiveChart({ title, unit, length, lines, ceiling }: LiveChartProps) {
  const paced = usePace(lines);
  const known = paced.flatMap((line) => line.values.filter((value) => value !== null));
  const top = ceiling ?? niceCeiling(Math.max(0, ...known));
  return (
    <figure class="live-chart">
      <figcaption>
        <span class="live-title">{title}</span>
        {lines.map(({ name, values, look }) => {
          const value = values.at(-1);
          return (
            <span key={name} class={`live-key live-line-${look}`}>
              {lines.length > 1 && name}{" "}
              <span class="live-value">{value == null ? "–" : formatQuantity(value, unit)}</span>
            </span>
          );
        })}
      </figcaption>
      <div class="live-drawing">
        <span class="live-top note">{formatTick(top, unit)}</span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={describe(title, unit, paced)}
        >
          <line class="live-grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
          <line class="live-axis" x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
          {paced.map((line) => (
            <path
              key={line.name}
              class={`live-line-${line.look}`}
              d={linePath(line.values, { length, top, width: WIDTH, height: HEIGHT })}
            />
          ))}
        </svg>
      </div>
    </figure>
  );
}

function describe(title: string, unit: string, lines: readonly LiveLine[]): string {
  const latest = lines.map((line) => {
    const value = line.values.at(-1);
    return `${line.name} ${value == null ? "unknown" : formatQuantity(value, unit)}`;
  });
  return `${title}. Latest: ${latest.join(", ")}`;
}
