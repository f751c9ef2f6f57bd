/** How long the client waits, all in milliseconds. */
export interface Timing {
  /**
   * Time between two heartbeats, 25,000, of a server that does not say its own: a connection that is silent for two is
   * dead. A WebSocket is pinged as often, or as the server's own if that is shorter, and a long poll held as long.
   */
  heartbeat: number;
  /**
   * Time within which a transport must show its first bytes, 2,500, or something on the way holds them back. Doubles
   * each time that no transport got through, up to 30,000: the network may just be slow.
   */
  open: number;
  /**
   * Time within which a stream must show more than its first bytes, 2,500, or something holds it back: the server sends
   * a heartbeat after a second.
   */
  early: number;
  /** A connection that ends sooner, 10,000, had a short life: something on the way cuts such. */
  shortLife: number;
  /**
   * Until better transports are tried again, 30,000, beside the connection in use. Doubles each time that none stays,
   * up to 600,000.
   */
  climb: number;
  /** Upper end of the first random delay before a new attempt, 500; it doubles with each. */
  retry: number;
  /** Highest upper end of that delay, 30,000. */
  retryMax: number;
  /** Lower end of that delay, 100. */
  retryMin: number;
  /** Between two polls of the transport `polling`, 1,000. */
  poll: number;
  /** Until a publication or echo without an answer has failed, 10,000, or a call of `getToken`. */
  request: number;
}

/** The defaults. */
export const TIMING: Timing = {
  heartbeat: 25_000,
  open: 2_500,
  early: 2_500,
  shortLife: 10_000,
  climb: 30_000,
  retry: 500,
  retryMax: 30_000,
  retryMin: 100,
  poll: 1_000,
  request: 10_000,
};

/** Longest time that a server can send a client away for, in milliseconds. */
const MAX_RETURN = 300_000;
/** Longest delay of a timer, in milliseconds: browsers and Node call back at once after a longer one. */
const MAX_DELAY = 2 ** 31 - 1;
/** Milliseconds for what waits in the event loop, and for what is decompressed on another thread before it comes there. */
const TURN = 50;

/** Calls back after so many milliseconds, or after `MAX_DELAY`, and gives how to prevent that. */
export function startTimer(delay: number, then: () => void): () => void {
  const timer = setTimeout(then, Math.min(delay, MAX_DELAY));
  return () => clearTimeout(timer);
}

/** Waits so many milliseconds, or until the signal is aborted. */
export function wait(delay: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stop();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stop = startTimer(delay, done);
    signal.addEventListener("abort", done);
  });
}

/**
 * As `startTimer`, for what should have happened within `limit`. After the thread was blocked, it may have happened and
 * wait in the event loop, which may call timers first: so it gets a turn before.
 */
export function startDeadline(limit: number, then: () => void): () => void {
  let stop = startTimer(limit, () => {
    stop = startTimer(TURN, then);
  });
  return () => stop();
}

/**
 * A random delay in milliseconds before attempt number `attempt` (from 0): full jitter between a floor and a ceiling
 * that doubles. The jitter survives the cap, because it is the ceiling that is capped and not the delay, so that
 * clients which lost one server do not come back at one instant. See "Exponential Backoff And Jitter", AWS
 * Architecture Blog, 2015.
 *
 * With `retryAfter`, the delay that the server asked for, the jitter comes on top. If the server gave this client an
 * instant of its own, `returnAfter`, the delay is exactly that, unless the client is sent away again and again without
 * a pause.
 */
export function backoff(
  timing: Timing,
  attempt: number,
  random: number,
  retryAfter = 0,
  returnAfter?: number,
): number {
  if (returnAfter !== undefined && (returnAfter >= timing.retryMin || attempt === 0))
    return Math.min(Math.max(0, returnAfter), MAX_RETURN);
  const ceiling = Math.min(timing.retryMax, timing.retry * 2 ** attempt);
  if (retryAfter > 0) return retryAfter + random * Math.max(ceiling, retryAfter);
  return Math.min(timing.retryMin, ceiling) + random * Math.max(0, ceiling - timing.retryMin);
}

/** Milliseconds that a Retry-After field asks for, in seconds or as a date; 0 where it says nothing. */
export function readRetryAfter(field: string | null, now = Date.now()): number {
  const wait = Number(field) * 1000 || Date.parse(`${field}`) - now;
  return wait > 0 ? Math.min(wait, MAX_RETURN) : 0;
}
