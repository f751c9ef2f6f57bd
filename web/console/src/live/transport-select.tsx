import type { Transport } from "pushlab-client";
import { choose, usePlace } from "../console/router";
import type { LiveConnection, TransportChoice } from "./use-connection";

/** The transports by what people call them, best first. */
export const TRANSPORT_NAMES: Readonly<Record<Transport, string>> = {
  websocket: "WebSocket",
  sse: "Server-Sent Events",
  "http-streaming": "HTTP streaming",
  "long-polling": "Long polling",
  polling: "Polling",
};

/** What a query says; `automatic` where it names none. */
export function readTransport(query: URLSearchParams): TransportChoice {
  const name = query.get("transport") ?? "";
  return Object.hasOwn(TRANSPORT_NAMES, name) ? (name as Transport) : "automatic";
}

/** The transport that the reader chose, kept in the address. */
export function useTransport(): TransportChoice {
  return readTransport(usePlace().query);
}

/** Chooses the transport of this page's connection, and says what became of it. */
export function TransportSelect({ live }: { live: LiveConnection }) {
  const choice = useTransport();
  return (
    <div class="controls connection">
      <label>
        Transport
        <select
          value={choice}
          onChange={({ currentTarget: { value } }) =>
            choose({ transport: value === "automatic" ? null : value })
          }
        >
          <option value="automatic">Automatic</option>
          {Object.entries(TRANSPORT_NAMES).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <ConnectionState live={live} />
    </div>
  );
}

/** What the connection is doing, in words and with a sign; read aloud when it changes. */
export function ConnectionState({ live }: { live: LiveConnection }) {
  const { connection, state, transport, httpVersion, reason, retryIn, error } = live;
  if (connection === null) {
    return (
      <p class="connection-state" role="status">
        <span class="badge badge-plain">Not connected yet</span>
      </p>
    );
  }
  const name = TRANSPORT_NAMES[transport];
  // Of polls it is not known.
  const http = httpVersion === undefined ? "" : `, HTTP/${httpVersion}`;
  const words = {
    connecting: `Connecting over ${name}`,
    open: `Connected over ${name}${http}`,
    waiting: retryIn > 0 ? `Next attempt in ${Math.ceil(retryIn / 1000)} s` : "Waiting",
    offline: "Offline",
    closed: "Closed",
  }[state];
  const look = { open: "good", closed: "bad", offline: "bad" }[state as string] ?? "open";
  const detail = error ?? (state === "open" ? "" : reason);
  return (
    <p class="connection-state" role="status">
      <span class={`badge badge-${look}`} data-state={state} data-transport={transport}>
        {words}
      </span>
      <span class="note">{detail}</span>
    </p>
  );
}
