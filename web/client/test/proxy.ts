// A proxy on TCP that treats connections badly, by the path of their first request.

import { once } from "node:events";
import net from "node:net";
import { onTestFinished } from "vitest";

/** What happens to connections whose first request line matches. */
export interface Rule {
  path: RegExp;
  /** `refuse`: an answer 403 of the proxy. `buffer`: what the server sends waits until the connection ends. `swallow`:
   * nothing reaches the server. `cut`: the connection ends `after` milliseconds after it came. `cut-open`: so long after the
   * server's first bytes went to the client, however long those took. */
  what: "refuse" | "buffer" | "swallow" | "cut" | "cut-open";
  after?: number;
}

export class TcpProxy {
  readonly #listener: net.Server;
  readonly #sockets = new Set<net.Socket>();
  #isDown = false;
  #isStalled = false;
  rules: Rule[];
  /** The first request line of each connection. */
  readonly seen: string[] = [];
  /** The same of those that have ended, in the order of their ends. */
  readonly over: string[] = [];

  private constructor(target: () => number, rules: Rule[]) {
    this.rules = rules;
    this.#listener = net.createServer((client) => this.#accept(client, target()));
  }

  static async start(target: number | (() => number), rules: Rule[] = []): Promise<TcpProxy> {
    const proxy = new TcpProxy(typeof target === "number" ? () => target : target, rules);
    proxy.#listener.listen(0, "127.0.0.1");
    await once(proxy.#listener, "listening");
    onTestFinished(() => {
      proxy.cut();
      proxy.#listener.close();
    });
    return proxy;
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#listener.address() as net.AddressInfo).port}`;
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts every connection, and each new one until `restore`. */
  down(): void {
    this.#isDown = true;
    this.cut();
  }

  /** Passes nothing to clients on any connection, and cuts none, until `restore`; what came meanwhile is gone. */
  stall(): void {
    this.#isStalled = true;
  }

  restore(): void {
    this.#isDown = false;
    this.#isStalled = false;
  }

  #accept(client: net.Socket, target: number): void {
    this.#keep(client);
    if (this.#isDown) {
      client.destroy();
      return;
    }
    client.once("data", (first) => {
      const line = first.toString("latin1").split("\r\n")[0] ?? "";
      this.seen.push(line);
      client.on("close", () => this.over.push(line));
      const rule = this.rules.find(({ path }) => path.test(line));
      if (rule?.what === "refuse") {
        client.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
      }
      if (rule?.what === "swallow") return;
      const server = net.connect(target, "127.0.0.1");
      this.#keep(server);
      server.write(first);
      client.pipe(server);
      const held: Buffer[] = [];
      const cutLater = () => {
        const timer = setTimeout(() => client.destroy(), rule?.after);
        client.on("close", () => clearTimeout(timer));
      };
      if (rule?.what === "cut") cutLater();
      server.on("data", (bytes) => {
        if (this.#isStalled) return;
        if (rule?.what === "buffer") held.push(bytes);
        else client.write(bytes);
      });
      // Behind the line above, so that the bytes are written when it begins.
      if (rule?.what === "cut-open") server.once("data", cutLater);
      server.on("close", () => client.end(Buffer.concat(held)));
      client.on("close", () => server.destroy());
    });
  }

  #keep(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
