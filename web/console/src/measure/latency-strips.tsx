import type { Transport } from "pushlab-client";
import { median } from "../format/median";
import { formatQuantity, formatTick } from "../format/number";
import { TRANSPORT_NAMES } from "../live/transport-select";
import { colourOf } from "../series/identity";
import type { Measurement } from "./finding";
import { type StripScale, stripScale } from "./strip-scale";

interface LatencyStripsProps {
  transports: readonly Transport[];
  measurements: readonly Measurement[];
}

/** Every message as a dot at its latency, a strip for each transport; the table has the same in numbers. */
export function LatencyStrips({ transports, measurements }: LatencyStripsProps) {
  const scale = stripScale(measurements.flatMap((one) => one.latencies_ms));
  return (
    <figure class="strips">
      <figcaption>
        Latency of each message, from publishing until it is back
        <span class="note"> A bar is the median. Each step to the right is ten times as long.</span>
      </figcaption>
      <div class="strip-rows">
        {transports.map((transport) => {
          const found = measurements.find((one) => one.transport === transport);
          return (
            <Strip
              key={transport}
              transport={transport}
              latencies={found?.latencies_ms ?? []}
              scale={scale}
            />
          );
        })}
        <span />
        <svg class="strip-axis" aria-hidden="true">
          {scale.ticks.map((tick) => (
            <text key={tick} x={`${scale.place(tick)}%`} y="14" text-anchor={anchorOf(tick, scale)}>
              {formatTick(tick, "ms")}
            </text>
          ))}
        </svg>
      </div>
    </figure>
  );
}

interface StripProps {
  transport: Transport;
  latencies: readonly number[];
  scale: StripScale;
}

function Strip({ transport, latencies, scale }: StripProps) {
  const middle = median(latencies);
  const name = TRANSPORT_NAMES[transport];
  const words =
    middle === undefined
      ? `${name}: no message`
      : `${name}: ${latencies.length} messages, median ${formatQuantity(middle, "ms")}`;
  return (
    <>
      <span class="strip-name" aria-hidden="true">
        {name}
      </span>
      <svg class="strip" role="img" aria-label={words}>
        {scale.ticks.map((tick) => (
          <line
            key={tick}
            x1={`${scale.place(tick)}%`}
            x2={`${scale.place(tick)}%`}
            y1="0"
            y2="100%"
          />
        ))}
        <g fill={colourOf(transport)}>
          {latencies.map((latency, at) => (
            <circle key={at} cx={`${scale.place(latency)}%`} cy={`${50 + spread(at)}%`} r="3" />
          ))}
        </g>
        {middle !== undefined && (
          <line
            class="strip-median"
            x1={`${scale.place(middle)}%`}
            x2={`${scale.place(middle)}%`}
            y1="10%"
            y2="90%"
          />
        )}
      </svg>
    </>
  );
}

/** Moves dots of like latency apart, the same way each time. */
function spread(at: number): number {
  return ((at * 7) % 11) * 5 - 25;
}

function anchorOf(tick: number, scale: StripScale): "start" | "middle" | "end" {
  const place = scale.place(tick);
  return place === 0 ? "start" : place === 100 ? "end" : "middle";
}
