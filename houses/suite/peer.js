// One client of a house, with what it heard.

import assert from "node:assert/strict";
import { patience, until, within } from "./waiting.js";

const KINDS = ["added", "removed", "bid", "ended"];

/** Fails unless it is an item; a house may tell more of it than it must. */
export function assertItem(item) {
  const is = (value, type, what) =>
    assert.equal(typeof value, type, `an item's ${what} is a ${type}`);
  assert.ok(item !== null && typeof item === "object", `an item: ${JSON.stringify(item)}`);
  is(item.id, "number", "id");
  for (const text of ["name", "description", "owner"]) is(item[text], "string", text);
  for (const number of ["minimum_cents", "expires_ms", "version"]) {
    assert.ok(Number.isSafeInteger(item[number]), `an item's ${number} is whole: ${item[number]}`);
  }
  if (item.leading === null) return;
  is(item.leading, "object", "leading bid");
  is(item.leading.bidder, "string", "bidder");
  is(item.leading.amount_cents, "number", "leading amount");
}

export class Peer {
  #connection;
  /** Changes as they came, and when each did, by `performance.now()`. */
  heard = [];
  heardAt = [];
  /** What came and is no change. */
  odd = [];
  isClosed = false;
  /** Since when it hears everything, by `performance.now()`. */
  since = Number.POSITIVE_INFINITY;
  /** Its connection is cut on purpose, so what it hears has holes. */
  isCut = false;
  name;

  /** `trial` is told of each change that the house accepted. */
  static async connect(trial, base = trial.server.base) {
    const peer = new Peer();
    peer.trial = trial;
    const heard = (change) => {
      if (!KINDS.includes(change?.kind) || typeof change.item?.version !== "number") {
        peer.odd.push(change);
        return;
      }
      peer.heard.push(change);
      peer.heardAt.push(performance.now());
    };
    const connecting = trial.house.connect(base, trial.transport, heard);
    // One that comes too late is ended all the same.
    connecting.then(
      (connection) => {
        if (peer.isClosed) connection.close();
      },
      () => {},
    );
    try {
      peer.#connection = await within(patience.ms, connecting, "connecting");
    } catch (error) {
      peer.isClosed = true;
      throw error;
    }
    peer.since = performance.now();
    return peer;
  }

  /** The answer to a call. */
  async call(name, args = {}, within_ms = patience.ms) {
    const begun = performance.now();
    const answer = await within(within_ms, this.#connection.call(name, args), `call ${name}`);
    if (name === "add" || name === "bid" || name === "remove") {
      assertItem(answer.item);
      const kind = { add: "added", bid: "bid", remove: "removed" }[name];
      this.trial.accepted.push({ kind, item: answer.item, begun });
    }
    return answer;
  }

  /** Calls and expects this refusal, or one of these; gives what was said. */
  async refused(codes, name, args = {}) {
    const shown = `${name} ${JSON.stringify(args)?.slice(0, 120)}`;
    let answer;
    try {
      answer = await this.call(name, args);
    } catch (error) {
      const { refusal } = error;
      if (!refusal) throw new Error(`${shown}: ${error.message}`);
      assert.ok(
        [codes].flat().includes(refusal.error),
        `${shown} is refused with ${codes}, not ${refusal.error}`,
      );
      assert.equal(typeof refusal.message, "string", `the refusal of ${shown} has a message`);
      return refusal;
    }
    throw new Error(
      `${shown} was not refused but answered ${JSON.stringify(answer)?.slice(0, 200)}`,
    );
  }

  /** Waits for a change. */
  hears(fits, what) {
    return until(() => this.heard.find(fits), `${what} is heard`);
  }

  /** Waits until it has heard the change of this version. */
  hearsVersion(version) {
    return this.hears(({ item }) => item.version >= version, `the change to version ${version}`);
  }

  /** What is wrong with what it heard: lines, none if all is well. */
  get flaws() {
    const flaws = this.odd.map((odd) => `this is no change: ${JSON.stringify(odd)?.slice(0, 200)}`);
    let version = 0;
    for (const { kind, item } of this.heard) {
      const what = `${kind} of item ${item.id}, version ${item.version},`;
      if (item.version === version) flaws.push(`${what} came twice in a row`);
      if (item.version < version) flaws.push(`${what} came after version ${version}`);
      version = item.version;
      try {
        assertItem(item);
      } catch (error) {
        flaws.push(`${what} has no good item: ${error.message}`);
      }
    }
    return flaws;
  }

  async close() {
    if (this.isClosed) return;
    this.isClosed = true;
    await within(patience.ms, this.#connection.close(), "closing");
  }
}
