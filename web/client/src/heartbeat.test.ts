import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Connection, Socket, State, Transport } from "./pushlab.ts";
import { connect } from "./pushlab.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The frame by which a server announces its heartbeat; one of version 1 has none. */
const announcement = (heartbeat?: number) =>
  heartbeat === undefined
    ? []
    : [`["server",{"heartbeat_ms":${heartbeat},"max_message_bytes":65536,"max_channels":64}]`];

const TYPES = { sse: "text/event-stream", "http-streaming": "application/x-ndjson" };
type Stream = keyof typeof TYPES;

/** A connection over a stream that begins properly; what `beat` says comes later. */
async function overStream(transport: Stream, heartbeat?: number) {
  const asked: string[] = [];
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  const say = (text: string) => body?.enqueue(new TextEncoder().encode(text));
  const isEvents = transport === "sse";
  const beat = () => say(isEvents ? "id:e.1\n\n" : '["cursor","e.1"]\n');
  const fake = async (address: unknown) => {
    asked.push(`${address}`);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        body = controller;
      },
    });
    for (const frame of announcement(heartbeat)) say(isEvents ? `data:${frame}\n\n` : `${frame}\n`);
    beat();
    return new Response(stream, { headers: { "content-type": TYPES[transport] } });
  };
  const options = { channels: ["a"], transport, fetch: fake as typeof fetch };
  const { connection, states } = watched(connect("http://host", options));
  await vi.advanceTimersByTimeAsync(1000);
  beat();
  await vi.advanceTimersByTimeAsync(0);
  expect(connection.state).toBe("open");
  return { connection, states, asked, beat };
}

function watched(connection: Connection) {
  const states: State[] = [];
  connection.addEventListener("state", ({ state }) => states.push(state));
  connection.addEventListener("error", ({ code, text }) => expect.fail(`${code}: ${text}`));
  return { connection, states };
}

/** Milliseconds until it is open no more, in steps of 50. */
async function death(connection: Connection, within: number): Promise<number> {
  for (let at = 0; at < within; at += 50) {
    if (connection.state !== "open") return at;
    await vi.advanceTimersByTimeAsync(50);
  }
  return Number.POSITIVE_INFINITY;
}

test.each<[Stream, number | undefined, number, number]>([
  ["sse", 1_000, 2_000, 2_600],
  ["http-streaming", 1_000, 2_000, 2_600],
  ["sse", 60_000, 120_000, 133_000],
  ["http-streaming", 60_000, 120_000, 133_000],
  // A server that announces nothing beats every 25 s.
  ["sse", undefined, 50_000, 63_000],
  ["http-streaming", undefined, 50_000, 63_000],
])("%s with a heartbeat of %j ms is dead after %i ms", async (transport, heartbeat, from, to) => {
  const { connection, states, asked, beat } = await overStream(transport, heartbeat);
  expect(new URL(asked[0] as string).searchParams.get("v")).toBe("2");
  // It lives as long as the server beats, if a little late.
  for (let count = 0; count < 20; count++) {
    await vi.advanceTimersByTimeAsync((heartbeat ?? 25_000) + 200);
    beat();
  }
  await vi.advanceTimersByTimeAsync(0);
  expect([states.length, connection.state]).toEqual([2, "open"]);
  const silence = await death(connection, 300_000);
  expect(silence).toBeGreaterThanOrEqual(from);
  expect(silence).toBeLessThanOrEqual(to);
  connection.close();
});

test("the heartbeat of one connection is not that of the next", async () => {
  let heartbeat: number | undefined = 1_000;
  const fake = async () => {
    const frames = [...announcement(heartbeat), '["cursor","e.1"]', '["cursor","e.1"]'];
    heartbeat = undefined;
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(`${frames.join("\n")}\n`)),
    });
    return new Response(stream, { headers: { "content-type": TYPES["http-streaming"] } });
  };
  const transport: Transport = "http-streaming";
  const options = { channels: ["a"], transport, fetch: fake as typeof fetch };
  const { connection } = watched(connect("http://host", options));
  await vi.advanceTimersByTimeAsync(0);
  expect(await death(connection, 10_000)).toBeLessThanOrEqual(2_600);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(connection.state).toBe("open");
  expect(await death(connection, 100_000)).toBeGreaterThan(45_000);
  connection.close();
});

/** A server's end of a WebSocket whose answers take so long; it stops to answer when `isSilent`. */
function sockets(heartbeat: number | undefined, delay: number) {
  const server = { isSilent: false, pings: 0, addresses: [] as string[] };
  class FakeSocket extends EventTarget implements Socket {
    readonly bufferedAmount = 0;

    constructor(address: string) {
      super();
      server.addresses.push(address);
      setTimeout(() => {
        for (const frame of [...announcement(heartbeat), '["cursor","e.1"]']) this.#say(frame);
      }, 1);
    }

    send(text: string): void {
      const [name, n] = JSON.parse(text);
      if (name !== "ping" || server.isSilent) return;
      server.pings++;
      setTimeout(() => this.#say(`["pong",${n}]`), delay);
    }

    close(): void {}

    #say(data: string): void {
      this.dispatchEvent(new MessageEvent("message", { data }));
    }
  }
  return { server, WebSocket: FakeSocket };
}

test.each([
  [1_000, 900, 1, 2_000, 3_700],
  // Slower than the client pings: the pongs say that it lives, and a missing one that it does not.
  [60_000, 900, 25, 25_000, 50_000],
  [undefined, 900, 25, 25_000, 50_000],
  // No server's clock is that fine.
  [1, 400, 0.5, 1_000, 2_000],
])("a WebSocket with a heartbeat of %j ms and answers after %i ms", async (...row) => {
  const [heartbeat, delay, seconds, from, to] = row;
  const { server, WebSocket } = sockets(heartbeat, delay);
  const options = { channels: ["a"], transport: "websocket", WebSocket } as const;
  const { connection, states } = watched(connect("http://host", options));
  await vi.advanceTimersByTimeAsync(300_000);
  expect([states, server.addresses]).toEqual([
    ["connecting", "open"],
    ["ws://host/ws?channel=a&v=2"],
  ]);
  expect(server.pings).toBeGreaterThan(300 / seconds / 3);
  expect(server.pings).toBeLessThan((300 / seconds) * 2.1);
  server.isSilent = true;
  const silence = await death(connection, 100_000);
  expect(silence).toBeGreaterThanOrEqual(from - 1_000);
  expect(silence).toBeLessThanOrEqual(to);
  connection.close();
});

test.each([-3_600_000, 3_600_000])(
  "silence and latency do not depend on the computer's clock, which is put by %i ms",
  async (change) => {
    const streams = [await overStream("sse", 1_000), await overStream("http-streaming", 1_000)];
    const { server, WebSocket } = sockets(1_000, 10);
    const options = { channels: ["a"], transport: "websocket", WebSocket } as const;
    const timing = { request: 1_000 };
    const socket = watched(connect("http://host", { ...options, timing }));
    await vi.advanceTimersByTimeAsync(100);
    vi.setSystemTime(Date.now() + change);
    for (let count = 0; count < 5; count++) {
      await vi.advanceTimersByTimeAsync(900);
      for (const { beat } of streams) beat();
    }
    const all = [...streams, socket];
    expect(all.map(({ states }) => states)).toEqual(all.map(() => ["connecting", "open"]));
    expect(socket.connection.latency).toBe(10);
    vi.setSystemTime(Date.now() + change);
    server.isSilent = true;
    const silences = all.map(({ connection }) => death(connection, 5_000));
    expect(Math.max(...(await Promise.all(silences)))).toBeLessThan(5_000);
    for (const { connection } of all) connection.close();
  },
);

// After the thread was blocked, timers are called first, and then what came meanwhile.
test.each<Stream>(["sse", "http-streaming"])(
  "%s lives if what waits says so",
  async (transport) => {
    const { connection, states, beat } = await overStream(transport, 1_000);
    for (let count = 0; count < 10; count++) {
      const silentFrom = performance.now();
      while (performance.now() < silentFrom + 2_000) await vi.advanceTimersToNextTimerAsync();
      beat();
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(states).toEqual(["connecting", "open"]);
    connection.close();
  },
);

test("a publication is accepted if what waits says so", async () => {
  const timing = { request: 1_000 };
  const { WebSocket } = sockets(undefined, timing.request + 1);
  const options = { channels: ["a"], transport: "websocket", WebSocket, timing } as const;
  const { connection, states } = watched(connect("http://host", options));
  await vi.advanceTimersByTimeAsync(10);
  const outcome = connection.publish("a", 1).then(
    () => "accepted",
    ({ code }) => code,
  );
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await outcome, states]).toEqual(["accepted", ["connecting", "open"]]);
  connection.close();
});

test("an announcement that is none is a broken frame", async () => {
  for (const text of [
    '["server"]',
    '["server",null]',
    '["server",{}]',
    '["server",{"heartbeat_ms":"1"}]',
    '["server",{"heartbeat_ms":1,"http":2}]',
  ]) {
    const body = `${text}\n`;
    const headers = { "content-type": TYPES["http-streaming"] };
    const fake = async () => new Response(body, { headers });
    const options = { channels: ["a"], transport: "http-streaming", fetch: fake } as const;
    const connection = connect("http://host", options);
    const codes: string[] = [];
    connection.addEventListener("error", ({ code }) => codes.push(code));
    await vi.advanceTimersByTimeAsync(10);
    expect(codes[0], text).toBe("bad-frame");
    connection.close();
  }
});
