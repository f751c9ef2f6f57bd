// The same broadcast and the same chat over each transport: each works, and what is counted of them is what docs/facts.md
// says. Their clients are for pages; here they get `WebSocket` and `EventSource` from packages.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { EventSource } from "eventsource";
import { WebSocket, WebSocketServer } from "ws";
import { FACTS, TRANSPORTS, count, counted, withTable } from "./count.js";

Object.assign(globalThis, { WebSocket, EventSource });

const CLIENTS = 3;
const MESSAGES = 300;
/** How long nothing may happen. */
const PATIENCE_MS = 20_000;
/** What could break a framing. */
const AWKWARD = ["two\nlines\r\n\r\ndata: x", '"quotes" \\ <b>', "ö€🦀", "", null, { nested: [1] }];

async function until(holds, what) {
  let [last, end] = ["", 0];
  while (!holds()) {
    if (what() !== last) [last, end] = [what(), Date.now() + PATIENCE_MS];
    assert.ok(Date.now() < end, `nothing more comes: ${last}`);
    await sleep(5);
  }
}

/** A server of its own, and where it listens. */
async function start(t, application, transport, environment = {}) {
  const path = fileURLToPath(new URL(`${application}/${transport}-server.js`, import.meta.url));
  const child = spawn(process.execPath, [path], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill());
  const errors = [];
  child.stderr.on("data", (data) => errors.push(data));
  const [port] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "exit").then(() => assert.fail(`it ended: ${errors.join("")}`)),
  ]);
  return { child, port: Number(port), base: `http://127.0.0.1:${port}` };
}

/** A client, with what it has heard. */
async function join(t, application, transport, { base }) {
  const { connect } = await import(`./${application}/${transport}-client.js`);
  const heard = [];
  const client = await connect(base, (message) => heard.push(message));
  t.after(() => client.close());
  return { ...client, heard };
}

function crowd(t, application, transport, server) {
  const joining = Array.from({ length: CLIENTS }, () => join(t, application, transport, server));
  return Promise.all(joining);
}

async function hear(clients, size) {
  const heard = () => clients.map((client) => client.heard.length);
  await until(
    () => heard().every((length) => length >= size),
    () => `${heard()} of ${size}`,
  );
  await sleep(50);
  assert.deepEqual(heard(), Array(clients.length).fill(size), "nothing comes twice");
}

/** Sends bytes that are no request and no frame, and a request that is cut off. */
async function annoy(server) {
  const upgrade =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  const garbage = [
    "\r\nwhat\0",
    "GET //?after=x HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /messages HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
    `${upgrade}\xff\xff\xff\xff`,
  ];
  for (const bytes of garbage) {
    const socket = createConnection(server.port, "127.0.0.1").on("error", () => {});
    socket.write(bytes, "latin1");
    await sleep(50);
    socket.destroy();
  }
}

for (const transport of TRANSPORTS) {
  test(`broadcast over ${transport}: every client hears everything once and in order`, async (t) => {
    const feed = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(feed, "listening");
    t.after(() => feed.close());
    const connected = once(feed, "connection");
    const FEED = `ws://127.0.0.1:${feed.address().port}`;
    const server = await start(t, "broadcast", transport, { FEED });
    const [back] = await connected;
    t.after(() => back.terminate());
    await annoy(server);
    const clients = await crowd(t, "broadcast", transport, server);
    const leaver = await join(t, "broadcast", transport, server);
    leaver.close();
    const sent = [...AWKWARD, ...Array(MESSAGES).keys()];
    for (const [at, message] of sent.entries()) {
      back.send(JSON.stringify(message));
      // Some come while polls are held, some at once, some between an answer and the next poll.
      if (at % 7 === 0) await sleep(at % 3);
    }
    await hear(clients, sent.length);
    for (const { heard } of clients) assert.deepEqual(heard, sent);
    assert.deepEqual(leaver.heard, []);
    assert.equal(server.child.exitCode, null);
  });

  test(`chat over ${transport}: every client hears everybody, each in order`, async (t) => {
    const server = await start(t, "chat", transport);
    await annoy(server);
    const clients = await crowd(t, "chat", transport, server);
    const leaver = await join(t, "chat", transport, server);
    leaver.close();
    const said = (from) => [...AWKWARD, ...Array(MESSAGES).keys()].map((text) => ({ from, text }));
    for (const [from, client] of clients.entries()) said(from).forEach((one) => client.send(one));
    await hear(clients, CLIENTS * said(0).length);
    for (const { heard } of clients) {
      for (let from = 0; from < CLIENTS; from += 1) {
        assert.deepEqual(
          heard.filter((one) => one.from === from),
          said(from),
        );
      }
      assert.deepEqual(heard, clients[0].heard, "all hear the same order");
    }
    assert.deepEqual(leaver.heard, []);
    assert.equal(server.child.exitCode, null);
  });
}

test("what comes while no poll is held waits for the next one", async (t) => {
  const { base } = await start(t, "chat", "long-polling");
  const poll = async (after) => (await fetch(`${base}/messages?after=${after}`)).json();
  const say = (body) => fetch(`${base}/messages`, { method: "POST", body });
  await say('"before"');
  const [first, ...news] = await poll("");
  assert.deepEqual([first, news], [1, []]);
  await say('"one"');
  await say('"two"');
  assert.deepEqual(await poll(first), [3, '"one"', '"two"']);
  const held = poll(3);
  await say('"three"');
  assert.deepEqual(await held, [4, '"three"']);
});

test("what is counted is what the documentation says", () => {
  const text = readFileSync(FACTS, "utf8");
  assert.equal(text, withTable(text), "docs/facts.md: run `node tests/by-transport/count.js --write`");
  const program = '// one\nconst all = new Set();\n\nlet last = 0;\nconst two = 2;\nif (x !== "GET /a") f();\n';
  assert.deepEqual(count(program), { lines: 4, routes: ["GET /a"], state: ["all", "last"] });
});

// What experiments/findings/tangen-2015.toml says of the study's statements about code.
test("what the study says about code is so, or is not so, as its inventory says", () => {
  const of = (application, side) => TRANSPORTS.map((transport) => counted(application, transport, side));
  for (const application of ["broadcast", "chat"]) {
    const [websocket, sse, polling] = of(application, "server");
    assert.ok(websocket.lines < sse.lines && sse.lines < polling.lines);
    assert.ok(!websocket.state.includes("messages") && !sse.state.includes("messages"));
    assert.ok(polling.state.includes("messages"));
    const clients = of(application, "client");
    assert.deepEqual(
      clients.map(({ state }) => state.includes("next")),
      [false, false, true],
    );
    const shortest = Math.min(...clients.map(({ lines }) => lines));
    assert.ok(clients[2].lines >= 2 * shortest && clients[2].lines > 1.5 * clients[1].lines);
  }
  const [websocket, sse, polling] = of("chat", "server");
  assert.ok(sse.lines > 2 * websocket.lines);
  const routes = [websocket, sse, polling].map((server) => server.routes.length);
  assert.deepEqual(routes, [0, 2, 2]);
});
