// One house over one transport: a server, a witness who hears everything, and the checks one after another.

import { isDeepStrictEqual } from "node:util";
import { AUDIT, CHECKS, STARTS, THROWS } from "./checks.js";
import { Peer } from "./peer.js";
import { TcpProxy } from "./proxy.js";
import { HouseServer } from "./server.js";
import { sleep, until, within } from "./waiting.js";

/** A check that takes longer hangs. */
const CHECK_MS = 60_000;
/** For so long a server may be ending whose check has failed. */
const ENDING_MS = 3000;
/** Each registers, which houses may refuse to more at a time (README.md). */
const AT_ONCE = 5;
const PASSWORD = "correct horse";
const HOUR_MS = 3_600_000;

/** What was thrown where nobody catches: by a client library, in an event of its own. */
const thrown = [];
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => thrown.push(`${error?.stack ?? error}`));

export class Trial {
  server;
  /** All changes that were accepted by answers. */
  accepted = [];
  /** Everybody who was connected, with what they heard. */
  peers = [];
  /** Figures that checks come across. */
  notes = {};
  #names = 0;
  #environment;

  constructor(house, transport, environment) {
    this.house = house;
    this.transport = transport;
    this.#environment = environment;
  }

  /** Starts a server, afresh. */
  async start() {
    await this.server?.stop();
    this.accepted = [];
    this.peers = [];
    this.server = await HouseServer.start(this.house, this.#environment);
    this.witness = await Peer.connect(this);
    this.peers.push(this.witness);
  }

  async stop() {
    await Promise.allSettled(this.peers.map((peer) => peer.close()));
    await this.server?.stop();
  }

  note(what, value) {
    this.notes[what] = value;
  }

  /** A name that nobody has. */
  freshName(start = "N") {
    this.#names += 1;
    return `${start}${this.#names}`;
  }

  /** Runs a check: null if it passed, else what is wrong. */
  async check({ name, run }) {
    const visit = new Visit(this);
    let defect = null;
    try {
      await within(CHECK_MS, run(visit), "the check is over");
      await visit.settle();
    } catch (error) {
      defect = error.message || String(error);
    }
    await visit.leave();
    // What is known to end the server does so within seconds: it first tells of all that it had under way.
    if (defect !== null && this.house.admits?.[name]) await until(() => !this.server?.isRunning, "", ENDING_MS).catch(() => {});
    if (this.server && !this.server.isRunning)
      defect = `the server ended. ${this.server.log.slice(-300)} ${defect ?? ""}`;
    return defect;
  }

  /** What is wrong with what anybody heard since the start, as one sees who knows it all; null if nothing is. */
  async audit() {
    const flaws = [];
    const story = this.witness.heard;
    const last = Math.max(0, ...this.accepted.map(({ item }) => item.version));
    if (last > 0) await this.witness.hearsVersion(last).catch((error) => flaws.push(error.message));
    const told = new Map(story.map((change) => [change.item.version, change]));
    for (const { kind, item } of this.accepted) {
      const change = told.get(item.version);
      if (!change)
        flaws.push(
          `${kind} of item ${item.id}, version ${item.version}, was answered and never told`,
        );
      else if (change.kind !== kind || !isDeepStrictEqual(change.item, item))
        flaws.push(`version ${item.version} was answered and told differently`);
    }
    for (const peer of this.peers) {
      if (peer.isCut) continue;
      flaws.push(...peer.flaws);
      if (peer.heard.length === 0) continue;
      const begin = story.findIndex(({ item }) => item.version === peer.heard[0].item.version);
      const part = story.slice(begin, begin + peer.heard.length);
      if (begin < 0 || !isDeepStrictEqual(part, peer.heard))
        flaws.push("somebody heard another story than the witness");
    }
    const shown = flaws.slice(0, 3).join("; ");
    return flaws.length ? `${flaws.length} times: ${shown}` : null;
  }
}

/** What a check works with; all of it is gone when the check is over. */
export class Visit {
  #peers = [];
  #proxies = [];
  #added = [];

  constructor(trial) {
    this.trial = trial;
  }

  get server() {
    return this.trial.server;
  }

  get house() {
    return this.trial.house;
  }

  freshName(start) {
    return this.trial.freshName(start);
  }

  /** Somebody who is connected. */
  async peer(base) {
    const peer = await Peer.connect(this.trial, base);
    this.#peers.push(peer);
    this.trial.peers.push(peer);
    return peer;
  }

  /** Several of them, connected one after another. */
  async crowd(count) {
    const peers = [];
    for (let n = 0; n < count; n += 1) peers.push(await this.peer());
    return peers;
  }

  /** Somebody who is connected and has just registered. */
  async member(base) {
    return this.join(await this.peer(base));
  }

  /** Registers them under a name of their own. */
  async join(peer) {
    peer.name = this.freshName();
    await peer.call("register", { name: peer.name, password: PASSWORD });
    return peer;
  }

  /** A connection more of the same account. */
  async again(member, base) {
    const peer = await this.peer(base);
    await peer.call("log-in", { name: member.name, password: PASSWORD });
    peer.name = member.name;
    return peer;
  }

  /** What somebody might offer. */
  offer(what = {}) {
    const expires_ms = Date.now() + HOUR_MS;
    return {
      name: "a chair",
      description: "with four legs",
      minimum_cents: 100,
      expires_ms,
      ...what,
    };
  }

  /** The new item of a member's, which is removed after the check. */
  async item(owner, what) {
    const { item } = await owner.call("add", this.offer(what));
    this.#added.push([owner, item.id]);
    return item;
  }

  /** Between the clients of `base` and the server. */
  async proxy() {
    const proxy = await TcpProxy.start(this.server.port);
    this.#proxies.push(proxy);
    return proxy;
  }

  /** The house works: somebody new registers, offers, bids, and others hear it. */
  async assertWorks() {
    const [member, listener] = [await this.member(), await this.peer()];
    const item = await this.item(member);
    const { item: after } = await member.call("bid", { id: item.id, amount_cents: 100 });
    await listener.hearsVersion(after.version);
    await this.trial.witness.hearsVersion(after.version);
  }

  /** Those who are there have heard, or will, what was done since they came. */
  async settle() {
    for (const peer of this.#peers) {
      if (peer.isClosed || peer.isCut) continue;
      const done = this.trial.accepted.filter(({ begun }) => begun > peer.since);
      const last = Math.max(0, ...done.map(({ item }) => item.version));
      if (last > 0) await peer.hearsVersion(last);
    }
  }

  /** Time for what should not come. */
  async wait(ms) {
    await sleep(ms);
  }

  until(condition, what, within_ms) {
    return until(condition, what, within_ms);
  }

  /** Ends everything of this check. */
  async leave() {
    for (const [owner, id] of this.#added)
      if (!owner.isClosed && this.server?.isRunning)
        await owner.call("remove", { id }, 2000).catch(() => {});
    for (const proxy of this.#proxies) proxy.close();
    await Promise.allSettled(this.#peers.map((peer) => peer.close()));
  }
}

/** Checks that mostly wait are made at the same time, if they follow one another. */
function groups(checks) {
  const groups = [];
  for (const check of checks) {
    const last = groups.at(-1);
    if (check.waits && last?.[0].waits && last.length < AT_ONCE) last.push(check);
    else groups.push([check]);
  }
  return groups;
}

/** Makes all checks over one transport. The first one of a house has those too that concern no transport. */
export async function tryTransport(
  house,
  transport,
  { isFirst, environment, checks = CHECKS } = {},
) {
  const trial = new Trial(house, transport, environment);
  const found = [];
  const note = (name, defect, ms) => found.push({ name, defect, ms });
  thrown.length = 0;
  try {
    await trial.start();
    note(STARTS, null);
  } catch (error) {
    note(STARTS, error.message);
    await trial.stop();
    return { has_started: false, checks: found, notes: {} };
  }
  const fits = (check) => (isFirst || !check.once) && (!check.applies || check.applies(house));
  for (const group of groups(checks.filter(fits))) {
    try {
      if (!trial.server.isRunning) await trial.start();
      const begun = performance.now();
      const defects = await Promise.all(group.map((check) => trial.check(check)));
      const ms = Math.round(performance.now() - begun);
      for (const [at, defect] of defects.entries()) note(group[at].name, defect, ms);
    } catch (error) {
      for (const { name } of group) note(name, error.message);
    }
  }
  note(AUDIT, await trial.audit());
  await trial.stop();
  note(THROWS, thrown.length ? `${thrown.length} times: ${thrown[0].slice(0, 300)}` : null);
  return { has_started: true, checks: found, notes: trial.notes };
}
