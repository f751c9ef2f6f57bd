import { readBase } from "./address.ts";
import { Connection } from "./connection.ts";
import { PushlabError } from "./errors.ts";
import type { Socket } from "./link.ts";
import type { PageEvents } from "./page.ts";
import { TIMING, type Timing } from "./timing.ts";
import { type GetToken, Tokens } from "./token.ts";
import { TRANSPORTS, type Transport } from "./transport.ts";

export type { ClientCode, ErrorCode, ServerCode } from "./errors.ts";
export type {
  ConnectionEvents,
  DeliveryEvent,
  FailureEvent,
  GapEvent,
  RefusedEvent,
  State,
  StateEvent,
} from "./events.ts";
export type { Connection, GetToken, Socket, Timing, Transport };
export { PushlabError };

/** How to connect. */
export interface ConnectOptions {
  /** Channels to subscribe to: at most 64, each `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`. None by default. */
  channels?: Iterable<string>;
  /** A cursor to resume from. Without it the subscription begins now. */
  after?: string | undefined;
  /**
   * The transport, or the transports in order of preference. All by default: `websocket`, `sse`, `http-streaming`,
   * `long-polling`, `polling`.
   */
  transport?: Transport | readonly Transport[];
  /** Waits other than the defaults. */
  timing?: Partial<Timing>;
  /** The class of WebSockets where there is no global one: that of npm `ws`, in Node before version 22. */
  WebSocket?: new (
    url: string,
    protocols?: string[],
  ) => Socket;
  /**
   * Gives the token that a server with an access file asks for: at most 4,096 of A-Z a-z 0-9 . _ ~ + -. Called before
   * the first attempt and whenever another token is needed: before one expires, and when the server refuses one. Never
   * called again before it has given something or `Timing.request` has passed; if it throws, the attempt has failed.
   */
  getToken?: GetToken;
  /** What requests are made with where it is not the global `fetch`: one that counts, or adds fields. */
  fetch?: typeof fetch;
}

/**
 * Connects to a Pushlab server and stays connected until `close()`.
 *
 * @param url Where the server's paths are: `https://push.example`, or with a folder or query that a proxy wants.
 * @throws TypeError for a URL or transport that is none
 * @throws PushlabError `bad-channel`, `too-many-channels`; `unsupported` where only a WebSocket is wanted and there is
 * no class of them
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Connection {
  const page = globalThis as unknown as PageEvents & { location?: { href: string } };
  const base = readBase(url, page.location?.href);
  const { transport = TRANSPORTS, after: cursor, channels = [] } = options;
  const wanted = typeof transport === "string" ? [transport] : transport;
  const unknown = wanted.find((name) => !TRANSPORTS.includes(name));
  if (unknown !== undefined || wanted.length === 0) {
    throw new TypeError(`${unknown ?? "none"} is no transport; known are ${TRANSPORTS}`);
  }
  const timing = { ...TIMING, ...options.timing };
  const environment = {
    fetch: options.fetch ?? globalThis.fetch,
    WebSocket: options.WebSocket ?? globalThis.WebSocket,
    tokens: options.getToken && new Tokens(options.getToken, timing.request),
    timing,
  };
  const transports = wanted.filter((name) => name !== "websocket" || environment.WebSocket);
  if (transports.length === 0) {
    throw new PushlabError("unsupported", "name a class of WebSockets");
  }
  return new Connection({ base, channels, cursor, transports, environment, page });
}
