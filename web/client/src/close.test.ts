import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connect, type Transport } from "./pushlab.ts";
import { SharedConnection } from "./shared.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const TYPES: Record<string, string> = {
  "/sse": "text/event-stream",
  "/stream": "application/x-ndjson",
};

/** A server that greets, and answers nothing more to streams and held polls. */
const fake: typeof fetch = async (address, init) => {
  const { pathname, searchParams } = new URL(`${address}`);
  const frame = '["cursor","e.1"]';
  const type = TYPES[pathname] ?? "application/json";
  const isHeld = pathname in TYPES || Number(searchParams.get("wait")) > 0;
  const body = new ReadableStream({
    start(controller) {
      const text = { "/sse": "id:e.1\n\n", "/stream": `${frame}\n` }[pathname] ?? `[${frame}]`;
      controller.enqueue(new TextEncoder().encode(text));
      if (!isHeld) controller.close();
      init?.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
    },
  });
  return new Response(body, { headers: { "content-type": type } });
};

/** Lets everything happen that needs no time. */
async function settle() {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test.each<Transport>(["sse", "http-streaming", "long-polling", "polling"])(
  "over %s no timer outlives close(), so that Node.js can exit",
  async (transport) => {
    const connection = connect("http://host", { channels: ["a"], transport, fetch: fake });
    await settle();
    expect(connection.state).toBe("open");
    connection.close();
    await settle();
    expect(vi.getTimerCount()).toBe(0);
  },
);

test("nor does one of a tab that catches up", async () => {
  const locks = { request: () => new Promise(() => {}) };
  const page = Object.assign(new EventTarget(), { location: { href: "http://host/" } });
  const options = { channels: ["a"], after: "e.0", fetch: async () => Response.error() };
  const shared = new SharedConnection("http://host", options, { page, locks });
  await settle();
  const leader = new BroadcastChannel("pushlab http://host/ a");
  leader.postMessage({
    kind: "state",
    state: "open",
    transport: "sse",
    reason: "",
    retryIn: 0,
    cursor: "e.1",
  });
  while (vi.getTimerCount() === 0) await settle();
  leader.close();
  shared.close();
  await settle();
  expect(vi.getTimerCount()).toBe(0);
});

test("nor does one of a search for refused channels, nor its requests", async () => {
  let open = 0;
  const refusing: typeof fetch = async (address, init) => {
    const body = { error: "forbidden", message: "b is not yours" };
    if (new URL(`${address}`).searchParams.has("wait")) return Response.json(body, { status: 403 });
    open++;
    return new Promise((_, reject) => {
      init?.signal?.addEventListener("abort", () => {
        open--;
        reject(init.signal?.reason);
      });
    });
  };
  const channels = ["a", "b"];
  const connection = connect("http://host", { channels, transport: "polling", fetch: refusing });
  await settle();
  expect(open).toBe(2);
  connection.close();
  await settle();
  expect([open, vi.getTimerCount()]).toEqual([0, 0]);
});
