// Compressed WebSockets: what the library `ws` agrees on and inflates, and what it compresses itself.

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
