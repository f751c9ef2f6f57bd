// Somebody else in the demos, who speaks to the server without a browser.

import assert from "node:assert/strict";

/** How an account is called, and its password. */
export const PASSWORD = "correct horse battery";

/** The chat waits 10 s for a word. */
const BEAT_MS = 2000;

export class Peer {
  #server;
  #session;
  #token;

  constructor(server) {
    this.#server = server;
  }

  async #ask(method, path, body) {
    const headers = { "content-type": "application/json" };
    if (this.#session !== undefined) headers["auction-session"] = this.#session;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = await this.#server.request(method, `/api/demos/${path}`, { body: text, headers });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
    const said = answer.text === "" ? null : JSON.parse(answer.text);
    this.#session = said?.session ?? this.#session;
    return said;
  }

  /** Comes into the chat, into one room. */
  async enter(name, room = "lobby") {
    const { token } = await this.#ask("POST", "chat/enter", { name });
    this.#token = token;
    await this.join(room);
  }

  /** Says from time to time that one is still there, until the test has ended: of whom nothing is heard is gone. */
  stay(t) {
    const beats = setInterval(() => this.#ask("POST", "chat/beat", { token: this.#token }).catch(() => {}), BEAT_MS);
    // Where another of the test's ends fails, this one does not come, and nothing may wait for it.
    beats.unref();
    t.after(() => clearInterval(beats));
  }

  join(room) {
    return this.#ask("POST", "chat/join", { token: this.#token, room });
  }

  say(text, room = "lobby") {
    return this.#ask("POST", "chat/say", { token: this.#token, room, text });
  }

  tell(to, text) {
    return this.#ask("POST", "chat/tell", { token: this.#token, to, text });
  }

  register(name) {
    return this.#ask("POST", "auction/register", { name, password: PASSWORD });
  }

  /** Offers something, for an hour if nothing else is said, and gives its number. */
  async offer(name, { description = "", minimum_cents = 100, lasts_ms = 3_600_000 } = {}) {
    const offer = { name, description, minimum_cents, expires_ms: Date.now() + lasts_ms };
    const answer = await this.#ask("POST", "auction/items", offer);
    return (answer.item ?? answer).id;
  }

  bid(id, amount_cents) {
    return this.#ask("POST", `auction/items/${id}/bids`, { amount_cents });
  }

  async items() {
    return (await this.#ask("GET", "auction/items")).items;
  }
}
