import { expect, test } from "vitest";
import {
  type ChatAction,
  type ChatState,
  conversationAt,
  EMPTY_CHAT,
  MAX_ENTRIES,
  MAX_TALKS,
  personPlace,
  reduceChat,
  roomPlace,
  talksOf,
  unreadOf,
} from "./chat-state";
import type { ChatMessage } from "./interface";

const LOBBY = roomPlace("lobby");

function play(state: ChatState, ...actions: ChatAction[]): ChatState {
  return actions.reduce(reduceChat, state);
}

function inLobby(): ChatState {
  const rooms = [{ room: "lobby", people: ["bo"] }];
  return play(
    EMPTY_CHAT,
    { kind: "entered", me: "ann", rooms },
    { kind: "joining", room: "lobby" },
    { kind: "joined", room: { room: "lobby", people: ["ann", "bo"] } },
    { kind: "opened", place: LOBBY },
  );
}

function message(fields: Partial<ChatMessage> & { id: number }, at = 0): ChatAction {
  const whole = {
    kind: "said",
    room: "lobby",
    from: "bo",
    text: "hi",
    at_ms: fields.id,
    ...fields,
  };
  return { kind: "message", message: whole as ChatMessage, at };
}

function texts(state: ChatState, place = LOBBY): string[] {
  return conversationAt(state, place).entries.map((entry) => entry.text);
}

test("messages stand in the order in which they come, each once", () => {
  const state = play(
    inLobby(),
    message({ id: 1, text: "a" }),
    message({ id: 2, text: "b" }),
    message({ id: 1, text: "a" }),
  );
  expect(texts(state)).toEqual(["a", "b"]);
});

test("joining and leaving changes who is there, and is announced", () => {
  let state = play(inLobby(), message({ id: 1, kind: "joined", from: "Cy" }));
  expect(state.rooms[0]?.people).toEqual(["ann", "bo", "Cy"]);
  state = play(state, message({ id: 2, kind: "left", from: "bo" }));
  expect(state.rooms[0]?.people).toEqual(["ann", "Cy"]);
  expect(conversationAt(state, LOBBY).entries.map((entry) => entry.kind)).toEqual([
    "joined",
    "left",
  ]);
  expect(unreadOf(state)).toBe(0);
});

test("announcements that the list already knows change nothing in it", () => {
  const before = inLobby();
  const state = play(
    before,
    message({ id: 1, kind: "left", from: "bo" }),
    message({ id: 2, kind: "joined", from: "bo" }),
    message({ id: 3, kind: "joined", from: "bo" }),
  );
  expect(state.rooms).toEqual(before.rooms);
});

test("a list that is older than an announcement does not undo it", () => {
  const state = play(
    inLobby(),
    message({ id: 1, kind: "left", from: "bo" }),
    message({ id: 2, kind: "joined", from: "Cy" }),
    { kind: "rooms", rooms: [{ room: "lobby", people: ["ann", "bo"] }] },
  );
  expect(state.rooms[0]?.people).toEqual(["ann", "Cy"]);
});

test("after a gap the list says who is there, whatever was announced before", () => {
  const state = play(
    inLobby(),
    message({ id: 1, kind: "left", from: "bo" }),
    { kind: "missed", at_ms: 2 },
    message({ id: 3, kind: "joined", from: "Cy" }),
    { kind: "rooms", rooms: [{ room: "lobby", people: ["ann", "bo"] }] },
  );
  expect(state.rooms[0]?.people).toEqual(["ann", "bo", "Cy"]);
});

test("announcements that come before the answer to joining are not undone by it", () => {
  const state = play(
    inLobby(),
    { kind: "joining", room: "tea" },
    message({ id: 1, kind: "joined", room: "tea", from: "Di" }),
    { kind: "joined", room: { room: "tea", people: ["ann"] } },
  );
  expect(state.rooms.find((one) => one.room === "tea")?.people).toEqual(["ann", "Di"]);
});

test("numbers that begin anew with the server hide no message", () => {
  const state = play(inLobby(), message({ id: 1, at_ms: 5 }), message({ id: 1, at_ms: 900 }));
  expect(texts(state)).toHaveLength(2);
});

test("what is said elsewhere is unread until one looks", () => {
  let state = play(inLobby(), { kind: "joining", room: "tea" });
  state = play(state, message({ id: 1, room: "tea" }), message({ id: 2, room: "tea" }));
  expect(conversationAt(state, roomPlace("tea")).unread).toBe(2);
  expect(unreadOf(play(state, { kind: "opened", place: roomPlace("tea") }))).toBe(0);
});

test("while nobody looks everything is unread, but for one's own", () => {
  const away = play(inLobby(), { kind: "opened", place: null });
  const state = play(away, message({ id: 1 }), message({ id: 2, from: "ann" }));
  expect(unreadOf(state)).toBe(1);
  expect(unreadOf(play(state, { kind: "opened", place: LOBBY }))).toBe(0);
});

test("private messages stand with the other person, whoever wrote", () => {
  const state = play(
    inLobby(),
    message({ id: 1, kind: "told", from: "bo", to: "ann", text: "psst" }),
    message({ id: 2, kind: "told", from: "ann", to: "bo", text: "what?" }),
    message({ id: 3, kind: "told", from: "Cy", to: "ann", text: "hello" }),
  );
  expect(texts(state, personPlace("bo"))).toEqual(["psst", "what?"]);
  expect(talksOf(state)).toEqual(["Cy", "bo"]);
  expect(unreadOf(state)).toBe(2);
  expect(texts(state)).toEqual([]);
});

test("a round trip is known when answer and arrival are, in either order", () => {
  const arrival = message({ id: 5, from: "ann", text: "mine" }, 112);
  const answered = { ...arrival, kind: "accepted", at: 100 } as ChatAction;
  for (const order of [
    [answered, arrival],
    [arrival, answered],
  ]) {
    const state = play(inLobby(), ...order);
    expect(conversationAt(state, LOBBY).entries[0]?.trip_ms).toBe(12);
    expect(state.trips).toEqual([]);
  }
  const foreign = play(inLobby(), message({ id: 6, from: "bo" }, 112));
  expect(conversationAt(foreign, LOBBY).entries[0]?.trip_ms).toBeUndefined();
});

test("own messages that are never answered are forgotten", () => {
  let state = inLobby();
  for (let id = 0; id < 1000; id++) state = play(state, message({ id, from: "ann" }));
  expect(state.trips.length).toBeLessThanOrEqual(64);
});

test("a gap is told in every room that one is in, and in private conversations", () => {
  let state = play(inLobby(), message({ id: 1, kind: "told", from: "bo", to: "ann" }));
  state = play(state, { kind: "missed", at_ms: 99 });
  expect(conversationAt(state, LOBBY).entries.map((entry) => entry.kind)).toEqual(["missed"]);
  expect(conversationAt(state, personPlace("bo")).entries.at(-1)?.kind).toBe("missed");
});

test("a conversation keeps a bounded number of messages and says that it is cut", () => {
  let state = inLobby();
  for (let id = 1; id <= MAX_ENTRIES; id++) state = play(state, message({ id }));
  expect(conversationAt(state, LOBBY).isCut).toBe(false);
  state = play(state, message({ id: MAX_ENTRIES + 1, text: "last" }));
  const { entries, isCut } = conversationAt(state, LOBBY);
  expect(entries).toHaveLength(MAX_ENTRIES);
  expect(entries.at(-1)?.text).toBe("last");
  expect(isCut).toBe(true);
});

test("private conversations are bounded: the quietest goes", () => {
  let state = inLobby();
  for (let id = 1; id <= MAX_TALKS + 1; id++) {
    state = play(state, message({ id, kind: "told", from: `p${id}`, to: "ann" }));
  }
  expect(talksOf(state)).toHaveLength(MAX_TALKS);
  expect(talksOf(state)).not.toContain("p1");
});

test("leaving a room takes its conversation and oneself out of it", () => {
  const state = play(inLobby(), message({ id: 1 }), { kind: "parted", room: "lobby" });
  expect(state.joined).toEqual([]);
  expect(texts(state)).toEqual([]);
  expect(state.rooms[0]?.people).toEqual(["bo"]);
  expect(play(state, message({ id: 2 }))).toBe(state);
  const alone = play(
    EMPTY_CHAT,
    { kind: "entered", me: "ann", rooms: [{ room: "tea", people: ["ann"] }] },
    { kind: "parted", room: "tea" },
  );
  expect(alone.rooms).toEqual([]);
});
