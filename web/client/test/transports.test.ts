import { describe, expect, test } from "vitest";
import { connect, PushlabError, type Transport } from "../src/pushlab.ts";
import { TcpProxy } from "./proxy.ts";
import { Server, until } from "./server.ts";
import { Subscriber } from "./subscriber.ts";

const ALL: Transport[] = ["websocket", "sse", "http-streaming", "long-polling", "polling"];

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({ n: from + at }));

// Between two short polls there is nobody to tell.
test.each(ALL.slice(0, 4))(
  "%s comes back when the server said so as it stopped",
  async (transport) => {
    const server = await Server.start(["--drain-window", "20s"]);
    const subscriber = new Subscriber(server.base, { transport });
    const waits: number[] = [];
    subscriber.connection.addEventListener("state", ({ state, retryIn }) => {
      if (state === "waiting") waits.push(retryIn);
    });
    await subscriber.open();
    if (transport === "long-polling")
      await until(async () => (await server.stats()).held_polls === 1, "the poll is held");
    server.stop();
    const wait = await until(() => waits[0], "it notices");
    // Its own backoff ends at 300 ms.
    expect(wait).toBeGreaterThan(300);
    expect(wait).toBeLessThan(20_000);
  },
);

describe.each(ALL)("%s", (transport) => {
  test("delivers in order, with texts of every kind", async () => {
    const server = await Server.start();
    const subscriber = new Subscriber(server.base, { transport });
    await subscriber.open();
    expect(subscriber.states.map(({ state }) => state)).toEqual(["connecting", "open"]);
    const data = [1, null, "", "ä€😀\u2028\r\n'</script>", { a: [true, {}] }, ...numbers(0, 100)];
    for (const one of data) await subscriber.connection.publish("a", one);
    await subscriber.received(data.length);
    expect(subscriber.data).toEqual(data);
    expect(subscriber.connection.cursor).toBe(subscriber.cursors.at(-1));
    expect(subscriber.errors).toEqual([]);
  });

  test("knows the version of HTTP while it is open, but for polls", async () => {
    const server = await Server.start();
    const proxy = await TcpProxy.start(server.port);
    const subscriber = new Subscriber(proxy.base, { transport });
    await subscriber.open();
    const version = transport.endsWith("polling") ? undefined : "1.1";
    expect(subscriber.connection.httpVersion).toBe(version);
    proxy.down();
    await until(() => subscriber.connection.state !== "open", "it notices");
    expect(subscriber.connection.httpVersion).toBe(undefined);
    proxy.restore();
    await subscriber.open();
    subscriber.connection.close();
    expect(subscriber.connection.httpVersion).toBe(undefined);
    for (const { state, httpVersion } of subscriber.states)
      expect(httpVersion, state).toBe(state === "open" ? version : undefined);
    expect(subscriber.states.at(-1)?.state).toBe("closed");
  });

  test("resumes after cuts: nothing lost, nothing twice", async () => {
    const server = await Server.start();
    const proxy = await TcpProxy.start(server.port);
    const subscriber = new Subscriber(proxy.base, { transport });
    await subscriber.open();
    let sent = 0;
    for (let round = 1; round <= 6; round++) {
      const published = numbers(sent, sent + 40).map((data) => server.publish("a", data));
      sent += 40;
      await published[20];
      // In the middle of them, and sometimes for longer than one attempt.
      const isDown = round % 2 === 0;
      if (isDown) proxy.down();
      else proxy.cut();
      await Promise.all(published);
      // After a mere cut it may be open again before anybody looks.
      if (isDown && round > 2)
        await until(() => subscriber.connection.state !== "open", "it notices");
      proxy.restore();
    }
    await server.publish("a", "last");
    await until(() => subscriber.data.at(-1) === "last", "the last message");
    const seen = (subscriber.data.slice(0, -1) as { n: number }[]).map(({ n }) => n);
    expect(seen.toSorted((a, b) => a - b)).toEqual(numbers(0, sent).map(({ n }) => n));
    // Published at one time, they are in the order of the server's cursors and no other.
    const offsets = subscriber.cursors.map((cursor) => Number(cursor.split(".")[1]));
    expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    expect(subscriber.gaps).toEqual([]);
    expect(subscriber.errors).toEqual([]);
  });

  test("tells a gap when the server has forgotten", async () => {
    let server = await Server.start();
    const proxy = await TcpProxy.start(() => server.port);
    const subscriber = new Subscriber(proxy.base, { transport });
    await subscriber.open();
    await server.publish("a", "before");
    await subscriber.received(1);
    const before = subscriber.connection.cursor;
    await server.kill();
    server = await Server.start();
    await until(() => subscriber.gaps.length > 0, "a gap");
    await subscriber.open();
    await server.publish("a", "after");
    await subscriber.received(2);
    expect(subscriber.gaps.length).toBe(1);
    expect(subscriber.gaps[0]).toMatchObject({ from: before, position: 1 });
    expect(subscriber.data).toEqual(["before", "after"]);
  });

  test("resumes from a cursor of another connection", async () => {
    const server = await Server.start();
    const first = new Subscriber(server.base, { transport });
    await first.open();
    await server.publish("a", 1);
    await first.received(1);
    first.connection.close();
    await server.publish("a", 2);
    const second = new Subscriber(server.base, { transport, after: first.connection.cursor });
    await second.received(1);
    expect(second.data).toEqual([2]);
    expect(first.data).toEqual([1]);
    expect(first.states.at(-1)?.state).toBe("closed");
  });

  test("subscribes and unsubscribes", async () => {
    const server = await Server.start();
    const subscriber = new Subscriber(server.base, { transport, channels: [] });
    const { connection } = subscriber;
    const isSocket = transport === "websocket";
    await until(() => connection.state === (isSocket ? "open" : "waiting"), "it has settled");
    connection.subscribe("a");
    connection.subscribe("b");
    await subscriber.open();
    // On a WebSocket the subscription holds once it was answered; a publication on it comes later in any case.
    await connection.publish("a", "a1");
    await connection.publish("b", "b1");
    await subscriber.received(2);
    connection.unsubscribe("a");
    await connection.publish("a", "a2");
    await connection.publish("b", "b2");
    await subscriber.received(3);
    expect(subscriber.data).toEqual(["a1", "b1", "b2"]);
    expect(connection.channels).toEqual(["b"]);
    expect(subscriber.errors).toEqual([]);
  });

  test("publishes and echoes, and says why not", async () => {
    const server = await Server.start();
    const { connection } = new Subscriber(server.base, { transport });
    await until(() => connection.state === "open", "it is open");
    expect(await connection.echo({ b: ["ö", null] })).toEqual({ b: ["ö", null] });
    expect(await connection.echo(null)).toBe(null);
    const refusal = async (promise: Promise<unknown>) => {
      const error = await promise.then(
        () => undefined,
        (error) => error,
      );
      expect(error).toBeInstanceOf(PushlabError);
      return error.code;
    };
    expect(await refusal(connection.publish("-", 1))).toBe("bad-channel");
    expect(await refusal(connection.publish("a", undefined))).toBe("bad-json");
    expect(await refusal(connection.publish("a", 1n))).toBe("bad-json");
    expect(await refusal(connection.publish("a", "x".repeat(70_000)))).toBe("body-too-large");
    const late = connection.publish("a", 1);
    connection.close();
    expect(await refusal(late)).toMatch(/^(closed|connection-lost)$/);
    expect(await refusal(connection.publish("a", 1))).toBe("closed");
    expect(await refusal(connection.echo(1))).toBe("closed");
  });

  test("leaves nothing behind when it is closed", async () => {
    const server = await Server.start();
    const subscriber = new Subscriber(server.base, { transport });
    await subscriber.open();
    subscriber.connection.close();
    const isEmpty = async () => {
      const { connections, held_polls } = (await server.stats()) as unknown as {
        connections: Record<string, number>;
        held_polls: number;
      };
      const streams = ["websocket", "sse", "http-streaming"].map((name) => connections[name] ?? 0);
      return held_polls === 0 && streams.every((count) => count === 0);
    };
    await until(isEmpty, "the server holds nothing for it");
    await server.publish("a", 1);
    expect(subscriber.data).toEqual([]);
    expect(subscriber.states.map(({ state }) => state)).toEqual(["connecting", "open", "closed"]);
  });
});

describe("limits", () => {
  const code = (work: Promise<unknown>) =>
    work.then(
      () => "accepted",
      (error) => error.code,
    );

  test("64 channels, and a name of 128 characters", async () => {
    const server = await Server.start();
    const channels = Array.from({ length: 64 }, (_, at) => `${at}`.padEnd(128, "x"));
    const subscriber = new Subscriber(server.base, { channels });
    await subscriber.open();
    await subscriber.connection.publish(channels[63] as string, 1);
    await subscriber.received(1);
    const error = (code: string) => expect.objectContaining({ code });
    expect(() => subscriber.connection.subscribe("one-more")).toThrow(error("too-many-channels"));
    expect(() => subscriber.connection.subscribe("x".repeat(129))).toThrow(error("bad-channel"));
    expect(() => subscriber.connection.subscribe(channels[0] as string)).not.toThrow();
    expect(subscriber.connection.channels.length).toBe(64);
  });

  test.each([
    ["websocket", 1024],
    ["sse", 256],
  ] as const)("%s: %i publications without an answer", async (transport, limit) => {
    const server = await Server.start();
    const subscriber = new Subscriber(server.base, { transport });
    await subscriber.open();
    const { connection } = subscriber;
    const all = Array.from({ length: limit + 1 }, (_, n) => code(connection.publish("a", n)));
    const codes = await Promise.all(all);
    expect(codes.filter((code) => code === "accepted").length).toBe(limit);
    expect(codes.at(-1)).toBe("busy");
    await subscriber.received(limit);
    expect(await code(connection.publish("a", "again"))).toBe("accepted");
  });

  test("a channel that the WebSocket had no room for is subscribed to all the same", async () => {
    const server = await Server.start();
    const subscriber = new Subscriber(server.base, { transport: "websocket" });
    await subscriber.open();
    const { connection } = subscriber;
    const all = Array.from({ length: 1024 }, (_, n) => code(connection.publish("c", n)));
    connection.subscribe("b");
    await Promise.all(all);
    await until(() => subscriber.lives === 2, "it is open again");
    await connection.publish("b", "heard");
    await subscriber.received(1);
    expect(subscriber.data).toEqual(["heard"]);
  });

  test("a publication that no answer comes to", async () => {
    const server = await Server.start();
    const proxy = await TcpProxy.start(server.port, [{ path: /^POST/, what: "swallow" }]);
    const timing = { request: 100 };
    const { connection } = new Subscriber(proxy.base, { transport: "sse", timing });
    expect(await code(connection.publish("a", 1))).toBe("timeout");
    await server.kill();
    expect(await code(connection.publish("a", 1))).toBe("timeout");
    proxy.down();
    const patient = new Subscriber(proxy.base, { transport: "sse" });
    expect(await code(patient.connection.publish("a", 1))).toBe("unreachable");
  });
});

test("options that cannot be are refused at once", () => {
  const error = (code: string) => expect.objectContaining({ code });
  expect(() => connect("ftp://x")).toThrow(TypeError);
  expect(() => connect("not an address")).toThrow(TypeError);
  expect(() => connect("http://x", { transport: [] })).toThrow(TypeError);
  expect(() => connect("http://x", { transport: "flash" as Transport })).toThrow("flash");
  expect(() => connect("http://x", { channels: [""] })).toThrow(error("bad-channel"));
});

test("addresses keep their folder and query, and may be those of a WebSocket", async () => {
  const server = await Server.start();
  const proxy = await TcpProxy.start(server.port);
  const url = `${proxy.base.replace("http", "ws")}/folder/?token=1`;
  new Subscriber(url, { transport: "sse" });
  await until(() => proxy.seen[0], "a request");
  expect(proxy.seen[0]).toBe("GET /folder/sse?token=1&channel=a&early=1&v=2 HTTP/1.1");
});

test("requests are made with the fetch that is given", async () => {
  const server = await Server.start();
  const paths: string[] = [];
  const counting: typeof fetch = (input, init) => {
    paths.push(new URL(`${input}`).pathname);
    return fetch(input, init);
  };
  const subscriber = new Subscriber(server.base, { transport: "sse", fetch: counting });
  await subscriber.open();
  await subscriber.connection.publish("a", 1);
  await subscriber.received(1);
  expect(paths).toEqual(["/sse", "/publish"]);
});
