import { describe, expect, onTestFinished, test } from "vitest";
import type { Transport } from "../src/pushlab.ts";
import { TIMING } from "../src/timing.ts";
import { PASS_UPGRADES, startNginx } from "./nginx.ts";
import { type Rule, TcpProxy } from "./proxy.ts";
import { Server, until } from "./server.ts";
import { Subscriber } from "./subscriber.ts";

/** Holds back what comes behind the first bytes, whatever the server asks for, until there is much of it or it ends;
 * nginx does so in HTTP/1.0, its default, where it cannot tell how much is still to come. */
const BUFFERING = `
  proxy_buffering on;
  proxy_ignore_headers X-Accel-Buffering;
  proxy_buffer_size 64k;
  proxy_buffers 8 64k;
  proxy_busy_buffers_size 64k;`;

const CUT: Rule = { path: / \/(ws|sse|stream)\?/, what: "cut", after: 5_000 };

interface Case {
  name: string;
  /** How nginx is a proxy. */
  lines: string;
  /** What stands between it and the server. */
  rules?: Rule[];
  expected: Transport;
  /** Milliseconds between two publications. */
  interval: number;
}

/** Longer than anything here takes. */
const QUIET = 60_000;

const CASES: Case[] = [
  { name: "everything is passed on", lines: PASS_UPGRADES, expected: "websocket", interval: 50 },
  { name: "upgrades are refused", lines: "", expected: "sse", interval: 50 },
  {
    name: "upgrades are refused and buffering is on",
    lines: BUFFERING,
    expected: "long-polling",
    interval: 50,
  },
  {
    name: "what is quiet for 5 s is cut",
    lines: `${PASS_UPGRADES} proxy_read_timeout 5s;`,
    expected: "long-polling",
    interval: QUIET,
  },
  {
    name: "upgrades are refused and what is quiet for 5 s is cut",
    lines: "proxy_read_timeout 5s;",
    expected: "long-polling",
    interval: QUIET,
  },
  {
    name: "WebSockets and streams are cut after 5 s, busy as they are",
    lines: PASS_UPGRADES,
    rules: [CUT],
    expected: "long-polling",
    interval: 50,
  },
  {
    name: "upgrades are refused and streams are cut after 5 s, busy as they are",
    lines: "",
    rules: [CUT],
    expected: "long-polling",
    interval: 50,
  },
];

/** How long the client must stay where it settled: longer than until it has tried what is better. */
const STAYS = 15_000;

describe("behind nginx, with the waits that users have, settles within ten seconds where", () => {
  test.each(CASES)("$name", { timeout: 60_000 }, async (example) => {
    const server = await Server.start();
    const inner = await TcpProxy.start(server.port, example.rules);
    const base = await startNginx(Number(new URL(inner.base).port), example.lines);
    const began = performance.now();
    const subscriber = new Subscriber(base, { timing: TIMING });
    let settledAt = 0;
    subscriber.connection.addEventListener("state", () => {
      settledAt = performance.now();
    });
    await until(() => subscriber.connection.state === "open", "it is open");
    const stop = publishNumbers(server, example.interval);
    await subscriber.open(example.expected, 10_000);
    await new Promise((resolve) => setTimeout(resolve, STAYS));
    const last = await stop();
    await subscriber.received(last);
    const took = Math.round(settledAt - began);
    console.info(`${example.name}: ${example.expected} after ${took} ms, ${last} messages`);
    expect(took).toBeLessThan(10_000);
    expect(subscriber.connection.transport).toBe(example.expected);
    expect(subscriber.data).toEqual(Array.from({ length: last }, (_, n) => n));
    expect([subscriber.gaps, subscriber.errors]).toEqual([[], []]);
  });
});

/** Publishes 0, 1, 2 …, one each `interval` milliseconds, and one more when it is stopped; then it says how many there
 * were. */
function publishNumbers(server: Server, interval: number): () => Promise<number> {
  let next = 0;
  let isOver = false;
  let wake = () => {};
  const work = (async () => {
    while (!isOver) {
      await server.publish("a", next++);
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, interval);
      });
    }
    await server.publish("a", next++);
  })();
  const stop = async () => {
    isOver = true;
    wake();
    await work;
    return next;
  };
  onTestFinished(async () => void (await stop()));
  return stop;
}
