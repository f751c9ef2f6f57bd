import type { Identity } from "./identity";
import { symbolCorners } from "./symbols";

interface GlyphProps {
  identity: Identity | undefined;
  /** Whether the marker sits on a piece of its line. */
  line?: boolean;
}

const SIZE = 4;

/** The marker of a series; always beside its label, so hidden from screen readers. */
export function Glyph({ identity, line = true }: GlyphProps) {
  if (identity === undefined) return null;
  const middle = line ? 13 : 6;
  const points = symbolCorners(identity.symbol)
    .map(([x, y]) => `${(middle + x * SIZE).toFixed(1)},${(7 + y * SIZE).toFixed(1)}`)
    .join(" ");
  return (
    <svg
      class="glyph"
      width={middle * 2}
      height="14"
      viewBox={`0 0 ${middle * 2} 14`}
      aria-hidden="true"
    >
      {line && (
        <line
          x1="1"
          x2="25"
          y1="7"
          y2="7"
          stroke={identity.colour}
          stroke-dasharray={identity.dash}
        />
      )}
      <polygon points={points} fill={identity.colour} />
    </svg>
  );
}
