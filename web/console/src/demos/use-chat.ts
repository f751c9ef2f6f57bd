import { useCallback, useLayoutEffect, useState } from "preact/hooks";
import { useTransport } from "../live/transport-select";
import { type LiveConnection, useConnection } from "../live/use-connection";
import { type ChatState, EMPTY_CHAT, type Place, reduceChat } from "./chat-state";
import { ChatVisit, channelOf } from "./chat-visit";
import { readChatMessage } from "./interface";
import { useReduced } from "./use-reduced";

/** The chat as one takes part in it. */
export interface Chat {
  state: ChatState;
  visit: ChatVisit;
  live: LiveConnection;
  /** Says which conversation is looked at. */
  look: (place: Place | null) => void;
}

/** Takes part in the chat for as long as the page is there. */
export function useChat(): Chat {
  const [state, dispatch, peek, draw] = useReduced(reduceChat, EMPTY_CHAT);
  const [, redraw] = useState(0);
  const [visit] = useState(() => {
    const changed = () => {
      // The visit and what it brought are one sight.
      draw();
      redraw((count) => count + 1);
    };
    return new ChatVisit({ dispatch, state: peek, changed });
  });
  const transport = useTransport();

  const { session, after } = visit;
  const channels = session && [session.inbox, ...state.joined.map(channelOf)];
  const live = useConnection(channels && { channels, transport, after }, {
    message: ({ data }) => {
      const message = readChatMessage(data);
      if (message !== null) dispatch({ kind: "message", message, at: performance.now() });
    },
    gap: () => {
      dispatch({ kind: "missed", at_ms: Date.now() });
      visit.reloadRooms();
    },
  });
  visit.connection = live.connection;
  // Before anything is drawn: who comes back is not asked for a name.
  useLayoutEffect(() => visit.start(), [visit]);
  const look = useCallback(
    (place: Place | null) => dispatch({ kind: "opened", place }),
    [dispatch],
  );

  return { state, visit, live, look };
}
