// A raw TCP connection that says what it likes and keeps all that comes back.

import { once } from "node:events";
import net from "node:net";
import { until } from "../foreign/harness.js";

export class Peer {
  received = Buffer.alloc(0);
  /** The server has ended or reset the connection. */
  isClosed = false;

  static async connect(t, server) {
    const peer = new Peer();
    peer.socket = net.connect({ port: server.port, host: "127.0.0.1" });
    t.after(() => peer.socket.destroy());
    await once(peer.socket, "connect");
    peer.socket.setNoDelay(true);
    peer.socket.on("data", (bytes) => {
      peer.received = Buffer.concat([peer.received, bytes]);
    });
    for (const event of ["end", "close", "error"]) {
      peer.socket.on(event, () => {
        peer.isClosed = true;
      });
    }
    return peer;
  }

  /** Connects, sends, and waits for so many responses or the end. */
  static async exchange(t, server, bytes, count = 1) {
    const peer = await Peer.connect(t, server);
    peer.send(bytes);
    await until(
      () => peer.responses.length >= count || peer.isClosed,
      () => `${count} responses; there came ${JSON.stringify(peer.text.slice(-300))}`,
    );
    return peer;
  }

  /** Connects as a WebSocket; `behind` goes in one write with the handshake. */
  static async upgrade(t, server, query = "channel=a", behind = Buffer.alloc(0)) {
    const peer = await Peer.connect(t, server);
    peer.send(Buffer.concat([Buffer.from(handshake({ query })), behind]));
    await until(
      () => peer.received.includes("\r\n\r\n") || peer.isClosed,
      "an answer to the handshake",
    );
    return peer;
  }

  send(bytes) {
    if (this.socket.writable) this.socket.write(bytes);
  }

  async closed(what = "the server closes the connection") {
    await until(
      () => this.isClosed,
      () => `${what}; there came ${this.text.slice(-200)}`,
    );
  }

  get text() {
    return this.received.toString("latin1");
  }

  /** The whole responses so far: `{ status, headers, text }`, with `error` where the body names one. */
  get responses() {
    const all = [];
    for (let rest = this.text; ; ) {
      const end = rest.indexOf("\r\n\r\n");
      const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(rest)?.[1]);
      if (end < 0 || Number.isNaN(status)) return all;
      const headers = new Map(
        rest
          .slice(0, end)
          .split("\r\n")
          .slice(1)
          .map((line) => line.split(/:\s*/, 2))
          .map(([name, value]) => [name.toLowerCase(), value]),
      );
      const size = Number(headers.get("content-length") ?? 0);
      const text = rest.slice(end + 4, end + 4 + size);
      if (text.length < size) return all;
      all.push({ status, headers, text, error: errorIn(text) });
      rest = rest.slice(end + 4 + size);
    }
  }

  /** The WebSocket frames so far: `{ opcode, payload }`. */
  get frames() {
    const all = [];
    let at = this.received.indexOf("\r\n\r\n") + 4;
    while (this.received.length >= at + 4 || this.received.length === at + 2) {
      const [first, short] = this.received.subarray(at);
      const head = { 126: 4, 127: 10 }[short] ?? 2;
      if (this.received.length < at + head) break;
      const size = { 126: () => this.received.readUInt16BE(at + 2) }[short]?.() ?? short;
      if (this.received.length < at + head + size) break;
      all.push({
        opcode: first & 15,
        payload: this.received.subarray(at + head, at + head + size),
      });
      at += head + size;
    }
    return all;
  }

  /** The code of the close frame, once it has come. */
  get closeCode() {
    const close = this.frames.find(({ opcode }) => opcode === 8);
    return close && (close.payload.length < 2 ? 1005 : close.payload.readUInt16BE(0));
  }
}

function errorIn(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined;
  }
}

/** A WebSocket's opening request; `fields` replace or, when undefined, remove. */
export function handshake({ query = "channel=a", method = "GET", fields = {} } = {}) {
  const all = {
    Host: "localhost",
    Upgrade: "websocket",
    Connection: "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...fields,
  };
  const lines = Object.entries(all).filter(([, value]) => value !== undefined);
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `${method} /ws?${query} HTTP/1.1\r\n${head}\r\n`;
}

/** A client's frame: `first` is its first byte, the mask is zero so that the payload stays readable. */
export function frame(first, payload = "") {
  const body = Buffer.from(payload);
  const length =
    body.length < 126
      ? [0x80 | body.length]
      : body.length < 65_536
        ? [0xfe, body.length >> 8, body.length & 255]
        : [0xff, 0, 0, 0, 0, ...[24, 16, 8, 0].map((bits) => (body.length >>> bits) & 255)];
  return Buffer.concat([Buffer.from([first, ...length, 0, 0, 0, 0]), body]);
}
