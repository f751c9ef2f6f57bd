import { PushlabError } from "./errors.ts";
import type { Frame } from "./frames.ts";
import type { Ending } from "./policy.ts";
import type { Timing } from "./timing.ts";
import type { Tokens } from "./token.ts";

/** The part of a WebSocket that is used: that of browsers, of Node from version 22, and of npm `ws`. */
export interface Socket {
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
  addEventListener(
    type: "message" | "close" | "error",
    // biome-ignore lint/suspicious/noExplicitAny: browsers and `ws` declare events that agree in nothing else.
    listener: (event: any) => void,
  ): void;
}

/** What the client takes from its surroundings. */
export interface Environment {
  readonly fetch: typeof fetch;
  /** Absent where there are no WebSockets. */
  readonly WebSocket: (new (url: string, protocols?: string[]) => Socket) | undefined;
  /** Absent where the server is to ask for none. */
  readonly tokens: Tokens | undefined;
  readonly timing: Timing;
}

/** How a link ended. */
export interface LinkEnd extends Ending {
  /** For people. */
  readonly reason: string;
  /** What the peer did wrong, or why the server refused. */
  readonly error: PushlabError | undefined;
}

/** What a link needs, and whom it tells. Nothing is told after `close()`, and nothing before the opener returned. */
export interface LinkContext extends Environment {
  /** The address of one of the server's paths, with the channels and the latest cursor. */
  address(path: string, parameters?: Record<string, string>): string;
  /** Bytes came. */
  heard(): void;
  /** A frame came; the first means that the link is open. */
  frame(frame: Frame): void;
  /** The link is gone. */
  ended(end: LinkEnd): void;
  /** A ping came back after so many milliseconds. */
  ponged(latency: number): void;
}

/** One connection, or one series of polls. */
export interface Link {
  close(): void;
  /**
   * Sends a frame (without one, a ping) and gives what the server echoed, once it has dealt with it. Absent where
   * nothing can be sent.
   */
  request?(frame?: string): Promise<unknown>;
}

/** Refusals that say nothing about the transport. */
const BUSY_CODES: readonly unknown[] = [
  "overloaded",
  "too-many-connections",
  "limit-reached",
  "draining",
];

/** The end that an error makes, or what `reason` says where there is none. */
export function endOf(error: unknown, reason?: string): LinkEnd {
  const known = error instanceof PushlabError ? error : undefined;
  const code = known?.code;
  return {
    reason: reason ?? (known ? `${code}: ${known.message}` : `unreachable: ${error}`),
    error: known,
    blames: !BUSY_CODES.includes(code),
    retryAfter: known?.retryAfter ?? 0,
    returnAfter: known?.returnAfter,
  };
}
