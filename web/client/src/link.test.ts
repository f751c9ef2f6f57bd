import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connect } from "./pushlab.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test.each([0, 618, 6_200])("draining is obeyed to the millisecond: %i ms", async (after_ms) => {
  const asked: number[] = [];
  const fake = async () => {
    asked.push(performance.now());
    const headers = { "content-type": "application/json", "retry-after": "7" };
    const body = { error: "draining", message: "text", after_ms };
    return new Response(JSON.stringify(body), { status: 503, headers });
  };
  const transport = "long-polling";
  const connection = connect("http://host", { channels: ["a"], transport, fetch: fake });
  await vi.advanceTimersByTimeAsync(30_000);
  const [first = 0, second = 0, third = 0] = asked;
  expect(second - first).toBe(after_ms);
  // Zero comes true once: whoever is sent away again pauses.
  if (after_ms > 0) expect(third - second).toBe(after_ms);
  else expect(third - second).toBeGreaterThanOrEqual(100);
  const refused = await connection.publish("a", 1).catch((error) => error);
  expect([refused.code, refused.retryAfter]).toEqual(["draining", after_ms]);
  connection.close();
});

test.each(["1", null, -1, Number.MAX_VALUE])("after_ms of %j does no harm", async (after_ms) => {
  let asked = 0;
  const fake = async () => {
    asked++;
    const body = JSON.stringify({ error: "draining", message: "text", after_ms });
    return new Response(body, { status: 503 });
  };
  const options = { channels: ["a"], transport: "polling", fetch: fake } as const;
  const connection = connect("http://host", options);
  await vi.advanceTimersByTimeAsync(300_000);
  expect(asked).toBeGreaterThan(1);
  expect(asked).toBeLessThan(50);
  connection.close();
});

test.each([
  ["limit-reached", 429],
  ["overloaded", 503],
  ["too-many-connections", 503],
])(
  "%s blames no transport: the same is tried again, when the server wants it",
  async (code, status) => {
    const asked: string[] = [];
    const fake = async (address: unknown) => {
      asked.push(new URL(`${address}`).pathname);
      const headers = { "content-type": "application/json", "retry-after": "7" };
      return new Response(`{"error":"${code}","message":"text"}`, { status, headers });
    };
    const transport = ["sse", "http-streaming", "long-polling"] as const;
    const connection = connect("http://host", { channels: ["a"], transport, fetch: fake });
    await vi.advanceTimersByTimeAsync(6_900);
    expect([asked, connection.state]).toEqual([["/sse"], "waiting"]);
    await vi.advanceTimersByTimeAsync(14_000);
    expect(asked.length).toBeGreaterThan(1);
    expect(new Set(asked)).toEqual(new Set(["/sse"]));
    connection.close();
  },
);
