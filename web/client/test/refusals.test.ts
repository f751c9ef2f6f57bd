// What the table of codes says of a subscriber that is refused is what it does.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Transport } from "../src/pushlab.ts";
import { until } from "./server.ts";
import { speaker } from "./speaker.ts";
import { Subscriber } from "./subscriber.ts";

interface Row {
  name: string;
  number: number;
  retry: boolean;
  subscriber: string;
}

const TABLE = readFileSync(new URL("../../../schema/codes.toml", import.meta.url), "utf8");

function rows(kind: string): Row[] {
  const parts = TABLE.split(/^(?=\[\[)/m).filter((part) => part.startsWith(`[[${kind}]]`));
  const field = (part: string, name: string) =>
    new RegExp(`^${name} = "?([^"\\n]+)"?$`, "m").exec(part)?.[1];
  return parts.map((part) => ({
    name: field(part, "name") ?? "",
    number: Number(field(part, "(?:number|http_status)")),
    retry: field(part, "retry") === "true",
    subscriber:
      field(part, "subscriber") ?? (field(part, "retry") === "true" ? "goes-on" : "stops"),
  }));
}

const ERRORS = rows("error");
const HTTP: Transport[] = ["sse", "http-streaming", "long-polling", "polling"];

const refusal = ({ name, number }: Row) => ({
  status: number,
  type: "application/json",
  bytes: JSON.stringify({ error: name, message: `because of ${name}` }),
});

/** It has ended, and said why. */
async function stopped(subscriber: Subscriber, code: string) {
  await until(
    () => subscriber.connection.state === "closed",
    () => `it stops; there was ${JSON.stringify(subscriber.states.slice(-5))}`,
  );
  expect(subscriber.errors).toEqual([{ code, text: `because of ${code}` }]);
  expect(subscriber.states.at(-1)?.reason).toContain(`because of ${code}`);
}

test("the table was read", () => {
  expect(ERRORS.length).toBeGreaterThan(20);
  expect(ERRORS.filter(({ subscriber }) => subscriber === "stops").length).toBeGreaterThan(10);
});

describe.each(ERRORS.filter(({ subscriber }) => subscriber !== "goes-on"))("$name", (row) => {
  test("as an answer ends every transport over HTTP, and is told", async () => {
    const url = await speaker(() => refusal(row));
    await Promise.all(
      HTTP.map((transport) => stopped(new Subscriber(url, { transport }), row.name)),
    );
    const all = new Subscriber(url, { transport: HTTP });
    await stopped(all, row.name);
    const tried = all.states.filter(({ state }) => state === "connecting");
    expect(tried.length).toBe(row.subscriber === "stops" ? 1 : HTTP.length);
  });
});

describe.each(ERRORS.filter(({ subscriber }) => subscriber === "stops"))("$name", ({ name }) => {
  test.each([
    ["websocket", ""],
    ["http-streaming", "\n"],
    ["sse", "\n\n"],
  ] as const)("as a frame ends %s, and is told", async (transport, end) => {
    const frame = JSON.stringify(["error", name, `because of ${name}`]);
    const bytes = transport === "sse" ? `data:${frame}${end}` : `${frame}${end}`;
    const url = await speaker(() => ({ bytes, stays: true }));
    await stopped(new Subscriber(url, { transport }), name);
  });
});

test.each(ERRORS.filter(({ subscriber }) => subscriber === "goes-on"))(
  "$name is no reason to stop",
  async (row) => {
    const url = await speaker(() => ({ ...refusal(row) }));
    const timing = { retryMax: 10, retry: 10, retryMin: 1, poll: 5 };
    const subscriber = new Subscriber(url, { transport: "sse", timing });
    await until(() => subscriber.states.length > 8, "it goes on trying");
    expect(subscriber.connection.state).not.toBe("closed");
  },
);

test.each(rows("close"))("close code $number, $name", async ({ number, name, subscriber }) => {
  const url = await speaker(() => ({
    bytes: '["cursor","e.1"]',
    close: [number, `because of ${name}`],
  }));
  const timing = { retryMax: 10, retry: 10, retryMin: 1 };
  const one = new Subscriber(url, { transport: "websocket", timing });
  if (subscriber === "stops") return stopped(one, name);
  await until(() => one.states.length > 1, "it has been open");
  await until(() => one.states.some(({ reason }) => reason.includes(name)), "it was closed");
  expect(one.connection.state).not.toBe("closed");
  expect(one.errors).toEqual([]);
});

test.each([
  '["error","forbidden","because of forbidden"]',
  '["error","forbidden","because of forbidden","private"]',
])("a subscription that a WebSocket refuses is refused alone: %s", async (refusal) => {
  const url = await speaker(() => ({
    bytes: '["cursor","e.1"]',
    stays: true,
    answer: (frame) => {
      const [name, what] = JSON.parse(frame);
      if (name === "ping") return JSON.stringify(["pong", what]);
      if (name === "sub") return refusal;
      return undefined;
    },
  }));
  const subscriber = new Subscriber(url, { transport: "websocket" });
  await subscriber.open();
  subscriber.connection.subscribe("private");
  await until(() => subscriber.refused.length > 0, "it is refused");
  const text = "because of forbidden";
  expect(subscriber.refused).toEqual([{ channel: "private", code: "forbidden", text }]);
  expect(subscriber.connection.channels).toEqual(["a"]);
  expect([subscriber.lives, subscriber.errors]).toEqual([1, []]);
});

test("a poll of several channels that is refused, but none of them alone, is tried again later", async () => {
  const asked: string[] = [];
  const url = await speaker((address) => {
    asked.push(new URL(address, "http://host").searchParams.getAll("channel").join());
    if (!asked.at(-1)?.includes(",")) return { bytes: '[["cursor","e.1"]]' };
    const bytes = JSON.stringify({ error: "forbidden", message: "no rule for a" });
    return { status: 403, bytes };
  });
  const timing = { retry: 10, retryMax: 10, retryMin: 1 };
  const subscriber = new Subscriber(url, { transport: "polling", channels: ["a", "b"], timing });
  await until(() => asked.length >= 6, "it has tried twice");
  expect([asked.slice(0, 3).sort(), asked[3]]).toEqual([["a", "a,b", "b"], "a,b"]);
  expect(subscriber.states.some(({ state }) => state === "waiting")).toBe(true);
  expect([subscriber.errors, subscriber.refused]).toEqual([[], []]);
  expect(subscriber.connection.channels).toEqual(["a", "b"]);
});
