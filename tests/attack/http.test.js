// Requests that are wrong, ambiguous or meant to be read in two ways: each gets its documented answer, and the server
// goes on.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { Server, until } from "../foreign/harness.js";
import { assertDelivers, Socket } from "../foreign/socket.js";
import { frame, handshake, Peer } from "./peer.js";

let server;
before(async (t) => {
  server = await Server.start(t);
});

const get = (target, fields = "") => `GET ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;
const post = (target, fields, body = "") =>
  `POST ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n${body}`;
const publish = (body, type = "application/json") =>
  post("/publish?channel=a", `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`, body);
const fields = (count) => Array.from({ length: count }, (_, n) => `X-${n}: v\r\n`).join("");
const bytes = (text) => Buffer.from(text, "latin1");

/** Name, request, status and error of the answer. */
const REFUSED = [
  ["an unknown path", get("/nothing/here"), 404, "unknown-path"],
  ["a path that only begins like a known one", get("/ssea?channel=a"), 404, "unknown-path"],
  ["GET of /publish", get("/publish?channel=a"), 405, "method-not-allowed"],
  ["POST of /sse", post("/sse?channel=a", "Content-Length: 0\r\n"), 405, "method-not-allowed"],
  ["DELETE of /poll", get("/poll?channel=a").replace("GET", "DELETE"), 405, "method-not-allowed"],
  ["no channel", get("/poll"), 400, "bad-channel"],
  ["an empty channel", get("/sse?channel="), 400, "bad-channel"],
  ["a channel with a space", get("/stream?channel=a%20b"), 400, "bad-channel"],
  ["a channel that begins with a dot", get("/poll?channel=.a"), 400, "bad-channel"],
  ["a channel that is not UTF-8", get("/poll?channel=%ff%fe"), 400, "bad-channel"],
  ["a channel with a line break", get("/sse?channel=a%0d%0ab"), 400, "bad-channel"],
  ["a long channel", get(`/poll?channel=${"x".repeat(129)}`), 400, "bad-channel"],
  ["a bad channel among good ones", get("/poll?channel=a&channel=-&channel=b"), 400, "bad-channel"],
  ["a bad channel of a WebSocket", handshake({ query: "channel=%3C" }), 400, "bad-channel"],
  ["a cursor without a dot", get("/poll?channel=a&after=xyz"), 400, "bad-cursor"],
  ["a negative cursor", get("/sse?channel=a&after=abcde.-1"), 400, "bad-cursor"],
  ["a huge cursor", get("/stream?channel=a&after=abcde.99999999999999999999"), 400, "bad-cursor"],
  ["a bad cursor of a WebSocket", handshake({ query: "channel=a&after=1" }), 400, "bad-cursor"],
  ["JSON that is cut", publish('{"a":'), 400, "bad-json"],
  ["two JSON values", publish("1 2"), 400, "bad-json"],
  ["JSON that is not UTF-8", bytes(publish('"\xff\xfe"')), 400, "bad-json"],
  ["a line break inside a string", publish('"a\nb"'), 400, "bad-json"],
  ["NaN", publish("NaN"), 400, "bad-json"],
  ["JSON behind a byte order mark", bytes(publish("\xef\xbb\xbf1")), 400, "bad-json"],
  ["text that is not UTF-8", bytes(publish("\xff\xfe", "text/plain")), 400, "bad-json"],
  ["a publication of 0 bytes", publish(""), 400, "bad-json"],
  ["nesting without end", publish("[".repeat(60_000)), 400, "bad-json"],
  ["nesting with an end", publish("[".repeat(30_000) + "]".repeat(30_000)), 400, "json-too-deep"],
  ...["Origin", "Sec-Fetch-Site", "Authorization", "Sec-WebSocket-Protocol", "Last-Event-ID"].map(
    (name) => [`no text as ${name}`, bytes(get("/poll?channel=a", `${name}: \xff\r\n`)), 400, "bad-request"],
  ),
  ["a second host that is no text", bytes(get("/healthz", "Host: \xff\r\n")), 400, "bad-request"],
  [
    "a body that is announced too large",
    post("/publish?channel=a", "Content-Length: 10000000000\r\n"),
    413,
    "body-too-large",
  ],
  ["a large body", publish(`"${"x".repeat(300_000)}"`), 413, "body-too-large"],
  ["large fields", get("/healthz", fields(5000)), 431, "head-too-large"],
  ["many small fields", get("/healthz", fields(500)), 431, "head-too-large"],
  ["a long field", get("/healthz", `X: ${"y".repeat(100_000)}\r\n`), 431, "head-too-large"],
  ["a long target", get(`/poll?channel=a&x=${"y".repeat(100_000)}`), 431, "head-too-large"],
  ["a WebSocket path without a handshake", get("/ws?channel=a"), 426, "upgrade-required"],
  [
    "an old WebSocket",
    handshake({ fields: { "Sec-WebSocket-Version": "8" } }),
    426,
    "upgrade-required",
  ],
  [
    "a WebSocket without a key",
    handshake({ fields: { "Sec-WebSocket-Key": undefined } }),
    426,
    "upgrade-required",
  ],
  [
    "a WebSocket with a short key",
    handshake({ fields: { "Sec-WebSocket-Key": "YWJj" } }),
    426,
    "upgrade-required",
  ],
  [
    "an unfinished upgrade to something else",
    handshake({ fields: { Upgrade: "h2c" } }),
    426,
    "upgrade-required",
  ],
];

describe("is refused", () => {
  for (const [name, request, status, error] of REFUSED) {
    test(name, async (t) => {
      const { responses } = await Peer.exchange(t, server, request);
      assert.deepEqual([responses[0]?.status, responses[0]?.error], [status, error]);
      if (status === 405) assert.match(responses[0].headers.get("allow") ?? "", /GET|POST/);
      await assertDelivers(t, server);
    });
  }
});

/** Bodies whose end can be read in two ways, each followed by a request that must not be heard. */
const SMUGGLED = publish('"smuggled"').replace("channel=a", "channel=victim");
const chunked = '3\r\n"a"\r\n0\r\n\r\n';
const AMBIGUOUS = [
  ["length and chunks", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", chunked, 400],
  ["chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunked, 400],
  ["two lengths", "Content-Length: 3\r\nContent-Length: 0\r\n", '"a"', 400],
  ["a list of lengths", "Content-Length: 3, 3\r\n", '"a"', 400],
  ["a signed length", "Content-Length: +3\r\n", '"a"', 400],
  ["a hexadecimal length", "Content-Length: 0x3\r\n", '"a"', 400],
  ["a space before the colon", "Content-Length : 3\r\n", '"a"', 400],
  ["a folded field", "X: a\r\n Content-Length: 3\r\n", '"a"', 400],
  ["a NUL in a field", "X: \0\r\nContent-Length: 3\r\n", '"a"', 400],
  ["another coding", "Transfer-Encoding: gzip, chunked\r\n", chunked, 501],
  ["a hidden coding", "Transfer-Encoding: \x0bchunked\r\n", chunked, [400, 501]],
  ["a coding that is not last", "Transfer-Encoding: chunked, identity\r\n", chunked, [400, 501]],
  [
    "chunked twice",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    chunked,
    [400, 501],
  ],
  ["a chunk size with a sign", "Transfer-Encoding: chunked\r\n", '+3\r\n"a"\r\n0\r\n\r\n', 400],
  ["a chunk size with 0x", "Transfer-Encoding: chunked\r\n", '0x3\r\n"a"\r\n0\r\n\r\n', 400],
  [
    "a huge chunk size",
    "Transfer-Encoding: chunked\r\n",
    `${"f".repeat(17)}\r\n"a"\r\n0\r\n\r\n`,
    [400, 413],
  ],
  ["two chunk sizes in one line", "Transfer-Encoding: chunked\r\n", '3 5\r\n"a"\r\n0\r\n\r\n', 400],
  [
    "a carriage return in a chunk size",
    "Transfer-Encoding: chunked\r\n",
    '3\r5\n"a"\r\n0\r\n\r\n',
    400,
  ],
  [
    "a chunk that is longer than its size",
    "Transfer-Encoding: chunked\r\n",
    '2\r\n"a"\r\n0\r\n\r\n',
    400,
  ],
];

describe("is not smuggled", () => {
  for (const [name, head, body, status] of AMBIGUOUS) {
    test(name, async (t) => {
      const victim = await Socket.open(t, server, "channel=victim");
      await victim.frame("cursor");
      const type = "Content-Type: application/json\r\n";
      const request = bytes(post("/publish?channel=a", type + head, body) + SMUGGLED);
      const peer = await Peer.exchange(t, server, request);
      await peer.closed();
      assert.equal(peer.responses.length, 1, peer.text);
      assert.ok([status].flat().includes(peer.responses[0].status), peer.text);
      await server.publish("victim", '"proper"');
      await until(() => victim.data.length > 0, "the proper message");
      assert.deepEqual(victim.data, ["proper"]);
    });
  }

  test("chunks of HTTP/1.0", async (t) => {
    const head =
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n";
    const request = post("/publish?channel=a", head, chunked).replace("HTTP/1.1", "HTTP/1.0");
    const peer = await Peer.exchange(t, server, request + SMUGGLED);
    await peer.closed();
    assert.equal(peer.responses.length, 1, peer.text);
  });
});

describe("is closed", () => {
  const noise = Buffer.from(Array.from({ length: 4096 }, (_, n) => (n * 167 + (n >> 3)) & 255));
  // The begin of a TLS 1.2 ClientHello: a record of 512 bytes that holds a handshake of type 1.
  const hello = Buffer.concat([
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
    noise.subarray(0, 506),
  ]);
  for (const [name, request] of [
    ["noise", noise],
    ["a TLS ClientHello", hello],
    ["NUL bytes", Buffer.alloc(1000)],
    ["a request of HTTP/0.9", "GET /healthz\r\n\r\n"],
    ["a request of HTTP/9.9", "GET /healthz HTTP/9.9\r\n\r\n"],
    ["a response", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ["a bare line feed and more", "\n\n\n\0\n"],
  ]) {
    test(name, async (t) => {
      const peer = await Peer.exchange(t, server, request);
      await peer.closed();
      for (const { status } of peer.responses) assert.ok([400, 505].includes(status), peer.text);
      await assertDelivers(t, server);
    });
  }
});

describe("requests in one write", () => {
  test("are answered one by one, in their order", async (t) => {
    const all = Array.from({ length: 300 }, (_, n) =>
      n % 3 === 0
        ? get("/healthz")
        : n % 3 === 1
          ? post("/echo", `Content-Length: ${String(n).length}\r\n`, String(n))
          : publish(String(n)),
    );
    const peer = await Peer.exchange(t, server, all.join(""), all.length);
    assert.equal(peer.responses.length, all.length);
    for (const [n, { status, text }] of peer.responses.entries()) {
      assert.equal(status, 200, text);
      if (n % 3 === 1) assert.equal(text, String(n));
    }
  });

  test("wait while a poll before them is held", async (t) => {
    const start = await Peer.exchange(t, server, get("/poll?channel=piped"));
    const [[, cursor]] = JSON.parse(start.responses[0].text);
    const peer = await Peer.connect(t, server);
    peer.send(get(`/poll?channel=piped&after=${cursor}&wait=25`) + get("/healthz"));
    const published = await server.publish("piped", "1");
    await until(() => peer.responses.length === 2 || peer.isClosed, "both answers");
    const [first, second] = peer.responses;
    assert.deepEqual(JSON.parse(first.text), [
      ["msg", "piped", published, 1],
      ["cursor", published],
    ]);
    assert.equal(second.status, 200);
  });

  test("do no harm behind a stream", async (t) => {
    const peer = await Peer.connect(t, server);
    peer.send(get("/sse?channel=a") + publish('"behind"').repeat(20));
    await until(() => peer.text.includes("id:") || peer.isClosed, "the stream begins");
    await assertDelivers(t, server);
  });

  test("frames behind a handshake are read", async (t) => {
    const peer = await Peer.upgrade(t, server, "channel=a", frame(0x81, '["ping",1]'));
    await until(() => peer.text.includes('["pong",1]'), "the pong");
  });
});

test("a body that stops halfway harms nobody", async (t) => {
  const peer = await Peer.connect(t, server);
  peer.send(post("/publish?channel=a", "Content-Length: 100\r\n", '"half'));
  peer.socket.end();
  await peer.closed();
  await assertDelivers(t, server);
});
