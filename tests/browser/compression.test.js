// Browsers ask for compression without being told to: event streams, HTTP streams and polls of gzip, and permessage-deflate.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../foreign/harness.js";
import { BROWSERS } from "./browsers.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";

const MESSAGES = 1000;
const item = (n) => ({ n, text: "the same again ".repeat(20) });

/** What a page receives over one way, as numbers, in order. */
const WAYS = {
  "an event stream": () => {
    const source = new EventSource("/sse?channel=news");
    source.onopen = () => window.began();
    source.onmessage = ({ data }) => window.receive(JSON.parse(data));
  },
  "a stream read by fetch": async () => {
    const { body, headers } = await fetch("/stream?channel=news");
    window.began(headers);
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (text + value).split("\n");
      text = lines.pop();
      for (const line of lines) window.receive(JSON.parse(line));
    }
  },
  "long polls": async () => {
    let after = "";
    for (;;) {
      const reply = await fetch(`/poll?channel=news&wait=${after && 20}&after=${after}`.replace("wait=&", ""));
      const frames = await reply.json();
      for (const frame of frames) window.receive(frame);
      after = frames.at(-1)[1];
      window.began(reply.headers);
    }
  },
  "a WebSocket": () => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws?channel=news`);
    socket.onopen = () => window.began();
    socket.onmessage = ({ data }) => window.receive(JSON.parse(data));
  },
};

for (const name of BROWSERS) {
  describe(`${name} with compression`, () => {
    for (const [way, open] of Object.entries(WAYS)) {
      test(`${way}: ${MESSAGES} messages in order, compressed`, async (t) => {
        const server = await serve(t, { options: ["--compression-from", "200", "--history-messages", "2000"] });
        const visitor = await Visitor.open(t, name, `${server.base}/demos`);
        await visitor.page.evaluate(() => {
          window.received = [];
          window.began = (headers) => {
            window.has_begun = true;
            window.coding = headers?.get("content-encoding");
          };
          window.receive = ([kind, ...rest]) => kind === "msg" && window.received.push(rest.at(-1).n);
        });
        // The server ends before the page, which is an error to whoever reads.
        await visitor.page.evaluate(`void (async () => (${open})())().catch(() => {})`);
        await until(() => visitor.page.evaluate(() => window.has_begun === true), "it is open");
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
}
