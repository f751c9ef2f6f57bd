import { useEffect, useState } from "preact/hooks";
import { ask } from "../live/http-api";
import type { ServerTime } from "./interface";
import { clockOf, type Reading, type ServerClock } from "./server-clock";

/** Readings of which the fastest counts. */
const READINGS = 5;
/** How often the clock is read anew, ms: clocks drift apart, and machines sleep. */
const REFRESH_MS = 60_000;

/** The server's clock; null before it is known. Where it cannot be read, it is as it was. */
export function useServerClock(): ServerClock | null {
  const [clock, setClock] = useState<ServerClock | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const read = () =>
      readings(controller.signal)
        .then((all) => setClock(clockOf(all)))
        .catch(() => {});
    read();
    const timer = setInterval(read, REFRESH_MS);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, []);
  return clock;
}

async function readings(signal: AbortSignal): Promise<Reading[]> {
  const all: Reading[] = [];
  while (all.length < READINGS) {
    const sent = performance.now();
    const { now_ms } = await ask<ServerTime>("GET", "/api/demos/time", undefined, signal);
    all.push({ sent, came: performance.now(), now_ms });
  }
  return all;
}
