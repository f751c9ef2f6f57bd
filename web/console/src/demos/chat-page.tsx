import { useEffect, useRef, useState } from "preact/hooks";
import { usePlace } from "../console/router";
import { useFocusOn } from "../live/use-focus";
import { ChatConversation } from "./chat-conversation";
import { ChatEntry } from "./chat-entry";
import { ChatPlaces } from "./chat-places";
import { roomPlace, unreadOf } from "./chat-state";
import { DemoFrame } from "./demo-frame";
import { readPlaceOf } from "./place-href";
import { useChat } from "./use-chat";
import { useShown } from "./use-shown";

/** A chat with rooms and private messages. */
export function ChatPage() {
  const chat = useChat();
  const { state, visit, live, look } = chat;
  const place = readPlaceOf(usePlace().query, state.joined);
  const isShown = useShown();
  const isThere = visit.session !== null;
  useEffect(() => look(isShown && isThere ? place : null), [look, place, isShown, isThere]);
  // Who joins, leaves, enters or goes presses what is gone then. Who is brought back has pressed nothing.
  const isIn = state.joined.some((room) => roomPlace(room) === place);
  const isBefore = !isThere || visit.isEntering;
  const view = visit.isReturning ? null : isBefore ? "entry" : `${place} ${isIn}`;
  const heading = useFocusOn<HTMLHeadingElement>(view);
  const moves = useMoves(isThere ? state.joined : NOWHERE);
  const unread = unreadOf(state);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}Chat – Pushlab`;
  }, [unread]);

  return (
    <DemoFrame
      live={live}
      about="Rooms, people and private messages. Open this page in a second window, under another name, to talk to yourself."
    >
      <p class="visually-hidden" role="status">
        {moves}
      </p>
      {isThere ? (
        <div class="chat">
          <ChatPlaces chat={chat} place={place} />
          <ChatConversation key={place} chat={chat} place={place} heading={heading} />
        </div>
      ) : (
        <ChatEntry visit={visit} heading={heading} />
      )}
    </DemoFrame>
  );
}

const NOWHERE: readonly string[] = [];

/** Which rooms one has joined or left last, in words. */
function useMoves(joined: readonly string[]): string {
  const before = useRef(joined);
  const [words, setWords] = useState("");
  useEffect(() => {
    const come = joined.filter((room) => !before.current.includes(room));
    const gone = before.current.filter((room) => !joined.includes(room));
    before.current = joined;
    if (come.length > 0) setWords(`You are in ${come.join(", ")} now.`);
    else if (gone.length > 0) setWords(`You have left ${gone.join(", ")}.`);
  }, [joined]);
  return words;
}
