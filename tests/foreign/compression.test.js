// Compression: what the library `ws` agrees on, inflates and compresses itself, and what fetch makes of gzip.

import assert from "node:assert/strict";
import { test } from "node:test";
import WebSocket from "ws";
import { Server, until } from "./harness.js";

const item = (n) => ({ n, text: "the same again ".repeat(20) });

test("ws gets a thousand compressed messages in order, and fewer bytes", async (t) => {
  const server = await Server.start(t, ["--compression-from", "200"]);
  const open = async (perMessageDeflate) => {
    const socket = new WebSocket(`${server.base.replace("http", "ws")}/ws?channel=a`, { perMessageDeflate });
    t.after(() => socket.terminate());
    const received = [];
    socket.on("message", (data) => received.push(JSON.parse(data)));
    await until(() => received.length === 1, "it begins");
    return { socket, received };
  };
  const plain = await open(false);
  const compressed = await open({ threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true });
  assert.equal(plain.socket.extensions, "");
  assert.match(compressed.socket.extensions, /^permessage-deflate/);
  // It compresses what it publishes.
  for (let n = 0; n < 1000; n++) compressed.socket.send(JSON.stringify(["pub", "a", item(n)]));
  for (const { received } of [plain, compressed]) {
    await until(
      () => received.length === 1001,
      () => `all come; ${received.length} have`,
    );
    assert.deepEqual(
      received.slice(1).map(([, , , data]) => data),
      Array.from({ length: 1000 }, (_, n) => item(n)),
    );
  }
  const bytes = ({ socket }) => socket._socket.bytesRead;
  assert.ok(bytes(compressed) < bytes(plain) / 3, `${bytes(compressed)} of ${bytes(plain)} bytes`);
});

test("fetch reads streams and polls of gzip, each message as soon as it is published", async (t) => {
  const server = await Server.start(t, ["--compression-from", "200"]);
  for (const path of ["/sse?channel=a", "/stream?channel=a"]) {
    const response = await fetch(server.base + path, { headers: { "Accept-Encoding": "gzip" } });
    assert.equal(response.headers.get("content-encoding"), "gzip");
    let text = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let n = 0; n < 20; n++) {
      await server.publish("a", JSON.stringify(item(n)));
      while (!text.includes(JSON.stringify(item(n)))) text += (await reader.read()).value;
    }
    await reader.cancel();
  }
  const reply = await fetch(`${server.base}/poll?channel=a&after=0.0`, { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(reply.headers.get("content-encoding"), "gzip");
  assert.ok(Number(reply.headers.get("content-length")) < 1500);
  assert.equal((await reply.json()).filter(([kind]) => kind === "msg").length, 40);
});
