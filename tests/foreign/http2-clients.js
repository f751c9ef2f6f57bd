// Foreign clients that speak HTTP/2, in the form of clients.js: by ALPN where the base is https, else by prior knowledge.

import http2 from "node:http2";
import { Receiver, Sender } from "ws";
import { address, curlPolling, curlStream, readEvents, readNdjson } from "./clients.js";
import { until } from "./harness.js";

/** A session of Node's `http2` with a server. Who uses it sees its end by that of the streams. */
export function openSession({ base, ca }) {
  const session = http2.connect(base, { ca });
  session.on("error", () => {});
  return session;
}

/** One request: the answer's stream, with the status in `status` once the head is there. */
export function ask(session, path, { method = "GET", body, headers } = {}) {
  const fields = { ":method": method, ":path": path, ...headers };
  const stream = session.request(fields, { endStream: method === "GET" });
  stream.on("error", () => {});
  stream.on("response", (head) => {
    stream.status = head[":status"];
  });
  if (body !== undefined) stream.end(body);
  return stream;
}

/** One request and the whole of its answer: `{ status, text }`. */
export async function answerOf(session, path, options) {
  const stream = ask(session, path, options);
  const parts = await stream.setEncoding("utf8").toArray();
  return { status: stream.status, text: parts.join("") };
}

/** A WebSocket on a stream of a session, by extended CONNECT (RFC 8441); its frames are npm `ws`'s. */
export class StreamSocket {
  /** `{ code, reason }` once the peer has said goodbye. */
  closed = null;
  #sender;

  static async open(session, path, onText) {
    // Only then may it be asked for.
    await until(() => session.remoteSettings?.enableConnectProtocol, "the server takes extended CONNECT");
    const socket = new StreamSocket();
    const stream = ask(session, path, {
      method: "CONNECT",
      headers: { ":protocol": "websocket", "sec-websocket-version": "13" },
    });
    socket.stream = stream;
    socket.#sender = new Sender(stream);
    const receiver = new Receiver();
    receiver.on("message", (data) => onText(String(data)));
    receiver.on("ping", (payload) => socket.#sender.pong(payload, true));
    receiver.on("conclude", (code, reason) => {
      socket.closed = { code, reason: String(reason) };
      socket.#sender.close(code, "", true, () => stream.end());
    });
    receiver.on("error", () => stream.destroy());
    stream.pipe(receiver);
    return socket;
  }

  send(...frame) {
    const options = { fin: true, mask: true, binary: false };
    this.#sender.send(JSON.stringify(frame), options);
  }
}

const pathOf = (path, query) => {
  const url = new URL(address("http://h", path, query));
  return url.pathname + url.search;
};

/** A stream of frames; `read` as for curl. */
function streaming(path, read) {
  return async ({ base, ca, channel, after, onFrame, onEnd, onLog }) => {
    const session = openSession({ base, ca });
    const stream = ask(session, pathOf(path, { channel, after }));
    const readLine = read(onFrame);
    let partial = "";
    stream.setEncoding("utf8").on("data", (text) => {
      const lines = (partial + text).split("\n");
      partial = lines.pop();
      for (const line of lines) readLine(line);
    });
    stream.on("error", (error) => onLog(String(error)));
    stream.on("close", onEnd);
    return () => session.destroy();
  };
}

/** Polls on one session, each of which the server holds for so many seconds. */
function polling(wait) {
  return async ({ base, ca, channel, after, onFrame, onEnd, onLog }) => {
    const session = openSession({ base, ca });
    let isStopped = false;
    const poll = async (cursor) => {
      try {
        const path = pathOf("/poll", { channel, after: cursor, wait: cursor && wait });
        const { status, text } = await answerOf(session, path);
        if (status !== 200) throw new Error(`${status} ${text}`);
        const frames = JSON.parse(text);
        for (const frame of frames) onFrame(frame);
        if (!isStopped) poll(frames.at(-1)[1]);
      } catch (error) {
        onLog(String(error));
        if (!isStopped) onEnd();
      }
    };
    poll(after);
    return () => {
      isStopped = true;
      session.destroy();
    };
  };
}

async function webSocket({ base, ca, channel, after, onFrame, onEnd }) {
  const session = openSession({ base, ca });
  const path = pathOf("/ws", { channel, after });
  const socket = await StreamSocket.open(session, path, (text) => onFrame(JSON.parse(text)));
  socket.stream.on("close", onEnd);
  return () => session.destroy();
}

async function webSocketPolling({ base, ca, channel, after = "", onFrame, onEnd }) {
  const session = openSession({ base, ca });
  const path = pathOf("/ws", { channel, mode: "poll" });
  const socket = await StreamSocket.open(session, path, (text) => {
    const frames = JSON.parse(text);
    if (typeof frames[0] === "string") return onFrame(frames);
    for (const frame of frames) onFrame(frame);
    socket.send("poll", frames.at(-1)[1]);
  });
  socket.stream.on("close", onEnd);
  socket.send("poll", after);
  return () => session.destroy();
}

/** A client of curl's, told to speak HTTP/2: http2.test.js sees that it does. */
const curl = (make) => (sink) => make([curlsOption(sink.base)])(sink);

/** How curl is told to speak HTTP/2 with this server. */
export const curlsOption = (base) =>
  base.startsWith("https:") ? "--http2" : "--http2-prior-knowledge";

export const HTTP2_CLIENTS = [
  { name: "Node http2 /sse", connect: streaming("/sse", readEvents) },
  { name: "Node http2 /stream", connect: streaming("/stream", readNdjson) },
  { name: "Node http2 long polling", connect: polling(25) },
  { name: "Node http2 polling", connect: polling(0) },
  { name: "Node http2 WebSocket", connect: webSocket },
  { name: "Node http2 WebSocket, mode=poll", connect: webSocketPolling },
  { name: "curl --http2 /sse", connect: curl((options) => curlStream("/sse", readEvents, options)) },
  { name: "curl --http2 /stream", connect: curl((options) => curlStream("/stream", readNdjson, options)) },
  { name: "curl --http2 /poll", connect: curl((options) => curlPolling(options)) },
];
