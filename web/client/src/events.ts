import type { ErrorCode } from "./errors.ts";
import type { Transport } from "./transport.ts";

/**
 * What a connection is doing.
 *
 * - `connecting`: an attempt is under way.
 * - `open`: messages arrive.
 * - `waiting`: until the next attempt, or until there is a reason for one.
 * - `offline`: the browser says that there is no network; goes on by itself when there is.
 * - `closed`: for good, by `close()` or because the server will never accept what was asked for.
 */
export type State = "connecting" | "open" | "waiting" | "offline" | "closed";

/** A publication reached this subscriber. */
export interface DeliveryEvent extends Event {
  readonly type: "message";
  readonly channel: string;
  /** Position behind this message; opaque. */
  readonly cursor: string;
  /** Any JSON value. */
  readonly data: unknown;
}

/** What the connection is doing has changed. */
export interface StateEvent extends Event {
  readonly type: "state";
  readonly state: State;
  /** The transport in use, or the one that will be tried. */
  readonly transport: Transport;
  /** In state `open` the connection's `httpVersion`. */
  readonly httpVersion: string | undefined;
  /** Why, for people. */
  readonly reason: string;
  /** Milliseconds until the next attempt, in state `waiting`; else 0. */
  readonly retryIn: number;
}

/** Messages after `from` up to `to` are gone: fetch again what they would have changed. */
export interface GapEvent extends Event {
  readonly type: "gap";
  readonly from: string;
  readonly to: string;
}

/** Something is wrong that belongs to no call: the peer broke the protocol, or the server refused for good. */
export interface FailureEvent extends Event {
  readonly type: "error";
  readonly code: ErrorCode;
  /** For people. */
  readonly text: string;
}

/** The server refuses one channel, which is subscribed to no longer; the others go on. */
export interface RefusedEvent extends Event {
  readonly type: "refused";
  readonly channel: string;
  readonly code: ErrorCode;
  /** For people. */
  readonly text: string;
}

/** The events of a connection by name. */
export interface ConnectionEvents {
  message: DeliveryEvent;
  state: StateEvent;
  gap: GapEvent;
  refused: RefusedEvent;
  error: FailureEvent;
}

type Listener<E> = ((event: E) => void) | { handleEvent(event: E): void } | null;

/** An `EventTarget` that knows its events. */
interface ConnectionTarget extends EventTarget {
  addEventListener<K extends keyof ConnectionEvents>(
    type: K,
    listener: Listener<ConnectionEvents[K]>,
    options?: AddEventListenerOptions | boolean,
  ): void;
  removeEventListener<K extends keyof ConnectionEvents>(
    type: K,
    listener: Listener<ConnectionEvents[K]>,
    options?: EventListenerOptions | boolean,
  ): void;
}

/** `EventTarget` with those types; it is the same at run time. */
export const TypedEventTarget = EventTarget as { new (): ConnectionTarget };

/** Dispatches an event with its fields. Listeners that throw are reported by the runtime, not to the caller. */
export function tell<K extends keyof ConnectionEvents>(
  target: ConnectionTarget,
  type: K,
  fields: Omit<ConnectionEvents[K], keyof Event>,
): void {
  target.dispatchEvent(Object.assign(new Event(type), fields));
}
