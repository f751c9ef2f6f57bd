// How a page receives without the client library: each function runs in the page, tells `window.began` when it is open and
// `window.receive` of every frame, and comes back with its cursor after a cut.

import assert from "node:assert/strict";
import { until } from "../foreign/harness.js";
import { Visitor } from "./visitor.js";

/** Prepares a page; the numbers of the messages that come are in `window.received`. */
export function prepare() {
  window.received = [];
  window.cursor = "";
  window.began = (headers) => {
    window.has_begun = true;
    window.coding = headers?.get("content-encoding");
  };
  window.receive = ([kind, ...rest]) => {
    if (kind === "cursor") window.cursor = rest[0];
    if (kind !== "msg") return;
    // An event stream has the cursor as the event's id, and resumes by itself.
    if (rest.length === 3) window.cursor = rest[1];
    window.received.push(rest.at(-1).n);
  };
  /** Does something again and again, with a pause where it fails. */
  window.forever = async (once) => {
    for (;;) {
      await once().catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
    }
  };
}

export const WAYS = {
  "an event stream": () => {
    const source = new EventSource("/sse?channel=news");
    source.onopen = () => window.began();
    source.onmessage = ({ data }) => window.receive(JSON.parse(data));
  },
  "a stream read by fetch": () =>
    window.forever(async () => {
      const { body, headers } = await fetch(`/stream?channel=news&after=${window.cursor}`);
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
    }),
  "long polls": () =>
    window.forever(async () => {
      const wait = window.cursor === "" ? 0 : 20;
      const reply = await fetch(`/poll?channel=news&wait=${wait}&after=${window.cursor}`);
      for (const frame of await reply.json()) window.receive(frame);
      window.began(reply.headers);
    }),
  "a WebSocket": () =>
    window.forever(
      () =>
        new Promise((_, fail) => {
          const address = `${location.origin.replace("http", "ws")}/ws?channel=news&after=${window.cursor}`;
          const socket = new WebSocket(address);
          socket.onopen = () => window.began();
          socket.onmessage = ({ data }) => window.receive(JSON.parse(data));
          socket.onclose = fail;
        }),
    ),
};

/** Opens a visitor's page for each of these ways, begins to receive in it, and waits until the way is open. */
export function openEach(t, name, ways, address) {
  return Promise.all(
    ways.map(async (way) => {
      const visitor = await Visitor.open(t, name, address(way));
      await visitor.page.evaluate(prepare);
      await visitor.page.evaluate(`void (async () => (${WAYS[way]})())().catch(() => {})`);
      await until(() => visitor.page.evaluate(() => window.has_begun === true), `${way} is open`);
      return Object.assign(visitor, { way });
    }),
  );
}

/** Waits until so many messages have come over each way: each once, and in order. */
export async function receive(readers, count) {
  for (const { way, page } of readers) {
    const come = () => page.evaluate(() => window.received.length);
    await until(
      async () => (await come()) >= count,
      async () => `${count} messages over ${way}; ${await come()} came`,
    );
    const numbers = await page.evaluate(() => window.received);
    assert.deepEqual(numbers, Array.from({ length: count }, (_, n) => n), way);
  }
}
