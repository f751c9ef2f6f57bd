import type { Connection } from "pushlab-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { recall } from "./chat-memory";
import { type ChatState, EMPTY_CHAT, reduceChat } from "./chat-state";
import { ChatVisit } from "./chat-visit";

/** Who is in the chat, by token; the server as far as a visit sees it. */
class Server {
  people = new Map<string, string>();
  asked: string[] = [];
  /** What the next requests of a kind are refused with. */
  refusals = new Map<string, { status: number; error: string }>();
  #latest = 0;

  answer(path: string, body: { token?: string; name?: string; room?: string; text?: string }) {
    const what = path.replace("/api/demos/chat/", "");
    this.asked.push(what === "join" ? `join ${body.room}` : what);
    const refusal = this.refusals.get(what);
    if (refusal !== undefined) return refusal;
    if (what === "enter") {
      this.people.delete(body.token ?? "");
      if ([...this.people.values()].includes(body.name ?? "")) {
        return { status: 409, error: "name-taken" };
      }
      const token = `token ${++this.#latest}`;
      this.people.set(token, body.name ?? "");
      return {
        status: 200,
        token,
        name: body.name,
        inbox: token,
        beat_ms: 1,
        cursor: "e.1",
        rooms: [],
      };
    }
    const from = this.people.get(body.token ?? "");
    if (from === undefined) return { status: 401, error: "unauthorized" };
    if (what === "leave") this.people.delete(body.token ?? "");
    const { room, text } = body;
    return { status: 200, room, people: [from], kind: "said", from, text, at_ms: 1, id: 1 };
  }
}

let server: Server;
let state: ChatState;
let visit: ChatVisit;
/** The rooms one was in whenever something had changed. */
let roomsSeen: (readonly string[])[];

beforeEach(() => {
  server = new Server();
  state = EMPTY_CHAT;
  roomsSeen = [];
  const kept = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
  });
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const { status, ...body } = server.answer(path, JSON.parse(`${init.body}`));
    return new Response(JSON.stringify(body), { status });
  });
  const dispatch = (action: Parameters<typeof reduceChat>[1]) => {
    state = reduceChat(state, action);
  };
  const changed = () => {
    roomsSeen.push(state.joined);
  };
  visit = new ChatVisit({ dispatch, state: () => state, changed });
});

afterEach(() => vi.unstubAllGlobals());

test("who enters is in the first room", async () => {
  await visit.enter("ann");
  expect(state.me).toBe("ann");
  expect(state.joined).toEqual(["lobby"]);
  expect(visit.after).toBe("e.1");
  expect(recall(sessionStorage)).toMatchObject({ name: "ann", hasLeft: false });
});

test("the first connection has the first room, so that nothing said between is missed", async () => {
  await visit.enter("ann");
  expect(roomsSeen[0]).toEqual(["lobby"]);
});

test("a connection that is there hears what comes to the new inbox", async () => {
  await visit.enter("ann");
  const subscribe = vi.fn();
  visit.connection = { subscribe, transport: "sse" } as unknown as Connection;
  server.people.clear();
  await visit.say("lobby", "hi");
  expect(subscribe.mock.calls[0]).toEqual(["token 2"]);
});

test("a taken name is refused", async () => {
  server.people.set("other", "ann");
  await expect(visit.enter("ann")).rejects.toMatchObject({ code: "name-taken" });
  expect(visit.session).toBeNull();
});

test("whose lease has ended comes back into the same rooms and says it then, once", async () => {
  await visit.enter("ann");
  await visit.join("tea");
  server.people.clear();
  server.asked = [];
  await visit.say("tea", "hi");
  expect(server.asked).toEqual(["say", "enter", "join lobby", "join tea", "say"]);
  expect(visit.session?.token).toBe("token 2");
  expect(visit.problem).toBeNull();
});

test("two that find out at once come back once", async () => {
  await visit.enter("ann");
  server.people.clear();
  server.asked = [];
  await Promise.all([visit.say("lobby", "a"), visit.say("lobby", "b")]);
  expect(server.asked.filter((what) => what === "enter")).toHaveLength(1);
});

test("a page that comes back before leave was taken of it takes its own place", async () => {
  vi.stubGlobal("addEventListener", vi.fn());
  vi.stubGlobal("navigator", { sendBeacon: vi.fn() });
  await visit.enter("ann");
  visit.start()();
  server.asked = [];
  const again = new ChatVisit({
    dispatch: () => {},
    state: () => ({ ...EMPTY_CHAT, joined: ["lobby"] }),
    changed: () => {},
  });
  const stop = again.start();
  await vi.waitFor(() => expect(again.session?.token).toBe("token 2"));
  expect(server.asked.slice(0, 2)).toEqual(["enter", "join lobby"]);
  expect([...server.people.values()]).toEqual(["ann"]);
  stop();
});

test("a page that is shown again comes back first, whatever it was about to say", async () => {
  const on = new Map<string, () => void>();
  vi.stubGlobal("addEventListener", (what: string, listener: () => void) => on.set(what, listener));
  vi.stubGlobal("navigator", { sendBeacon: () => server.people.clear() });
  await visit.enter("ann");
  const stop = visit.start();
  on.get("pagehide")?.();
  server.asked = [];
  const said = visit.say("lobby", "before the page knows that it is shown");
  on.get("pageshow")?.();
  await Promise.all([said, visit.say("lobby", "while it comes back")]);
  expect(server.asked.filter((what) => what !== "beat")).toEqual([
    "enter",
    "join lobby",
    "say",
    "say",
  ]);
  expect(server.asked[0]).toBe("enter");
  stop();
});

test("whose name was taken meanwhile is told, and no longer there", async () => {
  await visit.enter("ann");
  server.people.clear();
  server.people.set("other", "ann");
  await expect(visit.say("lobby", "hi")).rejects.toMatchObject({ code: "unauthorized" });
  expect(visit.session).toBeNull();
  expect(visit.problem?.code).toBe("name-taken");
});

test("a server that is not quite back is tried again later", async () => {
  await visit.enter("ann");
  server.people.clear();
  server.refusals.set("enter", { status: 503, error: "overloaded" });
  await expect(visit.say("lobby", "hi")).rejects.toMatchObject({ code: "unauthorized" });
  expect(visit.session).not.toBeNull();
  server.refusals.clear();
  await visit.say("lobby", "hi");
  expect(visit.session?.token).toBe("token 2");
});

test("a room that cannot be joined any more is left out, without waiting for itself", async () => {
  await visit.enter("ann");
  server.people.clear();
  server.refusals.set("join", { status: 401, error: "unauthorized" });
  await visit.say("lobby", "hi");
  expect(state.joined).toEqual([]);
});

test("who leaves is forgotten", async () => {
  await visit.enter("ann");
  visit.leave();
  await vi.waitFor(() => expect(server.people.size).toBe(0));
  expect(visit.session).toBeNull();
  expect(state).toEqual(EMPTY_CHAT);
  expect(recall(sessionStorage)).toBeNull();
});
