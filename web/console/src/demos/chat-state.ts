import type { ChatMemory } from "./chat-memory";
import type { ChatMessage, Room } from "./interface";

/** What is kept of a conversation; the oldest go first. At most 1,000 characters each. */
export const MAX_ENTRIES = 300;
/** Private conversations; the one that was quiet longest goes first. */
export const MAX_TALKS = 32;
/** Own messages whose answer and whose arrival wait for each other. */
const MAX_TRIPS = 64;

/** A conversation: a room, or a person with whom one speaks in private. */
export type Place = `room:${string}` | `person:${string}`;

export const roomPlace = (room: string): Place => `room:${room}`;
export const personPlace = (name: string): Place => `person:${name}`;

/** A line of a conversation. */
export interface Entry {
  /** Unique within its conversation. */
  readonly key: string;
  readonly kind: "said" | "joined" | "left" | "missed";
  readonly from: string;
  readonly text: string;
  /** On the server's clock. */
  readonly at_ms: number;
  /** Of an own message: milliseconds from sending it until it came back over the subscription. */
  readonly trip_ms?: number;
}

export interface Conversation {
  readonly entries: readonly Entry[];
  /** Messages that came while one looked elsewhere. */
  readonly unread: number;
  /** Whether older entries were let go. */
  readonly isCut: boolean;
}

export const NO_CONVERSATION: Conversation = { entries: [], unread: 0, isCut: false };

/** What the page knows of the chat. */
export interface ChatState {
  readonly me: string;
  /** By name. */
  readonly rooms: readonly Room[];
  /** Rooms that one is in, in the order of joining. */
  readonly joined: readonly string[];
  readonly conversations: Readonly<Partial<Record<Place, Conversation>>>;
  /** The one that is looked at; null while nobody looks at the page. */
  readonly open: Place | null;
  /** Own messages: when they were sent, or when they arrived, whichever is known first. */
  readonly trips: readonly Trip[];
}

interface Trip {
  readonly key: string;
  /** On the page's clock. */
  readonly at: number;
  readonly isArrival: boolean;
}

export type ChatAction =
  /** One is there, and in no room yet. */
  | { kind: "entered"; me: string; rooms: readonly Room[] }
  | { kind: "rooms"; rooms: readonly Room[] }
  /** What happens in the room comes from now on; the answer with who is there may come later. */
  | { kind: "joining"; room: string }
  | { kind: "joined"; room: Room }
  | { kind: "parted"; room: string }
  /** `at` is on the page's clock. */
  | { kind: "message"; message: ChatMessage; at: number }
  /** The server accepted an own message, which was sent `at`. */
  | { kind: "accepted"; message: ChatMessage; at: number }
  | { kind: "missed"; at_ms: number }
  | { kind: "opened"; place: Place | null }
  /** What was kept while the page was loaded anew. */
  | { kind: "recalled"; memory: ChatMemory }
  /** One has left for good. */
  | { kind: "forgotten" };

export const EMPTY_CHAT: ChatState = {
  me: "",
  rooms: [],
  joined: [],
  conversations: {},
  open: null,
  trips: [],
};

export function reduceChat(state: ChatState, action: ChatAction): ChatState {
  switch (action.kind) {
    case "entered":
      return takeRooms({ ...state, me: action.me }, action.rooms);
    case "rooms":
      return takeRooms(state, action.rooms);
    case "joining":
      return state.joined.includes(action.room)
        ? state
        : { ...state, joined: [...state.joined, action.room] };
    case "joined": {
      const others = state.rooms.filter(({ room }) => room !== action.room.room);
      return takeRooms(
        state,
        sorted([...others, action.room], (one) => one.room),
      );
    }
    case "parted":
      return takeParting(state, action.room);
    case "message":
      return takeMessage(state, action.message, action.at);
    case "accepted":
      return takeTrip(state, { key: keyOf(action.message), at: action.at, isArrival: false });
    case "missed":
      return takeGap(state, action.at_ms);
    case "opened":
      return markRead({ ...state, open: action.place });
    case "recalled": {
      const { name: me, joined, conversations } = action.memory;
      return { ...EMPTY_CHAT, me, joined, conversations };
    }
    case "forgotten":
      return EMPTY_CHAT;
  }
}

/** The conversation at a place, empty where nothing was said. */
export function conversationAt(state: ChatState, place: Place | null): Conversation {
  return (place !== null && state.conversations[place]) || NO_CONVERSATION;
}

/** Names of those with whom one speaks in private, the latest first. */
export function talksOf(state: ChatState): string[] {
  const talks = Object.entries(state.conversations).filter(([place]) =>
    place.startsWith("person:"),
  );
  const latest = (conversation: Conversation | undefined) =>
    conversation?.entries.at(-1)?.at_ms ?? 0;
  return talks
    .sort(([, a], [, b]) => latest(b) - latest(a))
    .map(([place]) => place.slice("person:".length));
}

/** Everything that was not read yet. */
export function unreadOf(state: ChatState): number {
  return Object.values(state.conversations).reduce((sum, one) => sum + (one?.unread ?? 0), 0);
}

/**
 * The server's list, changed by what was announced since: an answer may be older than an announcement that came over
 * the subscription before it. What the list has already it has again, and the latest word on each person stands.
 */
function takeRooms(state: ChatState, rooms: readonly Room[]): ChatState {
  let next: ChatState = { ...state, rooms };
  for (const room of state.joined) {
    const { entries } = conversationAt(state, roomPlace(room));
    const since = entries.findLastIndex((entry) => entry.kind === "missed") + 1;
    for (const { kind, from } of entries.slice(since)) {
      if (kind === "joined" || kind === "left")
        next = withPerson(next, room, from, kind === "joined");
    }
  }
  return next;
}

function takeParting(state: ChatState, room: string): ChatState {
  const { [roomPlace(room)]: _, ...conversations } = state.conversations;
  const joined = state.joined.filter((one) => one !== room);
  const rooms = state.rooms.filter((one) => one.room !== room || one.people.length > 1);
  return withPerson({ ...state, rooms, joined, conversations }, room, state.me, false);
}

function takeMessage(state: ChatState, message: ChatMessage, at: number): ChatState {
  const { kind, from, at_ms } = message;
  const key = keyOf(message);
  if (kind === "told") {
    const other = from === state.me ? message.to : from;
    const told: Entry = { key, kind: "said", from, text: message.text, at_ms };
    return arrived(withEntry(state, personPlace(other), told), message, at);
  }
  // What was on its way when one left the room.
  if (!state.joined.includes(message.room)) return state;
  const place = roomPlace(message.room);
  if (kind === "said") {
    const said: Entry = { key, kind, from, text: message.text, at_ms };
    return arrived(withEntry(state, place, said), message, at);
  }
  const present = withPerson(state, message.room, from, kind === "joined");
  return withEntry(present, place, { key, kind, from, text: "", at_ms });
}

function arrived(state: ChatState, message: ChatMessage, at: number): ChatState {
  const isOwn = message.from === state.me;
  return isOwn ? takeTrip(state, { key: keyOf(message), at, isArrival: true }) : state;
}

/** Numbers begin anew when the server does. */
function keyOf({ at_ms, id }: ChatMessage): string {
  return `${at_ms} ${id}`;
}

/** Who is in a room changes as it is told; a room that one is in is there. */
function withPerson(state: ChatState, room: string, name: string, isThere: boolean): ChatState {
  const found = state.rooms.find((one) => one.room === room);
  if (found === undefined && !isThere) return state;
  const people = found?.people ?? [];
  if (found !== undefined && people.includes(name) === isThere) return state;
  const others = people.filter((other) => other !== name);
  const changed = { room, people: isThere ? sorted([...others, name], String) : others };
  const rooms = [...state.rooms.filter((one) => one.room !== room), changed];
  return { ...state, rooms: sorted(rooms, (one) => one.room) };
}

function sorted<T>(values: readonly T[], word: (value: T) => string): T[] {
  return [...values].sort((a, b) => word(a).localeCompare(word(b), "en"));
}

function withEntry(state: ChatState, place: Place, entry: Entry): ChatState {
  const before = conversationAt(state, place);
  if (before.entries.some(({ key }) => key === entry.key)) return state;
  const entries = [...before.entries, entry];
  const isNews = entry.kind === "said" && entry.from !== state.me && state.open !== place;
  const conversation: Conversation = {
    entries: entries.slice(-MAX_ENTRIES),
    unread: before.unread + (isNews ? 1 : 0),
    isCut: before.isCut || entries.length > MAX_ENTRIES,
  };
  const conversations = { ...state.conversations, [place]: conversation };
  return limitTalks({ ...state, conversations });
}

function limitTalks(state: ChatState): ChatState {
  const quiet = talksOf(state).slice(MAX_TALKS);
  if (quiet.length === 0) return state;
  const conversations = { ...state.conversations };
  for (const name of quiet) delete conversations[personPlace(name)];
  return { ...state, conversations };
}

/** The answer to a message and the message itself come in either order, over different connections. */
function takeTrip(state: ChatState, trip: Trip): ChatState {
  const other = state.trips.find(({ key }) => key === trip.key);
  if (other === undefined) return { ...state, trips: [...state.trips, trip].slice(-MAX_TRIPS) };
  const trips = state.trips.filter(({ key }) => key !== trip.key);
  if (other.isArrival === trip.isArrival) return { ...state, trips };
  return { ...withTrip(state, trip.key, Math.abs(trip.at - other.at)), trips };
}

function withTrip(state: ChatState, key: string, trip_ms: number): ChatState {
  const conversations = { ...state.conversations };
  for (const place of Object.keys(conversations) as Place[]) {
    const before = conversations[place];
    if (before === undefined || !before.entries.some((entry) => entry.key === key)) continue;
    const entries = before.entries.map((one) => (one.key === key ? { ...one, trip_ms } : one));
    conversations[place] = { ...before, entries };
  }
  return { ...state, conversations };
}

function takeGap(state: ChatState, at_ms: number): ChatState {
  let next = state;
  for (const place of [...state.joined.map(roomPlace), ...talksOf(state).map(personPlace)]) {
    const key = `missed ${at_ms}`;
    next = withEntry(next, place, { key, kind: "missed", from: "", text: "", at_ms });
  }
  return next;
}

function markRead(state: ChatState): ChatState {
  const { open } = state;
  const before = open === null ? undefined : state.conversations[open];
  if (open === null || before === undefined || before.unread === 0) return state;
  return { ...state, conversations: { ...state.conversations, [open]: { ...before, unread: 0 } } };
}
