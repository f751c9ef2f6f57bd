import { expect, test } from "vitest";
import { ask } from "./http.ts";
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
