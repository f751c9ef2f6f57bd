// What no proper client says: requests that are wrong, ambiguous or meant to be read in two ways, violations of RFC
// 6455, and peers that stop in the middle. tests/attack has most of it, with much longer padding.

import { frame, handshake as opening, Peer } from "../attack/peer.js";

const bytes = (text) => Buffer.from(text, "latin1");
const all = (...parts) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? bytes(part) : part)));
const get = (target, fields = "") => `GET ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;
const post = (target, fields, body = "") =>
  `POST ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n${body}`;
const publish = (body, type = "application/json", channel = "a") =>
  post(
    `/publish?channel=${channel}`,
    `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`,
    body,
  );
const handshake = ({ fields, ...more } = {}) =>
  opening({ fields: { Host: "h", ...fields }, ...more });
const HEALTH = get("/healthz");
/** A WebSocket's frame that pings. */
const PING = frame(0x81, '["ping",7]');
const close = (code, reason = "") => frame(0x88, all(Buffer.from([code >> 8, code & 255]), reason));

/** One connection says what is listed, each entry in a turn of its own; `null` is that it leaves. */
async function says(at, ...turns) {
  const peer = await Peer.connect(at.t, at);
  for (const turn of turns) {
    if (turn?.wait_ms) await new Promise((go) => setTimeout(go, turn.wait_ms));
    else if (turn === null) peer.socket.end();
    else peer.send(turn);
    await at.settled();
  }
}

/** A conversation of one connection for each entry, which is what it says or a list of that. */
const attack = (name, about, entries, more = {}) => ({
  name: `attack-${name}`,
  about,
  by: "by hand",
  ...more,
  async run(at) {
    for (const entry of typeof entries === "function" ? entries(at) : entries)
      await says(at, ...[entry].flat());
  },
});

/** One of WebSockets, which say what is listed behind their handshake. */
const frames = (name, about, entries, more = {}) =>
  attack(
    `ws-${name}`,
    about,
    entries.map((entry) => [handshake(), ...[entry].flat()]),
    more,
  );

const story = (name, about, run, more = {}) => ({
  name: `attack-${name}`,
  about,
  by: "by hand",
  run,
  ...more,
});

const CHUNKED = "Transfer-Encoding: chunked\r\n";
const BODY = '3\r\n"a"\r\n0\r\n\r\n';
/** What must not be heard behind a request that ends the connection. */
const SMUGGLED = publish('"smuggled"', "application/json", "victim");
/** A body whose end can be read in two ways, and a request that must not be heard. */
const ambiguous = (head, body) => bytes(post("/publish?channel=a", head, body) + HEALTH);
const NOISE = Buffer.from(Array.from({ length: 200 }, (_, n) => (n * 167 + (n >> 3)) & 255));
const HELLO = all(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), NOISE);

const FORGOTTEN_HEAD =
  "known fault: a request whose body comes in a later segment loses its head's fields; drop this line when it is mended";
const CLOCK = "the server's limit of time runs meanwhile";
const ONE_TURN =
  "a publication is delivered behind what is answered in the turn of the event loop that read it; cut, these are several turns";

const HTTP = [
  attack(
    "heads",
    "heads that are none",
    [
      ...[
        NOISE,
        HELLO,
        Buffer.alloc(100),
        "GET /healthz\r\n\r\n",
        "GET /healthz HTTP/9.9\r\n\r\n",
        "GET /healthz HTTP/2.0\r\n\r\n",
      ],
      ...[
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "\n\n\n\0\n",
        "GET  /healthz HTTP/1.1\r\n\r\n",
        "GET HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",
      ],
      ...[
        "no colon\r\n",
        ": empty\r\n",
        "a b: c\r\n",
        "X: a\r\n folded\r\n",
        "X: \0\r\n",
        "X: \x7f\r\n",
        "Host : h\r\n",
      ].map((field) => get("/healthz", field)),
      "PR * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ].map((one) => (typeof one === "string" ? bytes(one) : one)),
  ),
  attack(
    "odd-heads",
    "heads that are unusual, and all right or nearly",
    [
      `\r\n\r\n${HEALTH}`,
      HEALTH.replaceAll("\r\n", "\n"),
      "get /healthz HTTP/1.1\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n",
      get("/healthz", "Host: again\r\n"),
      get("/healthz", "x:y\r\nX:   y  \r\nX:\r\n"),
      get("/healthz", "X: \xe4\r\n"),
      get("/healthz", "cOnNeCtIoN: CLOSE\r\n"),
      get("/healthz", "Connection: x, close , y\r\n"),
      get("/healthz", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"),
      get("/healthz", "Origin: null\r\n"),
    ].map(bytes),
  ),
  attack("targets", "targets that are unusual, on one connection", [
    [
      "http://h/healthz",
      "*",
      "healthz",
      "/%68ealthz",
      "/healthz#x",
      "/healthz?",
      "/healthz??&&=&",
      "//healthz",
      "/healthz;x",
      "/poll?channel=a&channel=a",
      "/poll?channel=%61",
      "/poll?channel=a+b",
      "/poll?channel=%",
      "/poll?channel=%zz",
      "/poll?Channel=a",
      "/poll?channel=a&unknown=1",
      "/poll?channel=a&after=%00",
      "/poll?channel=a&wait=0&wait=x",
      "/poll?channel=a&wait=1e-300",
      "/poll?channel=a&wait=nan",
      "/stream?channel=a&format=",
      "/sse?channel=a&early=",
    ].map((target) => get(target)),
  ]),
  attack(
    "lengths",
    "bodies whose length is ambiguous, each with a request behind it that must not be heard",
    [
      ambiguous(`Content-Length: 3\r\n${CHUNKED}`, BODY),
      ambiguous(`${CHUNKED}Content-Length: 4\r\n`, BODY),
      ...["3\r\nContent-Length: 0", "3, 3", "+3", "0x3", "", " ", "-1", "18446744073709551616"].map(
        (length) => ambiguous(`Content-Length: ${length}\r\n`, '"a"'),
      ),
      ambiguous("Content-Length : 3\r\n", '"a"'),
    ],
  ),
  attack(
    "codings",
    "transfer codings that are none of ours",
    [
      "gzip, chunked",
      "\x0bchunked",
      "chunked, identity",
      "chunked\r\nTransfer-Encoding: chunked",
      "identity",
      "CHUNKED",
      "xchunked",
    ].map((coding) => ambiguous(`Transfer-Encoding: ${coding}\r\n`, BODY)),
  ),
  attack(
    "chunks",
    "chunks that are malformed",
    [
      '+3\r\n"a"\r\n0\r\n\r\n',
      '0x3\r\n"a"\r\n0\r\n\r\n',
      `${"f".repeat(17)}\r\n"a"\r\n0\r\n\r\n`,
      '3 5\r\n"a"\r\n0\r\n\r\n',
      '3\r5\n"a"\r\n0\r\n\r\n',
      '2\r\n"a"\r\n0\r\n\r\n',
      '\r\n"a"\r\n0\r\n\r\n',
      '4\r\n"a"\r\n0\r\n\r\n',
      'ffff\r\n"a"',
      "fffffff0\r\n",
    ].map((body) => ambiguous(CHUNKED, body)),
  ),
  attack(
    "odd-chunks",
    "chunks that are unusual: extensions, trailers, capitals, many",
    [
      '3;x=y;z="1"\r\n"a"\r\n0\r\n\r\n',
      '3\r\n"a"\r\n0\r\nX-Trailer: y\r\n\r\n',
      'A\r\n"12345678"\r\n0;last\r\n\r\n',
      '003\r\n"a"\r\n000\r\n\r\n',
      `${[...'"abc"'].map((one) => `1\r\n${one}\r\n`).join("")}0\r\n\r\n`,
    ].map((body) => bytes(post("/publish?channel=a", CHUNKED, body) + HEALTH)),
  ),
  attack("chunks-1.0", "chunks of HTTP/1.0", [
    bytes(
      post("/publish?channel=a", `${CHUNKED}Connection: keep-alive\r\n`, BODY).replace(
        "1.1",
        "1.0",
      ) + SMUGGLED,
    ),
  ]),
  attack(
    "head-limit",
    "heads at the limit and beyond it",
    [
      get("/healthz", `X: ${"y".repeat(300 - get("/healthz", "X: \r\n").length)}\r\n`),
      get("/healthz", `X: ${"y".repeat(301 - get("/healthz", "X: \r\n").length)}\r\n`),
      get(`/poll?channel=a&x=${"y".repeat(400)}`),
      `GET /${"y".repeat(500)}`,
      "G".repeat(500),
      `GET / HTTP/1.1\r\n${"X: y\r\n".repeat(60)}`,
    ],
    { server: ["--max-head-bytes", "300"] },
  ),
  attack(
    "many-fields",
    "64 fields are taken, 65 are not",
    [63, 64].map((count) =>
      get("/healthz", Array.from({ length: count }, (_, n) => `X${n}:\r\n`).join("")),
    ),
  ),
  attack(
    "body-limit",
    "bodies that are announced too large, and chunks that become so",
    [
      post("/publish?channel=a", "Content-Length: 10000000000\r\n"),
      post("/echo", "Content-Length: 21\r\n", "x".repeat(21)) + HEALTH,
      post("/echo", CHUNKED, `a\r\n${"x".repeat(10)}\r\na\r\n${"x".repeat(10)}\r\n0\r\n\r\n`) +
        HEALTH,
      post("/echo", CHUNKED, `a\r\n${"x".repeat(10)}\r\nb\r\n${"x".repeat(11)}\r\n0\r\n\r\n`) +
        HEALTH,
      post("/nothing", "Content-Length: 21\r\n"),
    ],
    { server: ["--max-body-bytes", "20"] },
  ),
  attack(
    "pipelined",
    "requests in one write are answered one by one, those with errors too; nothing behind a close",
    [
      Array.from(
        { length: 12 },
        (_, n) =>
          [
            HEALTH,
            post("/echo", `Content-Length: ${String(n).length}\r\n`, String(n)),
            publish(String(n)),
            get("/nothing"),
            get("/poll?channel=a"),
            post("/publish?channel=-", CHUNKED, BODY),
          ][n % 6],
      ).join(""),
      get("/healthz", "Connection: close\r\n") + SMUGGLED,
      `${HEALTH}GET /healthz HTTP/1.0\r\n\r\n${SMUGGLED}`,
      `${HEALTH}nonsense\r\n\r\n${SMUGGLED}`,
      get("/poll?channel=victim&after=zzzzz.0"),
    ],
  ),
  attack("behind-upgrade", "frames in one write with the handshake", [
    all(handshake(), PING, frame(0x81, '["sub","b"]')),
    all(handshake({ query: "mode=poll&channel=a" }), frame(0x81, '["poll",""]')),
    all(handshake({ query: "channel=-" }), HEALTH),
  ]),
  story("behind-stream", "requests behind a stream are not heard", async (at) => {
    await says(at, get("/sse?channel=a") + publish("1").repeat(3), publish("2"));
    await says(at, `GET /stream?channel=a HTTP/1.0\r\n\r\n${publish("3")}`);
    await says(at, get("/poll?channel=a"));
  }),
  story("behind-poll", "requests wait while a poll before them is held", async (at) => {
    const peer = await Peer.connect(at.t, at);
    peer.send(get("/poll?channel=a&wait=25") + HEALTH + get("/poll?channel=a&wait=25") + HEALTH);
    await at.settled();
    await says(at, publish("1"));
    await says(at, publish('"elsewhere"', "application/json", "b"));
    await says(at, publish("2"));
    peer.send(get("/poll?channel=a&wait=25"));
    await at.settled();
  }),
  attack(
    "halves",
    "peers that leave in the middle of a head, a body, a chunk, a frame and a handshake",
    [
      "GET /hea",
      post("/publish?channel=a", "Content-Length: 100\r\n", '"half'),
      post("/publish?channel=a", CHUNKED, 'ff\r\n"half'),
      all(handshake(), frame(0x81, "x".repeat(100)).subarray(0, 50)),
      handshake().slice(0, 90),
      "",
      HEALTH + HEALTH.slice(0, 12),
    ].map((half) => [half, null]),
  ),
  attack("pieces", "requests in pieces of a turn each", [
    ["G", "ET /healthz HTT", "P/1.1\r\nHo", "st: h\r\n", "\r", "\n"],
    [post("/publish?channel=a", "Content-Type: text/plain\r\nContent-Length: 6\r\n"), "abc", "def"],
    [post("/echo", CHUNKED), "6\r", "\nabc", "def\r\n", "0\r\n", "\r\n"],
    [
      "POST /publish?channel=- HTTP/1.1\r\nOrigin: http://page.example\r\nContent-Length: 1\r\n\r\n",
      "1",
    ],
  ]),
  attack("get-with-body", "bodies where none belongs", [
    get("/healthz", "Content-Length: 3\r\n") + "abc" + HEALTH,
    get("/poll?channel=a", CHUNKED) + BODY + HEALTH,
    `OPTIONS /publish HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc${HEALTH}`,
    `HEAD /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc${HEALTH}`,
    `DELETE /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc${HEALTH}`,
  ]),
  story(
    "sse-with-body",
    "an event stream resumes by its Last-Event-ID though its request has a body",
    async (at) => {
      for (const data of ["1", "2", "3"]) await says(at, publish(data));
      await says(
        at,
        get(
          `/sse?channel=a&after=${at.epoch}.1`,
          `Last-Event-ID: ${at.epoch}.2\r\nContent-Length: 3\r\n`,
        ) + "abc",
      );
    },
    { cutMatters: FORGOTTEN_HEAD },
  ),
  attack(
    "ws-with-body",
    "a handshake whose request has a body",
    [`${handshake().slice(0, -2)}Content-Length: 3\r\n\r\nabc`],
    { cutMatters: FORGOTTEN_HEAD },
  ),
  attack(
    "stream-1.0-with-body",
    "a stream of HTTP/1.0, which knows no chunks, whose request has a body",
    ["GET /stream?channel=a HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"],
    { cutMatters: FORGOTTEN_HEAD },
  ),
  story(
    "last-event-id",
    "Last-Event-ID wins over after, counts once, and must be a cursor, or empty",
    async (at) => {
      for (const data of ["1", "2", "3"]) await says(at, publish(data));
      const ask = (fields, path = "/sse") =>
        says(at, get(`${path}?channel=a&after=${at.epoch}.2`, fields));
      for (const id of [
        `${at.epoch}.1`,
        `${at.epoch}.3`,
        "",
        " ",
        "nonsense",
        `${at.epoch}.0\r\nLast-Event-ID: ${at.epoch}.1`,
        "other.5",
      ])
        await ask(`Last-Event-ID: ${id}\r\n`);
      await ask(`last-event-id:${at.epoch}.1\r\n`, "/stream");
      await ask(`last-event-id:${at.epoch}.1\r\n`, "/poll");
    },
  ),
  attack(
    "expect",
    "says Expect: 100-continue and sends the body at once",
    [
      post("/echo", "Expect: 100-continue\r\nContent-Length: 3\r\n", "abc") + HEALTH,
      post("/echo", "Expect: 100-CONTINUE\r\nContent-Length: 0\r\n") + HEALTH,
      post("/echo", "Expect: 100-continue\r\nContent-Length: 3\r\n", "abc").replace("1.1", "1.0"),
    ],
    {
      cutMatters: "100 Continue is sent where the body is not there yet (RFC 9110, section 10.1.1)",
    },
  ),
  attack("expect-chunks", "the same in chunks, and of HTTP/1.0", [
    post("/echo", `Expect: 100-continue\r\n${CHUNKED}`, BODY) + HEALTH,
    [post("/echo", "Expect: 100-continue\r\nContent-Length: 3\r\n").replace("1.1", "1.0"), "abc"],
  ]),
  attack(
    "json",
    "bodies that are no JSON or no text, or unusual",
    [
      [
        '"\xff\xfe"',
        '"\xed\xa0\x80"',
        "[".repeat(200),
        `${"[".repeat(60)}${"]".repeat(60)}`,
        '"\\ud800"',
        '"\\x"',
        '"\0"',
        "1e999",
        "nul",
        "\r\n [1,\r\n\t2] \n",
        '{"a":1,"a":2}',
        '"\x7f\xe2\x80\xa8"',
        "-0",
        '"</script>\'\\\\"',
      ].map((body) => publish(body)),
      ["\xff", '\xc3\xa4\r\n\t"\\\b\f\x01\x7f', "\0", "</script>"].map((body) =>
        publish(body, "text/plain"),
      ),
      ["text/plain", " TEXT/PLAIN;x", "text/plainer", "application/text/plain"].map((type) =>
        publish("1", type),
      ),
      get("/stream?channel=a&after=zzzzz.0&format=script"),
      get("/sse?channel=a&after=zzzzz.0"),
    ].map((one) => [one].flat().map(bytes)),
  ),
  attack(
    "time-head",
    "requests that do not arrive in time, and a connection on which none comes",
    [
      ["GET /heal"],
      [post("/echo", "Content-Length: 5\r\n", "ab")],
      ["\r\n"],
      [HEALTH + "GET /x"],
      [],
    ].map((turns) => [...turns, wait()]),
    { server: ["--head-timeout", "300ms"], cutMatters: CLOCK },
  ),
  attack("time-idle", "a connection that asks for nothing more", [[HEALTH, wait()]], {
    server: ["--idle-timeout", "300ms"],
    cutMatters: CLOCK,
  }),
  attack(
    "time-poll",
    "a poll is held as long as the server allows",
    [[get("/poll?channel=a&wait=25"), wait(), HEALTH]],
    { server: ["--poll-wait", "100ms"] },
  ),
  story("stop", "requests that are half there when the server stops", async (at) => {
    const halves = [];
    for (const text of [
      post("/publish?channel=a", "Content-Length: 1\r\n"),
      "GET /heal",
      "HEAD /heal",
      post("/echo", CHUNKED, "3\r\nab"),
      get("/sse?channel=a").slice(0, -2),
    ]) {
      const peer = await Peer.connect(at.t, at);
      peer.send(text);
      halves.push(peer);
      await at.settled();
    }
    const idle = await Peer.connect(at.t, at);
    idle.send(HEALTH);
    await at.settled();
    await at.stop(1, 2, 3, 4, 5);
    for (const [n, rest] of [
      "1",
      "thz HTTP/1.1\r\n\r\n",
      "thz HTTP/1.1\r\n\r\n",
      "c\r\n0\r\n\r\n",
      "\r\n",
    ].entries()) {
      halves[n].send(rest);
      await at.settled();
    }
  }),
];

const SOCKETS = [
  attack("ws-handshakes", "handshakes, refused and accepted", [
    ...[
      { "Sec-WebSocket-Version": "8" },
      { "Sec-WebSocket-Version": undefined },
      { "Sec-WebSocket-Key": undefined },
      { "Sec-WebSocket-Key": "YWJj" },
      { "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ" },
      { "Sec-WebSocket-Key": "!!!!IHNhbXBsZSBub25jZQ==" },
      { Upgrade: "h2c" },
      { Upgrade: undefined },
      { Connection: "keep-alive" },
      { Connection: undefined },
      { Connection: "keep-alive, upgrade" },
      { Upgrade: "WebSocket" },
      { Host: undefined },
      { Origin: "http://page.example" },
      { "Sec-WebSocket-Protocol": "chat, superchat" },
      { "Sec-WebSocket-Extensions": "permessage-deflate" },
    ].map((fields) => handshake({ fields })),
    handshake({ method: "POST" }),
    handshake().replace("HTTP/1.1", "HTTP/1.0"),
    handshake({ query: "channel=%3C" }),
    handshake({ query: "channel=a&after=1" }),
    handshake({ query: "channel=a&after=1", fields: { Origin: "http://page.example" } }),
  ]),
  frames("reserved", "reserved bits and opcodes", [
    frame(0xc1, "[]"),
    frame(0xa1, "[]"),
    frame(0x91, "[]"),
    frame(0xc9),
    ...[3, 7, 11, 15].map((opcode) => frame(0x80 | opcode)),
    frame(0x03),
  ]),
  frames("masks", "frames without a mask", [
    Buffer.from([0x81, 2, 0x5b, 0x5d]),
    Buffer.from([0x89, 0]),
    all(PING, Buffer.from([0x81, 0])),
  ]),
  frames("lengths", "lengths that are too long, not in their shortest form, or negative", [
    Buffer.from([0x81, 0xfe, 0, 2, 0, 0, 0, 0, 0x5b, 0x5d]),
    Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x5b, 0x5d]),
    Buffer.from([0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]),
    Buffer.from([0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]),
  ]),
  frames("control", "control frames that are in fragments, too long, or of one byte", [
    frame(0x09),
    frame(0x08),
    frame(0x0a, "x"),
    frame(0x89, "x".repeat(126)),
    frame(0x8a, "x".repeat(125)),
    frame(0x88, "x"),
  ]),
  frames(
    "fragments",
    "fragments: proper ones with control frames between, and all that can be wrong",
    [
      all(
        frame(0x01, '["pi'),
        frame(0x00),
        frame(0x89, "between"),
        frame(0x00, 'ng"'),
        frame(0x8a),
        frame(0x80, ",1]"),
        PING,
      ),
      [frame(0x01, '["echo","\xc3'), frame(0x89), frame(0x80, '"]')].map((one) => one),
      all(frame(0x01, bytes('["echo","\xc3')), frame(0x80, bytes('\xa4"]'))),
      frame(0x80, "x"),
      frame(0x00, "x"),
      all(frame(0x01, '["ping"'), frame(0x80, ",1]"), frame(0x80, "x")),
      all(frame(0x01, "["), PING),
      all(frame(0x02, "["), frame(0x80, "]")),
      all(frame(0x01, "["), close(1000)),
    ],
  ),
  frames(
    "utf-8",
    "text that is not UTF-8, in one frame and in fragments",
    [
      Buffer.from([0x22, 0xff, 0x22]),
      Buffer.from([0x22, 0xc3]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from([0xf4, 0x90, 0x80, 0x80]),
    ]
      .map((payload) => frame(0x81, payload))
      .concat([all(frame(0x01, Buffer.from([0xc3])), frame(0x80, Buffer.from([0x28])))]),
  ),
  frames(
    "close-codes",
    "close codes that may not be sent, those that may, and reasons that are not UTF-8",
    [
      ...[0, 999, 1006, 2999, 5000, 1000, 1002, 1014, 3000, 4001].map((code) => close(code)),
      close(1000, "\xff"),
      close(1000, "\xc3\xa4"),
      frame(0x88),
      all(close(1000), frame(0x81, '["pub","a","too late"]')),
      [close(1000), frame(0x81, '["pub","a","too late"]')],
    ],
  ),
  frames(
    "limit",
    "messages at the limit and beyond it, whole and in fragments, and fragments without end",
    [
      frame(0x81, `["echo","${"x".repeat(89)}"]`),
      frame(0x81, `["echo","${"x".repeat(90)}"]`),
      all(frame(0x01, "x".repeat(60)), frame(0x80, "x".repeat(60))),
      frame(0x01, "x".repeat(101)),
      all(frame(0x81, '["echo"]'), frame(0x81, "x".repeat(200)).subarray(0, 20)),
    ],
    { server: ["--max-message-bytes", "100"] },
  ),
  frames("frames", "frames of the protocol, many in one write, none of which publishes", [
    all(
      ...[
        '["ping",1]',
        '["echo",{"a" : 1}]',
        "nonsense",
        '["sub","b"]',
        '["sub","-"]',
        '["unsub","a"]',
        '["poll",""]',
        '["ping",18446744073709551615]',
        '["ping",18446744073709551616]',
        '["echo","\u2028"]',
        '["ping",1] ',
        '["PING",1]',
        '["echo",1]\n',
      ].map((text) => frame(0x81, text)),
    ),
  ]),
  frames(
    "turn",
    "publishes, subscribes, unsubscribes and pings in one write",
    [
      all(
        ...['["pub","a",1]', '["ping",1]', '["pub","a",2]', '["unsub","a"]'].map((text) =>
          frame(0x81, text),
        ),
      ),
      all(
        ...[
          '["sub","b"]',
          '["pub","b",3]',
          '["pub","c",4]',
          '["sub","c"]',
          '["pub","c",5]',
          '["ping",2]',
        ].map((text) => frame(0x81, text)),
      ),
      all(frame(0x81, '["pub","a",6]'), close(1000)),
      all(frame(0x81, '["pub","a",7]'), frame(0x82)),
    ],
    { cutMatters: ONE_TURN },
  ),
  frames("publish", "publishes what is unusual", [
    [
      '"\\u2028</script>"',
      ' { "a" : [ 1 , 2 ] } ',
      "[1,\n2]",
      "1e999",
      '"\\ud800"',
      `${"[".repeat(60)}${"]".repeat(60)}`,
      "nul",
      '"\x01"',
    ].map((data) => frame(0x81, `["pub","a",${data}]`)),
  ]),
  story("ws-heard", "what one WebSocket publishes is heard over every transport", async (at) => {
    const listeners = [];
    for (const text of [
      handshake(),
      handshake({ query: "channel=a&mode=poll" }),
      get("/sse?channel=a"),
      get("/stream?channel=a"),
      get("/stream?channel=a&format=script"),
      "GET /sse?channel=a HTTP/1.0\r\n\r\n",
      "GET /stream?channel=a HTTP/1.0\r\n\r\n",
      "GET /stream?channel=a&format=script HTTP/1.0\r\n\r\n",
      get("/poll?channel=a&wait=25"),
    ]) {
      const peer = await Peer.connect(at.t, at);
      peer.send(text);
      listeners.push(peer);
      await at.settled();
    }
    const texts = [
      '["pub","a",{"n":1}]',
      '["pub","b",2]',
      '["pub","a","</script>\'\\\\\u2028\\n"]',
      '["pub","a",[1,\n2]]',
    ];
    await says(at, handshake({ query: "" }), ...texts.map((text) => frame(0x81, text)));
  }),
  story(
    "ws-batch",
    "three publications in one write are heard over every transport",
    async (at) => {
      for (const text of [
        handshake(),
        get("/sse?channel=a"),
        get("/stream?channel=a&channel=b"),
        get("/stream?channel=a&format=script"),
        get("/poll?channel=a&channel=b&wait=25"),
        get("/poll?channel=b&wait=25"),
      ]) {
        const peer = await Peer.connect(at.t, at);
        peer.send(text);
        await at.settled();
      }
      await says(
        at,
        handshake({ query: "channel=b" }),
        all(
          ...['["pub","a",1]', '["pub","b",2]', '["pub","a",3]'].map((text) => frame(0x81, text)),
        ),
      );
    },
    { cutMatters: ONE_TURN },
  ),
  frames("silent", "is pinged, does not answer and is closed", [[wait(900)]], {
    server: ["--heartbeat", "300ms"],
    cutMatters: CLOCK,
  }),
  story(
    "gap-bytes",
    "history of few bytes, and what a subscriber with an old cursor is told over every transport",
    async (at) => {
      for (const n of [1, 2, 3, 4, 5]) await says(at, publish(`"number ${n}"`));
      for (const text of [
        handshake({ query: `channel=a&after=${at.epoch}.1` }),
        get(`/sse?channel=a&after=${at.epoch}.1`),
        get(`/stream?channel=a&after=${at.epoch}.1`),
        get(`/stream?channel=a&after=${at.epoch}.1&format=script`),
        get(`/poll?channel=a&after=${at.epoch}.1&wait=25`),
      ])
        await says(at, text);
      await says(
        at,
        handshake({ query: "channel=a&mode=poll" }),
        frame(0x81, `["poll","zzzzz.1"]`),
      );
    },
    { server: ["--history-bytes", "150"] },
  ),
];

/** An entry that says nothing for so long. */
function wait(ms = 700) {
  return { wait_ms: ms };
}

export const ATTACKS = [...HTTP, ...SOCKETS];
