// Browsers ask for compression without being told to: event streams, HTTP streams and polls of gzip, and permessage-deflate.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";
import { open, WAYS } from "./ways.js";

const MESSAGES = 1000;
const item = (n) => ({ n, text: "the same again ".repeat(20) });

inEachBrowser("with compression", (name) => {
  for (const way of Object.keys(WAYS)) {
    test(`${way}: ${MESSAGES} messages in order, compressed`, async (t) => {
      const server = await serve(t, { options: ["--compression-from", "200", "--history-messages", "2000"] });
      const visitor = await Visitor.open(t, name, `${server.base}/demos`);
      await open(visitor, way, until);
      const sent = async () => JSON.parse((await server.request("GET", "/stats")).text).bytes_sent;
      const before = await sent();
      for (let n = 0; n < MESSAGES; n++) await server.publish("news", JSON.stringify(item(n)));
      const count = () => visitor.page.evaluate(() => window.received.length);
      await until(
        async () => (await count()) === MESSAGES,
        async () => `all come; ${await count()} have`,
      );
      const received = await visitor.page.evaluate(() => window.received);
      assert.deepEqual(
        received,
        Array.from({ length: MESSAGES }, (_, n) => n),
      );
      const coding = await visitor.page.evaluate(() => window.coding);
      if (coding !== undefined) assert.equal(coding, "gzip");
      // The answers to publications are among them, and the heads of those to polls.
      const [bytes, plain] = [(await sent()) - before, MESSAGES * JSON.stringify(item(0)).length];
      if (way !== "long polls") assert.ok(bytes < 1.3 * plain, `${bytes} bytes for ${plain}`);
      visitor.expectFailures();
    });
  }
});
