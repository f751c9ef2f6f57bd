// Hands connections on to a server, and can cut them.

import { once } from "node:events";
import net from "node:net";

export class TcpProxy {
  #listener;
  #sockets = new Set();
  #isPassing = true;

  static async start(port) {
    const proxy = new TcpProxy();
    proxy.#listener = net.createServer((client) => {
      proxy.#keep(client);
      if (!proxy.#isPassing) return client.destroy();
      const server = net.connect(port, "127.0.0.1");
      proxy.#keep(server);
      client.pipe(server).pipe(client);
      client.on("close", () => server.destroy());
      server.on("close", () => client.destroy());
    });
    proxy.#listener.listen(0, "127.0.0.1");
    await once(proxy.#listener, "listening");
    return proxy;
  }

  get base() {
    return `http://127.0.0.1:${this.#listener.address().port}`;
  }

  /** Cuts every connection, and each new one until `restore`. */
  cut() {
    this.#isPassing = false;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  restore() {
    this.#isPassing = true;
  }

  close() {
    this.#listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
