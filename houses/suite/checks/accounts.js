// Registering, logging in, and what takes a log-in.

import assert from "node:assert/strict";

const PASSWORD = "correct horse";

const swapCapitals = (name) =>
  name.replace(/[a-z]/gi, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()));

export const checks = [
  {
    name: "register-and-log-in",
    async run(visit) {
      const name = visit.freshName("Ada");
      const [one, other] = await visit.crowd(2);
      assert.equal((await one.call("register", { name, password: PASSWORD })).name, name);
      assert.equal((await other.call("log-in", { name, password: PASSWORD })).name, name);
      const capitals = { name: swapCapitals(name), password: PASSWORD };
      assert.equal((await other.call("log-in", capitals)).name, name, "as it was registered");
      for (const peer of [one, other]) assert.equal((await visit.item(peer)).owner, name);
    },
  },
  {
    name: "names-are-unique",
    async run(visit) {
      const member = await visit.member();
      const other = await visit.peer();
      for (const name of [member.name, swapCapitals(member.name)])
        await other.refused("name-taken", "register", { name, password: "another horse" });
      // The refusal changed neither the password nor whose the connection is.
      await other.refused("unauthorized", "log-in", {
        name: member.name,
        password: "another horse",
      });
      await other.refused("unauthorized", "own-bids");
    },
  },
  {
    name: "equal-names-at-once",
    async run(visit) {
      const name = visit.freshName("Eve");
      const peers = await visit.crowd(4);
      const register = (peer, at) =>
        peer.call("register", {
          name: at % 2 ? swapCapitals(name) : name,
          password: `${PASSWORD} ${at}`,
        });
      const tried = await Promise.allSettled(peers.map(register));
      const codes = tried
        .map(({ reason }) => reason?.refusal?.error ?? reason?.message ?? "taken")
        .sort();
      assert.deepEqual(codes, ["name-taken", "name-taken", "name-taken", "taken"]);
    },
  },
  {
    name: "wrong-password-and-unknown-name-alike",
    async run(visit) {
      const member = await visit.member();
      const stranger = await visit.peer();
      const wrong = { name: member.name, password: "not the horse" };
      const unknown = { name: visit.freshName(), password: "not the horse" };
      const said = [];
      for (const credentials of [wrong, unknown])
        said.push(await stranger.refused("unauthorized", "log-in", credentials));
      assert.deepEqual(said[0], said[1], "the two refusals are the same");
    },
  },
  {
    name: "accounts-are-not-told",
    async run(visit) {
      const listener = await visit.peer();
      const { version } = await listener.call("list");
      const member = await visit.member();
      await visit.again(member);
      const item = await visit.item(member);
      await listener.hearsVersion(item.version);
      const heard = listener.heard.filter((change) => change.item.version > version);
      assert.deepEqual(heard, [{ kind: "added", item }]);
      assert.deepEqual(listener.odd, []);
    },
  },
  {
    name: "names-that-can-be-had",
    async run(visit) {
      const peer = await visit.peer();
      const fresh = visit.freshName("x");
      const good = [`${fresh}-_`, `0${fresh}`, fresh.padEnd(24, "z"), fresh];
      for (const name of good)
        assert.equal((await peer.call("register", { name, password: PASSWORD })).name, name);
      const bad = [
        "",
        "a",
        "a".repeat(25),
        "-ab",
        "_ab",
        "a b",
        " ab",
        "ab ",
        "ab\n",
        "\nab",
        "é1",
        "аda",
      ];
      bad.push("ab\0", "a'b", "<b>", "../ab", "ab%", "a\u200bb", "ａｂ", "ab\u0301");
      for (const name of bad)
        for (const call of ["register", "log-in"])
          await peer.refused("bad-request", call, { name, password: PASSWORD });
    },
  },
  {
    name: "names-that-every-object-has",
    async run(visit) {
      const peer = await visit.peer();
      for (const name of ["constructor", "toString", "hasOwnProperty", "valueOf"]) {
        await peer.refused("unauthorized", "log-in", { name, password: PASSWORD });
        assert.equal((await peer.call("register", { name, password: PASSWORD })).name, name);
        await peer.refused("name-taken", "register", { name, password: PASSWORD });
        assert.equal((await peer.call("log-in", { name, password: PASSWORD })).name, name);
      }
      for (const call of ["register", "log-in"])
        await peer.refused("bad-request", call, { name: "__proto__", password: PASSWORD });
      await visit.assertWorks();
    },
  },
  {
    name: "passwords",
    async run(visit) {
      const peer = await visit.peer();
      for (const password of ["", "1234567", "🔑".repeat(7), "a".repeat(129), "🔑".repeat(129)])
        for (const call of ["register", "log-in"])
          await peer.refused("bad-request", call, { name: visit.freshName(), password });
      for (const password of ["12345678", "🔑".repeat(8), "🔑".repeat(128), " <b>'\"\\ %00"]) {
        const name = visit.freshName();
        await peer.call("register", { name, password });
        await peer.call("log-in", { name, password });
        const similar = `${[...password].slice(0, -1).join("")}?`;
        await peer.refused("unauthorized", "log-in", { name, password: similar });
      }
    },
  },
  {
    name: "the-last-log-in-counts",
    async run(visit) {
      const [ada, bob] = [await visit.member(), await visit.member()];
      const both = await visit.again(ada);
      assert.equal((await visit.item(both)).owner, ada.name);
      await both.call("log-in", { name: bob.name, password: PASSWORD });
      assert.equal((await visit.item(both)).owner, bob.name);
      await both.refused("unauthorized", "log-in", { name: ada.name, password: "not the horse" });
      assert.equal(
        (await visit.item(both)).owner,
        bob.name,
        "a log-in that failed changes nothing",
      );
      assert.equal((await visit.item(ada)).owner, ada.name, "nor does another's connection");
    },
  },
  {
    name: "accounts-outlive-connections",
    async run(visit) {
      const member = await visit.member();
      const keeper = await visit.member();
      const item = await visit.item(keeper);
      await member.call("bid", { id: item.id, amount_cents: 300 });
      await member.close();
      const back = await visit.again(member);
      const { bids } = await back.call("own-bids");
      assert.deepEqual(bids, [{ id: item.id, amount_cents: 300 }]);
    },
  },
  {
    name: "nothing-without-log-in",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      const stranger = await visit.peer();
      await stranger.refused("unauthorized", "add", visit.offer());
      await stranger.refused("unauthorized", "bid", { id: item.id, amount_cents: 500 });
      await stranger.refused("unauthorized", "remove", { id: item.id });
      await stranger.refused("unauthorized", "own-bids");
      const { items } = await stranger.call("list");
      assert.deepEqual(
        items.find(({ id }) => id === item.id),
        item,
        "everybody may look, and nothing has changed",
      );
    },
  },
];
