import { useEffect, useRef } from "preact/hooks";
import type { Connection, ConnectionEvents } from "pushlab-client";
import { median } from "../format/median";
import { formatQuantity } from "../format/number";
import { LiveChart } from "../live/live-chart";
import { Readings } from "../live/readings";
import { pushLatest } from "../live/ring";
import type { LiveConnection } from "../live/use-connection";
import { readSent } from "./interface";
import { type ServerClock, wayDown } from "./server-clock";
import { useReduced } from "./use-reduced";
import { useServerClock } from "./use-server-clock";

/** Messages whose ways are kept. */
const MAX_WAYS = 60;

/** Tells how long messages take from the server to this page, over the transport that is used. */
export function LatencyMeter({ live }: { live: LiveConnection }) {
  const clock = useServerClock();
  const ways = useWaysDown(live.connection, clock);
  return (
    <section class="meter" aria-label="Latency">
      <h2>Latency</h2>
      <Readings
        of={{
          "Latest message": <Way ms={ways.at(-1)} clock={clock} />,
          [`Median of ${MAX_WAYS}`]: <Way ms={median(ways)} clock={clock} />,
        }}
      />
      <LiveChart
        title="Latency of the latest messages"
        unit="ms"
        length={MAX_WAYS}
        lines={[{ name: "latency", values: ways, look: 1 }]}
      />
      <p class="note">
        From when the server publishes a message until it is here; over polling it waits for the
        next question, half a second on average. The server’s clock is asked for, and known to ±{" "}
        {clock === null ? "–" : formatQuantity(clock.error, "ms")}.
      </p>
    </section>
  );
}

/** A way down, with its error where that is larger. The error has a line of its own, there or not, so nothing moves. */
function Way({ ms, clock }: { ms: number | undefined; clock: ServerClock | null }) {
  const isUnsure = ms !== undefined && clock !== null && clock.error > ms;
  return (
    <>
      {ms === undefined || clock === null ? "–" : formatQuantity(ms, "ms")}
      <span class="note">{isUnsure ? `± ${formatQuantity(clock.error, "ms")}` : "\u00a0"}</span>
    </>
  );
}

type WayAction = { kind: "came"; ms: number } | { kind: "anew" };

const NO_WAYS: readonly number[] = [];

function reduceWays(ways: readonly number[], action: WayAction): readonly number[] {
  return action.kind === "anew" ? NO_WAYS : pushLatest(ways, action.ms, MAX_WAYS);
}

/** The latest ways down, ms, oldest first; they begin again with another connection or transport. */
function useWaysDown(connection: Connection | null, clock: ServerClock | null): readonly number[] {
  const [ways, dispatch] = useReduced(reduceWays, NO_WAYS);
  const known = useRef(clock);
  known.current = clock;
  useEffect(() => {
    dispatch({ kind: "anew" });
    if (connection === null) return;
    let openedAt = performance.now();
    let { transport } = connection;
    const changed = ({ state, transport: used }: ConnectionEvents["state"]) => {
      if (state !== "open") return;
      openedAt = performance.now();
      if (used !== transport) dispatch({ kind: "anew" });
      transport = used;
    };
    const came = ({ data }: ConnectionEvents["message"]) => {
      const arrival = { sent_ms: readSent(data), at: performance.now(), openedAt };
      const ms = wayDown(arrival, known.current);
      if (ms !== null) dispatch({ kind: "came", ms });
    };
    connection.addEventListener("state", changed);
    connection.addEventListener("message", came);
    return () => {
      connection.removeEventListener("state", changed);
      connection.removeEventListener("message", came);
    };
  }, [connection, dispatch]);
  return ways;
}
