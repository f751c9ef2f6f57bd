import { useEffect, useRef, useState } from "preact/hooks";
import {
  type Connection,
  type ConnectionEvents,
  connect,
  type State,
  type Transport,
} from "pushlab-client";
import { passOptions } from "./pass";

/** One transport, or all of them, the best that gets through. */
export type TransportChoice = Transport | "automatic";

/** What to be connected to. */
export interface ConnectionPlan {
  channels: readonly string[];
  transport: TransportChoice;
  /** The cursor of the snapshot that the messages continue; without it they begin now. */
  after?: string | undefined;
}

/** What is told; the functions may be others at each drawing. */
export interface ConnectionHandlers {
  message: (message: Pick<ConnectionEvents["message"], "channel" | "cursor" | "data">) => void;
  /** Messages are gone for good: fetch the snapshot again and give its cursor as `after`. */
  gap?: () => void;
}

/** A connection as it is now. */
export interface LiveConnection {
  /** Null before there is a plan. */
  connection: Connection | null;
  /** When it was made, ms, by the page's clock: what began before belongs to another. */
  since: number;
  state: State;
  transport: Transport;
  httpVersion: string | undefined;
  reason: string;
  /** Milliseconds until the next attempt, as told when the state was entered. */
  retryIn: number;
  /** What the server says about an error that it will not get over. */
  error: string | null;
}

const BEFORE: LiveConnection = {
  connection: null,
  since: 0,
  state: "connecting",
  transport: "websocket",
  httpVersion: undefined,
  reason: "",
  retryIn: 0,
  error: null,
};

/**
 * Keeps a connection to this page's server for as long as the component is there; none for a plan of null. Another
 * transport goes on from the cursor of the connection before it, so that a change of transport loses nothing. Other
 * channels are those of the same connection; only another `after` begins anew.
 */
export function useConnection(
  plan: ConnectionPlan | null,
  handlers: ConnectionHandlers,
): LiveConnection {
  const [live, setLive] = useState(BEFORE);
  const latest = useRef(handlers);
  latest.current = handlers;
  const reached = useRef<{ after: string | undefined; cursor: string | undefined }>(undefined);
  const current = useRef<Connection>(null);

  const isPlanned = plan !== null;
  const channels = plan?.channels.join(" ") ?? "";
  const { transport = "automatic", after } = plan ?? {};
  // Other channels are no other connection: the next effect changes them.
  useEffect(() => {
    if (!isPlanned) return;
    const before = reached.current;
    const since = performance.now();
    let isOver = false;
    const connection = connect(location.origin, {
      channels: split(channels),
      after: before?.after === after ? (before?.cursor ?? after) : after,
      ...(transport === "automatic" ? {} : { transport }),
      ...passOptions(),
    });
    current.current = connection;
    setLive({ ...BEFORE, connection, since, transport: connection.transport });
    connection.addEventListener("message", (message) => latest.current.message(message));
    connection.addEventListener("gap", () => latest.current.gap?.());
    connection.addEventListener("state", ({ state, transport, httpVersion, reason, retryIn }) => {
      if (isOver) return;
      setLive((now) => ({
        ...{ connection, since, state, transport, httpVersion, reason, retryIn },
        error: state === "open" ? null : now.error,
      }));
    });
    const failed = ({ text }: { text: string }) => setLive((now) => ({ ...now, error: text }));
    connection.addEventListener("refused", failed);
    connection.addEventListener("error", failed);
    return () => {
      isOver = true;
      reached.current = { after, cursor: connection.cursor };
      current.current = null;
      connection.close();
    };
  }, [isPlanned, transport, after]);

  useEffect(() => {
    const connection = current.current;
    const wanted = split(channels);
    for (const channel of connection?.channels ?? []) {
      if (!wanted.includes(channel)) connection?.unsubscribe(channel);
    }
    for (const channel of wanted) connection?.subscribe(channel);
  }, [channels]);

  return plan === null ? BEFORE : live;
}

/** Names have no spaces. */
function split(channels: string): string[] {
  return channels.split(" ").filter(Boolean);
}
