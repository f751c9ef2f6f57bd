// Publishing and polling over HTTP, with Node's client and with pages of another origin.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openPage, servePages } from "./chromium.js";
import { Server, until } from "./harness.js";
import { Socket } from "./socket.js";

let server;
before(async (t) => {
  server = await Server.start(t);
});

const poll = async (query) => {
  const answer = await server.request("GET", `/poll?${query}`, { agent: false });
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text);
};

test("publishing answers the cursor that the subscriber sees", async (t) => {
  const socket = await Socket.open(t, server, "channel=a");
  await socket.frame("cursor");
  const cursor = await server.publish("a", '{"n":1}');
  assert.deepEqual(await socket.frame("msg"), ["msg", "a", cursor, { n: 1 }]);
});

test("plain text is published as a JSON string", async (t) => {
  const socket = await Socket.open(t, server, "channel=t");
  await socket.frame("cursor");
  const headers = { "content-type": "text/plain; charset=utf-8" };
  const body = 'not "JSON":\r\n\u0001 {ä\u2028';
  const answer = await server.request("POST", "/publish?channel=t", { body, headers });
  assert.equal(answer.status, 200);
  await socket.frame("msg");
  assert.deepEqual(socket.data, [body]);
});

test("a body in chunks is published like one with a length", async (t) => {
  const socket = await Socket.open(t, server, "channel=c");
  await socket.frame("cursor");
  const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
  const body = '{"in":"chunks"}';
  const answer = await server.request("POST", "/publish?channel=c", { body, headers });
  assert.equal(answer.status, 200);
  await socket.frame("msg");
  assert.deepEqual(socket.data, [{ in: "chunks" }]);
});

test("a publication with a cursor brings back what is pending", async () => {
  const [[, start]] = await poll("channel=p1");
  for (const [channel, text] of [
    ["p1", "1"],
    ["p2", "2"],
    ["p3", '"another channel"'],
    ["p1", "3"],
  ]) {
    await server.publish(channel, text);
  }
  const path = `/publish?channel=p1&channel=p2&after=${start}`;
  const headers = { "content-type": "application/json" };
  const answer = await server.request("POST", path, { body: "4", headers });
  assert.equal(answer.status, 200, answer.text);
  const reply = JSON.parse(answer.text);
  const messages = reply.slice(0, -1).map(([name, channel, , data]) => [name, channel, data]);
  assert.deepEqual(
    messages.toSorted((a, b) => a[2] - b[2]),
    [
      ["msg", "p1", 1],
      ["msg", "p2", 2],
      ["msg", "p1", 3],
      ["msg", "p1", 4],
    ],
  );
  const [name, cursor] = reply.at(-1);
  assert.equal(name, "cursor");
  assert.deepEqual(await poll(`channel=p1&channel=p2&after=${cursor}`), [["cursor", cursor]]);
});

test("an echo answers the body as it came", async () => {
  for (const body of ['{"a" : [1, 2]}', "no JSON \u2028", ""]) {
    const answer = await server.request("POST", "/echo", { body });
    assert.equal(answer.status, 200);
    assert.equal(answer.text, body);
  }
});

test("short polling answers at once, long polling when something comes or the wait is over", async () => {
  const [[name, cursor]] = await poll("channel=l");
  assert.equal(name, "cursor");
  assert.deepEqual(await poll(`channel=l&after=${cursor}`), [["cursor", cursor]]);
  assert.deepEqual(await poll(`channel=l&after=${cursor}&wait=1`), [["cursor", cursor]]);
  const held = poll(`channel=l&after=${cursor}&wait=25`);
  const published = await server.publish("l", '"here"');
  assert.deepEqual(await held, [
    ["msg", "l", published, "here"],
    ["cursor", published],
  ]);
});

test("says that it is healthy, and counts", async () => {
  const health = await server.request("GET", "/healthz");
  assert.deepEqual([health.status, health.text.trim()], [200, "ok"]);
  const stats = await server.request("GET", "/stats");
  assert.equal(stats.status, 200);
  assert.equal(typeof JSON.parse(stats.text), "object");
});

test("a page of another origin publishes JSON, and reads errors", async (t) => {
  const socket = await Socket.open(t, server, "channel=page");
  await socket.frame("cursor");
  const page = await openPage(`http://127.0.0.1:${await servePages()}`, {});
  t.after(() => page.close());
  const post = (path, type) =>
    page.evaluate(
      async (url, headers) => {
        const answer = await fetch(url, { method: "POST", headers, body: '{"from":"page"}' });
        return [answer.status, await answer.json()];
      },
      `${server.base}${path}`,
      type === undefined ? {} : { "content-type": type },
    );
  // This content type makes the browser ask first, with OPTIONS.
  const [status, [name]] = await post("/publish?channel=page", "application/json");
  assert.deepEqual([status, name], [200, "cursor"]);
  await until(() => socket.data.length > 0, "the message");
  assert.deepEqual(socket.data, [{ from: "page" }]);
  const [refused, { error }] = await post("/publish?channel=-", undefined);
  assert.deepEqual([refused, error], [400, "bad-channel"]);
});
