import { describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import type { PageEvents } from "../src/page.ts";
import { connectShared, type Locks, SharedConnection } from "../src/shared.ts";
import { guarded, token } from "./access.ts";
import { Server, until } from "./server.ts";
import { QUICK } from "./subscriber.ts";

/** A lock manager as browsers have one, for locks that nobody shares. */
class FakeLocks implements Locks {
  readonly #queues = new Map<string, Promise<unknown>>();

  request(name: string, { signal }: { signal: AbortSignal }, hold: () => Promise<void>) {
    const turn = this.#queues.get(name) ?? Promise.resolve();
    const held = turn.then(() => {
      if (signal.aborted) throw signal.reason;
      return hold();
    });
    this.#queues.set(
      name,
      held.catch(() => {}),
    );
    return held;
  }
}

/** A window of its own. */
class Page extends EventTarget implements PageEvents {
  readonly document = Object.assign(new EventTarget(), { visibilityState: "visible" });

  say(type: "freeze" | "resume") {
    this.document.dispatchEvent(new Event(type));
  }
}

class Tab {
  readonly page = new Page();
  readonly shared: SharedConnection;
  readonly data: unknown[] = [];
  readonly gaps: string[] = [];
  readonly refused: string[] = [];

  constructor(url: string, locks: Locks | undefined, options: object = {}) {
    const all = { channels: ["a"], WebSocket, timing: QUICK, ...options };
    this.shared = new SharedConnection(url, all, { page: this.page, locks });
    this.shared.addEventListener("message", ({ data }) => this.data.push(data));
    this.shared.addEventListener("gap", ({ from }) => this.gaps.push(from));
    this.shared.addEventListener("refused", ({ channel }) => this.refused.push(channel));
    onTestFinished(() => this.shared.close());
  }

  async open() {
    await until(() => this.shared.state === "open" && this.shared.cursor, "a tab is open");
  }
}

async function tabs(count: number, options?: object, given?: Server) {
  const server = given ?? (await Server.start());
  const locks = new FakeLocks();
  const all = Array.from({ length: count }, () => new Tab(server.base, locks, options));
  await Promise.all(all.map((tab) => tab.open()));
  const sockets = async () => {
    const { connections } = (await server.stats()) as unknown as {
      connections: Record<string, number>;
    };
    return connections.websocket;
  };
  return { server, locks, all, sockets };
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

test("several tabs have one connection, and each gets every message once", async () => {
  const { server, all, sockets } = await tabs(3);
  expect(await sockets()).toBe(1);
  expect(all.map(({ shared }) => shared.isLeader)).toEqual([true, false, false]);
  expect(all.map(({ shared }) => shared.transport)).toEqual(Array(3).fill("websocket"));
  expect(all.map(({ shared }) => shared.httpVersion)).toEqual(Array(3).fill("1.1"));
  for (const n of upTo(20)) await server.publish("a", n);
  await until(() => all.every(({ data }) => data.length >= 20), "the messages are everywhere");
  for (const { data } of all) expect(data).toEqual(upTo(20));
});

test("any tab publishes and echoes", async () => {
  const { all } = await tabs(2);
  for (const [at, { shared }] of all.entries()) {
    await shared.publish("a", at);
    expect(await shared.echo({ at })).toEqual({ at });
    await expect(shared.publish("-", 1)).rejects.toMatchObject({ code: "bad-channel" });
  }
  await until(() => all.every(({ data }) => data.length === 2), "both messages are in both");
});

test("when the leader goes, another goes on: nothing is lost, nothing comes twice", async () => {
  const { server, all, sockets } = await tabs(4);
  let sent = 0;
  const last = all.at(-1) as Tab;
  for (const tab of all.slice(0, -1)) {
    for (const part of [1, 2, 3]) {
      await server.publish("a", sent++);
      await server.publish("a", sent++);
      if (part === 2) tab.shared.close();
    }
  }
  await until(() => last.data.length >= sent, "the last tab has all");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(last.data).toEqual(upTo(sent));
  expect(last.gaps).toEqual([]);
  expect(last.shared.isLeader).toBe(true);
  await until(async () => (await sockets()) === 1, "the server has seen the others go");
  // Those that left have the beginning of it.
  for (const { data, shared } of all.slice(0, -1)) {
    expect(data).toEqual(upTo(data.length));
    expect(shared.state).toBe("closed");
  }
});

describe.each([0, 1])("a frozen page, tab %i of two,", (frozen) => {
  test("catches up when it goes on", async () => {
    const { server, all } = await tabs(2);
    const [sleeper, other] = [all[frozen], all[1 - frozen]] as [Tab, Tab];
    await server.publish("a", 0);
    await until(() => all.every(({ data }) => data.length === 1), "the first is everywhere");
    sleeper.page.say("freeze");
    for (let n = 1; n < 30; n++) await server.publish("a", n);
    await until(() => other.data.length === 30, "the other tab has all");
    expect(other.shared.isLeader).toBe(true);
    expect(sleeper.data).toEqual([0]);
    sleeper.page.say("resume");
    let sent = 30;
    await until(async () => {
      await server.publish("a", sent++);
      return sleeper.data.length >= 30;
    }, "it has caught up");
    await until(() => sleeper.data.length === sent, "it has all");
    expect(sleeper.data).toEqual(upTo(sent));
    expect(sleeper.shared.isLeader).toBe(false);
    other.shared.close();
    await server.publish("a", sent++);
    await until(() => sleeper.data.length === sent, "it leads again");
    expect(sleeper.data).toEqual(upTo(sent));
  });
});

test("a tab may come with a cursor of before", async () => {
  const { server, locks, all } = await tabs(1);
  const [first] = all as [Tab];
  const after = first.shared.cursor;
  for (const n of upTo(5)) await server.publish("a", n);
  await until(() => first.data.length === 5, "the first tab has all");
  const second = new Tab(server.base, locks, { after });
  await until(() => second.data.length === 5, "the second tab has all");
  await server.publish("a", 5);
  await until(() => second.data.length === 6, "the second tab follows");
  expect(second.data).toEqual(upTo(6));
});

test("a tab that catches up asks again when the server says", async () => {
  const { server, locks, all } = await tabs(1);
  const [first] = all as [Tab];
  const after = first.shared.cursor;
  await server.publish("a", 0);
  await until(() => first.data.length === 1, "the first tab has it");
  const asked: number[] = [];
  const stopping: typeof fetch = async (address, init) => {
    if (asked.push(performance.now()) > 1) return fetch(address, init);
    const refusal = { error: "draining", message: "text", after_ms: 300 };
    return Response.json(refusal, { status: 503 });
  };
  const second = new Tab(server.base, locks, { after, fetch: stopping });
  await until(() => second.data.length === 1, "the second tab has it");
  const [refused = 0, answered = 0] = asked;
  // Timers may be a millisecond early.
  expect(answered - refused).toBeGreaterThan(298);
});

test("a gap is told in every tab", async () => {
  const { server, all } = await tabs(2);
  await server.publish("a", "before");
  await until(() => all.every(({ data }) => data.length === 1), "the first is everywhere");
  await server.kill();
  const next = await Server.start([], server.port);
  await until(() => all.every(({ gaps }) => gaps.length === 1), "the gap is everywhere");
  await next.publish("a", "after");
  await until(() => all.every(({ data }) => data.length === 2), "messages go on");
});

test("a channel that is refused is told once in every tab, early or late", async () => {
  const server = await guarded();
  const options = { channels: ["ada:a", "bob:a"], getToken: () => token("ada", 600) };
  const { locks, all } = await tabs(2, options, server);
  all.push(new Tab(server.base, locks, options));
  await until(() => all.every(({ refused }) => refused.length > 0), "all have heard of it");
  await server.publish("ada:a", 1);
  await until(() => all.every(({ data }) => data.length > 0), "the others go on");
  all[0]?.shared.close();
  await until(() => all[1]?.shared.isLeader && all[1].shared.state === "open", "another leads");
  await server.publish("ada:a", 2);
  await until(() => all.slice(1).every(({ data }) => data.length > 1), "they still go on");
  for (const { refused } of all) expect(refused).toEqual(["bob:a"]);
});

test("tokens are those of the tab that leads, publishes or catches up", async () => {
  const server = await guarded();
  const locks = new FakeLocks();
  const calls = [0, 0];
  const all = calls.map((_, at) => {
    const getToken = () => {
      calls[at] = (calls[at] ?? 0) + 1;
      return token("ada", 600);
    };
    return new Tab(server.base, locks, { channels: ["ada:a"], getToken });
  });
  await Promise.all(all.map((tab) => tab.open()));
  const [leader, other] = all as [Tab, Tab];
  await leader.shared.publish("ada:a", 0);
  await until(() => other.data.length === 1, "it is in both");
  expect(calls).toEqual([1, 0]);
  other.page.say("freeze");
  await leader.shared.publish("ada:a", 1);
  other.page.say("resume");
  await until(() => other.data.length === 2, "it has caught up");
  await other.shared.publish("ada:a", 2);
  await until(() => all.every(({ data }) => data.length === 3), "it is in both");
  expect(calls).toEqual([1, 1]);
});

test("tabs with other channels have a connection of their own", async () => {
  const { server, locks, sockets } = await tabs(1);
  const other = new Tab(server.base, locks, { channels: ["b"] });
  await other.open();
  expect(await sockets()).toBe(2);
});

test("without locks each tab is its own leader", async () => {
  const server = await Server.start();
  const shared = connectShared(server.base, { channels: ["a"], WebSocket, timing: QUICK });
  onTestFinished(() => shared.close());
  await until(() => shared.state === "open", "it is open");
  expect(shared.isLeader).toBe(true);
  shared.close();
  expect(shared.state).toBe("closed");
});

/** How browsers refuse a page without an origin, in `<iframe sandbox="allow-scripts">`. */
const refuse = () => {
  throw new DOMException("no origin", "SecurityError");
};

test.each<[string, () => Locks]>([
  ["locks", () => ({ request: async () => refuse() })],
  [
    "channels",
    () => {
      const Refused = class {
        constructor() {
          refuse();
        }
      };
      vi.stubGlobal("BroadcastChannel", Refused);
      onTestFinished(() => {
        vi.unstubAllGlobals();
      });
      return new FakeLocks();
    },
  ],
])("a page that is refused %s connects by itself", async (_, refused) => {
  const server = await Server.start();
  const tab = new Tab(server.base, refused());
  await tab.open();
  expect(tab.shared.isLeader).toBe(true);
  await server.publish("a", 1);
  await until(() => tab.data.length === 1, "the message comes");
  tab.page.say("freeze");
  expect(tab.shared.isLeader).toBe(false);
  await server.publish("a", 2);
  tab.page.say("resume");
  await until(() => tab.data.length === 2, "it goes on from its cursor");
});

test("what is refused for good closes every tab", async () => {
  const server = await Server.start();
  const locks = new FakeLocks();
  const options = { transport: "sse", after: "nonsense" };
  const all = [1, 2].map(() => new Tab(server.base, locks, options));
  await until(() => all.every(({ shared }) => shared.state === "closed"), "both are closed");
});

test("wrong options are thrown at once", () => {
  expect(() => connectShared("http://127.0.0.1:1", { channels: ["-"] })).toThrow("-: a channel");
});
