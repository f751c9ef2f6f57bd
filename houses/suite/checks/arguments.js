// Arguments that are none.

import assert from "node:assert/strict";

const PASSWORD = "correct horse";
/** An id may be part of a path, where what is no id is the name of nothing. */
const NO_ID = ["bad-request", "not-found", "unknown-path"];
/** So may the name of a call. */
const NO_CALL = NO_ID;

/** What is of no use as a number, a text or an id. */
const ODD = [null, true, [], {}, [100], { $gt: 0 }, ["x"]];

/** Makes an object whose own members have these names, `__proto__` too, as JSON from elsewhere may. */
const own = (text) => JSON.parse(text);

async function isUnchanged(visit, step) {
  const { version, items } = await visit.trial.witness.call("list");
  await step();
  const after = await visit.trial.witness.call("list");
  assert.deepEqual(after.items, items, "nothing has changed");
  assert.ok(after.version >= version);
  await visit.assertWorks();
}

export const checks = [
  {
    name: "missing-arguments",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      await isUnchanged(visit, async () => {
        for (const call of ["register", "log-in"])
          for (const args of [{}, { name: "somebody" }, { password: PASSWORD }])
            await member.refused("bad-request", call, args);
        for (const key of ["name", "description", "minimum_cents", "expires_ms"]) {
          const { [key]: _, ...rest } = visit.offer();
          await member.refused("bad-request", "add", rest);
        }
        await member.refused("bad-request", "add", {});
        await member.refused("bad-request", "bid", { id: item.id });
        for (const call of ["bid", "remove"]) await member.refused(NO_ID, call, {});
        await member.refused(NO_ID, "bid", { amount_cents: 500 });
      });
    },
  },
  {
    name: "arguments-of-another-type",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      await isUnchanged(visit, async () => {
        for (const odd of [...ODD, 12345678]) {
          await member.refused("bad-request", "register", { name: odd, password: PASSWORD });
          await member.refused("bad-request", "log-in", { name: visit.freshName(), password: odd });
          await member.refused("bad-request", "add", visit.offer({ name: odd }));
          await member.refused("bad-request", "add", visit.offer({ description: odd }));
        }
        for (const odd of [...ODD, "x", -1, 1.5])
          for (const call of ["remove", "bid"]) {
            const args = { id: odd, ...(call === "bid" && { amount_cents: 500 }) };
            await member.refused(NO_ID, call, args);
          }
        for (const odd of ODD) {
          await member.refused("bad-request", "add", visit.offer({ expires_ms: odd }));
          await member.refused("bad-request", "bid", { id: item.id, amount_cents: odd });
        }
      });
    },
  },
  {
    name: "amounts-that-are-none",
    async run(visit) {
      const [member, other] = [await visit.member(), await visit.member()];
      const item = await visit.item(member);
      const numbers = [
        0,
        -1,
        -500,
        500.5,
        1e-9,
        1e12 + 1,
        2 ** 53,
        2 ** 63,
        2 ** 64,
        1e300,
        -1e300,
      ];
      const texts = ["500", "", "NaN", "Infinity", "-Infinity", "1e3", "0x1f4", "500 ", "五百"];
      await isUnchanged(visit, async () => {
        for (const amount of [...numbers, ...texts]) {
          await member.refused("bad-request", "bid", { id: item.id, amount_cents: amount });
          await other.refused("bad-request", "add", visit.offer({ minimum_cents: amount }));
        }
        for (const expires_ms of [
          ...texts,
          String(Date.now() + 60_000),
          Date.now() + 60_000.5,
          1e300,
        ])
          await other.refused("bad-request", "add", visit.offer({ expires_ms }));
      });
    },
  },
  {
    name: "more-arguments-than-named",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      await isUnchanged(visit, async () => {
        for (const more of [
          { more: 1 },
          { id: 7 },
          { owner: "somebody" },
          own('{"__proto__":{"id":1}}'),
        ]) {
          const with_ = (args) =>
            Object.defineProperties({ ...args }, Object.getOwnPropertyDescriptors(more));
          await member.refused(
            "bad-request",
            "register",
            with_({ name: visit.freshName(), password: PASSWORD }),
          );
          await member.refused(
            "bad-request",
            "log-in",
            with_({ name: member.name, password: PASSWORD }),
          );
          await member.refused("bad-request", "add", with_(visit.offer()));
          if (!Object.hasOwn(more, "id"))
            await member.refused("bad-request", "bid", with_({ id: item.id, amount_cents: 500 }));
        }
      });
    },
  },
  {
    // Apart from the others: where these calls are requests without a body, there is nowhere to put more.
    name: "more-arguments-than-an-id",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      await isUnchanged(visit, async () => {
        await member.refused("bad-request", "remove", { id: item.id, more: 1 });
        for (const call of ["list", "own-bids"])
          await member.refused("bad-request", call, { more: 1 });
      });
    },
  },
  {
    name: "arguments-that-are-no-object",
    async run(visit) {
      const member = await visit.member();
      await isUnchanged(visit, async () => {
        for (const args of [null, [], [1], "x", 7, true, "{}"]) {
          for (const call of ["register", "log-in", "add"])
            await member.refused("bad-request", call, args);
          for (const call of ["bid", "remove"]) await member.refused(NO_ID, call, args);
        }
      });
    },
  },
  {
    name: "long-arguments",
    async run(visit) {
      const member = await visit.member();
      const item = await visit.item(member);
      const long = "x".repeat(16_000);
      const deep = own(`${"[".repeat(500)}${"]".repeat(500)}`);
      const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`m${n}`, n]));
      await isUnchanged(visit, async () => {
        for (const call of ["register", "log-in"]) {
          await member.refused("bad-request", call, { name: long, password: PASSWORD });
          await member.refused("bad-request", call, { name: visit.freshName(), password: long });
          await member.refused("bad-request", call, many);
        }
        for (const odd of [long, deep, many]) {
          await member.refused("bad-request", "add", visit.offer({ name: odd }));
          await member.refused("bad-request", "add", visit.offer({ description: odd }));
          await member.refused("bad-request", "bid", { id: item.id, amount_cents: odd });
        }
      });
    },
  },
  {
    // Houses may refuse it otherwise, or end the connection. They go on.
    name: "arguments-without-measure",
    async run(visit) {
      const flooder = await visit.member();
      flooder.isCut = true;
      await isUnchanged(visit, async () => {
        const endless = "x".repeat(3_000_000);
        const call = flooder.call("add", visit.offer({ description: endless }), 5000);
        const answer = await call.catch((error) => error);
        assert.ok(answer instanceof Error, "it is not taken");
      });
    },
  },
  {
    name: "calls-that-there-are-not",
    async run(visit) {
      const member = await visit.member();
      const names = [
        "buy",
        "Bid",
        "LIST",
        "list ",
        "__proto__",
        "constructor",
        "toString",
        "x".repeat(500),
      ];
      await isUnchanged(visit, async () => {
        for (const name of names) await member.refused(NO_CALL, name, { id: 1, amount_cents: 1 });
      });
    },
  },
];
