import type { Transport } from "pushlab-client";
import { TRANSPORT_NAMES } from "../live/transport-select";

/** Every transport, in the order in which a client prefers them. */
export const TRANSPORTS = Object.keys(TRANSPORT_NAMES) as readonly Transport[];

/** What a visitor chose; it lives in the query of the address. */
export interface MeasureOptions {
  /** In the order above, at least one. */
  readonly transports: readonly Transport[];
  /** Messages, and echoes, over each transport. */
  readonly messages: number;
}

/** Messages per transport that can be chosen. A stored measurement has at most 200 latencies. */
export const MESSAGE_COUNTS: readonly number[] = [10, 20, 50, 100, 200];

export const DEFAULT_OPTIONS: MeasureOptions = { transports: TRANSPORTS, messages: 20 };

/** Reads a query. What is not understood is left at its default. */
export function readOptions(query: URLSearchParams): MeasureOptions {
  const named = query.get("transports")?.split(",") ?? TRANSPORTS;
  const transports = TRANSPORTS.filter((transport) => named.includes(transport));
  const messages = Number(query.get("messages"));
  return {
    transports: transports.length > 0 ? transports : DEFAULT_OPTIONS.transports,
    messages: MESSAGE_COUNTS.includes(messages) ? messages : DEFAULT_OPTIONS.messages,
  };
}

/** Options as choices of the address; those at their defaults are left out. */
export function choicesOf({ transports, messages }: MeasureOptions): Record<string, string | null> {
  return {
    transports: transports.length < TRANSPORTS.length ? transports.join(",") : null,
    messages: messages === DEFAULT_OPTIONS.messages ? null : `${messages}`,
  };
}
