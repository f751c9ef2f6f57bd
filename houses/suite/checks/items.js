// Offering, listing, taking back.

import assert from "node:assert/strict";
import { assertItem } from "../peer.js";

const DAY_MS = 24 * 3_600_000;

export const checks = [
  {
    name: "add-list-remove",
    async run(visit) {
      const [member, listener] = [await visit.member(), await visit.peer()];
      const before = await member.call("list");
      const offer = visit.offer({ name: "a table", minimum_cents: 250 });
      const { item } = await member.call("add", offer);
      const { id, version, ...rest } = item;
      for (const [key, value] of Object.entries({ ...offer, owner: member.name, leading: null }))
        assert.deepEqual(rest[key], value, key);
      assert.ok(version > before.version, "the version grows");
      const during = await listener.call("list");
      assert.equal(during.version, version);
      for (const each of during.items) assertItem(each);
      assert.deepEqual(
        during.items.find((each) => each.id === id),
        item,
      );
      const { item: gone } = await member.call("remove", { id });
      assert.deepEqual({ ...gone, version }, item, "as it was, but for the version");
      const after = await listener.call("list");
      assert.equal(after.version, gone.version);
      assert.equal(
        after.items.find((each) => each.id === id),
        undefined,
      );
      assert.equal(after.items.length, before.items.length);
      for (const peer of [member, listener]) {
        await peer.hearsVersion(gone.version);
        const told = peer.heard.filter((change) => change.item.id === id);
        assert.deepEqual(told, [
          { kind: "added", item },
          { kind: "removed", item: gone },
        ]);
      }
    },
  },
  {
    name: "only-ones-own-is-removed",
    async run(visit) {
      const [owner, other] = [await visit.member(), await visit.member()];
      const item = await visit.item(owner);
      await other.refused("forbidden", "remove", { id: item.id });
      const { items } = await other.call("list");
      assert.deepEqual(
        items.find(({ id }) => id === item.id),
        item,
        "it is still there",
      );
      const elsewhere = await visit.again(owner);
      await elsewhere.call("remove", { id: item.id });
      await owner.refused("not-found", "remove", { id: item.id });
      await other.refused("not-found", "remove", { id: item.id });
      await owner.refused("not-found", "remove", { id: 999_999_999 });
    },
  },
  {
    name: "text-is-kept",
    async run(visit) {
      const [member, listener] = [await visit.member(), await visit.peer()];
      const texts = [
        "<script>alert(1)</script><img src=x onerror=alert(2)>",
        "&amp; &lt; \" ' \\ / \\u0041 %41 + {{7*7}} <%= 7*7 %>",
        "Krøyer 🎨 – עברית 日本 e\u0301",
        "line\u2028and paragraph\u2029and more",
        "__proto__",
        "null",
        "'; DROP TABLE items; --",
      ];
      for (const text of texts) {
        const item = await visit.item(member, { name: text, description: text });
        const heard = await listener.hears((change) => change.item.id === item.id, text);
        const { items } = await listener.call("list");
        for (const each of [item, heard.item, items.find(({ id }) => id === item.id)])
          assert.deepEqual([each.name, each.description], [text, text]);
      }
    },
  },
  {
    name: "limits-of-items",
    async run(visit) {
      const member = await visit.member();
      const long = { name: "x".repeat(100), description: "y".repeat(1000) };
      const wide = { name: "🎨".repeat(100), description: "日".repeat(1000) };
      const short = { name: "x", description: "", minimum_cents: 1 };
      const now = Date.now();
      const late = { expires_ms: now + 90 * DAY_MS - 60_000, minimum_cents: 1e12 };
      for (const good of [long, wide, short, late, { expires_ms: now + 3000 }]) {
        const item = await visit.item(member, good);
        for (const [key, value] of Object.entries(good)) assert.deepEqual(item[key], value, key);
      }
      const bad = [
        { name: "" },
        { name: "x".repeat(101) },
        { name: "🎨".repeat(101) },
        { description: "y".repeat(1001) },
        { minimum_cents: 0 },
        { minimum_cents: -1 },
        { minimum_cents: 1e12 + 1 },
        { expires_ms: 0 },
        { expires_ms: -1 },
        { expires_ms: now - 1000 },
        { expires_ms: now + 500 },
        { expires_ms: now + 91 * DAY_MS },
        { expires_ms: 1e15 },
      ];
      for (const what of bad) await member.refused("bad-request", "add", visit.offer(what));
    },
  },
  {
    name: "the-list-is-what-was-told",
    async run(visit) {
      const listener = await visit.peer();
      const start = await listener.call("list");
      const [ada, bob] = [await visit.member(), await visit.member()];
      const items = [];
      for (let n = 0; n < 6; n += 1) items.push(await visit.item(n % 2 ? ada : bob));
      for (const { id } of items) await ada.call("bid", { id, amount_cents: 100 + id });
      await bob.call("remove", { id: items[0].id });
      await ada.call("remove", { id: items[3].id });
      const { version, items: listed } = await bob.call("list");
      await listener.hearsVersion(version);
      const held = new Map(start.items.map((item) => [item.id, item]));
      for (const { kind, item } of listener.heard) {
        if (item.version <= start.version) continue;
        if (kind === "removed") held.delete(item.id);
        else held.set(item.id, item);
      }
      const byId = (a, b) => a.id - b.id;
      assert.deepEqual(listed.sort(byId), [...held.values()].sort(byId));
    },
  },
];
