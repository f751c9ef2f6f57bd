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
