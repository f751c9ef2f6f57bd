import { useEffect } from "preact/hooks";
import { usePlace } from "../console/router";
import { ChatConversation } from "./chat-conversation";
import { ChatEntry } from "./chat-entry";
import { ChatPlaces } from "./chat-places";
import { unreadOf } from "./chat-state";
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
  const unread = unreadOf(state);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}Chat – Pushlab`;
  }, [unread]);

  return (
    <DemoFrame
      live={live}
      about="Rooms, people and private messages. Open this page in a second window, under another name, to talk to yourself."
    >
      {isThere ? (
        <div class="chat">
          <ChatPlaces chat={chat} place={place} />
          <ChatConversation key={place} chat={chat} place={place} />
        </div>
      ) : (
        <ChatEntry visit={visit} />
      )}
    </DemoFrame>
  );
}
