import { expect, onTestFinished, test } from "vitest";
import { Connection } from "../src/connection.ts";
import { TIMING } from "../src/timing.ts";
import { TcpProxy } from "./proxy.ts";
import { Server, until } from "./server.ts";

/** A browser's window and document, as far as they are listened to. */
class Page extends EventTarget {
  readonly document = Object.assign(new EventTarget(), { visibilityState: "visible" });

  say(type: "online" | "offline" | "pagehide" | "pageshow") {
    this.dispatchEvent(new Event(type));
  }

  sayOfDocument(type: "freeze" | "resume" | "visibilitychange") {
    this.document.dispatchEvent(new Event(type));
  }
}

async function connected(timing = {}) {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port);
  const page = new Page();
  const connection = new Connection({
    base: new URL(proxy.base),
    channels: ["a"],
    cursor: undefined,
    transports: ["sse"],
    environment: {
      fetch,
      WebSocket: undefined,
      tokens: undefined,
      timing: { ...TIMING, ...timing },
    },
    page,
  });
  onTestFinished(() => connection.close());
  const data: unknown[] = [];
  connection.addEventListener("message", (event) => data.push(event.data));
  await until(() => connection.state === "open", "it is open");
  return { server, proxy, page, connection, data };
}

test.each([
  ["offline", (page: Page) => page.say("offline"), (page: Page) => page.say("online")],
  ["waiting", (page: Page) => page.say("pagehide"), (page: Page) => page.say("pageshow")],
  [
    "waiting",
    (page: Page) => page.sayOfDocument("freeze"),
    (page: Page) => page.sayOfDocument("resume"),
  ],
] as const)("%s: pauses, and goes on from its cursor", async (state, pause, resume) => {
  const { server, proxy, page, connection, data } = await connected();
  pause(page);
  expect(connection.state).toBe(state);
  await server.publish("a", 1);
  const requests = proxy.seen.length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(proxy.seen.length, "nothing is tried").toBe(requests);
  resume(page);
  expect(connection.state).toBe("connecting");
  await until(() => data.length === 1, "the message of the pause");
});

test.each([
  ["there is a network again", (page: Page) => page.say("online")],
  ["the page is shown", (page: Page) => page.sayOfDocument("visibilitychange")],
])("does not wait longer when %s", async (_, event) => {
  const { proxy, page, connection } = await connected({ retry: 1e7, retryMax: 1e7, retryMin: 1e6 });
  proxy.cut();
  await until(() => connection.state === "waiting", "the cut is noticed");
  event(page);
  await until(() => connection.state === "open", "it is open again");
});

test("a page that is hidden is no reason for anything", async () => {
  const { page, connection } = await connected();
  page.document.visibilityState = "hidden";
  page.sayOfDocument("visibilitychange");
  page.say("pageshow");
  page.say("online");
  expect(connection.state).toBe("open");
});

test("a closed connection follows the page no more", async () => {
  const { page, connection } = await connected();
  connection.close();
  page.say("offline");
  page.say("online");
  expect(connection.state).toBe("closed");
});
