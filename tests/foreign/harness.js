// Starts servers, cuts connections, and waits for conditions with a deadline. tests/attack and tests/browser use it too.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const BINARY =
  process.env.PUSHLAB ?? fileURLToPath(new URL("../../target/release/pushlab", import.meta.url));

/** How long a server tries to listen on a given port: a connection of another test may have it. */
const LISTENS_WITHIN_MS = 10_000;

/** How long `until` pauses before it asks again: at first, and at most, since who asks a page keeps a browser busy. */
const PAUSE_MS = 5;
const PAUSE_MAX_MS = 50;

/** Waits until `condition` is true; `what` names it (or makes its name) when the deadline has passed. */
export async function until(condition, what, within_ms = 40_000) {
  const deadline = performance.now() + within_ms;
  for (let pause_ms = PAUSE_MS; ; pause_ms = Math.min(2 * pause_ms, PAUSE_MAX_MS)) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) {
      const name = typeof what === "function" ? await what() : what;
      throw new Error(`did not happen within ${within_ms} ms: ${name}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}

/** A certificate for 127.0.0.1 that openssl makes, and its key: the paths of two PEM files, gone after the test. */
export function makeIdentity(t, kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]) {
  const folder = mkdtempSync(join(tmpdir(), "pushlab-tls-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [certificate, key] = [join(folder, "certificate.pem"), join(folder, "key.pem")];
  const files = ["-nodes", "-keyout", key, "-out", certificate];
  const name = ["-subj", "/CN=pushlab", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-days", "2", ...kind, ...files, ...name], { stdio: "pipe" });
  return { certificate, key };
}

/** The tokens of consoles that were started, by their addresses. */
export const tokens = new Map();

/** `pushlab serve` as a process. */
export class Server {
  #process;
  #log = "";
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  /** Where it listens. */
  port;
  /** The certificate in PEM format, where it speaks TLS. */
  ca;
  /** What a console asks for. */
  token;

  /** Starts one on a free port (or on `port`) and ends it after the test `t`. `pushlab console` is started alike. */
  static async start(t, options = [], port = 0, command = "serve") {
    const args = [command, "--listen", `127.0.0.1:${port}`, "--json", ...options];
    const deadline = performance.now() + LISTENS_WITHIN_MS;
    for (;;) {
      const server = await Server.#launch(t, args);
      if (server.port !== undefined) return server;
      const isTaken = port !== 0 && server.#log.includes("Address already in use");
      if (!isTaken || performance.now() > deadline) assert.fail(`the server did not start; it logged: ${server.#log}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts the process; one that ends at once has no port. */
  static async #launch(t, args) {
    const server = new Server();
    server.#process = spawn(BINARY, args, { stdio: ["ignore", "pipe", "pipe"] });
    const child = server.#process;
    child.on("error", (error) => {
      server.#log += `${BINARY}: ${error.message}`;
    });
    t.after(() => server.kill());
    child.stderr.on("data", (text) => {
      server.#log = (server.#log + text).slice(-4000);
    });
    const lines = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    await until(
      () => lines.length > 0 || !server.isRunning,
      () => `the server says where it listens; it logged: ${server.#log}`,
    );
    if (lines.length === 0) {
      if (child.pid !== undefined) await until(() => child.stderr.readableEnded, "the server has said why it ended");
      return server;
    }
    const { listening, token } = JSON.parse(lines[0]);
    server.port = Number(listening.split(":").at(-1));
    server.token = token;
    if (token !== undefined) for (const scheme of ["http", "https"]) tokens.set(`${scheme}://127.0.0.1:${server.port}`, token);
    return server;
  }

  /** Starts one that speaks TLS with an identity of `makeIdentity`. */
  static async startSecure(t, { certificate, key }, options = [], command = "serve") {
    const files = ["--tls-certificate", certificate, "--tls-key", key];
    const server = await Server.start(t, [...options, ...files], 0, command);
    server.ca = readFileSync(certificate);
    server.#agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    return server;
  }

  get base() {
    return `${this.ca ? "https" : "http"}://127.0.0.1:${this.port}`;
  }

  /** With what a request shows that it may come here. */
  get headers() {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }

  get isRunning() {
    return this.#process.pid !== undefined && this.exit === null;
  }

  /** `{ code, signal }` once the process has ended, else null. */
  get exit() {
    const { exitCode: code, signalCode: signal } = this.#process;
    return code === null && signal === null ? null : { code, signal };
  }

  signal(name) {
    this.#process.kill(name);
  }

  /** The end of what it wrote to standard error. */
  get log() {
    return this.#log;
  }

  /** Ends the process without a goodbye and waits until it is gone. */
  async kill() {
    this.#agent.destroy();
    if (!this.isRunning) return;
    this.signal("SIGKILL");
    await until(() => this.exit, "the killed server is gone");
  }

  /** One request on a connection that is kept: `{ status, headers, text }`. */
  request(method, path, { body, headers, agent = this.#agent } = {}) {
    return new Promise((resolve, reject) => {
      const address = { port: this.port, host: "127.0.0.1", ca: this.ca };
      const options = { ...address, method, path, headers: { ...this.headers, ...headers }, agent };
      const request = (this.ca ? https : http).request(options, async (response) => {
        try {
          const parts = await response.setEncoding("utf8").toArray();
          resolve({
            status: response.statusCode,
            headers: response.headers,
            text: parts.join(""),
          });
        } catch (error) {
          reject(error);
        }
      });
      request.on("error", reject);
      request.end(body);
    });
  }

  /** Publishes JSON text and gives the publication's cursor. */
  async publish(channel, text) {
    const headers = { "content-type": "application/json" };
    const path = `/publish?channel=${channel}`;
    const answer = await this.request("POST", path, { body: text, headers });
    assert.equal(answer.status, 200, `POST ${path}: ${answer.text}`);
    const [name, cursor] = JSON.parse(answer.text);
    assert.equal(name, "cursor");
    return cursor;
  }

  /** Resident memory of the process, in bytes. */
  get rss_bytes() {
    assert.ok(this.isRunning, `the server has ended; it logged: ${this.#log}`);
    const status = readFileSync(`/proc/${this.#process.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]) * 1024;
  }

  /** How many descriptors the process holds. */
  get descriptors() {
    return readdirSync(`/proc/${this.#process.pid}/fd`).length;
  }

  /** CPU time of the threads whose names begin so, in ticks of the kernel. */
  ticks(name) {
    const tasks = `/proc/${this.#process.pid}/task`;
    const spent = readdirSync(tasks).map((task) => {
      const [, thread, rest] = /\((.*)\) (.*)/.exec(readFileSync(`${tasks}/${task}/stat`, "utf8"));
      const [user, system] = rest.split(" ").slice(11, 13).map(Number);
      return thread.startsWith(name) ? user + system : 0;
    });
    return spent.reduce((all, one) => all + one, 0);
  }
}

/** What a proxy says that refuses. */
const REFUSAL = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/** How often a proxy that collects hands on what it has. */
const CLUMPS_MS = 1200;

/** Whether the path of a request that begins with these bytes fits the pattern; null fits none. */
function isOf(pattern, request) {
  const [, path] = request.toString("latin1").split("\r\n", 1)[0].split(" ");
  return pattern !== null && path !== undefined && pattern.test(path);
}

/** Hands connections on to a server, and can cut them. A request for `/page` goes to `pages` instead. */
export class TcpProxy {
  #listener;
  #sockets = new Set();
  #passing = true;
  #budget_bytes = Number.POSITIVE_INFINITY;
  /** The port of the server; another one may take its place. */
  target;
  /** Paths whose answers never reach the client, as behind a proxy that collects them whole: a RegExp, or null. */
  held = null;
  /** Paths that it answers itself, with 403, as one does that lets no WebSocket through: a RegExp, or null. */
  refused = null;
  /** Paths whose answers it collects, and hands on only so often: a RegExp, or null. */
  clumped = null;

  static async start(t, target, pages) {
    const proxy = new TcpProxy();
    proxy.target = target;
    proxy.#listener = net.createServer((client) => proxy.#accept(client, pages));
    proxy.#listener.listen(0, "127.0.0.1");
    await once(proxy.#listener, "listening");
    t.after(() => {
      proxy.cut();
      proxy.#listener.close();
    });
    return proxy;
  }

  get base() {
    return `http://127.0.0.1:${this.#listener.address().port}`;
  }

  /** Cuts every connection, and each new one, until `restore`. */
  cut() {
    this.#passing = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts as soon as so many more bytes have gone to clients, wherever in a message that is. */
  cutAfter(bytes) {
    this.#budget_bytes = bytes;
  }

  get isCut() {
    return !this.#passing;
  }

  restore() {
    this.#passing = true;
    this.#budget_bytes = Number.POSITIVE_INFINITY;
  }

  #accept(client, pages) {
    this.#keep(client);
    if (!this.#passing) return client.destroy();
    client.once("data", (first) => {
      if (isOf(this.refused, first)) return client.end(REFUSAL);
      const isPage = first.toString("latin1").startsWith("GET /page ");
      const server = net.connect(isPage ? pages : this.target, "127.0.0.1");
      this.#keep(server);
      server.write(first);
      client.pipe(server);
      let isHeld = false;
      let clumps = null;
      const judge = (bytes) => {
        isHeld ||= isOf(this.held, bytes);
        if (isOf(this.clumped, bytes)) clumps ??= this.#collect(client, server);
      };
      judge(first);
      client.on("data", judge);
      server.on("data", (bytes) => {
        if (isHeld) return;
        if (clumps === null) this.#toClient(client, server, bytes);
        else clumps.push(bytes);
      });
      server.on("close", () => client.end());
      client.on("close", () => server.destroy());
    });
  }

  /** What is put into the list goes to the client together, from time to time. */
  #collect(client, server) {
    const clumps = [];
    const timer = setInterval(() => {
      for (const bytes of clumps.splice(0)) this.#toClient(client, server, bytes);
    }, CLUMPS_MS);
    client.on("close", () => clearInterval(timer));
    return clumps;
  }

  #toClient(client, server, bytes) {
    if (!this.#passing) return;
    if (bytes.length > this.#budget_bytes) {
      this.#passing = false;
      client.end(bytes.subarray(0, this.#budget_bytes));
      for (const socket of this.#sockets) if (socket !== client) socket.destroy();
      return;
    }
    this.#budget_bytes -= bytes.length;
    if (!client.write(bytes)) {
      server.pause();
      client.once("drain", () => server.resume());
    }
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
