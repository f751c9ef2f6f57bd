// Tokens and refused channels, with a server that has an access file.

import { describe, expect, test } from "vitest";
import type { Transport } from "../src/pushlab.ts";
import { guarded, member, token } from "./access.ts";
import { Server, until } from "./server.ts";
import type { Subscriber } from "./subscriber.ts";

const ALL: Transport[] = ["websocket", "sse", "http-streaming", "long-polling", "polling"];
const HTTP = ALL.slice(1);
const STREAMS = ["sse", "http-streaming"];

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Publishes numbers until a condition holds; each of these subscribers gets each once, in order. */
async function publishUntil(server: Server, all: Subscriber[], condition: () => boolean) {
  await Promise.all(all.map((subscriber) => subscriber.open()));
  const publisher = member(server, { channels: [], getToken: () => token("ada", 600) });
  await publisher.open("websocket");
  let sent = 0;
  await until(
    async () => {
      await publisher.connection.publish("ada:a", sent++);
      return condition();
    },
    () => `tokens were renewed; there was ${all.map(reasons).join("\n")}`,
    45_000,
  );
  await Promise.all(all.map((subscriber) => subscriber.received(sent)));
  for (const { data, gaps, errors } of all) {
    expect(data).toEqual(numbers(sent));
    expect([gaps, errors]).toEqual([[], []]);
  }
}

const isPolling = (transport: Transport) => transport.endsWith("polling");

const reasons = ({ states }: Subscriber) => states.map(({ reason }) => reason).join("; ");

const hasExpired = (subscriber: Subscriber) => /token-expired|4004/.test(reasons(subscriber));

test("a token is renewed before it expires, over and over, and nothing is lost", {
  timeout: 60_000,
}, async () => {
  const server = await guarded(6);
  const calls = { websocket: 0, sse: 0, "http-streaming": 0, "long-polling": 0, polling: 0 };
  const all = ALL.map((transport) => {
    const getToken = () => {
      calls[transport]++;
      return token("ada", 7);
    };
    return member(server, { transport, getToken });
  });
  const isEnough = (transport: Transport) => calls[transport] > (isPolling(transport) ? 1 : 2);
  await publishUntil(server, all, () => ALL.every(isEnough));
  for (const subscriber of all) {
    const { transport } = subscriber.connection;
    if (transport === "websocket") expect(subscriber.lives).toBe(1);
    if (STREAMS.includes(transport)) expect(reasons(subscriber)).toContain("another token");
    // Polls hear of it from the poll that is refused.
    expect(reasons(subscriber).includes("token-expired")).toBe(isPolling(transport));
  }
});

test("where there is no other before a token expires, there is one at once afterwards", {
  timeout: 60_000,
}, async () => {
  const server = await guarded(1);
  const first = token("ada", 6);
  const all = ALL.map((transport) => {
    // By what the client was told and not by the clock, which may be past the end before the server says so.
    const getToken = () => (hasExpired(subscriber) ? token("ada", 600) : first);
    const subscriber: Subscriber = member(server, { transport, getToken });
    return subscriber;
  });
  const isRenewed = (subscriber: Subscriber) =>
    subscriber.lives > 1 && subscriber.connection.state === "open";
  await publishUntil(server, all, () => all.every(isRenewed));
  for (const subscriber of all) {
    expect(hasExpired(subscriber)).toBe(true);
    expect(subscriber.states.map(({ state }) => state)).not.toContain("waiting");
  }
});

test("a WebSocket that is refused without a word takes another token", async () => {
  const server = await guarded(1);
  const first = token("ada", 5);
  const others = ["wrong", token("ada", -10), token("ada", 600)];
  const getToken = () => (hasExpired(subscriber) ? (others.shift() ?? "") : first);
  const subscriber: Subscriber = member(server, { transport: "websocket", getToken });
  await until(() => subscriber.lives === 2, "it is open again");
  expect([others, subscriber.errors]).toEqual([[], []]);
});

test.each(ALL)("%s goes on without the channels that are refused", async (transport) => {
  const server = await guarded();
  const channels = ["bob:a", "ada:a", "bob:b", "ada:b"];
  const getToken = () => token("ada", 600);
  const subscriber = member(server, { transport, channels, getToken });
  const { connection } = subscriber;
  await until(() => subscriber.refused.length === 2, "two are refused");
  await subscriber.open();
  expect(subscriber.refused.map(({ channel, code }) => [channel, code])).toEqual([
    ["bob:a", "forbidden"],
    ["bob:b", "forbidden"],
  ]);
  for (const { channel, text } of subscriber.refused) expect(text).toContain(channel);
  expect(connection.channels).toEqual(["ada:a", "ada:b"]);
  connection.subscribe("bob:c");
  await until(() => subscriber.refused.length === 3, "one that is added is refused");
  await subscriber.open();
  for (const channel of ["bob:a", "bob:c", "ada:a", "ada:b"])
    await server.publish(channel, channel);
  await subscriber.received(2);
  expect(subscriber.data).toEqual(["ada:a", "ada:b"]);
  expect(subscriber.errors).toEqual([]);
  if (transport === "websocket") expect(subscriber.lives).toBe(1);
});

test.each(ALL)("%s waits for another channel where none is left", async (transport) => {
  const server = await guarded();
  const getToken = () => token("ada", 600);
  const isSocket = transport === "websocket";
  // A handshake for nothing else would be refused, and nobody could tell why.
  const channels = isSocket ? [] : ["bob:a", "bob:b"];
  const subscriber = member(server, { transport, channels, getToken });
  const { connection } = subscriber;
  if (isSocket) {
    await subscriber.open();
    for (const channel of ["bob:a", "bob:b"]) connection.subscribe(channel);
  }
  await until(() => subscriber.refused.length === 2, "both are refused");
  expect(connection.channels).toEqual([]);
  await until(() => connection.state === (isSocket ? "open" : "waiting"), "it waits");
  if (!isSocket) expect(subscriber.states.at(-1)?.reason).toBe("no channel");
  connection.subscribe("ada:a");
  await subscriber.open();
  await until(async () => {
    await server.publish("ada:a", 1);
    return subscriber.data.length > 0;
  }, "it hears of the new channel");
  expect(subscriber.errors).toEqual([]);
});

test("a token that allows less loses channels, one by one", { timeout: 60_000 }, async () => {
  const server = await guarded(6);
  const all = ALL.slice(0, 3).map((transport) => {
    const tokens = [token("ada", 7, { role: "editor" }), token("ada", 600)];
    const getToken = () => tokens.shift() ?? "";
    return member(server, { transport, channels: ["desk", "ada:a"], getToken });
  });
  await publishUntil(server, all, () => all.every(({ refused }) => refused.length > 0));
  for (const { connection, refused, lives } of all) {
    expect(refused.map(({ channel }) => channel)).toEqual(["desk"]);
    expect(connection.channels).toEqual(["ada:a"]);
    expect(lives).toBe(connection.transport === "websocket" ? 1 : 2);
  }
});

test("somebody else's token is for another connection", { timeout: 60_000 }, async () => {
  const server = await guarded(6);
  const tokens = [token("ada", 7), token("bob", 600)];
  const getToken = () => tokens.shift() ?? "";
  const channels = ["club", "ada:a"];
  const subscriber = member(server, { transport: "websocket", channels, getToken });
  await until(() => subscriber.refused.length > 0, "Bob may not hear Ada's");
  await subscriber.open();
  expect([subscriber.lives, subscriber.connection.channels]).toEqual([2, ["club"]]);
  expect(reasons(subscriber)).toContain("forbidden");
  expect(subscriber.errors).toEqual([]);
});

test.each(ALL.slice(0, 4))("%s ends for good when the back end says so", async (transport) => {
  const server = await guarded();
  let calls = 0;
  const getToken = () => {
    calls++;
    return token("ada", 600);
  };
  const subscriber = member(server, { transport, getToken });
  await subscriber.open();
  if (transport === "long-polling")
    await until(async () => (await server.stats()).held_polls === 1, "the poll is held");
  await fetch(`${server.base}/api/disconnect`, {
    method: "POST",
    headers: { ...server.fields, "content-type": "application/json" },
    body: '{"identity":"ada"}',
  });
  await until(() => subscriber.connection.state === "closed", "it is closed");
  expect(subscriber.errors.map(({ code }) => code)).toEqual(["disconnected"]);
  expect(calls).toBe(1);
});

describe.each([
  ["throws", () => Promise.reject(new TypeError(token("ada", 600))), "failed: TypeError"],
  [
    "throws at once",
    () => {
      throw "nothing";
    },
    "failed: string",
  ],
  ["hangs", () => new Promise<string>(() => {}), "gave nothing within 150 ms"],
  ["gives nothing", () => undefined, "gave no token"],
  ["gives a number", () => 42, "gave no token"],
  ["gives an object", () => ({ token: token("ada", 600) }), "gave no token"],
  ["gives an empty text", () => "", "gave no token"],
  ["gives two tokens", () => `${token("ada", 600)} ${token("ada", 600)}`, "gave no token"],
  ["gives a field", () => `${token("ada", 600)}\r\nCookie: a=b`, "gave no token"],
  ["gives too much", () => "x".repeat(5000), "gave no token"],
] as [string, () => never, string][])("a getToken that %s", (_, nonsense, reason) => {
  test("is a failed attempt; the next one may succeed", async () => {
    const server = await guarded();
    let [calls, running, most] = [0, 0, 0];
    const getToken = async (signal: AbortSignal) => {
      most = Math.max(most, ++running);
      signal.addEventListener("abort", () => running--);
      const given = await (calls++ < 2 ? nonsense : () => token("ada", 600))();
      running--;
      return given;
    };
    const subscriber = member(server, { getToken, timing: { request: 150 } });
    const failed = () => subscriber.states.filter(({ state }) => state === "waiting");
    const { connection } = subscriber;
    // What waits for the same call fails with it.
    await expect(connection.publish("ada:a", 1)).rejects.toMatchObject({
      code: expect.stringMatching(/^(no-token|timeout)$/),
    });
    await subscriber.open("websocket");
    expect(failed().map((state) => state.reason)).toEqual(
      Array(2).fill(`no-token: getToken ${reason}`),
    );
    expect([calls, subscriber.errors]).toEqual([3, []]);
    if (reason.startsWith("gave nothing")) expect(most).toBe(1);
    await connection.publish("ada:a", 2);
    await subscriber.received(1);
  });
});

describe.each(HTTP)("%s", (transport) => {
  test("asks for another token once where one is refused, then gives up", async () => {
    const server = await guarded();
    let calls = 0;
    const getToken = () => `wrong${calls++}`;
    const subscriber = member(server, { transport, getToken });
    await until(() => subscriber.connection.state === "closed", "it gives up");
    expect(calls).toBe(2);
    expect(subscriber.errors.map(({ code }) => code)).toEqual(["unauthorized"]);
  });

  test("gives up at once where nobody can give it another", async () => {
    const server = await guarded();
    const subscriber = member(server, { transport });
    await until(() => subscriber.connection.state === "closed", "it gives up");
    expect(subscriber.errors.map(({ code }) => code)).toEqual(["unauthorized"]);
    expect(subscriber.states.filter(({ state }) => state === "connecting").length).toBe(1);
  });

  test("goes on asking where tokens have expired already", async () => {
    const server = await guarded();
    let calls = 0;
    const getToken = () => token("ada", calls++ < 4 ? -10 : 600);
    const subscriber = member(server, { transport, getToken });
    await subscriber.open();
    const states = subscriber.states.map(({ state }) => state);
    expect([calls, subscriber.errors]).toEqual([5, []]);
    expect(states.slice(0, 3)).toEqual(["connecting", "connecting", "waiting"]);
  });
});

test("an old token at the beginning does not end the way down", async () => {
  const server = await guarded();
  const tokens = [token("ada", -10), token("ada", 600)];
  const subscriber = member(server, { getToken: () => tokens.shift() ?? "" });
  await subscriber.open("sse");
  expect(subscriber.errors).toEqual([]);
});

test("what is posted waits for a token, and for another where that one is refused", async () => {
  const server = await guarded();
  let calls = 0;
  const tokens = [token("ada", -10), token("ada", 600)];
  const getToken = async () => {
    calls++;
    await new Promise((resolve) => setTimeout(resolve, 20));
    return tokens.shift() ?? "wrong";
  };
  const { connection } = member(server, { transport: "polling", channels: [], getToken });
  await until(() => connection.state === "waiting", "it is idle");
  expect(calls).toBe(0);
  await Promise.all(numbers(10).map((n) => connection.publish("ada:a", n)));
  expect(await connection.echo([1])).toEqual([1]);
  expect(calls).toBe(2);
  await expect(connection.publish("bob:a", 1)).rejects.toMatchObject({ code: "forbidden" });
  const wrong = member(server, { transport: "polling", channels: [], getToken: () => "wrong" });
  await expect(wrong.connection.publish("ada:a", 1)).rejects.toMatchObject({
    code: "unauthorized",
  });
  expect(wrong.connection.state).toBe("waiting");
  const signals: AbortSignal[] = [];
  const hangs = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<string>(() => {});
  };
  const held = member(server, { transport: "sse", getToken: hangs });
  const publication = held.connection.publish("ada:a", 1);
  await until(() => signals.length > 0, "it is asked");
  held.connection.close();
  await expect(publication).rejects.toMatchObject({ code: "closed" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test("a server without an access file takes what it did not ask for", async () => {
  const server = await Server.start();
  for (const transport of ALL) {
    const subscriber = member(server, { transport, getToken: () => token("ada", 600) });
    await subscriber.open(transport);
    await subscriber.connection.publish("ada:a", 1);
    await subscriber.received(1);
  }
});
