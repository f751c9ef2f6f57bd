// Which bids are taken, and what the others are told.

import assert from "node:assert/strict";

export const checks = [
  {
    name: "higher-bids-are-taken",
    async run(visit) {
      const [owner, bidder, listener] = [
        await visit.member(),
        await visit.member(),
        await visit.peer(),
      ];
      const { id } = await visit.item(owner, { minimum_cents: 100 });
      const bids = [
        [bidder, 100],
        [owner, 101],
        [owner, 150],
        [bidder, 1e12],
      ];
      for (const [peer, amount_cents] of bids) {
        const { item } = await peer.call("bid", { id, amount_cents });
        assert.deepEqual(item.leading, { bidder: peer.name, amount_cents });
        await listener.hearsVersion(item.version);
        assert.deepEqual(listener.heard.at(-1), { kind: "bid", item });
      }
    },
  },
  {
    name: "lower-bids-are-refused",
    async run(visit) {
      const [owner, bidder, listener] = [
        await visit.member(),
        await visit.member(),
        await visit.peer(),
      ];
      const { id, version } = await visit.item(owner, { minimum_cents: 100 });
      const first = await bidder.refused("outbid", "bid", { id, amount_cents: 99 });
      assert.deepEqual([first.leading, first.least_cents], [null, 100], "there is no leading bid");
      await bidder.call("bid", { id, amount_cents: 200 });
      for (const peer of [owner, bidder])
        for (const amount_cents of [1, 100, 199, 200]) {
          const { leading, least_cents } = await peer.refused("outbid", "bid", {
            id,
            amount_cents,
          });
          assert.deepEqual(leading, { bidder: bidder.name, amount_cents: 200 });
          assert.equal(least_cents, 201);
        }
      const { item } = await owner.call("bid", { id, amount_cents: 201 });
      await listener.hearsVersion(item.version);
      const told = listener.heard.filter((change) => change.item.version > version);
      assert.equal(told.length, 2, "what is refused is not told");
    },
  },
  {
    name: "equal-bids-at-once",
    async run(visit) {
      const owner = await visit.member();
      const bidders = [];
      for (let n = 0; n < 4; n += 1) bidders.push(await visit.member());
      for (let n = 0; n < 4; n += 1) bidders.push(await visit.again(bidders[n]));
      const { id } = await visit.item(owner, { minimum_cents: 1 });
      for (let amount_cents = 10; amount_cents < 60; amount_cents += 10) {
        const tried = await Promise.allSettled(
          bidders.map((peer) => peer.call("bid", { id, amount_cents })),
        );
        const taken = bidders.filter((_, at) => tried[at].status === "fulfilled");
        assert.equal(
          taken.length,
          1,
          `of ${bidders.length} equal bids, ${taken.length} were taken`,
        );
        for (const { reason } of tried.filter(({ status }) => status === "rejected")) {
          if (!reason.refusal) throw reason;
          const { error, leading, least_cents } = reason.refusal;
          assert.equal(error, "outbid");
          assert.deepEqual(leading, { bidder: taken[0].name, amount_cents });
          assert.equal(least_cents, amount_cents + 1);
        }
      }
    },
  },
  {
    name: "bids-on-what-is-not-there",
    async run(visit) {
      const member = await visit.member();
      const { id } = await visit.item(member);
      await member.call("remove", { id });
      for (const gone of [id, 999_999_999])
        await member.refused("not-found", "bid", { id: gone, amount_cents: 500 });
    },
  },
  {
    name: "own-bids",
    async run(visit) {
      const [owner, ada, bob] = [await visit.member(), await visit.member(), await visit.member()];
      assert.deepEqual((await ada.call("own-bids")).bids, []);
      const ids = [];
      for (let n = 0; n < 4; n += 1) ids.push((await visit.item(owner)).id);
      const [first, second, third, fourth] = ids;
      // Not in the order of ids, and not every one leads.
      await ada.call("bid", { id: third, amount_cents: 100 });
      await ada.call("bid", { id: first, amount_cents: 200 });
      await bob.call("bid", { id: first, amount_cents: 300 });
      await bob.call("bid", { id: second, amount_cents: 100 });
      await ada.call("bid", { id: third, amount_cents: 150 });
      await ada.call("bid", { id: fourth, amount_cents: 1000 });
      await ada.refused("outbid", "bid", { id: first, amount_cents: 250 });
      const elsewhere = await visit.again(ada);
      const bids = [
        { id: first, amount_cents: 200 },
        { id: third, amount_cents: 150 },
        { id: fourth, amount_cents: 1000 },
      ].sort((a, b) => a.id - b.id);
      for (const peer of [ada, elsewhere])
        assert.deepEqual((await peer.call("own-bids")).bids, bids);
      await owner.call("remove", { id: fourth });
      const left = bids.filter(({ id }) => id !== fourth);
      assert.deepEqual((await ada.call("own-bids")).bids, left, "items that are there");
      assert.deepEqual((await owner.call("own-bids")).bids, []);
    },
  },
];
