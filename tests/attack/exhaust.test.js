// Peers that send without end, never finish, stop reading, or come in crowds. The server's memory stays flat and
// ordinary clients are served all along.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server, until } from "../foreign/harness.js";
import { assertDelivers, Socket } from "../foreign/socket.js";
import { frame, Peer } from "./peer.js";

const MIB = 1 << 20;

/** Sends up to 1 GiB until the server answers or closes, which must be long before; gives its answers. */
async function sendWithoutEnd(t, server, first, more) {
  const peer = await Peer.connect(t, server);
  const isOver = () => peer.isClosed || peer.received.length > 0;
  peer.send(first);
  let sent = first.length;
  while (sent < 1024 * MIB && !isOver()) {
    if (!peer.socket.write(more)) {
      await until(
        () => peer.socket.writableLength === 0 || isOver(),
        () => `the server reads or answers after ${sent} bytes`,
      );
    }
    sent += more.length;
    // One write in each turn of the loop, so that an answer is read before the next write.
    await new Promise(setImmediate);
  }
  await peer.closed();
  assert.ok(sent < 64 * MIB, `${sent} bytes were taken`);
  return peer.responses;
}

describe("what never ends is cut off", () => {
  const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
  const publish =
    "POST /publish?channel=a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const [name, first, more, expected] of [
    ["a field", "GET / HTTP/1.1\r\nX: ", "y".repeat(0x10000), ["431 head-too-large"]],
    ["a target", "GET /", "y".repeat(0x10000), ["431 head-too-large", "400 bad-request"]],
    ["fields", "GET / HTTP/1.1\r\n", "X: y\r\n".repeat(10_000), ["431 head-too-large"]],
    ["a method", "", "G".repeat(0x10000), ["431 head-too-large", "400 bad-request"]],
    ["a chunked body", publish, chunk, ["413 body-too-large"]],
    [
      "a chunk extension",
      `${publish}1;`,
      "y".repeat(0x10000),
      ["400 bad-request", "413 body-too-large"],
    ],
    [
      "trailers",
      `${publish}1\r\n1\r\n0\r\n`,
      "X: y\r\n".repeat(10_000),
      ["400 bad-request", "413 body-too-large"],
    ],
  ]) {
    test(name, async (t) => {
      const server = await Server.start(t);
      await assertDelivers(t, server);
      const before = server.rss_bytes;
      // A write that crosses the answer ends in a reset, which may take the answer with it: hence five attempts.
      let answers = [];
      for (let attempt = 0; attempt < 5 && answers.length === 0; attempt += 1) {
        answers = await sendWithoutEnd(t, server, first, more);
      }
      const said = answers.map(({ status, error }) => `${status} ${error}`);
      assert.equal(said.length, 1, `there is one answer: ${said}`);
      assert.ok(expected.includes(said[0]), said[0]);
      const grown = server.rss_bytes - before;
      assert.ok(grown < 8 * MIB, `memory grew by ${grown} bytes`);
      await assertDelivers(t, server);
    });
  }
});

test("a head that drips in is given up", async (t) => {
  const server = await Server.start(t, ["--head-timeout", "1s"]);
  const silent = await Peer.connect(t, server);
  const half = await Peer.connect(t, server);
  half.send("GET /healthz HT");
  const dripping = await Peer.connect(t, server);
  dripping.send("GET /healthz HTTP/1.1\r\nX: ");
  const drip = setInterval(() => dripping.send("y"), 50);
  t.after(() => clearInterval(drip));
  for (const peer of [silent, half, dripping]) {
    await peer.closed("the server gives up");
    for (const { status, error } of peer.responses) {
      assert.deepEqual([status, error], [408, "request-timeout"]);
    }
  }
  await assertDelivers(t, server);
});

test("a client that is not done with its request in time does not hold up others", async (t) => {
  const server = await Server.start(t, ["--head-timeout", "1s"]);
  const crowd = [];
  for (let n = 0; n < 500; n += 1) {
    const peer = await Peer.connect(t, server);
    peer.send("GET /sse?channel=a HTTP/1.1\r\n");
    crowd.push(peer);
  }
  await assertDelivers(t, server);
  await until(() => crowd.every((peer) => peer.isClosed), "all are given up");
});

describe("a WebSocket that is half open", () => {
  test("is closed with 4002 when it reads but does not answer pings", async (t) => {
    const server = await Server.start(t, ["--heartbeat", "1s"]);
    const ordinary = await Socket.open(t, server, "channel=a");
    const peer = await Peer.upgrade(t, server);
    await peer.closed();
    assert.ok(
      peer.frames.some(({ opcode }) => opcode === 9),
      "it was pinged",
    );
    assert.equal(peer.closeCode, 4002);
    ordinary.send("ping", 1);
    await ordinary.frame("pong", 1);
  });

  test("is let go when it neither reads nor answers", async (t) => {
    const server = await Server.start(t, ["--heartbeat", "1s"]);
    const before = server.descriptors;
    for (let n = 0; n < 20; n += 1) {
      const peer = await Peer.upgrade(t, server);
      peer.socket.pause();
      assert.match(peer.text, /^HTTP\/1\.1 101 /);
    }
    await until(
      () => server.descriptors <= before,
      () => `the server lets go of all; it held ${before} before they came, now ${server.descriptors}`,
    );
    await assertDelivers(t, server);
  });

  test("stays when it answers", async (t) => {
    const server = await Server.start(t, ["--heartbeat", "1s"]);
    const peer = await Peer.upgrade(t, server);
    const pings = () => peer.frames.filter(({ opcode }) => opcode === 9);
    for (const count of [1, 2, 3]) {
      await until(() => pings().length >= count, `ping ${count}`);
      peer.send(frame(0x8a, pings().at(-1).payload));
    }
    assert.equal(peer.closeCode, undefined);
  });
});

describe("a subscriber that stops reading", () => {
  const REQUESTS = {
    sse: "GET /sse?channel=big HTTP/1.1\r\nHost: h\r\n\r\n",
    stream: "GET /stream?channel=big HTTP/1.1\r\nHost: h\r\n\r\n",
  };
  const stall = async (t, server) => {
    const peers = [await Peer.upgrade(t, server, "channel=big")];
    for (const request of Object.values(REQUESTS)) {
      const peer = await Peer.connect(t, server);
      peer.send(request);
      await until(() => peer.received.length > 0, "the stream begins");
      peers.push(peer);
    }
    for (const { socket } of peers) socket.pause();
    return peers;
  };
  /** 100 MiB: more than the kernel's buffers and every queue can hold. */
  const publish = async (server, ordinary) => {
    for (let n = 0; n < 2000; n += 1) {
      await server.publish("big", JSON.stringify({ n, fill: "x".repeat(50_000) }));
      // The ordinary client keeps up, so no policy touches it.
      if (n % 20 === 19) await until(() => ordinary.data.length === n + 1, `message ${n}`);
    }
  };

  for (const policy of ["close", "drop-oldest", "conflate"]) {
    test(`costs bounded memory with --policy ${policy}`, async (t) => {
      // A slow machine takes longer to publish all of it than a peer may make no progress by default.
      const patient = ["--write-timeout", "10m"];
      const server = await Server.start(t, ["--policy", policy, "--history-messages", "10", ...patient]);
      const ordinary = await Socket.open(t, server, "channel=big");
      await ordinary.frame("cursor");
      const peers = await stall(t, server);
      const before = server.rss_bytes;
      await publish(server, ordinary);
      assert.deepEqual(
        ordinary.data.map(({ n }) => n),
        Array.from({ length: 2000 }, (_, n) => n),
      );
      assert.ok(!ordinary.frames.some(([name]) => name === "gap"));
      const grown = server.rss_bytes - before;
      assert.ok(grown < 48 * MIB, `memory grew by ${grown} bytes`);

      for (const { socket } of peers) socket.resume();
      if (policy === "close") {
        for (const peer of peers) await peer.closed("the slow subscriber is closed");
        return;
      }
      const last = `"n":${1999}`;
      for (const peer of peers) {
        await until(() => peer.text.includes(last) || peer.isClosed, "the latest message");
        assert.ok(peer.text.includes(last), "the slow subscriber stays");
        if (policy === "drop-oldest") assert.ok(peer.text.includes('["gap",'), "it is told");
      }
    });
  }
});

/** Starts a flood, waits for its tally, and ends it with the test or by `end`. */
async function flood(t, server, count, address) {
  const script = fileURLToPath(new URL("flood.js", import.meta.url));
  const child = spawn(process.execPath, [script, server.port, count, address], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let line = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    line += text;
  });
  const tally = until(() => line.includes("\n") && JSON.parse(line), `${count} outcomes`, 90_000);
  const end = async () => {
    child.stdin.end();
    await once(child, "exit");
  };
  return { tally: await tally, end };
}

test("20,000 connections to a server that takes 1,000", async (t) => {
  const server = await Server.start(t, ["--max-connections", "1000"]);
  const ordinary = await Socket.open(t, server, "channel=flood");
  await ordinary.frame("cursor");
  // So that there are 1,000 connections and this one, the publisher's, is among them.
  await server.publish("flood", '"before"');
  const addresses = [2, 3, 4, 5].map((last) => `127.0.0.${last}`);
  const floods = await Promise.all(addresses.map((address) => flood(t, server, 5000, address)));
  const sum = (outcome) => floods.reduce((all, { tally }) => all + tally[outcome], 0);
  const tallies = JSON.stringify(floods.map(({ tally }) => tally));
  assert.equal(sum("held") + sum("refused") + sum("closed"), 20_000, tallies);
  assert.ok(sum("held") <= 1000 && sum("held") >= 900, tallies);
  assert.ok(sum("refused") > 0, `nobody was told why: ${tallies}`);

  await server.publish("flood", '"meanwhile"');
  await until(() => ordinary.data.length === 2, "the message during the flood");
  assert.deepEqual(ordinary.data, ["before", "meanwhile"]);

  for (const { end } of floods) await end();
  await until(async () => {
    const answer = await server.request("GET", "/healthz", { agent: false }).catch(() => undefined);
    return answer?.status === 200;
  }, "new connections are served again");
  await assertDelivers(t, server);
});

/** Whatever they are shown for, signatures are checked where their cost counts, and no other core is kept busy. */
test("wrong signatures are work of the event loop, on every path", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-signatures-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(join(folder, "key.pem"), publicKey.export({ type: "spki", format: "pem" }));
  const rule = '[[rule]]\nwho = "identified"\nchannels = ["*"]\nmay = ["subscribe", "history"]\n';
  writeFileSync(
    join(folder, "access.toml"),
    `[token]\n[[token.key]]\nalgorithm = "ES256"\nfile = "key.pem"\n${rule}`,
  );
  const server = await Server.start(t, ["--access", join(folder, "access.toml")]);
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const request = (sub) => {
    const signature = randomBytes(64).toString("base64url");
    const token = `${part({ alg: "ES256" })}.${part({ sub, exp: 4e9 })}.${signature}`;
    return `GET /api/history?channel=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  };
  let sent = 0;
  const isClear = () => server.ticks("pushlab-loop") + server.ticks("pushlab-app") >= 30;
  while (!isClear()) {
    const requests = Array.from({ length: 50 }, () => request(`who${sent++}`));
    const { responses } = await Peer.exchange(t, server, Buffer.from(requests.join("")), requests.length);
    assert.ok(responses.every(({ text }) => text.includes("signature is wrong")), responses[0].text);
  }
  const [loop, pool] = ["pushlab-loop", "pushlab-app"].map((name) => server.ticks(name));
  assert.ok(loop > pool, `${sent} signatures took the loop ${loop} ticks, and the application's threads ${pool}`);
});
