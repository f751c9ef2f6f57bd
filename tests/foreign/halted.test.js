// A server whose process is halted for a while, as when a laptop sleeps or a virtual machine is moved.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import WebSocket from "ws";
import { Server, until } from "./harness.js";

test("a halted server does not take for dead who was never asked for a sign of life", async (t) => {
  const server = await Server.start(t, ["--heartbeat", "1s"]);
  const address = `${server.base.replace("http", "ws")}/ws?channel=a`;
  const clients = Array.from({ length: 20 }, () => new WebSocket(address));
  t.after(() => clients.forEach((socket) => socket.terminate()));
  const pings = clients.map(() => 0);
  for (const [at, socket] of clients.entries()) {
    socket.on("ping", () => {
      pings[at] += 1;
    });
  }
  await Promise.all(clients.map((socket) => once(socket, "open")));
  server.signal("SIGSTOP");
  // More than two heartbeats, after which a client that had been asked would have had to answer.
  await delay(4000);
  pings.fill(0);
  server.signal("SIGCONT");
  const isOpen = ({ readyState }) => readyState === WebSocket.OPEN;
  // The second comes a heartbeat later, and only to those whose answer to the first has come.
  const areAsked = () => pings.every((count) => count > 1);
  await until(() => areAsked() || !clients.every(isOpen), () => `each is asked twice; they were ${pings} times`);
  assert.deepEqual(clients.map(isOpen), clients.map(() => true));
});
