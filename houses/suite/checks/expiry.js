// The end of an auction.

import assert from "node:assert/strict";

const DAY_MS = 24 * 3_600_000;
/** The soonest end that is certain to be allowed, however long the call takes. */
const soon = () => Date.now() + 1800;
/** It comes within a second; the rest is what a busy machine is granted. */
const ENDED_MS = 5000;

const ended = (id) => (change) => change.kind === "ended" && change.item.id === id;

export const checks = [
  {
    name: "an-auction-ends",
    waits: true,
    async run(visit) {
      const [owner, bidder, listener] = [
        await visit.member(),
        await visit.member(),
        await visit.peer(),
      ];
      const item = await visit.item(owner, { expires_ms: soon() });
      const { item: led } = await bidder.call("bid", { id: item.id, amount_cents: 700 });
      await visit.until(() => Date.now() > item.expires_ms, "the end comes");
      // By the clock, whether it was told or not.
      await bidder.refused("expired", "bid", { id: item.id, amount_cents: 800 });
      for (const peer of [listener, owner]) {
        const within_ms = ENDED_MS;
        await visit.until(() => peer.heard.find(ended(item.id)), "ended is told", within_ms);
      }
      const { item: after } = listener.heard.find(ended(item.id));
      assert.ok(after.version > led.version, "it is a change");
      const { version, ended: _, ...rest } = after;
      const { version: __, ended: ___, ...before } = led;
      assert.deepEqual(rest, before, "nothing else has changed");
      await owner.refused("expired", "bid", { id: item.id, amount_cents: 900 });
      const list = await listener.call("list");
      assert.deepEqual(
        list.items.find(({ id }) => id === item.id),
        after,
        "it stays",
      );
      assert.deepEqual((await bidder.call("own-bids")).bids, [{ id: item.id, amount_cents: 700 }]);
      await bidder.refused("forbidden", "remove", { id: item.id });
      await owner.call("remove", { id: item.id });
      await bidder.refused("not-found", "bid", { id: item.id, amount_cents: 900 });
    },
  },
  {
    name: "not-before-its-end",
    waits: true,
    async run(visit) {
      const [owner, listener] = [await visit.member(), await visit.peer()];
      const item = await visit.item(owner, { expires_ms: soon() });
      let toldAt;
      await visit.until(
        () => {
          if (listener.heard.some(ended(item.id))) toldAt ??= Date.now();
          return toldAt;
        },
        "ended is told",
        1800 + ENDED_MS,
      );
      assert.ok(toldAt >= item.expires_ms, `told ${item.expires_ms - toldAt} ms too early`);
      visit.trial.note("ended_after_ms", toldAt - item.expires_ms);
    },
  },
  {
    name: "no-bid-after-the-end",
    waits: true,
    async run(visit) {
      const [owner, listener] = [await visit.member(), await visit.peer()];
      const bidders = [await visit.member(), await visit.member()];
      const { id, expires_ms } = await visit.item(owner, { expires_ms: soon() });
      await visit.until(() => Date.now() > expires_ms - 300, "the end is near");
      let amount_cents = 100;
      const taken = [];
      // As many as fit into the last moments, and on over the end.
      const bid = async (peer) => {
        for (let n = 0; n < 60; n += 1) {
          amount_cents += 1;
          try {
            const { item } = await peer.call("bid", { id, amount_cents });
            taken.push(item.version);
          } catch (error) {
            if (error.refusal?.error === "expired") return;
            if (error.refusal?.error !== "outbid") throw error;
          }
          await visit.wait(10);
        }
        throw new Error("bids were taken long after the end");
      };
      await Promise.all(bidders.map(bid));
      await visit.until(() => listener.heard.find(ended(id)), "ended is told", ENDED_MS);
      const end = listener.heard.findIndex(ended(id));
      const versions = new Set(listener.heard.slice(0, end).map(({ item }) => item.version));
      for (const version of taken)
        assert.ok(versions.has(version), "a bid that was taken is told before the end");
      const later = listener.heard.slice(end + 1).filter((change) => change.item.id === id);
      assert.deepEqual(later, [], "nothing of it is told after the end");
    },
  },
  {
    name: "several-end-at-once",
    waits: true,
    async run(visit) {
      const [owner, listener] = [await visit.member(), await visit.peer()];
      const expires_ms = soon() + 1000;
      const ids = [];
      for (let n = 0; n < 10; n += 1) ids.push((await visit.item(owner, { expires_ms })).id);
      const told = () =>
        listener.heard.filter(({ kind }) => kind === "ended").map(({ item }) => item.id);
      await visit.until(
        () => ids.every((id) => told().includes(id)),
        "each end is told",
        2800 + ENDED_MS,
      );
      const each = told().filter((id) => ids.includes(id));
      assert.equal(each.length, ids.length, "each once");
    },
  },
  {
    name: "what-is-removed-does-not-end",
    waits: true,
    async run(visit) {
      const [owner, listener] = [await visit.member(), await visit.peer()];
      const { id, expires_ms } = await visit.item(owner, { expires_ms: soon() });
      // It ends later, so when it has, the other's end would have been told.
      const later = await visit.item(owner, { expires_ms: expires_ms + 1200 });
      await owner.call("remove", { id });
      await visit.until(
        () => listener.heard.find(ended(later.id)),
        "the other's end is told",
        3000 + ENDED_MS,
      );
      assert.equal(listener.heard.find(ended(id)), undefined);
    },
  },
  {
    name: "far-ends-do-not-come-at-once",
    waits: true,
    async run(visit) {
      const [owner, bidder, listener] = [
        await visit.member(),
        await visit.member(),
        await visit.peer(),
      ];
      // Timers of many platforms hold 31 bits of milliseconds, a little less than 25 days.
      const items = [];
      for (const days of [24, 25, 49.8, 89])
        items.push(await visit.item(owner, { expires_ms: Date.now() + Math.round(days * DAY_MS) }));
      await visit.wait(1500);
      for (const { id } of items) {
        const { item } = await bidder.call("bid", { id, amount_cents: 100 });
        await listener.hearsVersion(item.version);
        assert.equal(listener.heard.find(ended(id)), undefined, "its end is far");
      }
    },
  },
];
