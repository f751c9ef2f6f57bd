import { describe, expect, test } from "vitest";
import type { Timing } from "../src/pushlab.ts";
import { type Rule, TcpProxy } from "./proxy.ts";
import { Server, until } from "./server.ts";
import { Subscriber } from "./subscriber.ts";

const UPGRADES = / \/ws\?/;
const STREAMS = / \/(sse|stream)\?/;

/** Settles within ten seconds with the waits that users have, and delivers. */
async function settles(rules: Rule[], transport: Subscriber["connection"]["transport"]) {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port, rules);
  const { TIMING } = await import("../src/timing.ts");
  const subscriber = new Subscriber(proxy.base, { timing: TIMING });
  await subscriber.open(transport, 10_000);
  await server.publish("a", "through");
  await subscriber.received(1);
  expect(subscriber.data).toEqual(["through"]);
  return { server, proxy, subscriber };
}

describe("settles within ten seconds where", () => {
  test("nothing is in the way", async () => {
    const { subscriber } = await settles([], "websocket");
    expect(subscriber.lives).toBe(1);
  });

  test("an upgrade is refused", async () => {
    const { proxy } = await settles([{ path: UPGRADES, what: "refuse" }], "sse");
    expect(proxy.seen.map((line) => /\/\w+/.exec(line)?.[0])).toEqual(["/ws", "/sse"]);
  });

  test("an upgrade is never answered", async () => {
    await settles([{ path: UPGRADES, what: "swallow" }], "sse");
  });

  test("upgrades are never answered and streams are held back to their end", async () => {
    const rules: Rule[] = [
      { path: UPGRADES, what: "swallow" },
      { path: STREAMS, what: "buffer" },
    ];
    await settles(rules, "long-polling");
  });

  test("event streams are held back, but lines are not", async () => {
    const rules: Rule[] = [
      { path: UPGRADES, what: "refuse" },
      { path: / \/sse\?/, what: "buffer" },
    ];
    await settles(rules, "http-streaming");
  });

  test("streams are cut after a short life", async () => {
    const rules: Rule[] = [
      { path: UPGRADES, what: "refuse" },
      { path: STREAMS, what: "cut-open", after: 5000 },
    ];
    await settles(rules, "long-polling");
  });
});

/** For tests in which attempts have to fail by time: on a busy machine some fail that need not have. */
const SHORT: Partial<Timing> = { open: 300, shortLife: 400, climb: 400 };
/** Longer than a test: for those in which nothing fails by time. */
const NEVER = 60_000;

test("loses nothing and doubles nothing while connections are cut and transports change", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port, [
    { path: / \/(ws|sse|stream)\?/, what: "cut-open", after: 60 },
  ]);
  // A life is short however late its end is seen, and no attempt takes too long.
  const timing = { open: NEVER, shortLife: 1_000, climb: 400 };
  const subscriber = new Subscriber(proxy.base, { timing });
  let sent = 0;
  await until(() => subscriber.connection.state === "open", "it is open");
  await until(async () => {
    await server.publish("a", sent++);
    return (
      subscriber.connection.transport === "long-polling" && subscriber.connection.state === "open"
    );
  }, "it goes down to long polling");
  await server.publish("a", sent++);
  proxy.rules = [];
  await until(async () => {
    await server.publish("a", sent++);
    return subscriber.connection.transport === "websocket";
  }, "it comes back up");
  await server.publish("a", sent++);
  await subscriber.received(sent);
  expect(subscriber.data).toEqual(Array.from({ length: sent }, (_, n) => n));
  const used = subscriber.states.filter(({ state }) => state === "open");
  const order = used
    .map(({ transport }) => transport)
    .filter((one, at, all) => one !== all[at - 1]);
  expect(order).toEqual(["websocket", "long-polling", "websocket"]);
  expect(subscriber.gaps).toEqual([]);
});

test("long polls that are cut while held give way to short ones", async () => {
  const server = await Server.start();
  const rule: Rule = { path: / \/poll\?/, what: "cut", after: 100 };
  const proxy = await TcpProxy.start(server.port, [rule]);
  const transport = ["long-polling", "polling"] as const;
  const subscriber = new Subscriber(proxy.base, { transport, timing: { ...SHORT, climb: NEVER } });
  await until(() => subscriber.connection.transport === "polling", "it polls");
  await server.publish("a", 1);
  await subscriber.received(1);
});

test("tries what is better beside the connection in use", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port, [{ path: UPGRADES, what: "swallow" }]);
  const subscriber = new Subscriber(proxy.base, { timing: SHORT });
  await subscriber.open("sse");
  const upgrades = () => proxy.seen.filter((line) => UPGRADES.test(line)).length;
  const [before, lives] = [upgrades(), subscriber.lives];
  await until(() => upgrades() >= before + 2, "two climbs were tried");
  expect(subscriber.lives, "the stream was never left").toBe(lives);
  proxy.rules = [];
  await subscriber.open("websocket");
  await server.publish("a", 1);
  await subscriber.received(1);
  expect(subscriber.data).toEqual([1]);
});

test("stays with the transport that works when it is cut", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port, [{ path: UPGRADES, what: "refuse" }]);
  // An attempt that takes too long would be another reason to step down.
  const timing = { open: NEVER, shortLife: 0, climb: NEVER };
  const subscriber = new Subscriber(proxy.base, { timing });
  await subscriber.open("sse");
  proxy.cut();
  await until(() => subscriber.lives === 2, "it is open again");
  expect(proxy.seen.map((line) => /\/\w+/.exec(line)?.[0])).toEqual(["/ws", "/sse", "/sse"]);
});

test("comes back after the server was away for long, and climbs back soon", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port);
  const subscriber = new Subscriber(proxy.base, { timing: { open: 300, climb: 500 } });
  await subscriber.open("websocket");
  proxy.down();
  const tried = () => new Set(subscriber.states.map(({ transport }) => transport)).size;
  await until(() => tried() === 5, "every transport was tried");
  await server.publish("a", 1);
  proxy.restore();
  await subscriber.open("websocket");
  await subscriber.received(1);
  expect(subscriber.data).toEqual([1]);
});

test("a draining server blames no transport", async () => {
  const server = await Server.start(["--max-connections", "1"]);
  const first = new Subscriber(server.base, { transport: "sse" });
  await first.open();
  const second = new Subscriber(server.base, { transport: ["sse", "polling"] });
  await until(() => second.states.some(({ state }) => state === "waiting"), "it is refused");
  const refused = second.states.find(({ state }) => state === "waiting");
  expect(refused?.transport).toBe("sse");
  expect(refused?.reason).toContain("too-many-connections");
  first.connection.close();
  await second.open("sse");
});

test("a stream whose server falls silent is dead after two heartbeats", async () => {
  const server = await Server.start(["--heartbeat", "100ms"]);
  const proxy = await TcpProxy.start(server.port);
  for (const transport of ["sse", "http-streaming"] as const) {
    const subscriber = new Subscriber(proxy.base, { transport, timing: { heartbeat: 200 } });
    await subscriber.open();
    const before = subscriber.states.length;
    proxy.stall();
    await until(() => subscriber.states.length > before, "silence is noticed");
    expect(subscriber.states[before]?.reason).toContain("silent");
    proxy.restore();
    await subscriber.open();
    subscriber.connection.close();
  }
});

test("a server says how long it may be silent", async () => {
  const server = await Server.start(["--heartbeat", "2s"]);
  const proxy = await TcpProxy.start(server.port);
  const transports = ["websocket", "sse", "http-streaming"] as const;
  const all = transports.map((transport) => new Subscriber(proxy.base, { transport }));
  await Promise.all(all.map((subscriber) => subscriber.open()));
  // Longer than it may be silent: its heartbeats, or its pongs, come through.
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  expect(all.map(({ lives }) => lives)).toEqual([1, 1, 1]);
  proxy.stall();
  await until(() => all.every(({ states }) => states.length > 2), "silence is noticed");
  for (const [at, { states }] of all.entries()) {
    // The client's own heartbeat is longer than anybody waited.
    const [, silence] = /^silent for (\d+) ms$/.exec(states[2]?.reason ?? "") ?? [];
    expect(Number(silence), transports[at]).toBeGreaterThanOrEqual(4_000);
  }
  proxy.restore();
  await Promise.all(all.map((subscriber) => subscriber.open()));
});

test("a WebSocket is pinged, and dead when no pong comes", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port);
  const timing = { heartbeat: 150, request: 200 };
  const subscriber = new Subscriber(proxy.base, { transport: "websocket", timing });
  await subscriber.open();
  expect(subscriber.connection.latency).toBe(undefined);
  const isOpen = () => subscriber.connection.state === "open";
  await until(
    () => isOpen() && subscriber.connection.latency !== undefined,
    "a ping came back, and it is open",
  );
  const lives = subscriber.lives;
  proxy.stall();
  const publication = subscriber.connection.publish("a", 1);
  await expect(publication).rejects.toMatchObject({ code: "connection-lost" });
  proxy.restore();
  await until(() => subscriber.lives > lives, "it is open again");
});
