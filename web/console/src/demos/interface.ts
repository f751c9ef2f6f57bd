/**
 * What the demos' server answers and publishes. Times are milliseconds since 1970, amounts whole cents.
 */

/** Answer of `GET /api/demos/time`. */
export interface ServerTime {
  readonly now_ms: number;
}

/** When a message of any demo was published, by the server's clock; null where it does not say so. */
export function readSent(data: unknown): number | null {
  const sent = Array.isArray(data) ? data[2] : (data as { sent_ms?: unknown } | null)?.sent_ms;
  return typeof sent === "number" && Number.isFinite(sent) ? sent : null;
}

/** A stock as the server has it now. */
export interface Stock {
  readonly symbol: string;
  readonly name: string;
  readonly price_cents: number;
  /** Price at the opening. */
  readonly open_cents: number;
}

/** Answer of `GET /api/demos/ticker`. */
export interface TickerSnapshot {
  /** Subscribe after it. */
  readonly cursor: string;
  readonly stocks: readonly Stock[];
}

/** A message on `demo.ticker`: its number, the prices that changed, and when it was published. */
export type Tick = readonly [
  number: number,
  prices: readonly (readonly [symbol: string, price_cents: number])[],
  sent_ms?: number,
];

/** A message as a tick; null for one of a form that a newer server may send. */
export function readTick(data: unknown): Tick | null {
  const [number, prices] = Array.isArray(data) ? data : [];
  return typeof number === "number" && Array.isArray(prices) ? (data as unknown as Tick) : null;
}

/** A room of the chat and who is in it. */
export interface Room {
  readonly room: string;
  readonly people: readonly string[];
}

/** Answer of `GET /api/demos/chat/rooms`. */
export interface Rooms {
  /** Subscribe after it. */
  readonly cursor: string;
  /** Those that somebody is in, by name. */
  readonly rooms: readonly Room[];
}

/** Answer of `POST /api/demos/chat/enter`. */
export interface Entered extends Rooms {
  /** Says who asks; whoever has it is that person. */
  readonly token: string;
  readonly name: string;
  /** Channel on which private messages come; nobody else can guess it. */
  readonly inbox: string;
  /** How often to say that one is still there. */
  readonly beat_ms: number;
}

/** What the chat takes: a name, a room's, and a text have at most so many characters. */
export const MAX_NAME_LENGTH = 24;
export const MAX_ROOM_LENGTH = 32;
export const MAX_TEXT_LENGTH = 1000;

interface Happened {
  readonly from: string;
  readonly at_ms: number;
  /** Larger than all before it in the life of the server. */
  readonly id: number;
}

/** A message on a room's channel, or on an inbox; what is said and told is answered with it too. */
export type ChatMessage =
  | (Happened & { readonly kind: "said"; readonly room: string; readonly text: string })
  | (Happened & { readonly kind: "joined" | "left"; readonly room: string })
  | (Happened & { readonly kind: "told"; readonly to: string; readonly text: string });

/** A message as the chat's; null for one of a kind that a newer server may send. */
export function readChatMessage(data: unknown): ChatMessage | null {
  const { kind } = (data ?? {}) as { kind?: unknown };
  const isKnown = kind === "said" || kind === "joined" || kind === "left" || kind === "told";
  return isKnown ? (data as ChatMessage) : null;
}

/** What the auction house takes, in characters. */
export const MAX_ACCOUNT_LENGTH = 24;
export const MIN_PASSWORD_LENGTH = 8;
export const MAX_PASSWORD_LENGTH = 128;
export const MAX_ITEM_NAME_LENGTH = 100;
export const MAX_DESCRIPTION_LENGTH = 1000;

/** The highest bid for an item. */
export interface Leading {
  readonly bidder: string;
  readonly amount_cents: number;
}

/** A thing that is auctioned. */
export interface Item {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly owner: string;
  /** The least that the first bid must be. */
  readonly minimum_cents: number;
  /** When its auction ends. */
  readonly expires_ms: number;
  readonly leading: Leading | null;
  /** How many bids there were. */
  readonly bids: number;
  /** Whether its end was announced. */
  readonly ended: boolean;
  /** Of the house, after the item's last change: what has a higher one is newer. */
  readonly version: number;
}

/** A bid that was taken. */
export interface Bid {
  /** The first one is 1. */
  readonly number: number;
  readonly bidder: string;
  readonly amount_cents: number;
  readonly at_ms: number;
}

/** Answer of `GET /api/demos/auction/items/ID`. */
export interface ItemDetail {
  readonly item: Item;
  /** The latest first, as many as the house keeps. */
  readonly history: readonly Bid[];
}

/** Answer of `GET /api/demos/auction/me`: who is logged in. */
export interface Account {
  readonly name: string | null;
}

/** Answer of `GET /api/demos/auction/items`. */
export interface ItemsSnapshot {
  /** Subscribe after it; null where the server could not begin to tell of changes. */
  readonly cursor: string | null;
  /** Of the house: everything up to it is in the list. */
  readonly version: number;
  readonly items: readonly Item[];
}

/** A message on `demo.auction`, of something that is committed. */
export interface HouseMessage {
  readonly kind: "added" | "removed" | "bid" | "ended";
  readonly item: Item;
}

/** Refusal of a bid that is too low. */
export interface Outbid {
  readonly leading: Leading | null;
  /** The least that would be taken. */
  readonly least_cents: number;
}

/** A message as the auction house's; `reload` asks for a new list; null for one that a newer server may send. */
export function readHouseMessage(data: unknown): HouseMessage | "reload" | null {
  const { kind, item } = (data ?? {}) as { kind?: unknown; item?: { id?: unknown } | null };
  if (kind === "reload") return kind;
  const isKnown = kind === "added" || kind === "removed" || kind === "bid" || kind === "ended";
  return isKnown && typeof item?.id === "number" ? (data as HouseMessage) : null;
}
