import { type Connection, connect, type Transport } from "pushlab-client";
import { median } from "../format/median";
import { passOptions } from "../live/pass";
import type { Measurement } from "./finding";
import { type Exchanged, judge, TAIL } from "./judge";
import { type Counted, TransportCost } from "./transport-cost";

/** Time within which the server's first word must come; it greets at once. */
const OPEN_WITHIN = 5_000;
/** Time for the echoes of one transport together; fewer are made where each takes long. */
const ECHOES_WITHIN = 5_000;
/** Least time between two publications. */
const INTERVAL = 100;
/** The client itself is not to give up: this measurement says when. */
const NEVER = 600_000;

/** Answers that never end: what is between may collect them. */
const STREAMS: readonly Transport[] = ["sse", "http-streaming"];

export interface ProbeOptions {
  /** Echoes, and messages. */
  readonly messages: number;
  /** Told how many of `stepsOf(messages)` are done. */
  readonly step: (done: number) => void;
  /** Ends it; the promise is then rejected with the signal's reason. */
  readonly signal: AbortSignal;
}

/** Steps of a probe: to open, the echoes, the messages. */
export const stepsOf = (messages: number) => 1 + 2 * messages;

type Outcome = Omit<Measurement, "transport" | keyof Counted>;

/**
 * Opens one transport on a channel of its own, sends echoes one after another, then publishes messages to itself at a
 * steady pace.
 */
export async function probe(
  base: string,
  transport: Transport,
  options: ProbeOptions,
): Promise<Measurement> {
  const { signal } = options;
  signal.throwIfAborted();
  const cost = new TransportCost();
  const channel = `measure.${crypto.getRandomValues(new Uint32Array(3)).join("-")}`;
  const connection = connect(base, {
    channels: [channel],
    transport,
    timing: { open: NEVER, early: NEVER },
    WebSocket: cost.WebSocket,
    fetch: cost.fetch,
    ...passOptions(),
  });
  const close = () => connection.close();
  signal.addEventListener("abort", close);
  try {
    const outcome = await follow(connection, channel, options);
    close();
    signal.throwIfAborted();
    return { transport, ...outcome, ...(await cost.count()) };
  } finally {
    signal.removeEventListener("abort", close);
    close();
    cost.end();
  }
}

async function follow(
  connection: Connection,
  channel: string,
  { messages, step, signal }: ProbeOptions,
): Promise<Outcome> {
  const began = performance.now();
  const isStream = STREAMS.includes(connection.transport);
  const problem = await opened(connection);
  if (problem !== undefined) {
    const is_buffered = isStream && problem === SILENT;
    return { ok: false, problem, latencies_ms: [], is_buffered, cuts: 0 };
  }
  const connect_ms = performance.now() - began;
  const cuts = countCuts(connection);
  step(1);
  const echo_ms = median(await echoes(connection, messages, (done) => step(1 + done)));
  const interval = Math.max(INTERVAL, echo_ms ?? 0);
  const exchanged = await exchange(connection, channel, { messages, interval, signal }, (done) =>
    step(1 + messages + done),
  );
  const isPushed = isStream || connection.transport === "websocket";
  return {
    connect_ms,
    ...(echo_ms === undefined ? {} : { echo_ms }),
    ...judge(exchanged, { messages, interval, isPushed }),
    cuts: cuts(),
  };
}

const SILENT = `nothing came within ${OPEN_WITHIN / 1000} s, although the server greets at once`;

/** Why it did not open; undefined when it did. */
function opened(connection: Connection): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(SILENT), OPEN_WITHIN);
    connection.addEventListener("state", ({ state, reason }) => {
      if (state === "connecting") return;
      clearTimeout(timer);
      resolve(state === "open" ? undefined : reason);
    });
  });
}

/** Counts from now on how often the connection ends and is to come again. */
function countCuts(connection: Connection): () => number {
  let cuts = 0;
  let isOpen = true;
  connection.addEventListener("state", ({ state }) => {
    if (isOpen && state !== "open" && state !== "closed") cuts++;
    isOpen = state === "open";
  });
  return () => cuts;
}

/** Round trips, one after another; none after one that failed. */
async function echoes(
  connection: Connection,
  count: number,
  step: (done: number) => void,
): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + ECHOES_WITHIN;
  while (times.length < count && performance.now() < end) {
    const sent = performance.now();
    try {
      await connection.echo(times.length);
    } catch {
      // The messages, which follow, say what is wrong.
      break;
    }
    times.push(performance.now() - sent);
    step(times.length);
  }
  return times;
}

async function exchange(
  connection: Connection,
  channel: string,
  pace: { messages: number; interval: number; signal: AbortSignal },
  step: (done: number) => void,
): Promise<Exchanged> {
  const { messages, interval, signal } = pace;
  const departures: number[] = [];
  const found: Exchanged = { latencies: [], arrivals: [], refusal: undefined };
  const whole = new Promise<void>((resolve) => {
    connection.addEventListener("message", ({ data }) => {
      const now = performance.now();
      const departure = typeof data === "number" ? departures[data] : undefined;
      if (departure === undefined) return;
      found.latencies[data as number] = now - departure;
      found.arrivals.push(now);
      step(found.arrivals.length);
      if (found.arrivals.length === messages) resolve();
    });
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  for (let n = 0; n < messages && !signal.aborted && found.refusal === undefined; n++) {
    departures.push(performance.now());
    connection.publish(channel, n).catch((error) => {
      found.refusal ??= error.message;
    });
    if (n + 1 < messages) await sleep(interval);
  }
  await Promise.race([whole, sleep(TAIL)]);
  return found;
}

function sleep(time: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, time));
}
