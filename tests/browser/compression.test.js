// Browsers ask for compression without being told to: event streams, HTTP streams and polls of gzip, and permessage-deflate.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inEachBrowser } from "./browsers.js";
import { serve } from "./serve.js";
import { openEach, receive } from "./ways.js";

const MESSAGES = 1000;
const item = (n) => ({ n, text: "the same again ".repeat(20) });

const PUSHED = ["an event stream", "a stream read by fetch", "a WebSocket"];
/** Of these the page sees the heads. */
const HAS_HEADERS = ["a stream read by fetch", "long polls"];
/**
 * What a message of some 310 bytes may cost on all of these, with the answer to its publication. One way without compression
 * costs more.
 */
const BYTES_MAX = 600;

inEachBrowser("with compression", (name) => {
  // Polls come with heads, which are longer than a message.
  for (const ways of [PUSHED, ["long polls"]]) {
    test(`${ways.join(", ")}: ${MESSAGES} messages in order, compressed`, async (t) => {
      const server = await serve(t, { options: ["--compression-from", "200", "--history-messages", "2000"] });
      const readers = await openEach(t, name, ways, () => `${server.base}/demos`);
      const sent = async () => JSON.parse((await server.request("GET", "/stats")).text).bytes_sent;
      const before = await sent();
      for (let n = 0; n < MESSAGES; n++) await server.publish("news", JSON.stringify(item(n)));
      await receive(readers, MESSAGES);
      for (const { way, page } of readers) {
        const coding = await page.evaluate(() => window.coding);
        assert.equal(coding, HAS_HEADERS.includes(way) ? "gzip" : undefined, way);
      }
      const bytes = ((await sent()) - before) / MESSAGES;
      if (ways === PUSHED) assert.ok(bytes < BYTES_MAX, `${bytes} bytes a message`);
    });
  }
});
