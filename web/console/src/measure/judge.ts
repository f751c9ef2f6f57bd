import type { Measurement } from "./finding";
import { clumpSize, isBuffered, jitter } from "./latencies";

/** Time for the last messages to come, in milliseconds. Longer than the second between two polls. */
export const TAIL = 5_000;

/** What became of the messages. */
export interface Exchanged {
  /** By number; undefined where one did not come. */
  latencies: (number | undefined)[];
  /** Instants in their order. */
  arrivals: number[];
  /** Why one could not be published. */
  refusal: string | undefined;
}

/** How the messages were sent. */
export interface Pace {
  messages: number;
  /** Least time between two departures. */
  interval: number;
  /** Whether each should come by itself, and not with the next poll. */
  isPushed: boolean;
}

/** What is to be said of the messages. */
export function judge(
  { latencies, arrivals, refusal }: Exchanged,
  { messages, interval, isPushed }: Pace,
): Pick<Measurement, "ok" | "problem" | "latencies_ms" | "jitter_ms" | "is_buffered"> {
  const latencies_ms = latencies.filter((one) => one !== undefined);
  const jitter_ms = jitter(latencies_ms);
  const missing = messages - arrivals.length;
  const size = isPushed ? clumpSize(arrivals, interval) : 1;
  let problem: string | undefined;
  if (refusal !== undefined) problem = `publishing failed: ${refusal}`;
  else if (missing > 0)
    problem = `${missing} of ${messages} messages did not come within ${TAIL / 1000} s`;
  else if (isBuffered(size)) problem = `messages came in clumps of about ${Math.round(size)}`;
  return {
    ok: missing === 0,
    ...(problem === undefined ? {} : { problem }),
    latencies_ms,
    ...(jitter_ms === undefined ? {} : { jitter_ms }),
    is_buffered: isBuffered(size) || (isPushed && missing > 0 && refusal === undefined),
  };
}
