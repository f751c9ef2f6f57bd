import type { HouseMessage, Item } from "./interface";

/** Items that are gone and must not come back with a late answer: the latest so many. */
const MAX_REMOVED = 1000;
/** What happened, of which the page tells: the latest so many. */
const MAX_NEWS = 5;

/** What the page knows of the auction house. */
export interface AuctionState {
  /** By id; undefined until the first snapshot. */
  readonly items: ReadonlyMap<number, Item> | undefined;
  /** Of the house when it made the list. */
  readonly version: number;
  /** The server's life in which it was made: another one's house may be another house, whose ids begin again. */
  readonly life: string | undefined;
  /**
   * The highest version in that life's lists and messages. Answers to requests do not count, since
   * they do not say which life gave them.
   */
  readonly heard: number;
  /** Whether it is another house than the one that was seen first: what was there is gone, accounts too. */
  readonly isOther: boolean;
  readonly removed: ReadonlySet<number>;
  /** Items for which somebody has bid more than one did oneself, as long as that is so. */
  readonly outbid: ReadonlySet<number>;
  /** What happened while one looked, the latest last. */
  readonly news: readonly HouseMessage[];
}

/** `me` is who is logged in, if anybody. */
export type AuctionAction =
  | {
      kind: "snapshot";
      cursor: string | null;
      items: readonly Item[];
      version: number;
      me: string | null;
    }
  | { kind: "message"; cursor: string; message: HouseMessage; me: string | null }
  /** An item as an answer had it. */
  | { kind: "item"; item: Item; me: string | null }
  /** One has removed it. */
  | { kind: "gone"; id: number }
  /** Somebody else is logged in, or nobody. */
  | { kind: "account" };

export const EMPTY_AUCTION: AuctionState = {
  items: undefined,
  version: 0,
  life: undefined,
  heard: 0,
  isOther: false,
  removed: new Set(),
  outbid: new Set(),
  news: [],
};

export function reduceAuction(state: AuctionState, action: AuctionAction): AuctionState {
  switch (action.kind) {
    case "snapshot":
      return takeSnapshot(ofLife(state, action), action.items, action.version, action.me);
    case "message":
      return takeMessage(heardOf(state, action), action.message, action.me);
    case "item":
      return withItem(state, action.item, action.me);
    case "gone":
      return takeRemoval(state, action.id);
    case "account":
      return { ...state, outbid: new Set() };
  }
}

/**
 * What is known in the life that a cursor names: nothing of the house, if it is another one. The version of a house never
 * falls, so a lower one in another life is that of another house, of a server that keeps none when it ends.
 */
function ofLife(
  state: AuctionState,
  { cursor, version }: { cursor: string | null; version: number },
): AuctionState {
  const life = cursor === null ? state.life : lifeOf(cursor);
  if (life === state.life) return { ...state, heard: Math.max(state.heard, version) };
  if (state.life === undefined) return { ...state, life, heard: version };
  if (version < state.heard) return { ...EMPTY_AUCTION, life, heard: version, isOther: true };
  // For whom was outbid meanwhile; the list, which is as young, replaces it.
  const { items, outbid, isOther, news } = state;
  return { ...EMPTY_AUCTION, life, heard: version, items, outbid, isOther, news };
}

function heardOf(
  state: AuctionState,
  { cursor, message }: { cursor: string; message: HouseMessage },
): AuctionState {
  const { version } = message.item;
  if (lifeOf(cursor) !== state.life || version <= state.heard) return state;
  return { ...state, heard: version };
}

function lifeOf(cursor: string): string | undefined {
  return cursor.split(".")[0];
}

/** The list is whole up to its version; what came by itself meanwhile may be newer. */
function takeSnapshot(
  state: AuctionState,
  list: readonly Item[],
  version: number,
  me: string | null,
): AuctionState {
  const items = new Map<number, Item>();
  for (const item of list) if (!state.removed.has(item.id)) items.set(item.id, item);
  for (const known of state.items?.values() ?? []) {
    if (known.version > version) items.set(known.id, known);
  }
  let { outbid } = state;
  for (const item of items.values()) outbid = judge(outbid, state.items?.get(item.id), item, me);
  const isThere = (id: number) => items.has(id);
  if (![...outbid].every(isThere)) outbid = new Set([...outbid].filter(isThere));
  return { ...state, items, version, outbid };
}

function takeMessage(state: AuctionState, message: HouseMessage, me: string | null): AuctionState {
  const { kind, item } = message;
  if (kind === "removed") return takeRemoval(state, item.id);
  const next = withItem(state, item, me);
  return next === state ? state : withNews(next, message);
}

/** An older version never replaces a newer one, nor what the list has, and what is gone stays so. */
function withItem(state: AuctionState, item: Item, me: string | null): AuctionState {
  const known = state.items?.get(item.id);
  const version = Math.max(state.version, known?.version ?? 0);
  if (state.removed.has(item.id) || item.version <= version) return state;
  const outbid = judge(state.outbid, known, item, me);
  return { ...state, outbid, items: new Map(state.items).set(item.id, item) };
}

/** Who led and no longer does is outbid, until they lead again or the auction has ended. */
function judge(
  outbid: ReadonlySet<number>,
  known: Item | undefined,
  item: Item,
  me: string | null,
): ReadonlySet<number> {
  if (me === null) return outbid;
  const leads = item.leading?.bidder === me;
  const isOutbid = known?.leading?.bidder === me || outbid.has(item.id);
  const next = isOutbid && !leads && !item.ended;
  if (next === outbid.has(item.id)) return outbid;
  const changed = new Set(outbid);
  if (next) changed.add(item.id);
  else changed.delete(item.id);
  return changed;
}

/** Told once, whether the answer comes first, to who has removed it, or the message. */
function takeRemoval(state: AuctionState, id: number): AuctionState {
  const item = state.items?.get(id);
  const next = without(state, id);
  return item === undefined ? next : withNews(next, { kind: "removed", item });
}

function without(state: AuctionState, id: number): AuctionState {
  const removed = new Set([...state.removed, id].slice(-MAX_REMOVED));
  if (!state.items?.has(id)) return { ...state, removed };
  const items = new Map(state.items);
  items.delete(id);
  const outbid = new Set(state.outbid);
  outbid.delete(id);
  return { ...state, items, removed, outbid };
}

function withNews(state: AuctionState, news: HouseMessage): AuctionState {
  return { ...state, news: [...state.news, news].slice(-MAX_NEWS) };
}

/** Whether no more bids are taken, as the server has said or the clock says. */
export function isOver(item: Item, now_ms: number): boolean {
  return item.ended || item.expires_ms <= now_ms;
}

/** The least that the next bid must be. */
export function leastBid({ leading, minimum_cents }: Item): number {
  return leading === null ? minimum_cents : leading.amount_cents + 1;
}

/** Which items are listed. */
export const FILTERS = {
  open: "Open",
  all: "All",
  mine: "My own",
  leading: "I lead",
} as const;
export type Filter = keyof typeof FILTERS;

/** In which order. */
export const SORTS = {
  ending: "Ending soonest",
  newest: "Newest",
  highest: "Highest bid",
  bids: "Most bids",
  name: "Name",
} as const;
export type Sort = keyof typeof SORTS;

/** What is listed, and how. */
export interface Listing {
  filter: Filter;
  sort: Sort;
  /** Part of a name, a description or an owner. */
  search: string;
}

/** What an address says; what it does not name is open items that end soonest. */
export function readListing(query: URLSearchParams): Listing {
  const [filter, sort] = [query.get("show") ?? "", query.get("sort") ?? ""];
  return {
    filter: Object.hasOwn(FILTERS, filter) ? (filter as Filter) : "open",
    sort: Object.hasOwn(SORTS, sort) ? (sort as Sort) : "ending",
    search: query.get("search") ?? "",
  };
}

/** The items of a listing in its order. */
export function listItems(
  items: Iterable<Item>,
  listing: Listing,
  me: string | null,
  now_ms: number,
): Item[] {
  const { filter, sort } = listing;
  const wanted = listing.search.trim().toLowerCase();
  const passes: Record<Filter, (item: Item) => boolean> = {
    open: (item) => !isOver(item, now_ms),
    all: () => true,
    mine: (item) => item.owner === me,
    leading: (item) => item.leading?.bidder === me,
  };
  const found = [...items].filter((item) => {
    const text = `${item.name}\n${item.description}\n${item.owner}`.toLowerCase();
    return passes[filter](item) && text.includes(wanted);
  });
  const price = (item: Item) => item.leading?.amount_cents ?? item.minimum_cents;
  const orders: Record<Sort, (a: Item, b: Item) => number> = {
    // Those that are over come after those that are not.
    ending: (a, b) =>
      Number(isOver(a, now_ms)) - Number(isOver(b, now_ms)) || a.expires_ms - b.expires_ms,
    newest: (a, b) => b.id - a.id,
    highest: (a, b) => price(b) - price(a),
    bids: (a, b) => b.bids - a.bids,
    name: (a, b) => a.name.localeCompare(b.name, "en"),
  };
  return found.sort((a, b) => orders[sort](a, b) || a.id - b.id);
}
