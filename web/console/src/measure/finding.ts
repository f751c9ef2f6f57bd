import type { Transport } from "pushlab-client";

/** What was found of one transport, as it is stored. Times are milliseconds. */
export interface Finding {
  transport: Transport;
  /** Whether it opened and every message came. */
  ok: boolean;
  /** What went wrong, for people. */
  problem?: string;
  /** From the attempt until the server's first word; absent where it never came. */
  connect_ms?: number;
  /** From publishing until the message was here again, in the order of publication. */
  latencies_ms: number[];
  /** Mean difference between the latency of one message and the next; absent of fewer than two. */
  jitter_ms?: number;
  /** Requests that were made, a WebSocket's upgrade among them. */
  requests: number;
  /** Bytes as far as the browser tells: absent where it does not. */
  bytes_received?: number;
  bytes_sent?: number;
  /** Whether something between server and browser holds messages back. */
  is_buffered: boolean;
  /** How often it was cut, and resumed. */
  cuts: number;
}

/** What the page shows beside that. */
export interface Measurement extends Finding {
  /** Round trips of echoes; absent where there was none. */
  echo_ms?: number;
}

/** What the server takes: latencies of a transport, and UTF-16 units of a text, each of which is 3 bytes at most. */
const MAX_LATENCIES = 200;
const MAX_TEXT = 300;

/** What a measurement of all transports was made under. */
export interface Circumstances {
  userAgent: string;
  /** In milliseconds since 1970. */
  now: number;
  /** Whether the page was in the background meanwhile. */
  wasHidden: boolean;
}

/** The body of `POST /api/measurements`. */
export function measurementBody(
  measurements: readonly Measurement[],
  { userAgent, now, wasHidden }: Circumstances,
) {
  const transports = measurements.map(({ echo_ms: _, ...finding }): Finding => {
    const latencies_ms = finding.latencies_ms.slice(0, MAX_LATENCIES);
    const { problem } = finding;
    if (problem === undefined) return { ...finding, latencies_ms };
    return { ...finding, latencies_ms, problem: problem.slice(0, MAX_TEXT) };
  });
  const user_agent = userAgent.slice(0, MAX_TEXT);
  return { user_agent, page_ms: now, was_hidden: wasHidden, transports };
}
