// The auction house of both houses on Node.js: no sockets and no framework.

import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(scrypt);
const DAY_MS = 24 * 3600 * 1000;
// Beyond these a house that keeps everything in memory would end with the memory.
const MAX_ACCOUNTS = 10_000;
const MAX_ITEMS = 1_000;

// Code points, as people count; a string's own length is the cheap bound that comes first.
const text = (least, most) => (value) => {
  if (typeof value !== "string" || value.length > 2 * most) return false;
  const length = [...value].length;
  return length >= least && length <= most;
};
const whole = (least, most) => (value) =>
  Number.isSafeInteger(value) && value >= least && value <= most;
const cents = whole(1, 1e12);
const id = whole(1, Number.MAX_SAFE_INTEGER);
const accountName = (value) =>
  typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9_-]{1,23}$/.test(value);
const end = (value) => whole(1000, 90 * DAY_MS)(value - Date.now());

/** Each call's arguments. A Map: a name such as `constructor` must not find what every object has. */
const CALLS = new Map(
  Object.entries({
    register: { name: accountName, password: text(8, 128) },
    "log-in": { name: accountName, password: text(8, 128) },
    list: {},
    "own-bids": {},
    add: {
      name: text(1, 100),
      description: text(0, 1000),
      minimum_cents: cents,
      expires_ms: (value) => typeof value === "number" && end(value),
    },
    remove: { id },
    bid: { id, amount_cents: cents },
  }),
);
const OPEN = ["register", "log-in", "list"];

class Refusal extends Error {
  constructor(code, message, more) {
    super(message);
    this.answer = { error: code, message, ...more };
  }
}

/** Throws unless the arguments are those that the call takes, each of its kind. */
function check(name, args) {
  const wanted = CALLS.get(name);
  if (!wanted) throw new Refusal("bad-request", "there is no such call");
  if (typeof args !== "object" || args === null || Array.isArray(args))
    throw new Refusal("bad-request", "arguments are an object");
  const extra = Object.keys(args).find((key) => !Object.hasOwn(wanted, key));
  if (extra !== undefined) throw new Refusal("bad-request", `${name} takes no such argument`);
  for (const [key, fits] of Object.entries(wanted))
    if (!Object.hasOwn(args, key) || !fits(args[key]))
      throw new Refusal("bad-request", `${key} is missing or cannot be that`);
}

export class House {
  /** By names in small letters: `{ name, salt, hash }`. */
  #accounts = new Map();
  /** By ids, which grow: `{ item, bids }`, where `bids` has each bidder's highest. Items are replaced, not changed. */
  #lots = new Map();
  #version = 0;
  #lastId = 0;
  #tell;

  /** `tell` is given each change. */
  constructor(tell) {
    this.#tell = tell;
    // One interval for all: a timer of its own cannot wait 90 days, as it holds 31 bits of milliseconds.
    setInterval(() => this.#endWhatIsDue(), 100).unref();
  }

  /** The answer, also if it is a refusal; `session` is an object that belongs to the connection. */
  async call(session, name, args) {
    try {
      check(name, args);
      if (!session.account && !OPEN.includes(name))
        throw new Refusal("unauthorized", "log in or register first");
      return await this.#do(session, name, args);
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      console.error(error);
      return { error: "failed", message: "the house failed" };
    }
  }

  #do(session, name, args) {
    switch (name) {
      case "register":
        return this.#register(session, args);
      case "log-in":
        return this.#logIn(session, args);
      case "list":
        return { version: this.#version, items: [...this.#lots.values()].map(({ item }) => item) };
      case "own-bids":
        return { bids: this.#bidsOf(session.account.name) };
      case "add":
        return this.#add(session.account.name, args);
      case "remove":
        return this.#remove(session.account.name, args);
      case "bid":
        return this.#bid(session.account.name, args);
    }
  }

  async #register(session, { name, password }) {
    const salt = randomBytes(16);
    const hash = await derive(password, salt, 32);
    // Only now: somebody may have taken the name while the password was hashed.
    const key = name.toLowerCase();
    if (this.#accounts.has(key)) throw new Refusal("name-taken", "somebody has this name");
    if (this.#accounts.size >= MAX_ACCOUNTS)
      throw new Refusal("limit-reached", "the house is full");
    session.account = { name, salt, hash };
    this.#accounts.set(key, session.account);
    return { name };
  }

  async #logIn(session, { name, password }) {
    const account = this.#accounts.get(name.toLowerCase());
    // Hashed even if there is no such name, so that the answer takes as long.
    const hash = await derive(password, account?.salt ?? randomBytes(16), 32);
    if (!account || !timingSafeEqual(hash, account.hash))
      throw new Refusal("unauthorized", "name and password do not belong together");
    session.account = account;
    return { name: account.name };
  }

  #bidsOf(bidder) {
    const bids = [];
    for (const [id, lot] of this.#lots)
      if (lot.bids.has(bidder)) bids.push({ id, amount_cents: lot.bids.get(bidder) });
    return bids;
  }

  #add(owner, offer) {
    if (this.#lots.size >= MAX_ITEMS) throw new Refusal("limit-reached", "the house is full");
    const lot = { item: null, bids: new Map() };
    const { name, description, minimum_cents, expires_ms } = offer;
    const item = { id: ++this.#lastId, name, description, owner, minimum_cents, expires_ms };
    this.#lots.set(item.id, lot);
    return this.#change("added", lot, { ...item, leading: null });
  }

  #remove(name, { id }) {
    const lot = this.#lot(id);
    if (lot.item.owner !== name) throw new Refusal("forbidden", "this item is somebody else's");
    this.#lots.delete(id);
    return this.#change("removed", lot);
  }

  #bid(bidder, { id, amount_cents }) {
    const lot = this.#lot(id);
    const { leading, minimum_cents, expires_ms } = lot.item;
    if (lot.hasEnded || Date.now() >= expires_ms)
      throw new Refusal("expired", "the auction is over");
    const least_cents = leading ? leading.amount_cents + 1 : minimum_cents;
    if (amount_cents < least_cents)
      throw new Refusal("outbid", `bid ${least_cents} cents or more`, { leading, least_cents });
    lot.bids.set(bidder, amount_cents);
    return this.#change("bid", lot, { leading: { bidder, amount_cents } });
  }

  #lot(id) {
    const lot = this.#lots.get(id);
    if (!lot) throw new Refusal("not-found", "there is no such item, or no longer");
    return lot;
  }

  #endWhatIsDue() {
    for (const lot of this.#lots.values())
      if (!lot.hasEnded && Date.now() >= lot.item.expires_ms) {
        lot.hasEnded = true;
        this.#change("ended", lot);
      }
  }

  #change(kind, lot, what) {
    lot.item = { ...lot.item, ...what, version: ++this.#version };
    this.#tell({ kind, item: lot.item });
    return { item: lot.item };
  }
}
