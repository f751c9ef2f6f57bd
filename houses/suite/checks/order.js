// Everybody hears everything, once and in order.

import assert from "node:assert/strict";

/** Bids and some offers, by several at once; below what houses may refuse of one account (README.md). */
async function haggle(visit, bidders, rounds) {
  const items = [];
  for (const bidder of bidders.slice(0, 3))
    items.push(await visit.item(bidder, { minimum_cents: 1 }));
  let amount_cents = 0;
  let taken = 0;
  const bid = async (bidder, at) => {
    for (let n = 0; n < rounds; n += 1) {
      const { id } = items[(n + at) % items.length];
      amount_cents += 1;
      try {
        await bidder.call("bid", { id, amount_cents });
        taken += 1;
      } catch (error) {
        // Whoever was overtaken on the way.
        if (error.refusal?.error !== "outbid") throw error;
      }
      if (n % 20 === 19) {
        const { item } = await bidder.call("add", visit.offer());
        await bidder.call("remove", { id: item.id });
      }
    }
  };
  await Promise.all(bidders.map(bid));
  assert.ok(taken > bidders.length, `${taken} bids were taken`);
}

export const checks = [
  {
    name: "every-change-once-in-order",
    async run(visit) {
      const peers = await visit.crowd(20);
      const bidders = peers.slice(0, 6);
      for (const bidder of bidders) await visit.join(bidder);
      const { version } = await peers[0].call("list");
      const before = visit.trial.accepted.length;
      await haggle(visit, bidders, 60);
      const changes = visit.trial.accepted
        .slice(before)
        .map(({ kind, item }) => ({ kind, item }))
        .sort((a, b) => a.item.version - b.item.version);
      const last = changes.at(-1).item.version;
      for (const peer of peers) await peer.hearsVersion(last);
      for (const peer of peers) {
        const heard = peer.heard.filter(
          ({ item }) => item.version > version && item.version <= last,
        );
        // An auction of another check may end meanwhile, which nobody is answered.
        const answered = heard.filter(({ kind }) => kind !== "ended");
        assert.equal(answered.length, changes.length, "as many changes as were answered");
        assert.deepEqual(answered, changes, "these, in the order of versions");
      }
    },
  },
  {
    name: "the-list-joins-the-changes",
    async run(visit) {
      const bidders = [];
      for (let n = 0; n < 3; n += 1) bidders.push(await visit.member());
      let isOver = false;
      const haggling = haggle(visit, bidders, 40).finally(() => {
        isOver = true;
      });
      const newcomers = [];
      try {
        while (!isOver && newcomers.length < 10) {
          const peer = await visit.peer();
          newcomers.push([peer, await peer.call("list")]);
        }
      } finally {
        await haggling;
      }
      const { version, items } = await bidders[0].call("list");
      const byId = (a, b) => a.id - b.id;
      for (const [peer, list] of newcomers) {
        if (list.version < version) await peer.hearsVersion(version);
        // A later bid hides one that was lost, so the versions are compared, too; the ends of others' auctions nobody is
        // answered.
        const versions = (changes) =>
          changes
            .filter(({ kind }) => kind !== "ended")
            .map(({ item }) => item.version)
            .filter((one) => one > list.version && one <= version)
            .sort((a, b) => a - b);
        assert.deepEqual(versions(peer.heard), versions(visit.trial.accepted));
        const held = new Map(list.items.map((item) => [item.id, item]));
        for (const { kind, item } of peer.heard) {
          if (item.version <= list.version) continue;
          if (kind === "removed") held.delete(item.id);
          else held.set(item.id, item);
        }
        assert.deepEqual([...held.values()].sort(byId), items.sort(byId));
      }
    },
  },
  {
    name: "answers-go-to-whoever-asked",
    async run(visit) {
      const member = await visit.member();
      const peers = await visit.crowd(5);
      const item = await visit.item(member);
      // Many calls on one connection before the first is answered, some of them refused.
      const calls = [];
      for (const peer of [member, ...peers])
        for (let n = 0; n < 8; n += 1) {
          calls.push(
            peer
              .call("list")
              .then(({ items }) => assert.ok(items.some(({ id }) => id === item.id))),
          );
          calls.push(
            peer === member
              ? peer.refused("outbid", "bid", { id: item.id, amount_cents: 1 + n })
              : peer.refused("unauthorized", "own-bids"),
          );
        }
      await Promise.all(calls);
    },
  },
];
