import { expect, test } from "vitest";
import {
  type AuctionAction,
  type AuctionState,
  EMPTY_AUCTION,
  type Filter,
  isOver,
  leastBid,
  listItems,
  readListing,
  reduceAuction,
  type Sort,
} from "./auction-state";
import type { HouseMessage, Item } from "./interface";

function item(id: number, version: number, fields: Partial<Item> = {}): Item {
  return {
    id,
    name: `item ${id}`,
    description: "",
    owner: "ann",
    minimum_cents: 100,
    expires_ms: 10_000 + id,
    leading: null,
    bids: 0,
    ended: false,
    version,
    ...fields,
  };
}

function bid(id: number, version: number, bidder: string, amount_cents: number): Item {
  return item(id, version, { leading: { bidder, amount_cents }, bids: version });
}

function play(state: AuctionState, ...actions: AuctionAction[]): AuctionState {
  return actions.reduce(reduceAuction, state);
}

function message(
  kind: HouseMessage["kind"],
  changed: Item,
  me: string | null = null,
  cursor = "a.2",
): AuctionAction {
  return { kind: "message", cursor, message: { kind, item: changed }, me };
}

function snapshot(version: number, ...items: Item[]): AuctionAction {
  return { kind: "snapshot", cursor: "a.1", items, version, me: "me" };
}

function answer(changed: Item): AuctionAction {
  return { kind: "item", item: changed, me: "me" };
}

const STARTED = play(EMPTY_AUCTION, snapshot(2, item(1, 1), item(2, 2)));

const versions = (state: AuctionState) =>
  Object.fromEntries([...(state.items ?? [])].map(([id, { version }]) => [id, version]));

test("messages add, change and remove items", () => {
  let state = play(STARTED, message("added", item(3, 3)), message("bid", bid(1, 4, "bo", 150)));
  expect(versions(state)).toEqual({ 1: 4, 2: 2, 3: 3 });
  state = play(state, message("removed", item(2, 5)), message("ended", item(1, 6)));
  expect(versions(state)).toEqual({ 1: 6, 3: 3 });
});

test("another life of the server has another house, whose ids begin again", () => {
  const before = play(
    STARTED,
    message("bid", bid(1, 40, "bo", 300)),
    message("removed", item(2, 41)),
  );
  const action: AuctionAction = {
    kind: "snapshot",
    cursor: "b.7",
    items: [item(1, 3), item(2, 9)],
    version: 9,
    me: "me",
  };
  const after = play(before, action);
  expect(versions(after)).toEqual({ 1: 3, 2: 9 });
  expect(versions(play(after, message("bid", bid(2, 10, "bo", 100))))).toEqual({ 1: 3, 2: 10 });
  expect(versions(play(after, { ...action, cursor: null }))).toEqual({ 1: 3, 2: 9 });
});

test("who was outbid while the server was restarted is told", () => {
  const before = play(STARTED, message("bid", bid(1, 3, "me", 200), "me"));
  const list = [bid(1, 4, "bo", 300), item(2, 2)];
  const action: AuctionAction = {
    ...{ kind: "snapshot", cursor: "b.1", items: list, version: 4, me: "me" },
  };
  expect([...play(before, action).outbid]).toEqual([1]);
  const lower: AuctionAction = { ...action, items: [bid(1, 1, "bo", 300)], version: 1 };
  expect([...play(before, lower).outbid]).toEqual([]);
});

test("another life is told to have another house if that is younger than the one before", () => {
  const before = play(STARTED, message("bid", bid(1, 40, "bo", 300)));
  const restarted = (version: number, cursor = "b.1"): AuctionAction => ({
    ...{ kind: "snapshot", cursor, items: [], version, me: null },
  });
  expect(before.isOther).toBe(false);
  expect(play(before, restarted(40)).isOther).toBe(false);
  expect(play(before, restarted(39)).isOther).toBe(true);
  expect(play(before, restarted(39), restarted(50, "c.1")).isOther).toBe(true);
  // An answer or message of the new life may come before its list, and be newer than the list.
  const done = play(before, answer(bid(1, 41, "me", 400)));
  expect(play(done, restarted(40)).isOther).toBe(false);
  const told = play(before, message("bid", bid(1, 41, "bo", 400), null, "b.2"));
  expect(play(told, restarted(40)).isOther).toBe(false);
  expect(versions(play(told, restarted(40)))).toEqual({ 1: 41 });
});

test("an older version never replaces a newer one, whichever way it comes", () => {
  const state = play(STARTED, message("bid", bid(1, 9, "bo", 300)));
  const old = bid(1, 8, "cy", 200);
  expect(play(state, message("bid", old))).toBe(state);
  expect(play(state, answer(old))).toBe(state);
  const late = play(state, snapshot(8, old, item(2, 2)));
  expect(late.items?.get(1)?.leading?.bidder).toBe("bo");
});

test("an own answer that comes before the message makes the message no news", () => {
  const answered = play(STARTED, answer(bid(1, 3, "me", 200)));
  expect(answered.items?.get(1)?.leading?.amount_cents).toBe(200);
  expect(play(answered, message("bid", bid(1, 3, "me", 200), "me")).news).toEqual([]);
});

test("what is gone does not come back with a late answer or list", () => {
  const gone = play(STARTED, message("removed", item(1, 5)));
  expect(versions(play(gone, answer(item(1, 4))))).toEqual({ 2: 2 });
  expect(versions(play(gone, snapshot(4, item(1, 4), item(2, 2))))).toEqual({ 2: 2 });
  const own = play(STARTED, { kind: "gone", id: 2 });
  expect(versions(play(own, message("removed", item(2, 5))))).toEqual({ 1: 1 });
});

test("a removal is told once, one's own too", () => {
  const told = (state: AuctionState) => state.news.map(({ kind, item }) => `${kind} ${item.id}`);
  const answered = play(STARTED, { kind: "gone", id: 2 });
  expect(told(answered)).toEqual(["removed 2"]);
  expect(told(play(answered, message("removed", item(2, 5))))).toEqual(["removed 2"]);
  const heard = play(STARTED, message("removed", item(2, 5)));
  expect(told(play(heard, { kind: "gone", id: 2 }))).toEqual(["removed 2"]);
});

test("what is newer than a list stays, and what is older than it changes nothing", () => {
  const added = play(STARTED, answer(item(3, 9)));
  const listed = play(added, snapshot(8, item(1, 1), item(2, 2)));
  expect(versions(listed)).toEqual({ 1: 1, 2: 2, 3: 9 });
  expect(play(listed, message("added", item(4, 7)))).toBe(listed);
});

test("a list after a gap drops what it no longer has", () => {
  expect(versions(play(STARTED, snapshot(8, item(2, 8))))).toEqual({ 2: 8 });
});

test("who led and no longer does is outbid, until they lead again or it is over", () => {
  const outbid = (state: AuctionState) => [...state.outbid];
  const mine = play(STARTED, message("bid", bid(1, 3, "me", 200), "me"));
  expect(outbid(mine)).toEqual([]);
  const lost = play(mine, message("bid", bid(1, 4, "bo", 300), "me"));
  expect(outbid(lost)).toEqual([1]);
  expect(outbid(play(lost, message("bid", bid(1, 5, "cy", 400), "me")))).toEqual([1]);
  expect(outbid(play(lost, answer(bid(1, 5, "me", 500))))).toEqual([]);
  expect(outbid(play(lost, message("removed", item(1, 5), "me")))).toEqual([]);
  const over = { ...bid(1, 5, "bo", 300), ended: true };
  expect(outbid(play(lost, message("ended", over, "me")))).toEqual([]);
  expect(outbid(play(lost, { kind: "account" }))).toEqual([]);
});

test("who was outbid while away learns it from the list", () => {
  const mine = play(STARTED, message("bid", bid(1, 3, "me", 200), "me"));
  const back = play(mine, snapshot(7, bid(1, 7, "bo", 900)));
  expect([...back.outbid]).toEqual([1]);
  expect([...play(back, snapshot(8, item(2, 2))).outbid]).toEqual([]);
});

test("others' bids are nobody's loss where nobody is logged in", () => {
  const state = play(
    STARTED,
    message("bid", bid(1, 3, "bo", 200)),
    message("bid", bid(1, 4, "cy", 300)),
  );
  expect(state.outbid.size).toBe(0);
});

test("what is remembered is bounded", () => {
  let state = STARTED;
  for (let id = 3; id < 3000; id++) {
    state = play(state, message("added", item(id, id)), message("removed", item(id, id)));
  }
  expect(state.removed.size).toBeLessThanOrEqual(1000);
  expect(state.news.length).toBeLessThanOrEqual(5);
});

test("the next bid is the minimum, or a cent above what leads", () => {
  expect(leastBid(item(1, 1))).toBe(100);
  expect(leastBid(bid(1, 1, "bo", 150))).toBe(151);
});

test("an auction is over when its time is, or when the server says so", () => {
  expect(isOver(item(1, 1), 10_000)).toBe(false);
  expect(isOver(item(1, 1), 10_001)).toBe(true);
  expect(isOver(item(1, 1, { ended: true }), 0)).toBe(true);
});

test("items are filtered and sorted", () => {
  const items = [
    item(1, 1, { name: "Zither", expires_ms: 500, bids: 3 }),
    bid(2, 2, "me", 900),
    item(3, 3, { name: "apple", owner: "me", expires_ms: 9000 }),
  ];
  const ids = (filter: Filter, sort: Sort, search = "") =>
    listItems(items, { filter, sort, search }, "me", 1000).map((one) => one.id);
  expect(ids("open", "ending")).toEqual([3, 2]);
  expect(ids("all", "ending")).toEqual([3, 2, 1]);
  expect(ids("mine", "ending")).toEqual([3]);
  expect(ids("leading", "ending")).toEqual([2]);
  expect(ids("all", "newest")).toEqual([3, 2, 1]);
  expect(ids("all", "highest")).toEqual([2, 1, 3]);
  expect(ids("all", "bids")).toEqual([1, 2, 3]);
  expect(ids("all", "name")).toEqual([3, 2, 1]);
  expect(ids("all", "name", " ZITH ")).toEqual([1]);
});

test("an address that says nothing known lists open items, ending soonest", () => {
  const listing = readListing(new URLSearchParams("show=toString&sort=no"));
  expect(listing).toEqual({ filter: "open", sort: "ending", search: "" });
  expect(readListing(new URLSearchParams("show=mine&sort=name&search=a+b"))).toEqual({
    filter: "mine",
    sort: "name",
    search: "a b",
  });
});
