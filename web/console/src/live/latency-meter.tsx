import { useEffect, useState } from "preact/hooks";
import type { Connection } from "pushlab-client";
import { formatQuantity } from "../format/number";
import { LiveChart } from "./live-chart";
import { medianOf, pushLatest } from "./ring";
import type { LiveConnection } from "./use-connection";

/** Time between two echoes, ms. */
const INTERVAL_MS = 1000;
/** Round trips that are kept: a minute of them. */
const MAX_ROUND_TRIPS = 60;

/** Measures how long an echo takes there and back, every second while the connection is open. */
export function LatencyMeter({ live }: { live: LiveConnection }) {
  const trips = useRoundTrips(live.connection, live.state === "open");
  const latest = trips.at(-1);
  const median = medianOf(trips);
  const over =
    live.transport === "websocket"
      ? "over the WebSocket"
      : "by POST: this transport only comes down";
  return (
    <section class="meter" aria-label="Latency">
      <h2>Latency</h2>
      <dl class="readings">
        <div>
          <dt>Round trip</dt>
          <dd>{latest === undefined ? "–" : formatQuantity(latest, "ms")}</dd>
        </div>
        <div>
          <dt>Median of a minute</dt>
          <dd>{median === null ? "–" : formatQuantity(median, "ms")}</dd>
        </div>
      </dl>
      <LiveChart
        title="Round trips of the last minute"
        unit="ms"
        length={MAX_ROUND_TRIPS}
        lines={[{ name: "round trip", values: trips, look: 1 }]}
      />
      <p class="note">An echo each second, {over}.</p>
    </section>
  );
}

/** The latest round trips, ms, oldest first; they begin again with another connection. */
export function useRoundTrips(connection: Connection | null, isOpen: boolean): readonly number[] {
  const [trips, setTrips] = useState<readonly number[]>([]);
  // Another connection is what begins again.
  useEffect(() => setTrips([]), [connection]);
  useEffect(() => {
    if (connection === null || !isOpen) return;
    let isAsking = false;
    let isOver = false;
    const ask = async () => {
      // One that is late says so by itself; a queue of them would measure the queue.
      if (isAsking || document.hidden) return;
      isAsking = true;
      const began = performance.now();
      try {
        await connection.echo(0);
        const took = performance.now() - began;
        if (!isOver) setTrips((before) => pushLatest(before, took, MAX_ROUND_TRIPS));
      } catch {
        // The connection's state says what is wrong.
      }
      isAsking = false;
    };
    ask();
    const timer = setInterval(ask, INTERVAL_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [connection, isOpen]);
  return trips;
}
