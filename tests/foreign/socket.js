// WebSockets of npm `ws` that keep what they receive. tests/attack uses them too.

import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { until } from "./harness.js";

export { WebSocket };

/** A WebSocket of npm `ws` that keeps what it receives. */
export class Socket {
  /** The frames received, parsed, and the texts they came in. */
  frames = [];
  texts = [];
  /** `{ code, reason }` once closed. */
  closed = null;

  static async open(t, server, query, options) {
    const socket = new Socket();
    const ws = new WebSocket(`${server.base.replace("http", "ws")}/ws?${query}`, {
      headers: server.headers,
      ca: server.ca,
      ...options,
    });
    socket.ws = ws;
    t.after(() => ws.terminate());
    ws.on("error", () => {});
    ws.on("message", (data) => {
      socket.texts.push(String(data));
      socket.frames.push(JSON.parse(String(data)));
    });
    ws.on("close", (code, reason) => {
      socket.closed = { code, reason: String(reason) };
    });
    await until(() => ws.readyState !== WebSocket.CONNECTING, "the WebSocket opens");
    assert.equal(ws.readyState, WebSocket.OPEN, "the WebSocket is open");
    return socket;
  }

  send(...frame) {
    this.ws.send(JSON.stringify(frame));
  }

  /** The data of every message so far. */
  get data() {
    return this.frames.filter(([name]) => name === "msg").map((frame) => frame.at(-1));
  }

  /** Waits for a frame that begins with these elements. */
  frame(...start) {
    const begins = (frame) =>
      start.every((x, at) => JSON.stringify(x) === JSON.stringify(frame[at]));
    return until(
      () => this.frames.find(begins),
      () => `a frame ${JSON.stringify(start)}; there came ${this.texts.slice(-5).join(" ")}`,
    );
  }
}

/** An ordinary client subscribes, and a message published to its channel reaches it. */
export async function assertDelivers(t, server) {
  const channel = `ordinary-${process.hrtime.bigint()}`;
  const socket = await Socket.open(t, server, `channel=${channel}`);
  await socket.frame("cursor");
  await server.publish(channel, '{"still":"here"}');
  await socket.frame("msg", channel);
  assert.deepEqual(socket.data, [{ still: "here" }]);
  socket.ws.close();
}
