// A server that says what a test wants.

import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { WebSocketServer } from "ws";

const TYPES: Record<string, string> = {
  "/sse": "text/event-stream",
  "/stream": "application/x-ndjson",
};

/** What is said to one connection. */
export interface Speech {
  status?: number;
  type?: string;
  bytes: string | Buffer;
  /** Whether the connection stays open behind it. */
  stays?: boolean;
  /** How a WebSocket is closed behind it. */
  close?: [code: number, reason: string];
  /** What is answered to a frame on a WebSocket that stays. */
  answer?: (frame: string) => string | undefined;
}

/** A server that says to each connection what `speech` gives for its address, and then nothing more. */
export async function speaker(speech: (address: string) => Speech): Promise<string> {
  const server = http.createServer((request, response) => {
    const { url: address = "" } = request;
    const { status = 200, type, bytes, stays = false } = speech(address);
    const path = address.split("?")[0] ?? "";
    response.writeHead(status, { "content-type": type ?? TYPES[path] ?? "application/json" });
    if (stays && path in TYPES) response.write(bytes);
    else response.end(bytes);
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, { url = "" }) => {
    const { bytes, stays, close, answer } = speech(url);
    socket.on("message", (frame) => {
      const said = answer?.(String(frame));
      if (said !== undefined) socket.send(said);
    });
    socket.send(bytes);
    if (close) socket.close(...close);
    else if (!stays) socket.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
