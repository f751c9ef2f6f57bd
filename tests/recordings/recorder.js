// A proxy between real clients and a server that writes down what they say to each other, turn by turn.

import { once } from "node:events";
import net from "node:net";

/** After so long a silence the server has said all that a turn made it say. */
const QUIET_MS = 40;
/** What may be heard of one conversation. */
const MAX_BYTES = 256 * 1024;
/** The server's first heartbeat on a stream that asks for an early one. */
const EARLY_MS = 1000;

/**
 * It hands on one thing that clients do at a time, and the next when the server has fallen silent: so what is written
 * down in an order was caused in this order.
 */
export class Recorder {
  events = [];
  #listener;
  #target;
  #sockets = new Set();
  #connections = [];
  /** Numbers of connections that a stop does not end. */
  mayStay;
  /** A stream may live until its early heartbeat. */
  mayBeEarly = false;
  #queue = [];
  #isBusy = false;
  #heard_ms = performance.now();
  #bytes = 0;
  #count = 0;

  static async start(port, target) {
    const recorder = new Recorder();
    recorder.#target = target;
    recorder.#listener = net.createServer({ allowHalfOpen: true }, (client) =>
      recorder.#accept(client),
    );
    recorder.#listener.listen(port, "127.0.0.1");
    await once(recorder.#listener, "listening");
    return recorder;
  }

  /** Waits until nothing is under way: what a client has just said may still be on its way here. */
  async settled() {
    this.#heard_ms = performance.now();
    await this.#quiet();
    while (this.#isBusy || this.#queue.length > 0)
      await new Promise((resolve) => setTimeout(resolve, 5));
    await this.#quiet();
  }

  /** Stops the server by `work`, writes that down, and waits until it has ended all connections that it knows. */
  async stop(work) {
    await this.settled();
    this.events.push({ kind: "stop" });
    work();
    const isHeard = () =>
      this.#connections.every(({ hasEnded, id }) => hasEnded || this.mayStay?.includes(id));
    while (!isHeard()) await new Promise((resolve) => setTimeout(resolve, 5));
    await this.settled();
  }

  async end() {
    for (const socket of this.#sockets) socket.destroy();
    this.#listener.close();
    await once(this.#listener, "close");
  }

  #accept(client) {
    this.#count += 1;
    const connection = { id: this.#count, client, hasEnded: false, hasGone: false };
    this.#connections.push(connection);
    this.#keep(client);
    this.#then(() => this.#open(connection));
    client.on("data", (bytes) => this.#then(() => this.#hear(connection, bytes)));
    const gone = () => {
      if (connection.hasGone) return;
      connection.hasGone = true;
      this.#then(() => this.#part(connection));
    };
    client.on("end", gone);
    client.on("close", gone);
  }

  async #open(connection) {
    const { id, client } = connection;
    const server = net.connect({ port: this.#target, host: "127.0.0.1", allowHalfOpen: true });
    connection.server = server;
    connection.since_ms = performance.now();
    this.#keep(server);
    server.on("data", (bytes) => {
      this.#say("server", id, bytes);
      this.#heard_ms = performance.now();
      if (client.writable) client.write(bytes);
    });
    const gone = () => {
      if (connection.hasEnded) return;
      connection.hasEnded = true;
      this.#heard_ms = performance.now();
      this.#say("server ends", id);
      client.end();
    };
    server.on("end", gone);
    server.on("close", gone);
    await Promise.race([once(server, "connect"), once(server, "close")]);
    this.#say("opens", id);
  }

  /** What comes behind the server's end was said too late: whether it was, is chance. */
  #hear({ id, server, hasEnded }, bytes) {
    if (hasEnded) return;
    this.#say("client", id, bytes);
    server.write(bytes);
  }

  #part(connection) {
    const { id, server, hasEnded, since_ms } = connection;
    const said = this.events
      .find((event) => event.kind === "client" && event.id === id)
      ?.bytes.toString("latin1");
    if (said?.split("\r\n", 1)[0].includes("early=1") && !this.mayBeEarly) {
      if (performance.now() - since_ms > EARLY_MS - 100)
        throw new Error("too slow: an early heartbeat may have come");
    }
    if (hasEnded) return;
    this.#say("client ends", id);
    server.end();
  }

  #say(kind, id, bytes) {
    this.#bytes += bytes?.length ?? 0;
    if (this.#bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    this.events.push({ kind, id, bytes });
  }

  async #then(work) {
    this.#queue.push(work);
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#queue.length > 0) {
      await this.#quiet();
      await this.#queue.shift()();
      this.#heard_ms = performance.now();
    }
    await this.#quiet();
    this.#isBusy = false;
    // What came during the last silence.
    if (this.#queue.length > 0) this.#then(() => {});
  }

  async #quiet() {
    for (;;) {
      const left = this.#heard_ms + QUIET_MS - performance.now();
      if (left <= 0) return;
      await new Promise((resolve) => setTimeout(resolve, left + 1));
    }
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
