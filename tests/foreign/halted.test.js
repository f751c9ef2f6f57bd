// A server whose process is halted for a while, as when a laptop sleeps or a virtual machine is moved.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import WebSocket from "ws";
import { Server, until } from "./harness.js";

test("a halted server does not take for dead who was never asked for a sign of life", async (t) => {
  const server = await Server.start(t, ["--heartbeat", "300ms"]);
  const turns = async () => JSON.parse((await server.request("GET", "/stats")).text).turns;
  const address = `${server.base.replace("http", "ws")}/ws?channel=a`;
  const clients = Array.from({ length: 20 }, () => new WebSocket(address));
  t.after(() => clients.forEach((socket) => socket.terminate()));
  await Promise.all(clients.map((socket) => once(socket, "open")));
  server.signal("SIGSTOP");
  // More than two heartbeats, after which a client that had been asked would have had to answer.
  await delay(1500);
  server.signal("SIGCONT");
  const before = await turns();
  await until(async () => (await turns()) > before + 10, "the server goes on for a second");
  const states = clients.map((socket) => socket.readyState);
  assert.deepEqual(states, clients.map(() => WebSocket.OPEN));
});
