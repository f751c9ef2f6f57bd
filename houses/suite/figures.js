// What is measured and not judged: how long calls take, and what becomes of a client whose connection is cut.

import { Trial, Visit } from "./trial.js";
import { sleep } from "./waiting.js";

const LISTENERS = 20;
const CALLS = 200;
/** Passwords are hashed slowly on purpose. */
const LOG_INS = 30;
/** Polling hears changes seldom; then there are fewer calls than that. */
const EACH_MS = 4000;
/** Houses may refuse more than this of one account (README.md). */
const OF_ONE = 25;

const CUT_CLIENTS = 5;
const CUT_MS = 3000;
const MISSED = 10;
/** Who is not back by then does not come back. */
const BACK_MS = 15_000;
const MARK_MS = 200;

/** A value that this share of all does not exceed: the nearest rank. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

const round = (ms) => Math.round(ms * 100) / 100;

function summary(values) {
  if (values.length === 0) return null;
  return {
    calls: values.length,
    median_ms: round(quantile(values, 0.5)),
    p99_ms: round(quantile(values, 0.99)),
  };
}

/** Calls one after another: until the answer, and for a change until the last of all listeners has heard it. */
async function latencies(visit, failures) {
  const listeners = await visit.crowd(LISTENERS);
  const members = listeners.slice(0, CALLS / OF_ONE);
  for (const member of members) await visit.join(member);
  const found = {};
  const series = async (name, count, step) => {
    const [answered, heard] = [[], []];
    const end = performance.now() + EACH_MS;
    try {
      for (let n = 0; n < count && performance.now() < end; n += 1) {
        const begun = performance.now();
        const item = await step(n, () => answered.push(performance.now() - begun));
        if (!item) continue;
        for (const peer of listeners) await peer.hearsVersion(item.version);
        const times = listeners.map((peer) => {
          const at = peer.heard.findIndex((change) => change.item.version === item.version);
          return peer.heardAt[at] - begun;
        });
        heard.push(Math.max(...times));
      }
    } catch (error) {
      failures.push(`latency of ${name}: ${error.message}`);
    }
    found[name] = { answered: summary(answered), heard: summary(heard) };
    return answered.length;
  };
  const ask = (name, args) => async (n, done) => {
    await members[n % members.length].call(name, args);
    done();
  };
  const stranger = await visit.peer();
  const credentials = { name: visit.freshName("Log"), password: "correct horse" };
  await series("register", LOG_INS, async (n, done) => {
    const name = n ? visit.freshName("Reg") : credentials.name;
    await stranger.call("register", { ...credentials, name });
    done();
  });
  await series("log-in", LOG_INS, async (_, done) => {
    await stranger.call("log-in", credentials);
    done();
  });
  const items = [];
  const added = await series("add", CALLS, async (n, done) => {
    const owner = members[n % members.length];
    const { item } = await owner.call("add", visit.offer());
    done();
    items.push([owner, item.id]);
    return item;
  });
  await series("bid", CALLS, async (n, done) => {
    const bidder = members[n % members.length];
    const { item } = await bidder.call("bid", { id: items[n % added][1], amount_cents: 100 + n });
    done();
    return item;
  });
  await series("list", CALLS, ask("list"));
  await series("own-bids", CALLS, ask("own-bids"));
  await series("remove", added, async (_, done) => {
    const [owner, id] = items.shift();
    const { item } = await owner.call("remove", { id });
    done();
    return item;
  });
  return found;
}

/** Cuts some clients off, makes changes meanwhile, and waits whether they come back by themselves. */
async function cutOff(visit) {
  const proxy = await visit.proxy();
  // Two: what one account may change in a short time has a limit.
  const sellers = [await visit.member(), await visit.member()];
  const { id } = await visit.item(sellers[0], { minimum_cents: 1 });
  const clients = [];
  for (let n = 0; n < CUT_CLIENTS; n += 1) clients.push(await visit.member(proxy.base));
  let amount_cents = 0;
  const mark = async () => {
    amount_cents += 1;
    const { item } = await sellers[amount_cents % 2].call("bid", { id, amount_cents });
    return item.version;
  };
  const first = await mark();
  for (const client of clients) await client.hearsVersion(first);
  for (const client of clients) client.isCut = true;
  proxy.cut();
  const begun = performance.now();
  const missed = [];
  for (let n = 0; n < MISSED; n += 1) {
    await sleep(CUT_MS / (MISSED + 1));
    missed.push(await mark());
  }
  await sleep(Math.max(0, CUT_MS - (performance.now() - begun)));
  proxy.restore();
  const restored = performance.now();
  const last = missed.at(-1);
  // Back is whoever hears what was told after the connection was possible again.
  const backAt = (client) =>
    client.heardAt[client.heard.findIndex(({ item }) => item.version > last)];
  while (performance.now() < restored + BACK_MS && clients.some((client) => !backAt(client))) {
    await mark();
    await sleep(MARK_MS);
  }
  const back = clients.filter(backAt);
  const heard = (client, version) =>
    client.heard.filter(({ item }) => item.version === version).length;
  let loggedIn = 0;
  for (const client of back)
    await client.call("own-bids", {}, 3000).then(
      () => {
        loggedIn += 1;
      },
      () => {},
    );
  const came = clients.flatMap((client) => missed.filter((version) => heard(client, version)));
  return {
    clients: clients.length,
    back: back.length,
    back_after_ms: back.length
      ? Math.round(
          quantile(
            back.map((each) => backAt(each) - restored),
            0.5,
          ),
        )
      : null,
    logged_in: loggedIn,
    missed: clients.length * missed.length,
    came: came.length,
  };
}

/** All figures of one house over one transport, each with a server of its own; what fails is told and left out. */
export async function measure(house, transport, environment) {
  const figures = { latencies: null, cut: null, failures: [] };
  for (const [name, step] of [
    ["latencies", latencies],
    ["cut", cutOff],
  ]) {
    const trial = new Trial(house, transport, environment);
    try {
      await trial.start();
      const visit = new Visit(trial);
      try {
        figures[name] = await step(visit, figures.failures);
      } finally {
        await visit.leave();
      }
    } catch (error) {
      figures.failures.push(`${name}: ${error.message}`);
    }
    await trial.stop();
  }
  return figures;
}
