import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connect } from "./pushlab.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
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
