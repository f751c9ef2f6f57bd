// SIGTERM: everybody is told goodbye in the way of their transport, and the process ends with 0.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Server, until } from "../foreign/harness.js";
import { Socket } from "../foreign/socket.js";
import { Peer } from "./peer.js";

const get = (target) => `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`;

test("a server that is told to stop lets everybody go properly", async (t) => {
  const server = await Server.start(t);
  const socket = await Socket.open(t, server, "channel=a");
  const [, cursor] = await socket.frame("cursor");
  const streams = [];
  for (const target of ["/sse?channel=a", "/stream?channel=a", "/stream?channel=a&format=script"]) {
    const peer = await Peer.connect(t, server);
    peer.send(get(target));
    streams.push(peer);
  }
  await server.publish("a", '"last words"');
  for (const peer of streams) {
    await until(() => peer.text.includes("last words"), "the stream has its message");
  }
  const idle = await Peer.exchange(t, server, get("/healthz"));
  const poll = await Peer.connect(t, server);
  poll.send(get(`/poll?channel=quiet&after=${cursor}&wait=25`));
  const stats = async () => JSON.parse((await server.request("GET", "/stats")).text);
  await until(async () => (await stats()).held_polls === 1, "the poll is held");

  server.signal("SIGTERM");
  await until(() => socket.closed, "the WebSocket is closed");
  assert.equal(socket.closed.code, 1001);
  for (const peer of streams) {
    await peer.closed("the stream ends");
    assert.ok(peer.text.endsWith("\r\n0\r\n\r\n"), `the last chunk: ${peer.text.slice(-80)}`);
  }
  await poll.closed("the held poll ends");
  assert.equal(poll.responses[0]?.status, 200, poll.text);
  assert.equal(JSON.parse(poll.responses[0].text).at(-1)[0], "cursor");
  await idle.closed("the idle connection is closed");
  await until(() => server.exit, "the process ends");
  assert.deepEqual(server.exit, { code: 0, signal: null });
});

test("a server without clients ends at once", async (t) => {
  const server = await Server.start(t);
  server.signal("SIGTERM");
  await until(() => server.exit, "the process ends");
  assert.deepEqual(server.exit, { code: 0, signal: null });
});

test("peers that do not read cannot keep a server from ending", async (t) => {
  const server = await Server.start(t);
  for (const target of ["/sse?channel=a", "/stream?channel=a"]) {
    const peer = await Peer.connect(t, server);
    peer.send(get(target));
    await until(() => peer.received.length > 0, "the stream begins");
    peer.socket.pause();
  }
  (await Peer.upgrade(t, server)).socket.pause();
  for (let n = 0; n < 200; n += 1) await server.publish("a", `"${"x".repeat(50_000)}"`);
  server.signal("SIGTERM");
  await until(() => server.exit, "the process ends", 30_000);
  assert.deepEqual(server.exit, { code: 0, signal: null });
});
