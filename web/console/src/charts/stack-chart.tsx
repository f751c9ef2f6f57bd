import { formatEstimate } from "../format/estimate";
import { formatTick, joinUnit, plural } from "../format/number";
import type { DataTable, Estimate } from "../generated/report";
import { type StackBar, type StackGroup, stackOf } from "./stack-bars";

/**
 * A table's rows as stacked bars, above the table, which has the numbers: for those who do not see the
 * drawing a bar is its label and its length.
 */
export function StackChart({ table }: { table: DataTable }) {
  const drawing = stackOf(table);
  if (drawing === null) return null;
  const { parts, groups, unit, isApart, omitted } = drawing;
  const longest = Math.max(...groups.flatMap(({ bars }) => bars.map((bar) => bar.label.length)));
  return (
    <figure class="stack" style={{ "--label": `${longest}ch` }}>
      <ul class="stack-legend" aria-hidden="true">
        {parts.map(({ name, title }) => (
          <li key={name}>
            <span class={`swatch ${pieceClass(name)}`} />
            {title}
          </li>
        ))}
      </ul>
      {groups.map((group, index) => (
        <Group
          key={group.title}
          group={group}
          unit={unit}
          hasTicks={isApart || index === groups.length - 1}
        />
      ))}
      <figcaption class="note">{captionOf(unit, isApart, omitted)}</figcaption>
    </figure>
  );
}

function captionOf(unit: string, isApart: boolean, omitted: number): string {
  const sentences = [
    unit === "" ? "" : `Bars in ${unit}.`,
    isApart ? "Each group of bars has a scale of its own." : "",
    omitted > 0 ? `The table has ${plural(omitted, "more group", "more groups")}.` : "",
  ];
  return sentences.filter(Boolean).join(" ");
}

interface GroupProps {
  group: StackGroup;
  unit: string;
  hasTicks: boolean;
}

function Group({ group: { title, bars, ticks }, unit, hasTicks }: GroupProps) {
  return (
    <section aria-label={title === "" ? undefined : title}>
      {title !== "" && <h4>{title}</h4>}
      <ul class="bars">
        {bars.map((bar, index) => (
          <Bar key={index} bar={bar} unit={unit} />
        ))}
      </ul>
      {hasTicks && (
        <p class="stack-row stack-ticks" aria-hidden="true">
          <span class="stack-track">
            {ticks.map(({ value, at }) => (
              <span key={value} style={{ left: `${at}%` }}>
                {formatTick(value)}
              </span>
            ))}
          </span>
        </p>
      )}
    </section>
  );
}

function Bar({ bar: { label, pieces, whole }, unit }: { bar: StackBar; unit: string }) {
  // In the unit of the table below, which is where its parts are.
  const textOf = (figure: Estimate) => joinUnit(formatEstimate(figure).value, unit);
  return (
    <li class="stack-row">
      <span class="stack-label">{label}</span>
      <span class="stack-track" aria-hidden="true">
        {pieces.map(({ name, title, figure, start, width }) => (
          <span
            key={name}
            class={`piece ${pieceClass(name)}`}
            style={{ left: `${start}%`, width: `${width}%` }}
            title={`${title}: ${textOf(figure)}`}
          />
        ))}
      </span>
      <span class="stack-whole number">{whole === null ? "" : textOf(whole)}</span>
    </li>
  );
}

const PIECES = [
  ...["payload", "dialect", "framing", "http_heads", "http2_frames", "tls", "tcp_ip_headers"],
  ...["acknowledgements", "connections", "retransmissions", "unaccounted"],
];

/** The class that gives a part its look; parts that this page does not know look alike. */
function pieceClass(name: string): string {
  return `piece-${PIECES.includes(name) ? name.replaceAll("_", "-") : "other"}`;
}
