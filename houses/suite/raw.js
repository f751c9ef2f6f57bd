// Bytes on a socket, for what no client sends.

import { randomBytes } from "node:crypto";
import net from "node:net";
import { sleep } from "./waiting.js";

const ANSWER_MS = 2000;

/** A connection that takes whatever comes and never fails. */
function open(port) {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const opened = new Promise((resolve) => {
    socket.once("connect", resolve);
    socket.once("close", resolve);
  });
  return { socket, opened };
}

/** Sends bytes, waits a little for what they do, and drops the connection. */
export async function send(port, bytes, wait_ms = 50) {
  const { socket, opened } = open(port);
  await opened;
  socket.resume();
  socket.write(bytes);
  await sleep(wait_ms);
  socket.destroy();
}

/** Sends a request over a connection of its own. */
function request(port, line, body = "") {
  const { socket, opened } = open(port);
  const asked = { socket, text: "" };
  socket.on("data", (bytes) => {
    asked.text += bytes.toString("latin1");
  });
  const type = "Content-Type: text/plain;charset=UTF-8\r\nAccept: text/event-stream\r\n";
  const head = `${line} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${type}`;
  socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  /** What has come, once this much of it fits, or the connection is gone, or it is late. */
  asked.until = async (fits, ms = ANSWER_MS) => {
    await opened;
    for (let waited = 0; waited < ms && !fits.test(asked.text) && !socket.destroyed; waited += 2)
      await sleep(2);
    return asked.text;
  };
  return asked;
}

/**
 * A session over HTTP as `raw.sessions` in README.md has it: a stream that stays open, and requests that say something.
 * Undefined if none opens.
 */
export async function openSession(port, { open: line, id, stream, send: post }) {
  let name = randomBytes(8).toString("hex");
  if (line) {
    const opening = request(port, line);
    const told = new RegExp(`"${id}":"([^"]+)"`);
    name = told.exec(await opening.until(told))?.[1];
    opening.socket.destroy();
    if (!name) return undefined;
  }
  const named = (text) => text.replace("ID", encodeURIComponent(name));
  const heard = request(port, named(stream));
  await heard.until(/\r\n\r\n/, 200);
  return {
    async say(text) {
      const saying = request(port, named(post), text);
      await saying.until(/\r\n\r\n/, 300);
      saying.socket.destroy();
    },
    end: () => heard.socket.destroy(),
  };
}

/** One frame of WebSocket as a client sends it, or nearly: `first` is its first byte, text and final unless told. */
export function frame(payload, { first = 0x81, isMasked = true, length } = {}) {
  const body = Buffer.from(payload);
  const told = length ?? BigInt(body.length);
  const head = Buffer.alloc(10);
  head[0] = first;
  head[1] = (isMasked ? 0x80 : 0) | 127;
  head.writeBigUInt64BE(told, 2);
  let start = head;
  if (told < 126n) start = Buffer.from([first, (isMasked ? 0x80 : 0) | Number(told)]);
  else if (told < 65_536n) {
    start = head.subarray(0, 4);
    start[1] = (isMasked ? 0x80 : 0) | 126;
    start.writeUInt16BE(Number(told), 2);
  }
  if (!isMasked) return Buffer.concat([start, body]);
  const mask = randomBytes(4);
  return Buffer.concat([start, mask, body.map((byte, at) => byte ^ mask[at % 4])]);
}

/** Opens a WebSocket by hand and sends these frames; says whether it opened. */
export async function sendFrames(port, path, frames, wait_ms = 50) {
  const { socket, opened } = open(port);
  await opened;
  const answered = new Promise((resolve) => {
    socket.once("data", (bytes) => resolve(bytes.toString("latin1").startsWith("HTTP/1.1 101")));
    socket.once("close", () => resolve(false));
    if (socket.destroyed) resolve(false);
    setTimeout(() => resolve(false), ANSWER_MS).unref();
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  );
  const isOpen = await answered;
  for (const bytes of frames) {
    socket.write(bytes);
    // Apart, so that what is answered to the one comes before the next.
    await sleep(5);
  }
  await sleep(wait_ms);
  socket.destroy();
  return isOpen;
}
