// What no client sends, and connections that end at the wrong moment.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { frame, openSession, send, sendFrames } from "../raw.js";

const PASSWORD = "correct horse";

/** Texts of a message that is no call, in whatever dialect. */
const TEXTS = [
  "",
  " ",
  "{",
  "[",
  "]",
  "null",
  "0",
  "true",
  '"x"',
  "{}",
  "[]",
  "[null]",
  '["call"]',
  '["call",1]',
  '["call",1,"bid"]',
  '["call",1,"bid",null]',
  '["call",null,"list",{}]',
  '["call",{},"list",{}]',
  '["call",1e400,"list",{}]',
  '["call",2,"__proto__",{}]',
  '["call",3,["list"],{}]',
  '["call",4,"list",{},{}]',
  '["answer",1,{}]',
  '["change",{"kind":"added"}]',
  '{"__proto__":{"account":{"name":"somebody"}}}',
  '["call",5,"list",{"__proto__":{"toString":1}}]',
  "[".repeat(5000),
  "x".repeat(20_000),
  "\u0000\u0001\u001e\u001f",
  "NaN",
];

export const checks = [
  {
    name: "garbage-instead-of-a-request",
    once: true,
    async run(visit) {
      const { port } = visit.server;
      const requests = [
        randomBytes(2000),
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET //[ HTTP/1.1\r\nHost: [\r\n\r\n",
        "GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(100_000)}\r\n\r\n`,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf of it",
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      ];
      for (const bytes of requests) await send(port, bytes);
      await visit.assertWorks();
    },
  },
  {
    name: "garbage-in-posts",
    once: true,
    applies: ({ raw }) => raw?.post,
    async run(visit) {
      const { port } = visit.server;
      const { post, texts = [] } = visit.house.raw;
      for (const type of [
        "text/plain;charset=UTF-8",
        "application/json",
        "application/x-www-form-urlencoded",
      ])
        for (const text of [...TEXTS, ...texts]) {
          const head = `POST ${post} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n`;
          await send(port, `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`, 5);
        }
      await visit.assertWorks();
    },
  },
  {
    name: "broken-frames",
    once: true,
    applies: ({ raw }) => raw?.websockets,
    async run(visit) {
      const { port } = visit.server;
      const { websockets, greeting = [] } = visit.house.raw;
      const greet = greeting.map((text) => frame(text));
      const broken = [
        [frame("x", { isMasked: false })],
        [frame("x", { first: 0xf1 })],
        [frame("x", { first: 0x83 })],
        [frame("x", { first: 0x80 })],
        [frame("x", { first: 0x01 }), frame("y")],
        [frame("x".repeat(200), { first: 0x89 })],
        [frame("x", { first: 0x09 })],
        [frame("x", { first: 0x88 })],
        [frame(Buffer.from([0x00, 0x05]), { first: 0x88 })],
        [frame(Buffer.from([0xff, 0xfe, 0xc0, 0x80]))],
        [frame(Buffer.from([0xff, 0xfe, 0xc0, 0x80]), { first: 0x82 })],
        [frame(randomBytes(500), { first: 0x82 })],
        [frame("x", { length: 1n << 62n })],
        [frame("x", { length: 0xffffffffffffffffn })],
        [frame("half", { length: 1000n })],
        [frame("x".repeat(3_000_000))],
        [randomBytes(1000)],
      ];
      for (const path of websockets) {
        assert.ok(await sendFrames(port, path, greet), `a WebSocket opens at ${path}`);
        for (const frames of broken) await sendFrames(port, path, [...greet, ...frames]);
      }
      await visit.assertWorks();
    },
  },
  {
    name: "garbage-in-messages",
    once: true,
    applies: ({ raw }) => raw?.websockets,
    async run(visit) {
      const { port } = visit.server;
      const { websockets, greeting = [], texts = [] } = visit.house.raw;
      const greet = greeting.map((text) => frame(text));
      const { items } = await visit.trial.witness.call("list");
      const frames = [...TEXTS, ...texts].map((text) => frame(text));
      for (const path of websockets) {
        // Each by itself, since the first may end its connection; then all together.
        for (const each of frames) await sendFrames(port, path, [...greet, each], 5);
        await sendFrames(port, path, [...greet, ...frames]);
      }
      assert.deepEqual(
        (await visit.trial.witness.call("list")).items,
        items,
        "nothing has changed",
      );
      const stranger = await visit.peer();
      await stranger.refused("unauthorized", "own-bids");
      await visit.assertWorks();
    },
  },
  {
    name: "garbage-in-sessions",
    once: true,
    applies: ({ raw }) => raw?.sessions,
    async run(visit) {
      const { port } = visit.server;
      const { sessions, greeting = [], texts = [] } = visit.house.raw;
      for (const session of sessions)
        for (const text of [...TEXTS, ...texts]) {
          const { say, end } = (await openSession(port, session)) ?? {};
          assert.ok(say, `a session opens by ${session.open ?? session.stream}`);
          for (const each of [...greeting, text]) await say(each);
          end();
        }
      await visit.assertWorks();
    },
  },
  {
    name: "cut-in-the-middle-of-a-call",
    async run(visit) {
      const owners = [await visit.member(), await visit.member()];
      const listener = await visit.peer();
      const item = await visit.item(owners[0], { minimum_cents: 1 });
      for (let n = 0; n < 12; n += 1) {
        const proxy = await visit.proxy();
        const peer = await visit.again(owners[n % 4 < 2 ? 0 : 1], proxy.base);
        peer.isCut = true;
        const call =
          n % 2 ? ["add", visit.offer()] : ["bid", { id: item.id, amount_cents: 10 + n }];
        const answer = peer.call(...call, 300).catch(() => {});
        await visit.wait(n / 3);
        proxy.cut();
        await peer.close().catch(() => {});
        await answer;
      }
      await visit.assertWorks();
      // What was done was done as a whole: what is listed is what was told.
      const { version, items } = await listener.call("list");
      await listener.hearsVersion(version);
      const told = new Map();
      for (const change of listener.heard) {
        if (change.kind === "removed") told.delete(change.item.id);
        else told.set(change.item.id, change.item);
      }
      const isTheirs = (each) => owners.some(({ name }) => name === each.owner);
      const byId = (a, b) => a.id - b.id;
      const listed = items.filter(isTheirs).sort(byId);
      for (const { id, owner } of listed)
        await owners.find(({ name }) => name === owner).call("remove", { id });
      assert.deepEqual(listed, [...told.values()].filter(isTheirs).sort(byId));
    },
  },
  {
    name: "cut-while-registering",
    async run(visit) {
      for (let n = 0; n < 8; n += 1) {
        const proxy = await visit.proxy();
        const peer = await visit.peer(proxy.base);
        peer.isCut = true;
        const credentials = { name: visit.freshName("Cut"), password: PASSWORD };
        const answer = peer.call("register", credentials, 300).catch(() => {});
        await visit.wait(n);
        proxy.cut();
        await peer.close().catch(() => {});
        await answer;
        // Either there is the account now or the name is free; it may take until the password is hashed.
        const other = await visit.peer();
        const isTaken = await other.call("register", credentials).then(
          () => false,
          ({ refusal }) => refusal?.error === "name-taken",
        );
        if (isTaken) await other.call("log-in", credentials);
        await other.call("own-bids");
      }
      await visit.assertWorks();
    },
  },
];
