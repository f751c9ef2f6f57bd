// What only a WebSocket can do, with npm `ws`.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { Server, until } from "./harness.js";
import { Socket } from "./socket.js";

/** The server's default limit of a message, in bytes. */
const MAX_MESSAGE_BYTES = 65_536;

let server;
before(async (t) => {
  server = await Server.start(t);
});

test("a ping frame is answered by a pong frame with its payload", async (t) => {
  const socket = await Socket.open(t, server, "channel=a");
  const pongs = [];
  socket.ws.on("pong", (payload) => pongs.push(String(payload)));
  const payloads = ["", "x".repeat(125)];
  for (const payload of payloads) socket.ws.ping(payload);
  await until(() => pongs.length === payloads.length, "the pongs");
  assert.deepEqual(pongs, payloads);
});

test("fragments are joined, around control frames and inside of a character", async (t) => {
  const socket = await Socket.open(t, server, "channel=a");
  const text = Buffer.from('["echo","Gr\u00fc\u00dfe, \u4e16\u754c"]');
  for (let at = 0; at < text.length; at += 1) {
    const isLast = at === text.length - 1;
    socket.ws.send(text.subarray(at, at + 1), { binary: false, fin: isLast });
    if (at % 5 === 0) socket.ws.ping();
  }
  await socket.frame("echo", "Gr\u00fc\u00dfe, \u4e16\u754c");
});

test("every form of length is read and written, up to the limit", async (t) => {
  const socket = await Socket.open(t, server, "channel=large");
  await socket.frame("cursor");
  const overhead = '["echo",""]'.length;
  for (const size of [125, 126, 127, 65_535, MAX_MESSAGE_BYTES]) {
    socket.send("echo", "x".repeat(size - overhead));
    await until(() => socket.texts.some((text) => text.length === size), `an echo of ${size}`);
  }
  const data = "y".repeat(60_000);
  socket.send("pub", "large", data);
  await socket.frame("msg", "large");
  assert.deepEqual(socket.data, [data]);
});

test("permessage-deflate may be offered and is not accepted", async (t) => {
  const options = { perMessageDeflate: { clientMaxWindowBits: 10 } };
  const socket = await Socket.open(t, server, "channel=a", options);
  assert.equal(socket.ws.extensions, "");
  socket.send("echo", "x".repeat(5000));
  await socket.frame("echo", "x".repeat(5000));
});

test("subscribes and unsubscribes", async (t) => {
  const socket = await Socket.open(t, server, "channel=s1");
  await socket.frame("cursor");
  const pass = async (end) => {
    await server.publish("s1", JSON.stringify(end));
    await until(() => socket.data.at(-1) === end, "the last message");
  };
  await server.publish("s2", '"too early"');
  socket.frames.length = 0;
  socket.send("sub", "s2");
  await socket.frame("cursor");
  socket.send("sub", "s2");
  await until(() => socket.frames.length === 2, "the second cursor");
  await server.publish("s2", '"in time"');
  await pass("first end");
  socket.send("unsub", "s2");
  socket.send("ping", 1);
  await socket.frame("pong", 1);
  await server.publish("s2", '"too late"');
  await pass("second end");
  assert.deepEqual(socket.data, ["in time", "first end", "second end"]);
});

test("publishes, and hears itself like everybody else", async (t) => {
  const both = [];
  for (const _ of [1, 2]) both.push(await Socket.open(t, server, "channel=room"));
  for (const socket of both) await socket.frame("cursor");
  for (const n of [1, 2, 3]) both[0].send("pub", "room", { n });
  for (const socket of both) {
    await until(() => socket.data.length === 3, "three messages");
    assert.deepEqual(socket.data, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  }
});

test("mode=poll answers each poll at once and never pushes", async (t) => {
  const socket = await Socket.open(t, server, "channel=polled&mode=poll");
  const poll = async (cursor) => {
    const before = socket.texts.length;
    socket.send("poll", cursor);
    await until(() => socket.texts.length > before, "a reply");
    return JSON.parse(socket.texts.at(-1));
  };
  const [[name, start]] = await poll("");
  assert.equal(name, "cursor");
  for (const n of [1, 2]) await server.publish("polled", String(n));
  socket.send("ping", 5);
  await socket.frame("pong", 5);
  assert.deepEqual(socket.data, [], "nothing is pushed");
  const reply = await poll(start);
  assert.deepEqual(
    reply.map((frame) => frame[0]),
    ["msg", "msg", "cursor"],
  );
  assert.deepEqual(
    reply.slice(0, 2).map((frame) => frame[3]),
    [1, 2],
  );
  assert.deepEqual(await poll(reply.at(-1)[1]), [reply.at(-1)]);
});

test("closes as it is asked to", async (t) => {
  for (const [code, reason] of [
    [1000, "done"],
    [4321, ""],
  ]) {
    const socket = await Socket.open(t, server, "channel=a");
    socket.ws.close(code, reason);
    await until(() => socket.closed, "the close");
    // RFC 6455, section 5.5.1: the answer typically, but not necessarily, echoes the code.
    assert.ok([code, 1000].includes(socket.closed.code), `closed with ${socket.closed.code}`);
  }
});
