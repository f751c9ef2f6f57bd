// The table of foreign clients. Each connects to an address, hands every frame of the native protocol to `onFrame`
// in its long form, `["msg",channel,cursor,data]`, and calls `onEnd` when its connection has ended.

import { spawn } from "node:child_process";
import http from "node:http";
import https from "node:https";
import { createInterface } from "node:readline";
import { EventSource } from "eventsource";
import { openPage, servePages } from "./chromium.js";
import { WebSocket } from "./socket.js";
import * as inPage from "./page.js";

/** `path` with those of the query's values that are there. */
export function address(base, path, query) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url.href;
}

/** An event of `/sse` as a frame. */
function eventFrame(id, data) {
  const [name, ...rest] = JSON.parse(data);
  return name === "msg" ? [name, rest[0], id, rest[1]] : [name, ...rest];
}

/** A function of page.js in Chromium; a script's frame must come from the page's own origin. */
function chromium(path, run, { isSameOrigin = false } = {}) {
  return async ({ base, channel, after, ...sink }) => {
    const origin = isSameOrigin ? base : `http://127.0.0.1:${await servePages()}`;
    const page = await openPage(origin, sink);
    page.on("console", (message) => sink.onLog(message.text()));
    page.on("pageerror", (error) => sink.onLog(error.message));
    // Not awaited: some run until the page is closed.
    page.evaluate(run, address(base, path, { channel, after })).catch(() => {});
    return () => page.close();
  };
}

async function npmWs({ base, ca, channel, after, onFrame, onEnd }) {
  const url = address(base.replace("http", "ws"), "/ws", { channel, after });
  const socket = new WebSocket(url, { ca });
  socket.on("message", (text) => onFrame(JSON.parse(String(text))));
  socket.on("error", () => {});
  socket.on("close", onEnd);
  return () => socket.terminate();
}

async function npmWsPolling({ base, ca, channel, after = "", onFrame, onEnd }) {
  const url = address(base.replace("http", "ws"), "/ws", { channel, mode: "poll" });
  const socket = new WebSocket(url, { ca });
  const poll = (cursor) => socket.send(JSON.stringify(["poll", cursor]));
  socket.on("open", () => poll(after));
  socket.on("message", (text) => {
    const frames = JSON.parse(String(text));
    if (typeof frames[0] === "string") return onFrame(frames);
    for (const frame of frames) onFrame(frame);
    poll(frames.at(-1)[1]);
  });
  socket.on("error", () => {});
  socket.on("close", onEnd);
  return () => socket.terminate();
}

async function npmEventSource({ base, channel, onFrame, onEnd }) {
  const source = new EventSource(address(base, "/sse", { channel }));
  source.onopen = () => onFrame(["open"]);
  source.onerror = onEnd;
  source.onmessage = (event) => onFrame(eventFrame(event.lastEventId, event.data));
  return () => source.close();
}

function startCurl(url, options) {
  const child = spawn("curl", ["--silent", "--show-error", "--no-buffer", ...options, url]);
  return { child, stop: () => child.kill("SIGKILL") };
}

const trusting = (caFile) => (caFile ? ["--cacert", caFile] : []);

/** curl on a stream; `read` makes a function that takes lines and calls its argument for every frame. */
export function curlStream(path, read, options = []) {
  return async ({ base, caFile, channel, after, onFrame, onEnd, onLog }) => {
    const { child, stop } = startCurl(address(base, path, { channel, after }), [
      ...options,
      ...trusting(caFile),
    ]);
    child.stderr.on("data", (text) => onLog(String(text)));
    // Like a client of our own, only whole lines count: readline would also hand out the torn last one.
    const readLine = read(onFrame);
    let partial = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (partial + text).split("\n");
      partial = lines.pop();
      for (const line of lines) readLine(line);
    });
    child.on("close", onEnd);
    return stop;
  };
}

export const readNdjson = (onFrame) => (line) => line !== "" && onFrame(JSON.parse(line));

/** The lines of `/sse`, as plainly as a shell script would read them. */
export function readEvents(onFrame) {
  let id = "";
  let data = [];
  return (line) => {
    if (line.startsWith("id:")) id = line.slice(3).trim();
    if (line.startsWith("data:")) data.push(line.slice(5));
    if (line !== "") return;
    onFrame(data.length > 0 ? eventFrame(id, data.join("\n")) : ["cursor", id]);
    data = [];
  };
}

/** curl once for each reply. */
export function curlPolling(options = []) {
  return async ({ base, caFile, channel, after, onFrame, onEnd, onLog }) => {
    let running;
    const poll = (cursor) => {
      const wait = cursor && 25;
      const url = address(base, "/poll", { channel, after: cursor, wait });
      running = startCurl(url, ["--fail-with-body", ...options, ...trusting(caFile)]);
      const lines = [];
      createInterface({ input: running.child.stdout }).on("line", (line) => lines.push(line));
      running.child.stderr.on("data", (text) => onLog(String(text)));
      running.child.on("close", (code) => {
        // A head that was cut is no error to curl 7.88: it ends with 0 and prints nothing.
        if (code !== 0 || lines.length === 0) return onEnd();
        const frames = JSON.parse(lines.join("\n"));
        for (const frame of frames) onFrame(frame);
        poll(frames.at(-1)[1]);
      });
    };
    poll(after);
    return () => running.stop();
  };
}

const OLD = ["--http1.0"];
const GZIP = ["--compressed"];

/** Node's own client, once for each reply on a connection that is kept. */
async function nodePolling({ base, ca, channel, after, onFrame, onEnd, onLog }) {
  const client = base.startsWith("https") ? https : http;
  const agent = new client.Agent({ keepAlive: true, maxSockets: 1 });
  let isStopped = false;
  const ended = (error) => {
    if (isStopped) return;
    onLog(String(error));
    onEnd();
  };
  const poll = (cursor) => {
    const url = address(base, "/poll", { channel, after: cursor, wait: cursor && 25 });
    const request = client.get(url, { ca, agent }, async (response) => {
      try {
        const parts = await response.setEncoding("utf8").toArray();
        const frames = JSON.parse(parts.join(""));
        for (const frame of frames) onFrame(frame);
        if (!isStopped) poll(frames.at(-1)[1]);
      } catch (error) {
        ended(error);
      }
    });
    request.on("error", ended);
  };
  poll(after);
  return () => {
    isStopped = true;
    agent.destroy();
  };
}

/**
 * `resumes`: by itself, with `Last-Event-ID`, or else by our passing `after`. `ignoresLoneId`: it does not take
 * note of an id that comes without data, as the standard says, so a cut before the first message is beyond it.
 * `isBlind`: nothing tells it of a cut. Chromium fires no event for a document that stops coming; a page that uses
 * a forever frame must watch for the heartbeats.
 */
export const CLIENTS = [
  { name: "Chromium WebSocket", connect: chromium("/ws", inPage.webSocket) },
  { name: "Chromium EventSource", connect: chromium("/sse", inPage.eventSource), resumes: true },
  { name: "Chromium fetch of /stream", connect: chromium("/stream", inPage.fetchStream) },
  {
    name: "Chromium forever frame",
    connect: chromium("/stream", inPage.foreverFrame, { isSameOrigin: true }),
    isBlind: true,
  },
  { name: "Chromium long polling", connect: chromium("/poll", inPage.longPolling) },
  { name: "npm ws", connect: npmWs },
  { name: "npm ws, mode=poll", connect: npmWsPolling },
  { name: "Node /poll", connect: nodePolling },
  { name: "npm eventsource", connect: npmEventSource, resumes: true, ignoresLoneId: true },
  { name: "curl /sse", connect: curlStream("/sse", readEvents) },
  { name: "curl /stream", connect: curlStream("/stream", readNdjson) },
  { name: "curl /poll", connect: curlPolling() },
  { name: "curl --http1.0 /sse", connect: curlStream("/sse", readEvents, OLD) },
  { name: "curl --http1.0 /stream", connect: curlStream("/stream", readNdjson, OLD) },
  { name: "curl --http1.0 /poll", connect: curlPolling(OLD) },
];

/** Those of them that ask for compression, as browsers do without being told to. */
const ASK_FOR_COMPRESSION = [
  ...CLIENTS.filter(({ name }) => /^(Chromium (WebSocket|EventSource|fetch|long)|npm)/.test(name)),
  { name: "curl --compressed /sse", connect: curlStream("/sse", readEvents, GZIP) },
  { name: "curl --compressed /stream", connect: curlStream("/stream", readNdjson, GZIP) },
  { name: "curl --compressed /poll", connect: curlPolling(GZIP) },
];

/** The same with a server that compresses. */
export const COMPRESSED_CLIENTS = ASK_FOR_COMPRESSION.map((client) => ({
  ...client,
  name: `${client.name}, compressed`,
  options: ["--compression-from", "100"],
}));
