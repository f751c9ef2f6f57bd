import { expect, test } from "vitest";
import { judge } from "./judge";

const PACE = { messages: 4, interval: 100, isPushed: true };
const steady = { latencies: [1, 2, 1, 2], arrivals: [0, 100, 200, 300], refusal: undefined };
const clump = { latencies: [301, 201, 101, 1], arrivals: [300, 300, 301, 301], refusal: undefined };

test("every message came by itself", () => {
  expect(judge(steady, PACE)).toEqual({
    ok: true,
    latencies_ms: [1, 2, 1, 2],
    jitter_ms: 1,
    is_buffered: false,
  });
});

test("a clump is a buffer on a stream, and nothing special where the browser asks", () => {
  expect(judge(clump, PACE)).toMatchObject({
    ok: true,
    is_buffered: true,
    problem: "messages came in clumps of about 4",
  });
  expect(judge(clump, { ...PACE, isPushed: false })).toMatchObject({
    ok: true,
    is_buffered: false,
  });
});

test("messages that never came were held back on a stream, and lost elsewhere", () => {
  const latencies: (number | undefined)[] = [1];
  latencies[2] = 3;
  const some = { latencies, arrivals: [0, 200], refusal: undefined };
  expect(judge(some, PACE)).toEqual({
    ok: false,
    problem: "2 of 4 messages did not come within 5 s",
    latencies_ms: [1, 3],
    jitter_ms: 2,
    is_buffered: true,
  });
  expect(judge(some, { ...PACE, isPushed: false }).is_buffered).toBe(false);
});

test("what could not be published was not held back", () => {
  const none = { latencies: [], arrivals: [], refusal: "refused: 405" };
  expect(judge(none, PACE)).toEqual({
    ok: false,
    problem: "publishing failed: refused: 405",
    latencies_ms: [],
    is_buffered: false,
  });
});
