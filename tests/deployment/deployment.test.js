// Every transport through each proxy as docs/deployment.md has it set up, from several addresses with limits.

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import https from "node:https";
import { describe, test } from "node:test";
import tls from "node:tls";
import { WebSocket } from "../foreign/socket.js";
import { until } from "../foreign/harness.js";
import { BACK_END, PROXIES, startServer } from "./proxies.js";

const HOST = "push.example.org";
const ACCESS = `
[[rule]]
who = "everybody"
channels = ["*"]
may = ["subscribe", "publish"]

[limits.address]
connections = 3
publications_per_s = 1
`;

/** Somebody at an address who knows the proxy by its name. */
class Visitor {
  #t;
  #to;

  constructor(t, port, localAddress) {
    this.#t = t;
    this.#to = { host: "127.0.0.1", port, localAddress, servername: HOST, rejectUnauthorized: false };
  }

  /** Asks over HTTP/1.1; gives status and what has come of the body, which goes on. */
  async ask(path, { method = "GET", body, headers } = {}) {
    const agent = new https.Agent();
    this.#t.after(() => agent.destroy());
    const options = { ...this.#to, agent, method, path, headers: { host: HOST, ...headers } };
    const request = https.request(options).end(body);
    const [response] = await once(request, "response");
    return answer(response.statusCode, response, () => request.destroy());
  }

  /** Opens a connection for requests over HTTP/2. */
  async connect() {
    const socket = () => tls.connect({ ...this.#to, ALPNProtocols: ["h2"] });
    const session = http2.connect(`https://${HOST}`, { createConnection: socket });
    this.#t.after(() => session.destroy());
    await once(session, "connect");
    return async (path, headers) => {
      const stream = session.request({ ":path": path, ...headers });
      const [{ ":status": status }] = await once(stream, "response");
      return answer(status, stream, () => stream.close(http2.constants.NGHTTP2_CANCEL));
    };
  }

  /** Opens a WebSocket; gives its status, 101 if it is open. */
  async open(query, headers) {
    const { port, ...to } = this.#to;
    const socket = new WebSocket(`wss://127.0.0.1:${port}/ws?${query}`, { ...to, headers: { host: HOST, ...headers } });
    this.#t.after(() => socket.terminate());
    const opened = { text: "", end: () => socket.terminate(), socket };
    socket.on("error", () => {});
    socket.on("message", (data) => {
      opened.text += data;
    });
    socket.on("open", () => {
      opened.status = 101;
    });
    socket.on("unexpected-response", (_, response) => {
      opened.status = response.statusCode;
    });
    await until(() => opened.status, "the handshake is answered");
    return opened;
  }
}

function answer(status, body, end) {
  const answered = { status, text: "", end };
  body.on("error", () => {});
  body.on("data", (data) => {
    answered.text += data;
  });
  body.on("end", () => {
    answered.isWhole = true;
  });
  return answered;
}

/** Publishes, as often as the limits want. */
const publish = (visitor, data) =>
  until(async () => {
    const { status } = await visitor.ask("/publish?channel=a", { method: "POST", body: JSON.stringify(data) });
    assert.ok([200, 429].includes(status), `published with ${status}`);
    return status === 200;
  }, "it is published");

for (const [name, start] of Object.entries(PROXIES)) {
  describe(`behind ${name}`, () => {
    test("every transport delivers at once", async (t) => {
      const port = await start(t, await startServer(t, ACCESS));
      const visitors = [2, 3].map((n) => new Visitor(t, port, `127.0.0.${n}`));
      const streams = await visitors[1].connect();
      const opened = {
        websocket: await visitors[0].open("channel=a"),
        sse: await visitors[0].ask("/sse?channel=a"),
        "http-streaming": await visitors[0].ask("/stream?channel=a"),
        "sse over HTTP/2": await streams("/sse?channel=a"),
        "http-streaming over HTTP/2": await streams("/stream?channel=a"),
      };
      for (const [transport, { status }] of Object.entries(opened)) {
        assert.equal(status, transport === "websocket" ? 101 : 200, transport);
      }
      for (const [transport, one] of Object.entries(opened)) {
        await until(() => one.text !== "", `${transport} begins`);
      }
      const [, since] = /\["cursor","([^"]+)"\]/.exec(opened.websocket.text);
      const held = visitors[1].ask(`/poll?channel=a&after=${since}&wait=60`);
      await publish(new Visitor(t, port, BACK_END[1]), { said: name });
      const polls = [await held, await visitors[1].ask(`/poll?channel=a&after=${since}`)];
      for (const [transport, one] of [...Object.entries(opened), ["polling", polls[0]], ["polling", polls[1]]]) {
        await until(() => one.text.includes(`{"said":"${name}"}`), `${transport} delivers; it said ${one.text}`);
      }
      opened.websocket.socket.send(JSON.stringify(["ping", 1]));
      await until(() => opened.websocket.text.includes('["pong",1]'), "the WebSocket answers");
    });

    test("each address has limits of its own", async (t) => {
      const port = await start(t, await startServer(t, ACCESS));
      const visitor = (n) => new Visitor(t, port, `127.0.0.${n}`);
      const streams = await visitor(2).connect();
      const opened = [await visitor(2).open("channel=a"), await visitor(2).ask("/sse?channel=a"), await streams("/sse?channel=a")];
      assert.deepEqual(opened.map(({ status }) => status), [101, 200, 200]);
      // Whatever they say of themselves.
      for (const forged of ["127.0.0.3", "127.0.0.1", "\xff", "127.0.0.3, \xff", "unknown"]) {
        const headers = { "x-forwarded-for": forged };
        const ways = {
          "/ws": () => visitor(2).open("channel=a", headers),
          "/sse": () => visitor(2).ask("/sse?channel=a", { headers }),
          "/stream": () => streams("/stream?channel=a", headers),
          "/poll": () => streams("/poll?channel=a&wait=60", headers),
        };
        for (const [path, way] of Object.entries(ways)) {
          assert.equal((await way()).status, 429, `${path} with X-Forwarded-For: ${forged}`);
        }
      }
      // Others have not been here yet, and who leaves makes room.
      assert.equal((await visitor(3).ask("/sse?channel=a")).status, 200);
      for (const [at, one] of opened.entries()) {
        one.end();
        const hasRoom = async () => (await visitor(2).ask("/stream?channel=a")).status === 200;
        await until(hasRoom, `there is room for another when connection ${at} has ended`);
      }
      const frames = await visitor(4).open("channel=b");
      for (let n = 0; n < 20; n += 1) frames.socket.send(JSON.stringify(["pub", "a", n]));
      await until(() => frames.text.includes("limit-reached"), "some of 20 publications are refused");
      const other = await visitor(5).open("channel=b");
      other.socket.send(JSON.stringify(["pub", "b", "other"]));
      await until(() => other.text.includes('"other"'), "another address publishes");
      assert.doesNotMatch(other.text, /error/);
    });

    test("pages of other sites and strangers are told apart", async (t) => {
      const port = await start(t, await startServer(t, ACCESS));
      const visitor = new Visitor(t, port, "127.0.0.2");
      for (const [origin, status] of [
        [`https://${HOST}`, 200],
        ["https://app.example.org", 200],
        ["https://evil.example", 403],
      ]) {
        assert.equal((await visitor.ask("/poll?channel=a", { headers: { origin } })).status, status, origin);
      }
      if (name === "nginx") {
        const refused = await visitor.ask("/publish?channel=a", { method: "POST", body: "1" });
        await until(() => refused.isWhole, "the refusal comes");
        assert.equal(refused.status, 403);
        assert.match(refused.text, /nginx/, "the proxy itself lets nobody publish here");
      }
    });
  });
}
