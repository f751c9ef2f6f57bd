import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PushlabError } from "./errors.ts";
import type { Socket } from "./link.ts";
import { connect } from "./pushlab.ts";
import { Tokens } from "./token.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** What a call of `getToken` gives next. */
function counter() {
  let calls = 0;
  return { obtain: () => `token${++calls}`, calls: () => calls };
}

/** A WebSocket of a server that says something to each that opens, and answers pings and tokens. */
function sockets(greeting: string[], answer: string[]) {
  const all: { protocols: string[]; sent: string[] }[] = [];
  class Fake extends EventTarget implements Socket {
    readonly bufferedAmount = 0;
    readonly sent: string[] = [];

    constructor(_: string, protocols: string[] = []) {
      super();
      all.push({ protocols, sent: this.sent });
      this.#say(greeting);
    }

    send(text: string): void {
      this.sent.push(text);
      const [name, n] = JSON.parse(text);
      if (name === "auth") this.#say(answer);
      if (name === "ping") this.#say([`["pong",${n}]`]);
    }

    close(): void {}

    #say(frames: string[]): void {
      queueMicrotask(() => {
        for (const data of frames)
          this.dispatchEvent(Object.assign(new Event("message"), { data }));
      });
    }
  }
  return { all, Fake };
}

test("is asked once for all who wait, and again only for a token that is the newest", async () => {
  const { obtain, calls } = counter();
  const tokens = new Tokens(obtain, 1000);
  expect([tokens.isMissing, tokens.token]).toEqual([true, undefined]);
  await Promise.all([tokens.renew(), tokens.renew()]);
  expect([calls(), tokens.token, tokens.isMissing]).toEqual([1, "token1", false]);
  let [first, second] = [0, 0];
  const refuseFirst = async () => {
    if (tokens.token !== "token1") return ++second;
    first++;
    throw new PushlabError("unauthorized", "no");
  };
  await Promise.all([tokens.use(refuseFirst), tokens.use(refuseFirst), tokens.use(refuseFirst)]);
  expect([first, second, calls()]).toEqual([3, 3, 2]);
  tokens.refuse("token1");
  expect(tokens.isMissing).toBe(false);
});

test("what comes after the limit is not taken", async () => {
  let give: (token: string) => void = () => {};
  const pending = new Promise<string>((resolve) => {
    give = resolve;
  });
  const signals: AbortSignal[] = [];
  const tokens = new Tokens((signal) => {
    signals.push(signal);
    return signals.length === 1 ? pending : "second";
  }, 1000);
  const failed = tokens.renew().catch((error) => error.code);
  await vi.advanceTimersByTimeAsync(1100);
  expect([await failed, signals[0]?.aborted]).toEqual(["no-token", true]);
  await tokens.renew();
  give("first");
  await vi.advanceTimersByTimeAsync(0);
  expect([tokens.token, signals[1]?.aborted]).toEqual(["second", false]);
});

test("an old token is in doubt when a WebSocket fails without a word, a new one is not", async () => {
  const tokens = new Tokens(counter().obtain, 1000);
  await tokens.renew();
  tokens.doubt(false);
  expect(tokens.isMissing).toBe(false);
  tokens.doubt(true);
  expect(tokens.isMissing).toBe(true);
  await tokens.renew();
  await vi.advanceTimersByTimeAsync(60_000);
  tokens.doubt(false);
  expect(tokens.isMissing).toBe(true);
});

test("tokens that live shorter than the warning are renewed at half of their life", async () => {
  const { obtain, calls } = counter();
  const told = '["token-expires",20]';
  const { all, Fake } = sockets(['["cursor","e.1"]', told], ['["auth",20]', told]);
  const options = { channels: ["a"], transport: "websocket", WebSocket: Fake } as const;
  const connection = connect("http://host", { ...options, getToken: obtain });
  await vi.advanceTimersByTimeAsync(61_000);
  expect(all.map(({ protocols }) => protocols)).toEqual([["pushlab", "pushlab.token.token1"]]);
  const auths = all[0]?.sent.filter((text) => text.startsWith('["auth"'));
  expect(auths).toEqual([2, 3, 4, 5, 6, 7].map((n) => `["auth","token${n}"]`));
  expect([calls(), connection.state]).toEqual([7, "open"]);
  connection.close();
});

test.each([60, 365])("a token that is good for %i days is kept for many", async (days) => {
  const { obtain, calls } = counter();
  const { all, Fake } = sockets(['["cursor","e.1"]', `["token-expires",${days * 86_400}]`], []);
  const options = { channels: ["a"], transport: "websocket", WebSocket: Fake } as const;
  const connection = connect("http://host", { ...options, getToken: obtain });
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect([all.length, calls(), connection.state]).toEqual([1, 1, "open"]);
  connection.close();
});

/**
 * A connection over polls to a server that takes a token for so long as `isGood` says, by its age. It notes when it asked
 * for tokens, and how long it waited before new attempts.
 */
function polls(transport: "polling" | "long-polling", isGood: (age: number) => boolean) {
  const seen = { asked: [] as number[], waits: [] as number[], isAway: false };
  const getToken = () => `${seen.asked[seen.asked.push(Date.now()) - 1]}`;
  const fake = async (address: unknown, init: RequestInit = {}) => {
    if (seen.isAway) throw new TypeError("away");
    const [, token] = new Headers(init.headers).get("authorization")?.split(" ") ?? [];
    const wait = Number(new URL(`${address}`).searchParams.get("wait"));
    const headers = { "content-type": "application/json" };
    if (!isGood(Date.now() - Number(token))) {
      const refusal = '{"error":"token-expired","message":"text"}';
      return new Response(refusal, { status: 401, headers });
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(10, wait * 1000)));
    return new Response('[["cursor","e.1"]]', { headers });
  };
  const options = { channels: ["a"], transport, getToken, fetch: fake as typeof fetch };
  const connection = connect("http://host", options);
  connection.addEventListener("state", ({ state, retryIn }) => {
    if (state === "waiting") seen.waits.push(retryIn);
  });
  return { connection, seen };
}

test.each([2_000, 6_000, 20_000])(
  "polls go through tokens as fast as these expire, in %i ms",
  async (life) => {
    vi.spyOn(Math, "random").mockReturnValue(0.9);
    const { connection, seen } = polls("polling", (age) => age < life);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(seen.waits).toEqual([]);
    expect(seen.asked.length).toBeLessThanOrEqual(120_000 / life + 1);
    // Each is refused by the poll behind its end.
    expect(seen.asked.length).toBeGreaterThanOrEqual(120_000 / (life + 1_500));
    seen.isAway = true;
    await vi.advanceTimersByTimeAsync(1_500);
    // As after any first failure.
    expect(seen.waits[0]).toBeLessThanOrEqual(500);
    connection.close();
  },
);

test("a token that expires as soon as it was taken is followed by others with pauses that grow", async () => {
  const { connection, seen } = polls("long-polling", (age) => age < 5);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(seen.asked.length).toBeGreaterThan(3);
  expect(seen.asked.length).toBeLessThan(15);
  connection.close();
});

test.each([
  ["unauthorized", true],
  ["limit-reached", true],
  ["bad-frame", false],
])("a token that is answered with %s is followed by another: %s", async (code, isFollowed) => {
  const { obtain, calls } = counter();
  const { all, Fake } = sockets(
    ['["cursor","e.1"]', '["token-expires",0]'],
    [`["error","${code}","text"]`],
  );
  const options = { channels: ["a"], transport: "websocket", WebSocket: Fake } as const;
  const connection = connect("http://host", { ...options, getToken: obtain });
  const errors: string[] = [];
  connection.addEventListener("error", (event) => errors.push(event.code));
  await vi.advanceTimersByTimeAsync(60_000);
  if (isFollowed) expect(calls()).toBeGreaterThan(3);
  else expect(calls()).toBe(2);
  // With pauses that grow.
  expect(calls()).toBeLessThan(15);
  expect([all.length, errors, connection.state]).toEqual([1, [], "open"]);
  connection.close();
});
