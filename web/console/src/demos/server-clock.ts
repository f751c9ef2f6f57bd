/** The server's clock was asked: when, and when it had answered, by the page's clock, and what it said. */
export interface Reading {
  sent: number;
  came: number;
  /** Milliseconds since 1970. */
  now_ms: number;
}

/** What is known of the server's clock, in milliseconds. */
export interface ServerClock {
  /** How far it is ahead of the page's, `performance.now()`. */
  ahead: number;
  /** By how much that may be wrong, in either direction. */
  error: number;
}

/** Browsers round instants: to whole milliseconds, or to a tenth of one. */
function grainOf({ sent, came }: Reading): number {
  return Number.isInteger(sent) && Number.isInteger(came) ? 1 : 0.1;
}

/**
 * The server read its clock between question and answer, so that the fastest of some readings tells the most: it is at
 * most half of its round trip off. Null without a reading.
 */
export function clockOf(readings: readonly Reading[]): ServerClock | null {
  const took = ({ sent, came }: Reading) => came - sent;
  const [fastest] = [...readings].sort((a, b) => took(a) - took(b));
  if (fastest === undefined) return null;
  const { sent, came, now_ms } = fastest;
  return { ahead: now_ms - (sent + came) / 2, error: took(fastest) / 2 + grainOf(fastest) };
}

/** A message that came. */
export interface Arrival {
  /** When it was published, by the server's clock; null where it does not say so. */
  sent_ms: number | null;
  /** By the page's clock. */
  at: number;
  /** When the connection that brought it was opened: what is older waited in the server's history. */
  openedAt: number;
}

/** Milliseconds that a message took to come down; null for what does not tell. */
export function wayDown(
  { sent_ms, at, openedAt }: Arrival,
  clock: ServerClock | null,
): number | null {
  if (sent_ms === null || clock === null) return null;
  const sentAt = sent_ms - clock.ahead;
  return sentAt < openedAt ? null : Math.max(0, at - sentAt);
}
