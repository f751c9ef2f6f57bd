import type { Transport } from "pushlab-client";
import { expect, test } from "vitest";
import type { Measurement } from "./finding";
import { TRANSPORTS } from "./options";
import { verdict } from "./verdict";

function works(transport: Transport, change: Partial<Measurement> = {}): Measurement {
  const latencies_ms = transport === "polling" ? [400, 600, 500] : [2, 3, 2.5];
  return { transport, ok: true, latencies_ms, requests: 1, is_buffered: false, cuts: 0, ...change };
}

const fails = { ok: false, latencies_ms: [] };
const held = { ...fails, is_buffered: true };

test("all is well", () => {
  expect(verdict(TRANSPORTS.map((one) => works(one)))).toEqual([
    "All 5 transports work.",
    "A client would use WebSocket: messages take 2.50\u202fms there and back.",
  ]);
});

test("one transport alone", () => {
  expect(verdict([works("polling")])).toEqual([
    "Polling works.",
    "Messages take 500\u202fms there and back.",
  ]);
  expect(verdict([])).toEqual([]);
});

test("streams are held back", () => {
  const all = TRANSPORTS.map((one) =>
    works(one, one === "sse" || one === "http-streaming" ? held : {}),
  );
  const [first, second] = verdict(all);
  expect(first).toBe("WebSocket, long polling and polling work.");
  expect(second).toMatch(/^Server-Sent Events and HTTP streaming are held back by something/);
});

test("messages that all come, but in clumps, do not make a transport that works", () => {
  const sentences = verdict([works("websocket"), works("sse", { is_buffered: true })]);
  expect(sentences[0]).toBe("WebSocket works.");
  expect(sentences[1]).toMatch(/^Server-Sent Events are held back/);
});

test("what is refused does not get through", () => {
  const sentences = verdict([works("websocket", fails), works("sse")]);
  expect(sentences.slice(0, 2)).toEqual([
    "Server-Sent Events work.",
    "WebSocket does not get through.",
  ]);
});

test("no server", () => {
  const sentences = verdict(TRANSPORTS.map((one) => works(one, fails)));
  expect(sentences).toEqual([
    "Nothing gets through: the server does not answer, or something between refuses it.",
  ]);
});

test("a cut that lost nothing is told", () => {
  expect(verdict([works("sse", { cuts: 2 })])).toContain(
    "Server-Sent Events were cut meanwhile, resumed, and lost nothing.",
  );
});
