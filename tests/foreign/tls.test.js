// Foreign clients over TLS: what they get, and what others get who do not speak it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import tls from "node:tls";
import { CLIENTS } from "./clients.js";
import { Server, makeIdentity, until } from "./harness.js";
import { Socket } from "./socket.js";
import { payloads } from "./payloads.js";

// npm eventsource would have to be given another fetch, which is what is tested under the name of Node. What is left out
// besides has its TLS from the same library as others that are here; of HTTP/2, http2.test.js sees the same and a cut.
const clients = CLIENTS.filter(({ name }) => !/^npm eventsource|mode=poll|--http1\.0/.test(name));

/** Payloads around the size of a record, 16 KiB, and of all that is sealed at once, 64 KiB. */
const large = [16_383, 16_384, 40_000, 65_000].map((size) => JSON.stringify("ä".repeat(size / 2)));

for (const client of clients) {
  test(`${client.name} gets every message over TLS`, async (t) => {
    const identity = makeIdentity(t);
    const server = await Server.startSecure(t, identity, ["--cores", "2", "--max-body-bytes", "1MiB"]);
    const frames = [];
    const log = [];
    const close = await client.connect({
      base: server.base,
      ca: server.ca,
      caFile: identity.certificate,
      channel: "a",
      onFrame: (frame) => frames.push(frame),
      onEnd: () => log.push("it ended"),
      onLog: (text) => log.push(text),
    });
    t.after(close);
    await until(
      () => frames.length > 0,
      () => `${client.name} connects; ${log.slice(-5)}`,
    );
    const sent = [...payloads(200), ...large, '"last"'];
    for (const text of sent) await server.publish("a", text);
    const messages = () => frames.filter(([name]) => name === "msg").map((frame) => frame[3]);
    await until(
      () => messages().at(-1) === "last",
      () => `the last message; ${messages().length} came; ${log.slice(-5)}`,
    );
    assert.deepEqual(
      messages(),
      sent.map((text) => JSON.parse(text)),
    );
    const stats = JSON.parse((await server.request("GET", "/stats")).text);
    // Chromium refuses a certificate that nobody signed before it asks whether it may pass.
    if (!client.name.startsWith("Chromium")) assert.equal(stats.tls_failures, 0);
    assert.deepEqual([stats.closed_slow, stats.gaps], [0, 0]);
  });
}

describe("keys of every kind", () => {
  const kinds = {
    "RSA 2048": ["-newkey", "rsa:2048"],
    "P-384": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
    Ed25519: ["-newkey", "ed25519"],
  };
  for (const [name, kind] of Object.entries(kinds)) {
    test(name, async (t) => {
      const server = await Server.startSecure(t, makeIdentity(t, kind));
      for (const version of ["TLSv1.2", "TLSv1.3"]) {
        const versions = { minVersion: version, maxVersion: version };
        const socket = await Socket.open(t, server, "channel=a", versions);
        await socket.frame("cursor");
        await server.publish("a", "1");
        await socket.frame("msg");
        socket.ws.close();
        await until(() => socket.closed, `an orderly end of ${version}`);
        assert.equal(socket.closed.code, 1000);
      }
    });
  }
});

test("a session is resumed", async (t) => {
  const server = await Server.startSecure(t, makeIdentity(t));
  const connect = async (session) => {
    const options = { port: server.port, host: "127.0.0.1", ca: server.ca, session };
    const socket = tls.connect(options);
    const ticket = once(socket, "session");
    await once(socket, "secureConnect");
    assert.equal(socket.authorized, true);
    socket.write("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    socket.resume();
    const [next] = await ticket;
    const isReused = socket.isSessionReused();
    socket.destroy();
    return { next, isReused };
  };
  const first = await connect();
  const second = await connect(first.next);
  assert.deepEqual([first.isReused, second.isReused], [false, true]);
});

for (const command of ["serve", "console"]) {
  test(`SIGHUP has ${command} read the certificate again`, async (t) => {
    const [now, next] = [makeIdentity(t), makeIdentity(t)];
    const store = ["--store", `${now.key}.sqlite`];
    const server = await Server.startSecure(t, now, store, command);
    const held = await Socket.open(t, server, "channel=a");
    await held.frame("cursor");
    const status = async () => (await server.request("GET", "/healthz", { agent: false })).status;
    assert.equal(await status(), 200);
    copyFileSync(next.certificate, now.certificate);
    copyFileSync(next.key, now.key);
    server.signal("SIGHUP");
    await until(
      () => server.log.includes("certificate.pem was read again"),
      () => `it says so: ${server.log}`,
    );
    await assert.rejects(status(), "those who trust the old one alone are not served");
    server.ca = readFileSync(next.certificate);
    assert.equal(await status(), 200);
    writeFileSync(now.certificate, "no certificate");
    server.signal("SIGHUP");
    await until(
      () => /the old certificate stays: .*certificate\.pem .*; then send SIGHUP again/.test(server.log),
      () => `it says what is wrong: ${server.log}`,
    );
    assert.equal(await status(), 200);
    assert.equal(held.closed, null, "who is connected stays");
    server.signal("SIGTERM");
    await until(() => server.exit, "the server has ended");
    assert.equal(server.exit.code, 0);
  });
}

test("SIGHUP ends a server that has no file to read again", async (t) => {
  const server = await Server.start(t);
  server.signal("SIGHUP");
  await until(() => server.exit, "the server has ended");
  assert.equal(server.exit.signal, "SIGHUP");
});
