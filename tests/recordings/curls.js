// curl, the client of shell scripts: every path, both versions of HTTP, bodies of both kinds, and errors.

import { spawn } from "node:child_process";
import { once } from "node:events";

/** Starts curl; `done` waits for its end. Its version would differ from machine to machine. */
function start({ t }, ...options) {
  const child = spawn("curl", ["--silent", "--no-buffer", "--user-agent", "", ...options]);
  t.after(() => child.kill("SIGKILL"));
  child.stdout.resume();
  const ended = once(child, "close");
  return {
    done: () => ended,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

const curl = async (at, ...options) => {
  await start(at, ...options).done();
};

/** A conversation in which curl is called once with each list of options; `/…` stands for an address. */
const calls = (name, about, ...lists) => ({
  name: `curl-${name}`,
  about,
  by: "curl",
  async run(at) {
    for (const list of lists) {
      await curl(
        at,
        ...list.map((option) => (option.startsWith("/") ? `${at.base}${option}` : option)),
      );
      await at.settled();
    }
  },
});

/** One that listens on a path while another publishes. */
const listens = (name, path, ...options) => ({
  name: `curl-${name}`,
  about: `listens to ${path} while others publish`,
  by: "curl",
  async run(at) {
    const listener = start(at, ...options, `${at.base}${path}`);
    await at.settled();
    for (const data of ['{"n":1}', '"second"']) {
      await curl(at, "--data-binary", data, `${at.base}/publish?channel=a`);
      await at.settled();
    }
    await curl(at, "--data-binary", "3", `${at.base}/publish?channel=another`);
    await at.settled();
    await listener.stop();
  },
});

const JSON_TYPE = ["-H", "Content-Type: application/json"];
const TEXT_TYPE = ["-H", "Content-Type: text/plain; charset=utf-8"];
const ORIGIN = ["-H", "Origin: http://page.example"];

export const CURLS = [
  calls("healthz", "asks whether the server is well, four requests on one connection", [
    ...["/healthz", "/healthz", "/healthz?x=1", "/healthz"],
  ]),
  calls(
    "head",
    "HEAD of the paths that take it and of those that do not, and an unknown path",
    ...[
      "/healthz",
      "/stats",
      "/metrics",
      "/sse?channel=a",
      "/poll?channel=a",
      "/ws",
      "/nothing",
    ].map((path) => ["--head", path]),
  ),
  calls(
    "stats",
    "counters, as JSON and for Prometheus",
    ["/stats", "/stats"],
    ["/metrics"],
    ["--http1.0", "/stats"],
    [...ORIGIN, "/metrics"],
  ),
  calls(
    "options",
    "preflights, of known and unknown paths",
    [
      "-X",
      "OPTIONS",
      ...ORIGIN,
      "-H",
      "Access-Control-Request-Method: POST",
      "-H",
      "Access-Control-Request-Headers: content-type",
      "/publish?channel=a",
    ],
    ["-X", "OPTIONS", "/sse", "/nothing"],
  ),
  calls(
    "origin",
    "answers to pages of other origins name them, errors too",
    [...ORIGIN, "/healthz", "/nothing", "/poll?channel=a"],
    [...ORIGIN, "--data-binary", "1", "/publish?channel=a"],
    [...ORIGIN, "--data-binary", "1", "/publish?channel=-"],
    [...ORIGIN, "--data-binary", "1", "/echo"],
  ),
  calls(
    "methods",
    "methods that paths do not take",
    ...[
      ["GET", "/publish?channel=a"],
      ["GET", "/echo"],
      ["PUT", "/publish?channel=a"],
      ["DELETE", "/poll?channel=a"],
      ["POST", "/sse?channel=a"],
      ["POST", "/stream?channel=a"],
      ["POST", "/ws"],
      ["POST", "/healthz"],
      ["PATCH", "/stats"],
      ["BREW", "/metrics"],
    ].map(([method, path]) => ["-X", method, path]),
  ),
  calls(
    "paths",
    "paths that are none",
    [
      "/",
      "/nothing/here",
      "/ssea?channel=a",
      "/SSE?channel=a",
      "--path-as-is",
      "/poll/../healthz",
      "/healthz/",
    ],
    ["--http1.0", "/"],
  ),
  calls(
    "parameters",
    "parameters that are wrong",
    ...[
      "/poll",
      "/sse?channel=",
      "/stream?channel=a%20b",
      "/poll?channel=.a",
      "/poll?channel=%ff%fe",
      "/sse?channel=a%0d%0ab",
      `/poll?channel=${"x".repeat(129)}`,
      "/poll?channel=a&channel=-&channel=b",
      "/poll?channel=a&after=xyz",
      "/sse?channel=a&after=abcde.-1",
      "/stream?channel=a&after=abcde.99999999999999999999",
      "/poll?channel=a&after=.1",
      "/poll?channel=a&wait=-1",
      "/poll?channel=a&wait=x",
      "/poll?channel=a&wait=",
      "/poll?channel=a&wait=inf",
      "/sse?channel=a&early=2",
      "/stream?channel=a&format=xml",
      "/ws?mode=push",
    ].map((path) => ["--globoff", path]),
  ),
  calls(
    "too-many-channels",
    "64 channels are taken, 65 are not",
    ...[64, 65].map((count) => [
      `/poll?${Array.from({ length: count }, (_, n) => `channel=${n}`).join("&")}`,
    ]),
  ),
  calls(
    "publish-json",
    "publishes JSON of every kind, on one connection where curl keeps it",
    ...['{"a":[1,2,{}]}', "null", "true", "-1.5e3", '"ä€😀\\u2028"', " [ 1 ,\n 2 ] "].map(
      (data) => [...JSON_TYPE, "--data-binary", data, "/publish?channel=a"],
    ),
    ["/poll?channel=a&after=zzzzz.1"],
  ),
  calls(
    "publish-text",
    "publishes text, which becomes a JSON string",
    ...["plain", 'not "JSON":\r\n\u0001 {ä\u2028', "", "\\ / \t"].map((data) => [
      ...TEXT_TYPE,
      "--data-binary",
      data,
      "/publish?channel=t",
    ]),
    ["-H", "Content-Type:  Text/Plain", "--data-binary", "upper", "/publish?channel=t"],
    ["/poll?channel=t&after=zzzzz.1"],
  ),
  calls(
    "publish-bad",
    "bodies that are no JSON",
    ...['{"a":', "1 2", '"a\nb"', "NaN", "", "{'a':1}", "[1,]", "\ufeff1", "01", "[[[[[[[["].map(
      (data) => [...JSON_TYPE, "--data-binary", data, "/publish?channel=a"],
    ),
  ),
  calls(
    "publish-chunked",
    "a body in chunks",
    [
      "-H",
      "Transfer-Encoding: chunked",
      ...JSON_TYPE,
      "--data-binary",
      '{"in":"chunks"}',
      "/publish?channel=c",
    ],
    [
      "-H",
      "Transfer-Encoding: chunked",
      ...TEXT_TYPE,
      "--data-binary",
      "text in chunks",
      "/publish?channel=c",
    ],
    ["-H", "Transfer-Encoding: chunked", ...JSON_TYPE, "--data-binary", "", "/publish?channel=c"],
    ["/poll?channel=c&after=zzzzz.1"],
  ),
  calls(
    "expect",
    "waits for 100 Continue before it sends a body",
    [
      "-H",
      "Expect: 100-continue",
      ...JSON_TYPE,
      "--data-binary",
      '"expected"',
      "/publish?channel=a",
    ],
    ["-H", "Expect: 100-continue", ...ORIGIN, "--data-binary", "an echo", "/echo"],
    [
      "-H",
      "Expect: 100-continue",
      "-H",
      "Transfer-Encoding: chunked",
      "--data-binary",
      "chunks",
      "/echo",
    ],
    ["-H", "Expect: 100-continue", "--data-binary", "1", "/publish"],
    ["-H", "Expect: 100-continue", "--data-binary", "1", "/nothing"],
    ["-H", "Expect: 200-maybe", "--data-binary", "1", "/echo"],
  ),
  calls(
    "http-1.0",
    "requests of HTTP/1.0: the connection ends behind each answer",
    ...[
      ["/healthz"],
      ["/poll?channel=a"],
      ["--data-binary", "1", "/publish?channel=a"],
      ["--data-binary", "x", "/echo"],
      ["/nothing"],
      ["--head", "/healthz"],
      ["-H", "Connection: keep-alive", "/healthz"],
    ].map((list) => ["--http1.0", ...list]),
  ),
  calls(
    "connection",
    "asks to close, and to keep",
    ["-H", "Connection: close", "/healthz", "/healthz"],
    ["-H", "Connection: keep-alive", "/healthz", "/poll?channel=a"],
    ["-H", "Connection: Upgrade, close", "/healthz"],
  ),
  calls(
    "echo",
    "echoes of JSON, text, nothing and bytes that are no text",
    ...['{"a" : [1, 2]}', "no JSON", "", "two\r\nlines"].map((data) => [
      "--data-binary",
      data,
      "/echo",
    ]),
  ),
  calls(
    "poll",
    "short polls: nothing, something, all since a cursor of another life",
    ["/poll?channel=a"],
    ["--data-binary", "1", "/publish?channel=a"],
    ["--data-binary", "2", "/publish?channel=b"],
    ["/poll?channel=a"],
    ["/poll?channel=a&after="],
    ["/poll?channel=a&after=zzzzz.0"],
    ["/poll?channel=a&channel=b&after=zzzzz.7"],
    ["/poll?channel=none&after=zzzzz.0"],
  ),
  calls(
    "poll-wait",
    "a poll that is held until its time is over",
    ["/poll?channel=a&wait=0.05"],
    ["--http1.0", "/poll?channel=a&wait=0.05"],
  ),
  {
    name: "curl-poll-held",
    about: "long polls that publications end",
    by: "curl",
    async run(at) {
      for (const version of ["--http1.1", "--http1.0"]) {
        const poll = start(at, version, `${at.base}/poll?channel=a&channel=b&wait=25`);
        await at.settled();
        await curl(at, "--data-binary", '"elsewhere"', `${at.base}/publish?channel=c`);
        await at.settled();
        await curl(at, "--data-binary", '"here"', `${at.base}/publish?channel=b`);
        await at.settled();
        await poll.done();
      }
    },
  },
  {
    name: "curl-resume",
    about: "resumes on every path from a cursor: what is missing comes at once, then what is new",
    by: "curl",
    async run(at) {
      for (const data of ["1", "2", "3"])
        await curl(at, "--data-binary", data, `${at.base}/publish?channel=a`);
      await at.settled();
      const after = `channel=a&after=${at.epoch}.1`;
      await curl(at, `${at.base}/poll?${after}&wait=25`);
      for (const [path, ...options] of [
        ["sse"],
        ["stream"],
        ["stream"],
        ["sse", "-H", `Last-Event-ID: ${at.epoch}.2`],
      ]) {
        const stream = start(at, ...options, `${at.base}/${path}?${after}`);
        await at.settled();
        await curl(at, "--data-binary", '"new"', `${at.base}/publish?channel=a`);
        await at.settled();
        await stream.stop();
      }
    },
  },
  {
    name: "curl-gap",
    about: "cursors that history does not reach back to, of another life, and of the future",
    by: "curl",
    server: ["--history-messages", "2"],
    async run(at) {
      for (const data of ["1", "2", "3", "4"])
        await curl(at, "--data-binary", data, `${at.base}/publish?channel=a`);
      for (const cursor of [
        `${at.epoch}.0`,
        `${at.epoch}.1`,
        `${at.epoch}.2`,
        `${at.epoch}.4`,
        `${at.epoch}.9`,
        "other.2",
      ]) {
        await curl(at, `${at.base}/poll?channel=a&after=${cursor}&wait=0`);
      }
      for (const path of ["sse?", "stream?", "stream?format=script&"]) {
        const stream = start(at, `${at.base}/${path}channel=a&after=${at.epoch}.1`);
        await at.settled();
        await stream.stop();
      }
    },
  },
  {
    name: "curl-piggyback",
    about: "publishes with a cursor: the answer carries what is pending",
    by: "curl",
    async run(at) {
      for (const [channel, data] of [
        ["p1", "1"],
        ["p2", "2"],
        ["p3", "3"],
      ]) {
        await curl(at, "--data-binary", data, `${at.base}/publish?channel=${channel}`);
      }
      await curl(
        at,
        ...JSON_TYPE,
        "--data-binary",
        "4",
        `${at.base}/publish?channel=p1&channel=p2&after=${at.epoch}.0`,
      );
      await curl(
        at,
        ...JSON_TYPE,
        "--data-binary",
        "5",
        `${at.base}/publish?channel=p1&after=other.1`,
      );
      await curl(
        at,
        ...JSON_TYPE,
        "--data-binary",
        "6",
        `${at.base}/publish?channel=p1&channel=-&after=${at.epoch}.0`,
      );
      await curl(
        at,
        ...JSON_TYPE,
        "--data-binary",
        "7",
        `${at.base}/publish?channel=p1&after=nonsense`,
      );
    },
  },
  {
    name: "curl-marks",
    about: "a server that marks receipts overwrites the place for it, in publications and echoes",
    by: "curl",
    server: ["--mark-receipts"],
    async run(at) {
      const stream = start(at, `${at.base}/stream?channel=a`);
      await at.settled();
      for (const data of ['{"at":"!.........!"}', '"!.........! and !.........!"', '"none"']) {
        await curl(at, ...JSON_TYPE, "--data-binary", data, `${at.base}/publish?channel=a`);
        await at.settled();
      }
      await curl(
        at,
        ...TEXT_TYPE,
        "--data-binary",
        "text !.........!",
        `${at.base}/publish?channel=a`,
      );
      await curl(at, "--data-binary", "echo !.........!", `${at.base}/echo`);
      await at.settled();
      await stream.stop();
    },
  },
  {
    name: "curl-limits-body",
    about: "bodies at the limit and beyond it, with a length and in chunks",
    by: "curl",
    server: ["--max-body-bytes", "20"],
    async run(at) {
      for (const size of [18, 19, 300]) {
        const data = `"${"x".repeat(size)}"`;
        await curl(at, ...JSON_TYPE, "--data-binary", data, `${at.base}/publish?channel=a`);
        await curl(
          at,
          "-H",
          "Transfer-Encoding: chunked",
          ...JSON_TYPE,
          "--data-binary",
          data,
          `${at.base}/publish?channel=a`,
        );
        await curl(at, "-H", "Expect: 100-continue", "--data-binary", data, `${at.base}/echo`);
      }
    },
  },
  {
    name: "curl-limits-connections",
    about: "a connection more than the server may hold is refused unheard",
    by: "curl",
    server: ["--max-connections", "1"],
    async run(at) {
      const stream = start(at, `${at.base}/sse?channel=a`);
      await at.settled();
      await curl(at, `${at.base}/healthz`);
      await at.settled();
      await stream.stop();
      await at.settled();
      await curl(at, `${at.base}/healthz`);
    },
  },
  {
    name: "curl-stop",
    about: "streams and a held poll when the server stops",
    by: "curl",
    async run(at) {
      for (const path of ["sse?", "stream?", "stream?format=script&", "poll?wait=25&"]) {
        start(at, `${at.base}/${path}channel=a`);
        await at.settled();
      }
      start(at, "--http1.0", `${at.base}/sse?channel=a`);
      await at.settled();
      await curl(at, "--data-binary", '"last words"', `${at.base}/publish?channel=b`);
      await at.stop();
    },
  },
  listens("sse", "/sse?channel=a"),
  listens("sse-1.0", "/sse?channel=a", "--http1.0"),
  listens("sse-origin", "/sse?channel=a&channel=b", ...ORIGIN),
  listens("stream", "/stream?channel=a"),
  listens("stream-1.0", "/stream?channel=a&format=ndjson", "--http1.0"),
  listens("script", "/stream?channel=a&format=script"),
  listens("script-1.0", "/stream?channel=a&format=script", "--http1.0"),
];
