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
