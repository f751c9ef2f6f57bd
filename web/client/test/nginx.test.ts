import { expect, onTestFinished, test } from "vitest";
import type { Transport } from "../src/pushlab.ts";
import { TIMING } from "../src/timing.ts";
import { TRANSPORTS } from "../src/transport.ts";
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

/** What transports ask for that a proxy may hinder, in the order of preference. */
const PATHS = ["/ws?", "/sse?", "/stream?"];

/** Within which better transports are tried, and have lived long enough to be trusted: the longest waits that users have,
 * and a busy machine. */
const CLIMBS_WITHIN = 1.25 * TIMING.climb + TRANSPORTS.length * TIMING.shortLife + 20_000;

/** How a client fared behind a proxy. */
interface Outcome {
  transport: Transport;
  /** Numbers that came, as they should. */
  isWhole: boolean;
  gaps: number;
  errors: unknown[];
}

// All at once: they wait most of the time, and each for the client's whole waits.
test(
  "behind nginx a client finds what gets through, and stays when it has tried what is better",
  async () => {
    const outcomes = await Promise.all(CASES.map(observe));
    for (const [at, outcome] of outcomes.entries()) {
      const { name, expected } = CASES[at] as Case;
      expect(outcome, name).toEqual({ transport: expected, isWhole: true, gaps: 0, errors: [] });
    }
  },
  60_000 + CLIMBS_WITHIN,
);

async function observe({ name, lines, rules, expected, interval }: Case): Promise<Outcome> {
  const server = await Server.start();
  const inner = await TcpProxy.start(server.port, rules);
  const base = await startNginx(Number(new URL(inner.base).port), lines);
  const subscriber = new Subscriber(base, { timing: TIMING });
  await until(() => subscriber.connection.state === "open", `${name}: it is open`);
  const stop = publishNumbers(server, interval);
  await subscriber.open(expected, 30_000);
  // Beside the transport in use, each better one is tried, and in the end is in use or is gone again.
  const before = inner.seen.length;
  const isTried = (path: string) => {
    const isOf = (line: string) => line.includes(path);
    const isOver = inner.seen.filter(isOf).length === inner.over.filter(isOf).length;
    return inner.seen.slice(before).some(isOf) && isOver;
  };
  const better = PATHS.slice(0, TRANSPORTS.indexOf(expected));
  const trials = () => `${name}: ${better} were tried; there was ${inner.seen.slice(before)}`;
  await until(() => better.every(isTried), trials, CLIMBS_WITHIN);
  const last = await stop();
  await subscriber.received(last);
  return {
    transport: subscriber.connection.transport,
    isWhole: subscriber.data.every((one, at) => one === at) && subscriber.data.length === last,
    gaps: subscriber.gaps.length,
    errors: subscriber.errors,
  };
}

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
