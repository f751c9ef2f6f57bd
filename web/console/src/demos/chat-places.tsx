import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { step, usePlace } from "../console/router";
import { plural } from "../format/number";
import { conversationAt, type Place, personPlace, roomPlace, talksOf } from "./chat-state";
import { FieldProblem } from "./field-problem";
import { MAX_ROOM_LENGTH } from "./interface";
import { placeHref } from "./place-href";
import { useAttempt } from "./use-attempt";
import type { Chat } from "./use-chat";
import { ViewLink } from "./view-link";

interface ChatPlacesProps {
  chat: Chat;
  /** The conversation that is looked at. */
  place: Place | null;
}

/** Rooms, private conversations, and who is in the room that is looked at. */
export function ChatPlaces({ chat, place }: ChatPlacesProps) {
  const { state, visit } = chat;
  const talks = talksOf(state);
  const here = state.rooms.find((one) => roomPlace(one.room) === place);
  return (
    <>
      <nav class="chat-places" aria-label="Conversations">
        <h2>Rooms</h2>
        <RoomList chat={chat} place={place} />
        {talks.length > 0 && (
          <>
            <h3>Private</h3>
            <ul class="chat-list">
              {talks.map((name) => (
                <li key={name}>
                  <PlaceLink
                    chat={chat}
                    place={personPlace(name)}
                    isOpen={place === personPlace(name)}
                  >
                    <bdi>{name}</bdi>
                  </PlaceLink>
                </li>
              ))}
            </ul>
          </>
        )}
      </nav>
      <div class="chat-persons">
        {here !== undefined && (
          <section aria-label={`People in ${here.room}`}>
            <h3>
              Here <span class="note">{plural(here.people.length, "person", "people")}</span>
            </h3>
            <ul class="chat-list chat-people">
              {here.people.map((name) => (
                <li key={name}>
                  {name === state.me ? (
                    <span class="chat-me">
                      <bdi>{name}</bdi> <span class="note">you</span>
                    </span>
                  ) : (
                    <PersonLink name={name} />
                  )}
                </li>
              ))}
            </ul>
          </section>
        )}
        <p class="chat-leave">
          You are <bdi class="strong">{state.me}</bdi>.{" "}
          <button type="button" onClick={() => visit.leave()}>
            Leave the chat
          </button>
        </p>
      </div>
    </>
  );
}

function RoomList({ chat, place }: ChatPlacesProps) {
  const { state, visit } = chat;
  const transport = usePlace().query.get("transport");
  const [name, setName] = useState("");
  const attempt = useAttempt();
  const others = state.rooms.filter(({ room }) => !state.joined.includes(room));
  const join = async (room: string) => {
    if (!(await attempt.run(() => visit.join(room)))) return;
    setName("");
    step(placeHref(roomPlace(room), transport));
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    join(name.trim().toLowerCase());
  };
  return (
    <>
      <ul class="chat-list">
        {state.joined.map((room) => (
          <li key={room}>
            <PlaceLink chat={chat} place={roomPlace(room)} isOpen={place === roomPlace(room)}>
              {room}
            </PlaceLink>
          </li>
        ))}
        {others.map(({ room, people }) => (
          <li key={room} class="chat-other">
            <span>
              {room} <span class="note">{plural(people.length, "person", "people")}</span>
            </span>
            <button type="button" aria-label={`Join ${room}`} onClick={() => join(room)}>
              Join
            </button>
          </li>
        ))}
      </ul>
      <form class="field" onSubmit={submit}>
        <label for="chat-room">Join or open a room</label>
        <div class="field-row">
          <input
            id="chat-room"
            type="text"
            required
            maxLength={MAX_ROOM_LENGTH}
            autocapitalize="off"
            spellcheck={false}
            autocomplete="off"
            value={name}
            aria-invalid={attempt.problem !== null}
            aria-describedby="chat-room-problem"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <button type="submit" aria-disabled={attempt.isBusy}>
            Join
          </button>
        </div>
        <FieldProblem id="chat-room-problem" problem={attempt.problem} />
      </form>
    </>
  );
}

interface PlaceLinkProps {
  chat: Chat;
  place: Place;
  isOpen: boolean;
  children: ComponentChildren;
}

function PlaceLink({ chat, place, isOpen, children }: PlaceLinkProps) {
  const transport = usePlace().query.get("transport");
  const { unread } = conversationAt(chat.state, place);
  return (
    <ViewLink href={placeHref(place, transport)} aria-current={isOpen ? "true" : undefined}>
      <span>{children}</span>
      {unread > 0 && (
        <span class="unread">
          {unread}
          <span class="visually-hidden"> unread</span>
        </span>
      )}
    </ViewLink>
  );
}

/** A name that leads to a private conversation. */
export function PersonLink({ name }: { name: string }) {
  const transport = usePlace().query.get("transport");
  return (
    <ViewLink href={placeHref(personPlace(name), transport)} title={`Talk to ${name} in private`}>
      <bdi>{name}</bdi>
    </ViewLink>
  );
}
