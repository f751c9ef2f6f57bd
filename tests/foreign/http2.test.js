// What is different with HTTP/2: many streams on one connection, and its end. That every client gets every message by prior
// knowledge is tested in transports.test.js.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { readEvents } from "./clients.js";
import { makeIdentity, Server, TcpProxy, until } from "./harness.js";
import { answerOf, ask, curlsOption, HTTP2_CLIENTS, openSession, StreamSocket } from "./http2-clients.js";
import { payloads } from "./payloads.js";

const run = promisify(execFile);
/** Heads may be as large as nghttp makes them that need CONTINUATION. */
const OPTIONS = ["--cores", "2", "--max-head-bytes", "64KiB"];

/** Both ways to HTTP/2: each starts a server and says what a client has to know of it. */
const WAYS = {
  "by prior knowledge": async (t) => {
    const server = await Server.start(t, OPTIONS);
    return { server, base: server.base };
  },
  "by ALPN": async (t) => {
    const identity = makeIdentity(t);
    const server = await Server.startSecure(t, identity, OPTIONS);
    return { server, base: server.base, ca: server.ca, caFile: identity.certificate };
  },
};

/** A session that ends with the test. */
async function connect(t, way) {
  const session = openSession(way);
  t.after(() => session.destroy());
  await until(() => !session.connecting, "the session is connected");
  return session;
}

async function stats({ server }) {
  return JSON.parse((await server.request("GET", "/stats")).text);
}

/** An event stream that keeps its frames; `hasEnded` is true once the server has said that nothing follows. */
function eventStream(session, query) {
  const stream = ask(session, `/sse?${query}`);
  const events = { stream, frames: [], hasEnded: false };
  const readLine = readEvents((frame) => events.frames.push(frame));
  let partial = "";
  stream.setEncoding("utf8").on("data", (text) => {
    const lines = (partial + text).split("\n");
    partial = lines.pop();
    for (const line of lines) readLine(line);
  });
  stream.on("end", () => {
    events.hasEnded = !stream.aborted;
  });
  return events;
}

const dataOf = (frames) => frames.filter(([name]) => name === "msg").map((frame) => frame.at(-1));

for (const client of HTTP2_CLIENTS) {
  test(`${client.name} over TLS: 1,000 messages in order across a cut`, async (t) => {
    const way = await WAYS["by ALPN"](t);
    const proxy = await TcpProxy.start(t, way.server.port);
    const frames = [];
    let isConnected = false;
    let stop = () => {};
    let life = 0;
    t.after(() => stop());
    const begin = async (after) => {
      life += 1;
      const own = life;
      stop = await client.connect({
        ...way,
        base: proxy.base.replace("http", "https"),
        channel: "a",
        after,
        onFrame: (frame) => {
          if (own !== life) return;
          isConnected = true;
          frames.push(frame);
        },
        onEnd: () => {
          if (own === life) isConnected = false;
        },
        onLog: () => {},
      });
      await until(() => isConnected, `${client.name} connects`);
    };
    const publish = async (texts) => {
      for (const text of texts) await way.server.publish("a", text);
    };
    await begin();
    const sent = payloads(1000);
    await publish(sent.slice(0, 400));
    await until(() => dataOf(frames).length === 400, () => `400 messages; ${dataOf(frames).length} came`);
    proxy.cutAfter(3000);
    await publish(sent.slice(400, 700));
    await until(() => proxy.isCut && !isConnected, `${client.name} sees the cut`);
    await stop();
    proxy.restore();
    await begin(frames.findLast(([name]) => name === "msg")[2]);
    await publish(sent.slice(700));
    await publish(['"last"']);
    await until(() => dataOf(frames).at(-1) === "last", () => `the last message; ${dataOf(frames).length} came`);
    const expected = [...sent.map((text) => JSON.parse(text)), "last"];
    assert.deepEqual(dataOf(frames), expected);
    assert.ok(!frames.some(([name]) => name === "gap"), "nothing was missed");
  });
}

test("publications and polls share a session with streams", async (t) => {
  const way = await WAYS["by ALPN"](t);
  const session = await connect(t, way);
  const events = eventStream(session, "channel=a");
  await until(() => events.frames.length > 0, "the stream has begun");
  const headers = { "content-type": "application/json" };
  const sent = payloads(100);
  const answers = await Promise.all(
    sent.map((body) => answerOf(session, "/publish?channel=a", { method: "POST", body, headers })),
  );
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  await until(() => dataOf(events.frames).length === sent.length, "all of them");
  const sorted = (values) => values.map((value) => JSON.stringify(value)).sort();
  const expected = sent.map((text) => JSON.parse(text));
  assert.deepEqual(sorted(dataOf(events.frames)), sorted(expected));
  const first = events.frames.find(([name]) => name === "cursor")[1];
  const { text } = await answerOf(session, `/poll?channel=a&after=${first}`);
  assert.deepEqual(dataOf(JSON.parse(text)), dataOf(events.frames), "in the same order");
  const refused = await answerOf(session, "/publish?channel=-", { method: "POST", body: "1", headers });
  assert.deepEqual([refused.status, JSON.parse(refused.text).error], [400, "bad-channel"]);
});

test("a stopping server says GOAWAY and ends each stream properly", async (t) => {
  const way = await WAYS["by ALPN"](t);
  const session = await connect(t, way);
  const farewells = [];
  session.on("goaway", (code, last) => farewells.push({ code, last }));
  const events = eventStream(session, "channel=a");
  const texts = [];
  const socket = await StreamSocket.open(session, "/ws?channel=a", (text) => texts.push(text));
  const [[, cursor]] = JSON.parse((await answerOf(session, "/poll?channel=a")).text);
  const held = answerOf(session, `/poll?channel=a&after=${cursor}&wait=25`);
  await until(async () => {
    const { held_polls, connections } = await stats(way);
    return held_polls === 1 && connections.sse === 1 && connections.websocket === 1;
  }, "all are connected");
  const isClosed = once(session, "close");
  way.server.signal("SIGTERM");
  await isClosed;
  assert.ok(farewells.length > 0, "the client sees a GOAWAY");
  for (const { code } of farewells) assert.equal(code, 0);
  // The last stream that was handled: none of those that were open was refused.
  assert.ok(farewells.at(-1).last >= 7, `the last stream is told: ${JSON.stringify(farewells)}`);
  assert.deepEqual([events.hasEnded, events.stream.rstCode], [true, 0]);
  assert.equal(socket.closed?.code, 1001);
  assert.equal(socket.stream.rstCode, 0);
  assert.deepEqual(await held, { status: 200, text: JSON.stringify([["cursor", cursor]]) });
  await until(() => way.server.exit, "the server has ended");
  assert.equal(way.server.exit.code, 0);
});

for (const [name, start] of Object.entries(WAYS)) {
  describe(name, () => {
    test("Node's http2 agrees on h2, and hears that it may open WebSockets", async (t) => {
      const way = await start(t);
      const session = await connect(t, way);
      assert.equal(session.alpnProtocol, way.ca ? "h2" : "h2c");
      await until(() => session.remoteSettings?.enableConnectProtocol, "the setting");
    });

    test("curl publishes and polls, over HTTP/2", async (t) => {
      const way = await start(t);
      const options = [curlsOption(way.base), ...(way.caFile ? ["--cacert", way.caFile] : [])];
      const curl = async (path, ...more) => {
        const format = ["--write-out", "\n%{http_version} %{http_code}"];
        const args = ["--silent", "--show-error", ...options, ...more, ...format, way.base + path];
        const { stdout } = await run("curl", args);
        const [version, status] = stdout.slice(stdout.lastIndexOf("\n") + 1).split(" ");
        assert.equal(version, "2");
        return { status: Number(status), text: stdout.slice(0, stdout.lastIndexOf("\n")) };
      };
      const [[, before]] = JSON.parse((await curl("/poll?channel=a")).text);
      const held = curl(`/poll?channel=a&after=${before}&wait=25`);
      await until(async () => (await stats(way)).held_polls === 1, "the poll is held");
      const header = ["--header", "content-type: application/json"];
      const published = await curl("/publish?channel=a", ...header, "--data-binary", '{"by":"curl"}');
      assert.equal(published.status, 200);
      const [, cursor] = JSON.parse(published.text);
      assert.deepEqual(JSON.parse((await held).text), [
        ["msg", "a", cursor, { by: "curl" }],
        ["cursor", cursor],
      ]);
      assert.equal((await curl("/nothing/here")).status, 404);
      const head = await curl("/healthz", "--head");
      assert.equal(head.status, 200);
      assert.match(head.text, /^HTTP\/2 200 \r\n/);
    });

    /** Ways in which nghttp can make it hard for a server. */
    const habits = {
      "as it comes": { options: [] },
      "with padding": { options: ["--padding=200"] },
      // Each byte is a round trip, so no large messages.
      "with windows of a byte": { options: ["--window-bits=1"], longest: 1000 },
      "with CONTINUATION": { options: ["--continuation"] },
      "without a dynamic table": { options: ["--header-table-size=0"] },
    };
    // Frames are the same either way, so only one of the ways tries every habit.
    const tried = name === "by ALPN" ? Object.entries(habits) : Object.entries(habits).slice(0, 1);
    for (const [habit, { options, longest = Infinity }] of tried) {
      test(`nghttp streams, publishes and polls, ${habit}`, async (t) => {
        const way = await start(t);
        const common = [...options, "--no-verify-peer", "--timeout=30"];
        const reader = spawn("nghttp", [...common, `${way.base}/sse?channel=a`]);
        t.after(() => reader.kill("SIGKILL"));
        const output = reader.stdout.setEncoding("utf8").toArray();
        const complaints = reader.stderr.setEncoding("utf8").toArray();
        const isOver = once(reader, "close");
        await until(async () => (await stats(way)).connections.sse === 1, "the event stream");
        const [[, cursor]] = JSON.parse((await run("nghttp", [...common, `${way.base}/poll?channel=a`])).stdout);
        const publication = run("nghttp", [
          ...common,
          "--data=-",
          "--header=content-type: application/json",
          `${way.base}/publish?channel=a`,
        ]);
        publication.child.stdin.end('{"by":"nghttp"}');
        const [name, first] = JSON.parse((await publication).stdout);
        assert.equal(name, "cursor");
        const sent = payloads(200).filter((text) => text.length <= longest);
        for (const text of sent) await way.server.publish("a", text);
        // What is queued when the server stops does not leave.
        await until(async () => {
          const counts = await stats(way);
          return counts.sent === 1 + sent.length && counts.queued_bytes === 0;
        }, "the stream has it all");
        const poll = await run("nghttp", [...common, `${way.base}/poll?channel=a&after=${cursor}`]);
        assert.deepEqual(JSON.parse(poll.stdout)[0], ["msg", "a", first, { by: "nghttp" }]);
        // It keeps what it reads until its end, for which the server's will do.
        way.server.signal("SIGTERM");
        const [code] = await isOver;
        assert.deepEqual([code, (await complaints).join("")], [0, ""]);
        const frames = [];
        const readLine = readEvents((frame) => frames.push(frame));
        for (const line of (await output).join("").split("\n")) readLine(line);
        const expected = [{ by: "nghttp" }, ...sent.map((text) => JSON.parse(text))];
        assert.deepEqual(dataOf(frames), expected);
      });
    }
  });
}
