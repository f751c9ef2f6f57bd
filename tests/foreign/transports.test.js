// Every foreign client gets every message, resumes after a cut, and sees the gap after a restart.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { servePages } from "./chromium.js";
import { CLIENTS, COMPRESSED_CLIENTS } from "./clients.js";
import { Server, TcpProxy, until } from "./harness.js";
import { HTTP2_CLIENTS } from "./http2-clients.js";
import { EACH_HARD_ONE, payloads } from "./payloads.js";

const CHANNEL = "a.b_c:d-e";

/** One client on one channel, behind a proxy that can cut it. Keeps its cursor and checks that it never goes back. */
class Subscriber {
  isConnected = false;
  #cursor;
  #close = () => {};
  #life = 0;
  #log = [];

  constructor(t, client, base) {
    this.client = client;
    this.base = base;
    this.frames = [];
    t.after(() => this.#close());
  }

  get messages() {
    return this.frames.filter(([name]) => name === "msg").map((frame) => frame[3]);
  }

  /** Connects, or waits for a client that does so by itself, until the server has said something. */
  async connect() {
    this.frames = [];
    if (this.#life === 0 || !this.client.resumes) {
      await this.#close();
      this.#life += 1;
      const life = this.#life;
      this.#close = await this.client.connect({
        base: this.base,
        channel: CHANNEL,
        after: this.#cursor,
        onFrame: (frame) => life === this.#life && this.#frame(frame),
        onEnd: () => {
          if (life === this.#life) this.isConnected = false;
        },
        onLog: (text) => this.#log.push(text),
      });
    }
    await until(
      () => this.isConnected,
      () => `${this.client.name} connects; ${this.#log.slice(-5)}`,
    );
  }

  /** Waits until so many messages have come on this connection. */
  async count(messages) {
    await until(
      () => this.messages.length >= messages,
      () => `${messages} messages; ${this.messages.length} came; ${this.#log.slice(-5)}`,
    );
  }

  async ended() {
    if (this.client.isBlind) this.isConnected = false;
    await until(() => !this.isConnected, `${this.client.name} sees the cut`);
  }

  #frame(frame) {
    this.isConnected = true;
    const [name, ...rest] = frame;
    if (name === "open") return;
    assert.ok(["msg", "cursor", "gap"].includes(name), `unexpected ${JSON.stringify(frame)}`);
    this.frames.push(frame);
    const cursor = name === "cursor" ? rest[0] : rest[1];
    if (name === "msg") assert.equal(rest[0], CHANNEL);
    if (name === "gap" && this.#cursor !== undefined) assert.equal(rest[0], this.#cursor);
    if (name !== "gap" && this.#cursor !== undefined) {
      const [[epoch, offset], [epochBefore, before]] = [cursor, this.#cursor].map(split);
      assert.equal(epoch, epochBefore, "a new epoch is announced by a gap");
      const isForward = name === "msg" ? offset > before : offset >= before;
      assert.ok(isForward, `${JSON.stringify(frame).slice(0, 80)} after ${this.#cursor}`);
    }
    this.#cursor = cursor;
  }
}

const split = (cursor) => {
  const [epoch, offset] = cursor.split(".");
  return [epoch, BigInt(offset)];
};

/** Equality whose failure names the first difference instead of printing megabytes. */
function assertSame(actual, texts) {
  const show = (value) => JSON.stringify(value)?.slice(0, 200);
  for (const [at, text] of texts.entries()) {
    const [is, should] = [show(actual[at]), show(JSON.parse(text))];
    assert.equal(is, should, `message ${at} of ${texts.length}`);
    assert.deepEqual(actual[at], JSON.parse(text), `message ${at} of ${texts.length}`);
  }
  assert.equal(actual.length, texts.length, `more came than was sent: ${show(actual.at(-1))}`);
}

/** Two event loops, so that publisher and subscriber may be on the same or on different ones. */
const CORES = ["--cores", "2"];

async function start(t, client) {
  const options = [...CORES, ...(client.options ?? []), "--history-messages", "2000"];
  const server = await Server.start(t, options);
  const proxy = await TcpProxy.start(t, server.port, await servePages());
  const subscriber = new Subscriber(t, client, proxy.base);
  const publish = async (texts) => {
    for (const text of texts) await server.publish(CHANNEL, text);
  };
  return { server, proxy, subscriber, publish };
}

const numbered = (first, count) => Array.from({ length: count }, (_, n) => String(first + n));

// They mostly wait, each for a server of its own.
describe("each client", { concurrency: 4 }, () => {
  for (const client of [...CLIENTS, ...HTTP2_CLIENTS, ...COMPRESSED_CLIENTS]) {
    test(`${client.name}: every message, also across cuts and a restart`, async (t) => {
      const { proxy, server, subscriber, publish } = await start(t, client);
      const cutAndMiss = async (missed) => {
        proxy.cut();
        await subscriber.ended();
        await publish(missed);
        proxy.restore();
        await subscriber.connect();
        await subscriber.count(missed.length);
        assertSame(subscriber.messages, missed);
      };
      await publish(['"before the subscription"']);
      await subscriber.connect();
      if (!client.ignoresLoneId) await cutAndMiss(numbered(0, 5));
      subscriber.frames = [];
      const sent = payloads(EACH_HARD_ONE);
      await publish(sent);
      await subscriber.count(sent.length);
      // Had one come twice, the extra one would stand before this.
      await publish(['"last"']);
      await until(() => subscriber.messages.at(-1) === "last", "the last message");
      assertSame(subscriber.messages, [...sent, '"last"']);
      await cutAndMiss(payloads(50));

      // A cut that may fall inside of a message, while others are on their way.
      subscriber.frames = [];
      // Compressed, all of them may be less than 1,500 bytes.
      proxy.cutAfter(client.options === undefined ? 1500 : 500);
      const late = numbered(1000, 200);
      await publish(late);
      await until(() => proxy.isCut, "enough bytes for the cut");
      await subscriber.ended();
      const before = subscriber.messages;
      proxy.restore();
      await subscriber.connect();
      await subscriber.count(late.length - before.length);
      assertSame([...before, ...subscriber.messages], late);

      // A restart begins a new epoch, and what the old one had is gone.
      proxy.cut();
      await subscriber.ended();
      await server.kill();
      const successor = await Server.start(t, [...CORES, ...(client.options ?? [])]);
      proxy.target = successor.port;
      proxy.restore();
      await subscriber.connect();
      await until(() => subscriber.frames.length > 0, "the first frame of the new epoch");
      assert.equal(subscriber.frames[0][0], "gap");
      for (const text of numbered(100, 3)) await successor.publish(CHANNEL, text);
      await subscriber.count(3);
      assertSame(subscriber.messages, numbered(100, 3));
    });
  }
});
