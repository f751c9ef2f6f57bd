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
  const middle = line ? 18 : 6;
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
          x2={middle * 2 - 1}
          y1="7"
          y2="7"
          stroke={identity.colour}
          stroke-dasharray={identity.dash}
        />
      )}
      <Corners identity={identity} middle={middle} />
    </svg>
  );
}

/** The marker alone, for a place in a drawing. */
export function Marker({ identity }: { identity: Identity }) {
  return (
    <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
      <Corners identity={identity} middle={7} />
    </svg>
  );
}

function Corners({ identity, middle }: { identity: Identity; middle: number }) {
  const points = symbolCorners(identity.symbol)
    .map(([x, y]) => `${(middle + x * SIZE).toFixed(1)},${(7 + y * SIZE).toFixed(1)}`)
    .join(" ");
  return (
    <polygon
      points={points}
      fill={identity.hollow ? "var(--page)" : identity.colour}
      stroke={identity.hollow ? identity.colour : "none"}
      stroke-width="1.5"
    />
  );
}
