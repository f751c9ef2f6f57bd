import { expect, test } from "vitest";
import { type Measurement, measurementBody } from "./finding";

const sse = (change: Partial<Measurement>): Measurement => ({
  ...{ transport: "sse", ok: true, latencies_ms: [], requests: 1, is_buffered: false, cuts: 0 },
  ...change,
});

test("what is stored has what the server asks for, and no more latencies than it takes", () => {
  const latencies_ms = Array.from({ length: 300 }, (_, at) => at);
  const here = { userAgent: "Browser/1", now: 17, wasHidden: true };
  const body = measurementBody([sse({ latencies_ms, echo_ms: 1, cuts: 2 })], here);
  expect(body).toMatchObject({ user_agent: "Browser/1", page_ms: 17, was_hidden: true });
  expect(body.transports[0]?.cuts).toBe(2);
  expect(Object.keys(body.transports[0] ?? {}).sort()).toEqual([
    "cuts",
    "is_buffered",
    "latencies_ms",
    "ok",
    "requests",
    "transport",
  ]);
  expect(body.transports[0]?.latencies_ms).toHaveLength(200);
  const long = sse({ ok: false, problem: "x".repeat(5000) });
  expect(measurementBody([long], { ...here, userAgent: "y".repeat(5000) })).toMatchObject({
    user_agent: "y".repeat(300),
    transports: [{ problem: "x".repeat(300) }],
  });
});
