import type { Transport } from "pushlab-client";
import { median } from "../format/median";
import { formatCount, formatQuantity } from "../format/number";
import { TRANSPORT_NAMES } from "../live/transport-select";
import { ScrollBox } from "../sections/scroll-box";
import type { Measurement } from "./finding";

interface MeasureTableProps {
  transports: readonly Transport[];
  measurements: readonly Measurement[];
  current: Transport | undefined;
}

/** One row for each transport, from the beginning, so that nothing moves when results come. */
export function MeasureTable({ transports, measurements, current }: MeasureTableProps) {
  return (
    <ScrollBox label="Results by transport">
      <table class="data measure-table">
        <caption class="visually-hidden">Results by transport</caption>
        <thead>
          <tr>
            <th scope="col">Transport</th>
            <th scope="col">Result</th>
            {FIGURES.map(({ title }) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {transports.map((transport) => (
            <Row
              key={transport}
              transport={transport}
              measurement={measurements.find((one) => one.transport === transport)}
              isCurrent={transport === current}
            />
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

interface RowProps {
  transport: Transport;
  measurement: Measurement | undefined;
  isCurrent: boolean;
}

/** A column of figures; undefined where there is none. */
interface EstimateColumn {
  title: string;
  read: (measurement: Measurement) => number | undefined;
  write: (value: number) => string;
}

const ms = (value: number) => formatQuantity(value, "ms");
const bytes = (value: number) => formatQuantity(value, "B");

const FIGURES: readonly EstimateColumn[] = [
  { title: "Opens in", read: (one) => one.connect_ms, write: ms },
  { title: "Message, median", read: (one) => median(one.latencies_ms), write: ms },
  { title: "Slowest", read: (one) => slowest(one.latencies_ms), write: ms },
  { title: "Jitter", read: (one) => one.jitter_ms, write: ms },
  { title: "Echo, median", read: (one) => one.echo_ms, write: ms },
  { title: "Requests", read: (one) => one.requests, write: formatCount },
  { title: "Received", read: (one) => one.bytes_received, write: bytes },
  { title: "Sent", read: (one) => one.bytes_sent, write: bytes },
];

function slowest(latencies: readonly number[]): number | undefined {
  return latencies.length === 0 ? undefined : Math.max(...latencies);
}

function Row({ transport, measurement, isCurrent }: RowProps) {
  return (
    <tr>
      <th scope="row">{TRANSPORT_NAMES[transport]}</th>
      <td class="measure-result">
        {measurement === undefined ? (
          <span class="quiet">{isCurrent ? "measuring…" : "–"}</span>
        ) : (
          <Result measurement={measurement} />
        )}
      </td>
      {FIGURES.map(({ title, read, write }) => {
        const value = measurement && read(measurement);
        return (
          <td key={title} class="number">
            {value === undefined ? "–" : write(value)}
          </td>
        );
      })}
    </tr>
  );
}

function Result({ measurement }: { measurement: Measurement }) {
  const { ok, is_buffered, problem, cuts } = measurement;
  const [tone, sign, word] = is_buffered
    ? ["open", "!", "held back"]
    : ok
      ? ["good", "✓", "works"]
      : ["bad", "✗", "fails"];
  return (
    <>
      <span class={`badge badge-${tone}`}>
        <span aria-hidden="true">{sign}</span>
        {word}
      </span>
      {problem !== undefined && <span class="measure-problem">{problem}</span>}
      {cuts > 0 && (
        <span class="measure-problem">
          cut {cuts === 1 ? "once" : `${cuts} times`}, and resumed
        </span>
      )}
    </>
  );
}
