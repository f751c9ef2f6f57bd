import { expect, test } from "vitest";
import { MAX_TEXT_LENGTH } from "./frames.ts";
import { ask, readText } from "./http.ts";
import { EventStreamDecoder, LineDecoder } from "./stream-decoders.ts";
import { TIMING } from "./timing.ts";

test.each([
  ["text/event-stream", true],
  ["Text/Event-Stream; Charset=UTF-8", true],
  ["TEXT/EVENT-STREAM ;x", true],
  ["text/event-stream-like", false],
  ["text/html; x=text/event-stream", false],
])("%s is an event stream: %j", async (type, isTaken) => {
  const fake = async () => new Response("", { headers: { "content-type": type } });
  const environment = { fetch: fake, WebSocket: undefined, tokens: undefined, timing: TIMING };
  const answer = ask(environment, "http://host/sse", "text/event-stream", {});
  const what = await answer.then(
    ({ status }) => status,
    ({ message }) => message,
  );
  expect(what).toBe(isTaken ? 200 : `http://host/sse: status 200, ${type}`);
});

test("a message may be as long as a server can be told to take", async () => {
  expect(MAX_TEXT_LENGTH).toBeGreaterThan(2 ** 24);
  const [start, middle, end] = ['["msg","a","e.1","', "x".repeat(3 * 2 ** 20), '"]'];
  const text = start + middle + end;
  expect(await readText(new Response(text))).toHaveLength(text.length);
  const lines = new LineDecoder();
  const frames = [start, middle, `${end}\n`].flatMap((part) => lines.push(part));
  expect(frames).toEqual([["msg", "a", "e.1", middle]]);
  const events = new EventStreamDecoder();
  const parts = ['id:e.1\ndata:["msg","a","', middle, `${end}\n\n`];
  expect(parts.flatMap((part) => events.push(part))).toEqual(frames);
});
