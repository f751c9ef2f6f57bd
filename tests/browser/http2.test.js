// Browsers over HTTP/2: any number of streams on one connection, where HTTP/1.1 has six for all tabs together.

import assert from "node:assert/strict";
import { test } from "node:test";
import { makeIdentity, TcpProxy, until } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import { demo, TRANSPORTS, ticks } from "./demos.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";
import { openEach, receive, WAYS } from "./ways.js";

const MESSAGES = 1000;
/** More than the connections of HTTP/1.1 that a browser opens to one server. */
const STREAMS = 12;
const CONNECTIONS_MAX = 6;

async function stats(server) {
  return JSON.parse((await server.request("GET", "/stats")).text);
}

/**
 * A server that speaks HTTP/2 unless `options` say otherwise, before anybody but the test has connected; `idle` is its
 * number of descriptors then.
 */
async function serveSecure(t, options) {
  const server = await serve(t, { identity: makeIdentity(t), options });
  await stats(server);
  return Object.assign(server, { idle: server.descriptors });
}

/** How many connections of browsers speak HTTP/1.1. */
async function oldConnections(server) {
  const { http2 } = await stats(server);
  return server.descriptors - server.idle - http2;
}

const protocolOf = ({ page }) =>
  page.evaluate(() => performance.getEntriesByType("navigation")[0].nextHopProtocol);

/** What the client library says of its connection. */
async function httpVersionOf({ page }) {
  const words = await page.$eval('[data-state="open"]', (element) => element.textContent);
  return /, HTTP\/([\d.]+)$/.exec(words)?.[1];
}

/** Opens event streams in a page, which counts those that are open and those that got a message. */
function openStreams(visitor, count) {
  return visitor.page.evaluate((count) => {
    window.open_streams = 0;
    window.told = 0;
    window.streams = Array.from({ length: count }, () => {
      const source = new EventSource("/sse?channel=news");
      source.onopen = () => window.open_streams++;
      source.onmessage = () => window.told++;
      return source;
    });
  }, count);
}

const counted = ({ page }) => page.evaluate(() => [window.open_streams, window.told]);

inEachBrowser("over HTTP/2", (name) => {
  test(`${STREAMS} tabs with event streams are alive together`, async (t) => {
    const server = await serveSecure(t);
    const address = demo(server.base, "ticker", "sse");
    const visitor = await Visitor.open(t, name, address);
    const tabs = [visitor];
    while (tabs.length < STREAMS) tabs.push(await visitor.tab(t, address));
    for (const tab of tabs) {
      await tab.connected("sse");
      assert.equal(await protocolOf(tab), "h2");
    }
    const { http2, connections } = await stats(server);
    assert.deepEqual([http2, connections.sse], [1, STREAMS]);
    // Every one of them receives while all are open.
    await Promise.all(tabs.map((tab) => ticks(tab)));
    for (const tab of tabs) await tab.reads(/Lost without a word\s*0/);
    assert.equal((await stats(server)).connections.sse, STREAMS);
  });

  test("a page has every event stream that it opens, of which HTTP/1.1 has six", async (t) => {
    const opens = async (server, alive) => {
      const visitor = await Visitor.open(t, name, `${server.base}/demos`);
      assert.equal(await protocolOf(visitor), alive === STREAMS ? "h2" : "http/1.1");
      await openStreams(visitor, STREAMS);
      await until(
        async () => (await counted(visitor))[0] === alive,
        async () => `${alive} streams are open; ${await counted(visitor)}`,
      );
      await server.publish("news", "1");
      await until(
        async () => (await counted(visitor))[1] === alive,
        async () => `${alive} streams receive; ${await counted(visitor)}`,
      );
      assert.equal((await stats(server)).connections.sse, alive);
    };
    await Promise.all([
      opens(await serveSecure(t), STREAMS),
      opens(await serveSecure(t, ["--no-http2"]), CONNECTIONS_MAX),
      opens(await serve(t), CONNECTIONS_MAX),
    ]);
  });

  test(`${MESSAGES} messages in order across a cut: ${Object.keys(WAYS).join(", ")}`, async (t) => {
    const server = await serveSecure(t, ["--history-messages", "2000"]);
    const ways = Object.keys(WAYS);
    const proxies = new Map();
    for (const way of ways) proxies.set(way, await TcpProxy.start(t, server.port));
    const readers = await openEach(t, name, ways, (way) => `${proxies.get(way).base.replace("http", "https")}/demos`);
    for (const reader of readers) {
      assert.equal(await protocolOf(reader), "h2");
      reader.expectFailures();
    }
    assert.equal((await stats(server)).http2, ways.length);
    const publish = async (from, to) => {
      for (let n = from; n < to; n++) await server.publish("news", JSON.stringify({ n }));
    };
    await publish(0, 400);
    await receive(readers, 400);
    for (const proxy of proxies.values()) proxy.cutAfter(3000);
    await publish(400, 700);
    for (const [way, proxy] of proxies) await until(() => proxy.isCut, `enough bytes for the cut of ${way}`);
    await publish(700, 900);
    for (const proxy of proxies.values()) proxy.restore();
    await receive(readers, 900);
    await publish(900, MESSAGES);
    await receive(readers, MESSAGES);
  });

  test("without HTTP/2 every transport works over TLS", async (t) => {
    const server = await serveSecure(t, ["--no-http2"]);
    const works = async (transport) => {
      const visitor = await Visitor.open(t, name, demo(server.base, "ticker", transport));
      await visitor.connected(transport);
      await ticks(visitor);
      await visitor.reads(/Lost without a word\s*0/);
      assert.equal(await httpVersionOf(visitor), transport.endsWith("polling") ? undefined : "1.1");
      assert.equal(await protocolOf(visitor), "http/1.1");
      assert.equal((await stats(server)).http2, 0);
    };
    await Promise.all(TRANSPORTS.map(works));
  });

  test("the client library works with every transport, on the connection that the page came over", async (t) => {
    const server = await serveSecure(t);
    const works = async (transport) => {
      const visitor = await Visitor.open(t, name, demo(server.base, "ticker", transport));
      await visitor.connected(transport);
      await ticks(visitor);
      await visitor.reads(/Lost without a word\s*0/);
      assert.equal(await httpVersionOf(visitor), transport.endsWith("polling") ? undefined : "2");
      const protocols = await visitor.page.evaluate(() => {
        const entries = performance.getEntriesByType("resource");
        return entries.map(({ name, nextHopProtocol }) => [new URL(name).pathname, nextHopProtocol]);
      });
      assert.ok(protocols.length > 0);
      assert.deepEqual(protocols.filter(([, protocol]) => protocol !== "h2"), []);
      // What goes on has no entry yet.
      if (transport.endsWith("polling")) assert.ok(protocols.some(([path]) => path === "/poll"));
      else assert.equal((await stats(server)).connections[transport], 1);
    };
    await Promise.all(TRANSPORTS.map(works));
    await until(
      async () => (await oldConnections(server)) === 0,
      async () => `no connection speaks HTTP/1.1; ${await oldConnections(server)} do`,
    );
    assert.equal((await stats(server)).http2, TRANSPORTS.length);
  });
});
