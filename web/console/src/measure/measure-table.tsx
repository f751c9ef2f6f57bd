import type { Transport } from "pushlab-client";
import { formatCount, formatQuantity } from "../format/number";
import { TRANSPORT_NAMES } from "../live/transport-select";
import { ScrollBox } from "../sections/scroll-box";
import type { Measurement } from "./finding";
import { median } from "./latencies";

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
        <caption class="unseen">Results by transport</caption>
        <thead>
          <tr>
            <th scope="col">Transport</th>
            <th scope="col">Result</th>
            <th scope="col" class="number">
              Opens in
            </th>
            <th scope="col" class="number">
              Message, median
            </th>
            <th scope="col" class="number">
              Slowest
            </th>
            <th scope="col" class="number">
              Jitter
            </th>
            <th scope="col" class="number">
              Echo, median
            </th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              Received
            </th>
            <th scope="col" class="number">
              Sent
            </th>
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

function Row({ transport, measurement, isCurrent }: RowProps) {
  const latencies = measurement?.latencies_ms ?? [];
  const slowest = latencies.length === 0 ? undefined : Math.max(...latencies);
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
      <Quantity value={measurement?.connect_ms} unit="ms" />
      <Quantity value={median(latencies)} unit="ms" />
      <Quantity value={slowest} unit="ms" />
      <Quantity value={measurement?.jitter_ms} unit="ms" />
      <Quantity value={measurement?.echo_ms} unit="ms" />
      <td class="number">{measurement === undefined ? "–" : formatCount(measurement.requests)}</td>
      <Quantity value={measurement?.bytes_received} unit="B" />
      <Quantity value={measurement?.bytes_sent} unit="B" />
    </tr>
  );
}

function Quantity({ value, unit }: { value: number | undefined; unit: string }) {
  return <td class="number">{value === undefined ? "–" : formatQuantity(value, unit)}</td>;
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
