// Clients that others wrote: npm ws and eventsource, and Node's own fetch and http.

import http from "node:http";
import { createRequire } from "node:module";

// The packages are those of tests/foreign.
const require = createRequire(new URL("../foreign/package.json", import.meta.url));
const { WebSocket } = require("ws");
const { EventSource } = require("eventsource");

/** A WebSocket on `/ws?query`: frames that have come, `send` of frames, `close`. */
async function open({ t, port, until }, query) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?${query}`);
  t.after(() => socket.terminate());
  const frames = [];
  let isOver = false;
  socket.on("message", (text) => frames.push(JSON.parse(String(text))));
  socket.on("error", () => {});
  socket.on("close", () => {
    isOver = true;
  });
  await until(() => isOver || socket.readyState === WebSocket.OPEN, "the handshake is over");
  return {
    frames,
    socket,
    send: (...frame) => socket.send(JSON.stringify(frame)),
    async close(...args) {
      socket.close(...args);
      await until(() => isOver, "the WebSocket is closed");
    },
  };
}

/** On a connection that is kept, with as few fields as Node.js has. */
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const publish = async ({ port, settled }, channel, data, type) => {
  const headers = type ? { "content-type": type } : {};
  const options = {
    port,
    host: "127.0.0.1",
    method: "POST",
    path: `/publish?channel=${channel}`,
    headers,
    agent,
  };
  await new Promise((resolve, reject) => {
    const request = http.request(options, (answer) => answer.resume().on("end", resolve));
    request.on("error", reject).end(data);
  });
  await settled();
};

const socket = (name, about, query, run, more = {}) => ({
  name: `ws-${name}`,
  about,
  by: "npm ws",
  ...more,
  async run(at) {
    const one = await open(at, typeof query === "function" ? query(at) : query);
    await at.settled();
    // Each frame is a turn of its own.
    const send = async (...frame) => {
      one.send(...frame);
      await at.settled();
    };
    await run({ ...at, ...one, send });
    if (one.socket.readyState === WebSocket.OPEN) await one.close(1000, "done");
  },
});

export const NPM = [
  socket(
    "publish",
    "publishes over a WebSocket and hears it, every kind of JSON",
    "channel=a",
    async ({ send }) => {
      for (const data of [1, null, "", "ä€😀\u2028\r\n'</script>", { a: [true, {}] }])
        await send("pub", "a", data);
      await send("pub", "another", 1);
    },
  ),
  socket(
    "channels",
    "subscribes and unsubscribes, twice too, and to nothing at first",
    "",
    async (at) => {
      const { send } = at;
      await send("sub", "a");
      await send("pub", "a", 1);
      await send("sub", "b");
      await send("sub", "b");
      await publish(at, "b", "2");
      await send("unsub", "a");
      await publish(at, "a", "3");
      await send("unsub", "never");
      await send("unsub", "b");
      await publish(at, "b", "4");
      await send("sub", "a");
      await publish(at, "a", "5");
    },
  ),
  socket("answers", "pings and echoes", "channel=a", async ({ send }) => {
    await send("ping", 0);
    await send("ping", 18446744073709551615n.toString().length);
    for (const data of ["ä", { b: [null] }, [], "!.........!"]) await send("echo", data);
  }),
  socket(
    "errors",
    "frames that are none, channels and cursors that are wrong: the connection stays open",
    "channel=a",
    async ({ send, socket, settled }) => {
      for (const text of [
        "",
        "x",
        "{}",
        "[]",
        "[1]",
        '["what"]',
        '["pub"]',
        '["pub","a"]',
        '["pub",1,1]',
        '["pub","a",1,2]',
        '["ping"]',
        '["ping",-1]',
        '["ping",1.5]',
        '["ping","1"]',
        '["sub"]',
        '["sub",1]',
        '["echo"]',
        '["poll","x"]',
        ' [ "ping" , 7 ] ',
        '["ping",7',
      ]) {
        socket.send(text);
        await settled();
      }
      await send("pub", "-", 1);
      await send("sub", ".");
      await send("sub", "x".repeat(129));
      await send("unsub", "-");
      await send("ping", 1);
    },
  ),
  socket(
    "too-many-channels",
    "a channel more than a connection may have",
    `${Array.from({ length: 64 }, (_, n) => `channel=${n}`).join("&")}`,
    async ({ send }) => {
      await send("sub", "more");
      await send("sub", "7");
      await send("unsub", "7");
      await send("sub", "more");
      await send("pub", "more", "heard");
    },
  ),
  socket(
    "polling",
    "asks over a WebSocket; nothing is pushed",
    "channel=a&mode=poll",
    async (at) => {
      const { send, frames } = at;
      const cursor = () => frames.at(-1).at(-1)[1];
      await send("poll", "");
      await send("poll", cursor());
      await publish(at, "a", "1");
      await publish(at, "b", '"elsewhere"');
      await publish(at, "a", "2");
      await send("poll", cursor());
      await send("poll", cursor());
      await send("pub", "a", 3);
      await send("sub", "b");
      await publish(at, "b", "4");
      await send("poll", frames.findLast(([first]) => Array.isArray(first)).at(-1)[1]);
      await send("poll", "zzzzz.0");
      await send("poll", "nonsense");
      await send("unsub", "a");
      await send("poll", `${at.epoch}.0`);
      await send("echo", "still there");
    },
  ),
  socket("polling-nothing", "polls without a channel", "mode=poll", async ({ send, epoch }) => {
    await send("poll", "");
    await send("pub", "a", 1);
    await send("poll", `${epoch}.0`);
  }),
  {
    name: "ws-resume",
    about:
      "resumes with a cursor: what was missed comes first; then a gap where history does not reach back",
    by: "npm ws",
    server: ["--history-messages", "3"],
    async run(at) {
      for (const data of ["1", "2", "3"]) await publish(at, "a", data);
      for (const after of [`${at.epoch}.1`, `${at.epoch}.3`, "other.1", `${at.epoch}.99`]) {
        const one = await open(at, `channel=a&channel=b&after=${after}`);
        await at.settled();
        await publish(at, "b", '"new"');
        await one.close();
        await at.settled();
      }
      for (const data of ["4", "5", "6", "7"]) await publish(at, "a", data);
      const late = await open(at, `channel=a&after=${at.epoch}.2`);
      await at.settled();
      late.send("unsub", "a");
      await at.settled();
      await late.close();
    },
  },
  socket(
    "ping",
    "pings of the protocol below, with and without a payload, and a pong that nobody asked for",
    "channel=a",
    async ({ socket, settled }) => {
      for (const payload of ["", "x", "y".repeat(125)]) {
        socket.ping(payload);
        await settled();
      }
      socket.pong("unasked");
      await settled();
      socket.ping("last");
      await settled();
    },
  ),
  socket("fragments", "a message in fragments", "channel=a", async ({ socket, settled }) => {
    for (const [text, fin] of [
      ['["pub",', false],
      ['"a","in ', false],
      ['pieces"]', true],
    ]) {
      socket.send(text, { fin });
      await settled();
    }
  }),
  socket("binary", "a binary message", "channel=a", async ({ socket, settled }) => {
    socket.send(Buffer.from('["ping",1]'));
    await settled();
  }),
  socket(
    "long",
    "offers compression, which the server does not take up; a longer message",
    "channel=a&after=",
    async ({ send }) => {
      await send("echo", "x".repeat(2000));
    },
  ),
  socket("stop", "the server stops", "channel=a", async (at) => {
    await open(at, "mode=poll&channel=a");
    await at.settled();
    await publish(at, "a", "1");
    await at.stop();
  }),
  {
    name: "eventsource",
    about: "listens, is cut by nothing, and closes",
    by: "npm eventsource",
    async run(at) {
      const heard = [];
      const source = new EventSource(`${at.base}/sse?channel=a&channel=b`);
      at.t.after(() => source.close());
      source.onmessage = (event) => heard.push(event.data);
      await at.until(() => source.readyState === EventSource.OPEN, "it is open");
      await at.settled();
      await publish(at, "a", '{"n":1}');
      await publish(at, "b", "text\nof lines", "text/plain");
      await publish(at, "c", "3");
      await at.until(() => heard.length === 2, "both messages");
      source.close();
    },
  },
  {
    name: "eventsource-resume",
    about: "resumes by itself, with Last-Event-ID, when its stream was cut",
    by: "npm eventsource",
    async run(at) {
      await publish(at, "a", "1");
      const heard = [];
      // It is cut after the first message and told to come back at once.
      let count = 0;
      const source = new EventSource(`${at.base}/sse?channel=a`, {
        async fetch(url, init) {
          count += 1;
          const answer = await fetch(url, init);
          if (count > 1) return answer;
          const [head, rest] = [new TextEncoder().encode("retry:10\n\n"), answer.body.getReader()];
          let chunks = 0;
          const body = new ReadableStream({
            start: (to) => to.enqueue(head),
            async pull(to) {
              if (chunks === 2) {
                await rest.cancel();
                return to.close();
              }
              chunks += 1;
              to.enqueue((await rest.read()).value);
            },
          });
          return new Response(body, answer);
        },
      });
      at.t.after(() => source.close());
      source.onmessage = (event) => heard.push(event.data);
      await at.until(() => source.readyState === EventSource.OPEN, "it is open");
      await at.settled();
      await publish(at, "a", "2");
      await at.until(() => count === 2, "it has come back");
      await at.settled();
      await publish(at, "a", "3");
      await at.until(() => heard.length === 2, "both messages");
      source.close();
    },
  },
  {
    name: "node-fetch",
    about: "fetch publishes, echoes and polls on connections that it keeps",
    by: "Node.js fetch",
    async run(at) {
      const ask = async (path, init) => {
        await (await fetch(`${at.base}${path}`, init)).text();
        await at.settled();
      };
      await ask("/publish?channel=a", {
        method: "POST",
        body: "1",
        headers: { "content-type": "application/json" },
      });
      await ask("/publish?channel=a", { method: "POST", body: "text" });
      await ask("/echo", { method: "POST", body: "an echo" });
      await ask(`/poll?channel=a&after=${at.epoch}.0&wait=25`);
      await ask("/healthz", { method: "HEAD" });
      const stream = new ReadableStream({
        start(to) {
          to.enqueue(new TextEncoder().encode('{"a":'));
          to.enqueue(new TextEncoder().encode("1}"));
          to.close();
        },
      });
      await ask("/publish?channel=a", { method: "POST", body: stream, duplex: "half" });
      await ask("/publish?channel=-", { method: "POST", body: "1" });
      await ask(`/poll?channel=a&after=${at.epoch}.0`);
    },
  },
  {
    name: "node-http",
    about:
      "http.request sends a head, then its body in pieces, waits for 100 Continue, and gives up on a poll",
    by: "Node.js http",
    async run(at) {
      const ask = (method, path, headers, pieces) =>
        new Promise((resolve, reject) => {
          const request = http.request(
            { port: at.port, host: "127.0.0.1", method, path, headers, agent },
            (answer) => {
              answer.resume().on("end", resolve);
            },
          );
          request.on("error", reject);
          (async () => {
            if (headers.expect) {
              request.flushHeaders();
              await new Promise((go) => request.on("continue", go));
            }
            for (const piece of pieces) {
              request.write(piece);
              await at.settled();
            }
            request.end();
          })();
        });
      await ask("POST", "/publish?channel=a", { "content-type": "application/json" }, [
        '{"in":',
        "[1,2",
        ",3]}",
      ]);
      await ask(
        "POST",
        "/publish?channel=a",
        { "content-type": "text/plain", "content-length": 6 },
        ["ab", "cdef"],
      );
      await ask(
        "POST",
        "/publish?channel=a",
        { expect: "100-continue", origin: "http://page.example", "content-length": 1 },
        ["1"],
      );
      await ask("GET", `/poll?channel=a&after=${at.epoch}.0`, {}, []);
      const poll = http.get({
        port: at.port,
        host: "127.0.0.1",
        path: "/poll?channel=a&wait=25",
        agent,
      });
      poll.on("error", () => {});
      await new Promise((go) => setTimeout(go, 50));
      await at.settled();
      poll.destroy();
      await at.settled();
    },
  },
];
