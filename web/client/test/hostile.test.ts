import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import type { Transport } from "../src/pushlab.ts";
import { pick, randomFrom } from "./random.ts";
import { until } from "./server.ts";
import { speaker } from "./speaker.ts";
import { Subscriber } from "./subscriber.ts";

/** The greeting of a server and one message, as a transport carries them. */
function wellFormed(transport: Transport): string {
  if (transport === "sse") return 'id:e.1\n\nid:e.2\ndata:["msg","a","sane"]\n\n';
  if (transport === "websocket") return '["msg","a","e.2","sane"]';
  const frames = ['["msg","a","e.2","sane"]', '["cursor","e.2"]'];
  return transport === "http-streaming" ? `${frames.join("\n")}\n` : `[${frames.join(",")}]`;
}

const HOSTILE: (string | Buffer)[] = [
  "",
  "<html>login</html>",
  Buffer.from([0xff, 0xfe, 0xfd, 0x0a, 0x0a]),
  "[".repeat(50_000),
  "x".repeat(3_000_000),
  '["msg","a","e.1"]\n\n',
  'data:["gap",1,2]\n\n',
  '[["pong",7],["cursor","e.1"]]\n',
  '["pong",7]',
  '["cursor",{"toString":1}]\n',
  '["__proto__",1]\n',
  "null\n",
];

describe.each<Transport>(["websocket", "sse", "http-streaming", "long-polling", "polling"])(
  "%s",
  (transport) => {
    test("bytes of any kind end in an error or another attempt, never in an exception", async () => {
      const random = randomFrom(7);
      const sane = wellFormed(transport);
      const mutated = Array.from({ length: 30 }, () => {
        const at = Math.floor(random() * sane.length);
        return (
          sane.slice(0, at) +
          pick(random, ["", "\0", "[", '"', "\n", "]]", "9"]) +
          sane.slice(at + 1)
        );
      });
      const speeches = [...HOSTILE, ...mutated];
      let heard = 0;
      const url = await speaker(() => {
        const bytes = speeches[heard++];
        return bytes === undefined ? { bytes: sane, stays: true } : { bytes };
      });
      const timing = { retryMax: 10, retry: 10, retryMin: 1, poll: 5 };
      const subscriber = new Subscriber(url, { transport, timing });
      await until(
        () => heard > speeches.length && subscriber.data.at(-1) === "sane",
        "it gets over them",
      );
      expect(subscriber.errors.length).toBeGreaterThan(5);
      expect(subscriber.errors.filter(({ code }) => code !== "bad-frame")).toEqual([]);
      expect(subscriber.connection.state).not.toBe("closed");
    });
  },
);

describe("answers that are not the server's", () => {
  test.each([
    [200, "text/html", "<html>login</html>"],
    [200, "text/event-stream-like", "x"],
    [302, "text/html", ""],
    [404, "application/json", '{"error":1}'],
    [500, "application/json", "null"],
    [502, "text/html", "bad gateway"],
  ])("%i %s", async (status, type, bytes) => {
    const url = await speaker(() => ({ status, type, bytes }));
    const subscriber = new Subscriber(url, { transport: ["sse", "http-streaming"] });
    await until(() => subscriber.states.length > 8, "it goes on trying");
    expect(subscriber.states.some(({ state }) => state === "open")).toBe(false);
    expect(subscriber.connection.state).not.toBe("closed");
    await expect(subscriber.connection.publish("a", 1)).rejects.toMatchObject({ code: "refused" });
  });
});

test("a refusal for good closes, with the server's word for it", async () => {
  const bytes = '{"error":"bad-cursor","message":"not a cursor"}';
  const url = await speaker(() => ({ status: 400, type: "application/json", bytes }));
  const subscriber = new Subscriber(url, { transport: "sse", after: "nonsense" });
  await until(() => subscriber.connection.state === "closed", "it closes");
  expect(subscriber.errors).toEqual([{ code: "bad-cursor", text: "not a cursor" }]);
  expect(subscriber.states.at(-1)?.reason).toContain("not a cursor");
});

test("a listener may close the connection at any event", async () => {
  const url = await speaker(() => ({ bytes: '["cursor","e.1"]\n["msg","a","e.2",1]\nx\n' }));
  for (const type of ["state", "error"] as const) {
    for (const position of [1, 2, 3]) {
      const subscriber = new Subscriber(url, { transport: "http-streaming" });
      let seen = 0;
      subscriber.connection.addEventListener(type, () => {
        if (++seen === position) subscriber.connection.close();
      });
      await until(() => subscriber.connection.state === "closed", `closed at ${type} ${position}`);
      const count = subscriber.states.length;
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(subscriber.states.length).toBe(count);
    }
  }
});

test("an error between two pongs belongs to the publication between them", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  server.on("connection", (socket) => {
    socket.send('["cursor","e.1"]');
    socket.on("message", (bytes) => {
      const frame = JSON.parse(String(bytes));
      if (frame[0] === "ping") socket.send(JSON.stringify(["pong", frame[1]]));
      if (frame[2] === "too much") socket.send('["error","overloaded","the server is behind"]');
    });
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const subscriber = new Subscriber(url, { transport: "websocket" });
  await subscriber.open();
  const publications = ["one", "too much", "two"].map((data) =>
    subscriber.connection.publish("a", data).then(
      () => "accepted",
      ({ code }) => code,
    ),
  );
  expect(await Promise.all(publications)).toEqual(["accepted", "overloaded", "accepted"]);
  expect(subscriber.errors).toEqual([]);
});

test("a gap moves the cursor by itself, so that it is told once", async () => {
  const addresses: string[] = [];
  const server = http.createServer((request, response) => {
    addresses.push(request.url ?? "");
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.end(addresses.length === 1 ? '["gap","e.1","f.7"]\n' : '["cursor","f.7"]\n');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const subscriber = new Subscriber(url, { transport: "http-streaming", after: "e.1" });
  await until(() => addresses.length >= 2, "another attempt");
  expect(addresses.slice(0, 2).map((address) => address.split("after=")[1])).toEqual([
    "e.1",
    "f.7",
  ]);
  expect(subscriber.gaps.length).toBe(1);
});
