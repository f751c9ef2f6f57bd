import { describe, expect, test } from "vitest";
import { forSeeds } from "../test/random.ts";
import { type Ending, Policy } from "./policy.ts";
import { TIMING } from "./timing.ts";
import { TRANSPORTS, type Transport } from "./transport.ts";

const BLAMED: Ending = { blames: true, retryAfter: 0 };
const BUSY: Ending = { blames: false, retryAfter: 1000 };

/** A policy and its clock. */
class Trial {
  now = 0;
  readonly policy: Policy;

  constructor(transports: readonly Transport[] = TRANSPORTS, random: () => number = () => 0.5) {
    this.policy = new Policy(transports, TIMING, random);
    this.policy.attempt();
  }

  /** An attempt fails; gives the delay. */
  miss(ending = BLAMED): number {
    this.policy.attempt();
    return this.policy.ended(this.now, ending);
  }

  /** A connection lives so long. */
  live(life: number, ending = BLAMED): number {
    this.policy.attempt();
    this.policy.opened(this.now);
    this.now += life;
    return this.policy.ended(this.now, ending);
  }
}

test("goes down at once through what never worked, then begins anew with growing delays", () => {
  const trial = new Trial();
  const seen = TRANSPORTS.map(() => [trial.policy.transport, trial.miss()] as const);
  expect(seen.map(([transport]) => transport)).toEqual(TRANSPORTS);
  expect(seen.slice(0, 4).map(([, delay]) => delay)).toEqual([0, 0, 0, 0]);
  expect(seen[4]?.[1]).toBeGreaterThan(0);
  expect(trial.policy.transport).toBe("websocket");
  const delays = Array.from({ length: 30 }, () => trial.miss());
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(TIMING.retryMin);
  expect(delays.at(-1)).toBeGreaterThan(TIMING.retryMax / 3);
  expect(delays).toEqual(delays.toSorted((a, b) => a - b));
});

test("gives slow networks more time after each way down", () => {
  const trial = new Trial(["websocket", "sse"]);
  const limits = Array.from({ length: 12 }, () => {
    const limit = trial.policy.open;
    trial.miss();
    return limit;
  });
  expect(limits.slice(0, 5)).toEqual([2500, 2500, 5000, 5000, 10_000]);
  expect(Math.max(...limits)).toBe(30_000);
});

test.each(TRANSPORTS.slice(0, 3))("what cuts %s short leads to polls at once", (stream) => {
  const trial = new Trial();
  while (trial.policy.transport !== stream) trial.miss();
  trial.live(20_000);
  expect(trial.policy.transport).toBe(stream);
  expect(trial.live(5000)).toBeGreaterThanOrEqual(TIMING.retryMin);
  expect(trial.policy.transport).toBe("long-polling");
});

test("a server that is away after a short life is no reason to leave a stream", () => {
  for (const ending of [BLAMED, BUSY]) {
    const trial = new Trial();
    trial.live(5000);
    expect(trial.policy.transport).toBe("long-polling");
    expect(trial.miss(ending)).toBeGreaterThan(0);
    expect(trial.policy.transport).toBe("websocket");
    expect([trial.policy.trial, trial.policy.held]).toEqual([TIMING.early, TIMING.heartbeat]);
    // Nor is one that goes on being away, but for the usual reasons.
    trial.miss();
    expect(trial.policy.transport).toBe("websocket");
    trial.miss();
    expect(trial.policy.transport).toBe("sse");
  }
});

test("a server that says why it ends a short life blames nothing", () => {
  const trial = new Trial();
  trial.live(5000, BUSY);
  expect([trial.policy.transport, trial.policy.trial]).toEqual(["websocket", TIMING.early]);
});

test("comes back when the server said so, and tries the same transport", () => {
  const trial = new Trial();
  for (const returnAfter of [0, 1234]) {
    expect(trial.live(5000, { ...BLAMED, returnAfter })).toBe(returnAfter);
    expect(trial.policy.transport).toBe("websocket");
  }
  expect(trial.live(5000, { ...BLAMED, returnAfter: 0 })).toBeGreaterThan(TIMING.retryMin);
  expect(trial.live(20_000, { ...BLAMED, returnAfter: 0 })).toBe(0);
  expect(trial.live(20_000, { ...BLAMED, returnAfter: 1e12 })).toBeLessThan(1e6);
});

test("among streams alone, or polls alone, a short life leads to the next", () => {
  for (const two of [
    ["websocket", "sse"],
    ["long-polling", "polling"],
  ] as const) {
    const trial = new Trial(two);
    trial.live(20_000);
    expect(trial.policy.transport).toBe(two[0]);
    trial.live(5000);
    expect(trial.policy.transport).toBe(two[1]);
    trial.live(5000);
    expect(trial.policy.transport).toBe(two[1]);
  }
});

test("polls are held for less than after what something cuts, but not for nothing", () => {
  const trial = new Trial(["websocket", "long-polling", "polling"]);
  expect(trial.policy.held).toBe(25_000);
  trial.live(5000);
  expect(trial.policy.held).toBe(2500);
  trial.live(3000);
  expect([trial.policy.transport, trial.policy.held]).toEqual(["polling", 1500]);
  trial.live(100);
  expect([trial.policy.transport, trial.policy.held]).toEqual(["polling", TIMING.poll]);
  trial.policy.climbed("websocket");
  expect(trial.policy.held).toBe(25_000);
});

test("the last transport is kept however short it lives", () => {
  const trial = new Trial(["polling"]);
  for (let count = 0; count < 20; count++)
    expect(trial.live(10)).toBeGreaterThanOrEqual(TIMING.retryMin);
  expect(trial.policy.transport).toBe("polling");
});

test("a server that is busy blames no transport, and is not asked before it wants", () => {
  const trial = new Trial();
  for (let count = 0; count < 10; count++) {
    expect(trial.miss(BUSY)).toBeGreaterThanOrEqual(1000);
    expect(trial.policy.transport).toBe("websocket");
    expect(trial.live(1, BUSY)).toBeGreaterThanOrEqual(1000);
    expect(trial.policy.transport).toBe("websocket");
  }
});

test("a stream that is held back behind its first bytes has never been open", () => {
  const trial = new Trial();
  trial.miss();
  expect(trial.live(2500, { ...BLAMED, isHeldBack: true })).toBe(0);
  expect(trial.policy.transport).toBe("http-streaming");
  expect(trial.live(2500, { ...BLAMED, isHeldBack: true })).toBe(0);
  expect([trial.policy.transport, trial.policy.held]).toEqual(["long-polling", TIMING.heartbeat]);
  // Nothing better has worked, so nothing is tried again soon.
  trial.policy.opened(trial.now);
  expect(trial.policy.climbDelay(trial.now)).toBe(TIMING.climb);
});

test("what has worked is tried twice before the next, never without a delay", () => {
  const trial = new Trial();
  trial.miss();
  trial.live(60_000);
  const order: Transport[] = [];
  for (let count = 0; count < 8; count++) {
    order.push(trial.policy.transport);
    expect(trial.miss()).toBeGreaterThan(0);
  }
  const way = ["sse", "sse", "http-streaming", "long-polling", "polling"];
  expect(order).toEqual([...way, "sse", "sse", "http-streaming"]);
});

describe("the way up", () => {
  const opened = () => {
    const trial = new Trial();
    trial.miss();
    trial.policy.attempt();
    trial.policy.opened(trial.now);
    return trial;
  };

  test("none from the best", () => {
    const trial = new Trial();
    trial.policy.opened(0);
    expect(trial.policy.climbDelay(0)).toBe(undefined);
    expect(trial.policy.better).toEqual([]);
  });

  test("is tried at a time that short connections do not put off", () => {
    const trial = opened();
    expect(trial.policy.better).toEqual(["websocket"]);
    const delay = trial.policy.climbDelay(trial.now) ?? 0;
    expect(delay).toBe(TIMING.climb);
    trial.live(20_000);
    expect(trial.policy.climbDelay(trial.now)).toBe(delay - 20_000);
    trial.live(20_000);
    expect(trial.policy.climbDelay(trial.now)).toBe(0);
  });

  test("is tried less and less often, at most every ten minutes", () => {
    const trial = opened();
    const delays = Array.from({ length: 10 }, () => {
      const delay = trial.policy.climbDelay(trial.now) ?? 0;
      trial.policy.climbFailed();
      return delay;
    });
    expect(delays.slice(0, 4)).toEqual([30_000, 60_000, 120_000, 240_000]);
    expect(Math.max(...delays)).toBe(600_000);
  });

  test("takes those who live, where something cut one", () => {
    const trial = new Trial();
    trial.live(5000);
    trial.policy.attempt();
    trial.policy.opened(trial.now);
    expect(trial.policy.better).toEqual(TRANSPORTS.slice(0, 3));
    expect(trial.policy.climbDelay(trial.now)).toBe(5000);
    expect(trial.policy.trial).toBe(TIMING.shortLife);
    trial.policy.climbFailed();
    expect(trial.policy.climbDelay(trial.now)).toBe(60_000);
    expect(trial.policy.trial).toBe(TIMING.shortLife);
    trial.policy.climbed("sse");
    expect([trial.policy.transport, trial.policy.trial]).toEqual(["sse", TIMING.early]);
  });

  test("leads back soon where the server was only away", () => {
    const trial = new Trial();
    trial.live(60_000);
    trial.miss();
    trial.miss();
    expect(trial.policy.transport).toBe("sse");
    trial.policy.opened(trial.now);
    expect(trial.policy.climbDelay(trial.now)).toBe(5000);
    trial.policy.climbed("websocket");
    expect(trial.policy.transport).toBe("websocket");
  });
});

test("whatever happens, delays have a floor once something worked, and the transport is one of them", () => {
  forSeeds(300, (random) => {
    const trial = new Trial(TRANSPORTS, random);
    trial.live(TIMING.shortLife);
    for (let step = 0; step < 100; step++) {
      trial.now += random() * 60_000;
      const ending = random() < 0.8 ? BLAMED : BUSY;
      const kept = trial.policy.transport;
      const delay = random() < 0.4 ? trial.live(random() * 20_000, ending) : trial.miss(ending);
      // Two short lives of the only one that worked leave nothing that has.
      const isMoved = kept !== trial.policy.transport;
      if (delay < TIMING.retryMin && !(delay === 0 && isMoved)) expect.fail(`${delay} ms`);
      if (!TRANSPORTS.includes(trial.policy.transport)) expect.fail("no transport");
      if (random() < 0.1) trial.policy.climbFailed();
      const [best] = trial.policy.better;
      if (best && random() < 0.1) trial.policy.climbed(best);
      if ((trial.policy.climbDelay(trial.now) ?? 0) > 750_000) expect.fail("climbs too late");
    }
  });
});
