import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { choose } from "../console/router";
import { formatQuantity } from "../format/number";
import type { LiveConnection } from "../live/use-connection";
import { PersonLink } from "./chat-places";
import { type ChatState, conversationAt, type Entry, type Place, roomPlace } from "./chat-state";
import { FieldProblem } from "./field-problem";
import { MAX_TEXT_LENGTH } from "./interface";
import { useAttempt } from "./use-attempt";
import type { Chat } from "./use-chat";

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
/** Who is so close to the end, in pixels, follows what is said. */
const NEAR_END = 40;

interface ChatConversationProps {
  chat: Chat;
  place: Place | null;
  heading: RefObject<HTMLHeadingElement | null>;
}

/** What was said in a room or in private, and what one says. */
export function ChatConversation({ chat, place, heading }: ChatConversationProps) {
  const { state, visit, live } = chat;
  const attempt = useAttempt();
  if (place === null) {
    return (
      <section class="chat-talk">
        <h2 ref={heading} tabIndex={-1}>
          No room
        </h2>
        <p class="empty">You are in no room. Join one, or open your own.</p>
      </section>
    );
  }
  const name = place.slice(place.indexOf(":") + 1);
  const isRoom = place === roomPlace(name);
  if (isRoom && !state.joined.includes(name)) {
    return (
      <section class="chat-talk">
        <h2 ref={heading} tabIndex={-1}>
          {name}
        </h2>
        <p>You are not in this room.</p>
        <button
          type="button"
          class="primary chat-join"
          aria-disabled={attempt.isBusy}
          onClick={() => attempt.run(() => visit.join(name))}
        >
          Join it
        </button>
        <FieldProblem problem={attempt.problem} />
      </section>
    );
  }
  const part = async () => {
    if (await attempt.run(() => visit.part(name))) choose({ room: null });
  };
  return (
    <section class="chat-talk" aria-label={isRoom ? `Room ${name}` : `Private with ${name}`}>
      <div class="chat-head">
        <h2 ref={heading} tabIndex={-1}>
          <bdi>{name}</bdi>
          {!isRoom && <span class="note"> only the two of you see this</span>}
        </h2>
        {isRoom && (
          <button type="button" aria-disabled={attempt.isBusy} onClick={part}>
            Leave the room
          </button>
        )}
      </div>
      <FieldProblem problem={attempt.problem} />
      <Log state={state} place={place} name={name} />
      <Composer
        name={name}
        live={live}
        send={(text) => (isRoom ? visit.say(name, text) : visit.tell(name, text))}
      />
    </section>
  );
}

/** The messages; stays where the reader is, and at the end for who is there. */
function Log({ state, place, name }: { state: ChatState; place: Place; name: string }) {
  const { entries, isCut } = conversationAt(state, place);
  const box = useRef<HTMLDivElement>(null);
  const { isAtEnd, follow, toEnd } = useFollowing(box, entries);
  return (
    <div class="chat-box">
      <div
        class="chat-log"
        ref={box}
        role="log"
        aria-label={`Messages, ${name}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must for who has no pointer
        tabIndex={0}
        onScroll={follow}
      >
        {isCut && <p class="note">Older messages are not kept.</p>}
        {entries.length === 0 && <p class="empty">Nothing was said yet.</p>}
        <ol>
          {entries.map((entry) => (
            <Line key={entry.key} entry={entry} isOwn={entry.from === state.me} />
          ))}
        </ol>
      </div>
      {!isAtEnd && (
        <button type="button" class="chat-to-end" onClick={toEnd}>
          <span aria-hidden="true">↓ </span>To the latest
        </button>
      )}
    </div>
  );
}

function Line({ entry, isOwn }: { entry: Entry; isOwn: boolean }) {
  const { kind, from, text, at_ms, trip_ms } = entry;
  const time = <time dateTime={new Date(at_ms).toISOString()}>{CLOCK.format(at_ms)}</time>;
  if (kind === "missed") {
    return (
      <li class="chat-line chat-missed">
        {time}
        <span>Some messages are missing here: the server no longer remembers them.</span>
      </li>
    );
  }
  if (kind !== "said") {
    return (
      <li class="chat-line chat-news">
        {time}
        <span>
          <bdi>{from}</bdi> {kind === "joined" ? "joined" : "left"}
        </span>
      </li>
    );
  }
  return (
    <li class={`chat-line ${isOwn ? "chat-own" : ""}`}>
      {time}
      <p>
        <span class="chat-from">{isOwn ? <bdi>{from}</bdi> : <PersonLink name={from} />}</span>{" "}
        <span dir="auto" class="chat-text">
          {text}
        </span>
        {trip_ms !== undefined && (
          <span class="note chat-trip"> back in {formatQuantity(trip_ms, "ms")}</span>
        )}
      </p>
    </li>
  );
}

interface ComposerProps {
  name: string;
  live: LiveConnection;
  send: (text: string) => Promise<void>;
}

/** Where one writes, and measures the way there and back. */
function Composer({ name, live, send }: ComposerProps) {
  const [text, setText] = useState("");
  const attempt = useAttempt();
  const field = useRef<HTMLInputElement>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (text.trim() === "") return;
    // What is refused stays to be mended.
    if (await attempt.run(() => send(text))) setText("");
    field.current?.focus();
  };
  return (
    <form class="chat-composer" onSubmit={submit}>
      <label class="visually-hidden" for="chat-text">
        Message to {name}
      </label>
      <div class="field-row">
        <input
          id="chat-text"
          ref={field}
          type="text"
          autocomplete="off"
          maxLength={MAX_TEXT_LENGTH}
          placeholder={`Message to ${name}`}
          value={text}
          readOnly={attempt.isBusy}
          aria-invalid={attempt.problem !== null}
          aria-describedby="chat-text-problem"
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <button type="submit" class="primary">
          Send
        </button>
        <Ping live={live} />
      </div>
      <FieldProblem id="chat-text-problem" problem={attempt.problem} />
    </form>
  );
}

function Ping({ live }: { live: LiveConnection }) {
  const [result, setResult] = useState("");
  const isOpen = live.state === "open";
  const ping = async () => {
    if (!isOpen) return;
    const began = performance.now();
    try {
      await live.connection?.echo(0);
      setResult(`There and back in ${formatQuantity(performance.now() - began, "ms")}`);
    } catch {
      setResult("No answer: see the state of the connection above");
    }
  };
  return (
    <>
      <button type="button" aria-disabled={!isOpen} onClick={ping}>
        Ping
      </button>
      <output class="note chat-ping">{result}</output>
    </>
  );
}

interface Following {
  isAtEnd: boolean;
  follow: () => void;
  toEnd: () => void;
}

function useFollowing(
  box: { readonly current: HTMLElement | null },
  entries: readonly Entry[],
): Following {
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    box.current?.scrollTo({ top: box.current.scrollHeight });
    setAtEnd(true);
  };
  useLayoutEffect(() => {
    if (isAtEnd) toEnd();
  }, [entries]);
  const follow = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    setAtEnd(scrollHeight - scrollTop - clientHeight < NEAR_END);
  };
  return { isAtEnd, follow, toEnd };
}
