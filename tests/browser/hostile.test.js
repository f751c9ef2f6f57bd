// Scripts in names, messages, items and addresses are text and nothing else; what another site asks for is refused. No page
// opens a dialog or reports an error: the policy of the pages would report a script that it stopped.

import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { until } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import { enterChat, offer, register, say, TRANSPORTS } from "./demos.js";
import { Peer } from "./peer.js";
import { ask, MEASUREMENT } from "./seeds.js";
import { serve, serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

const SCRIPTS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(2)>",
  "'\"><svg/onload=alert(3)>",
  "{{constructor.constructor('alert(4)')()}}",
  "</textarea><iframe srcdoc='<script>alert(5)</script>'>",
  "'; DROP TABLE items; --",
];

/** Elements that a text which was taken for HTML would have made. */
const made = () => document.querySelectorAll("main img, main iframe, main script, main [onerror], main [onload]").length;

inEachBrowser("hostile input", hostile, { concurrency: 3 });

function hostile(name) {
  const shared = serveForAll();

  test(`${name}: scripts in what is said are text`, async (t) => {
    const { server } = shared;
    const visitor = await Visitor.open(t, name, `${server.base}/demos/chat`);
    const log = await enterChat(visitor, `Ada of ${name}`);
    const peer = new Peer(server);
    await peer.enter(`peer of ${name}`);
    peer.stay(t);
    for (const script of SCRIPTS) {
      await peer.say(script);
      await visitor.reads(script, log);
    }
    await say(visitor, SCRIPTS[1]);
    await visitor.reads(`${SCRIPTS[1]} back in`, log);
    assert.equal(await visitor.page.evaluate(made), 0);
  });

  test(`${name}: scripts in names are refused`, async (t) => {
    const visitor = await Visitor.open(t, name, `${shared.server.base}/demos/chat`);
    visitor.expectFailures();
    for (const script of SCRIPTS.slice(0, 3)) {
      // The refusal of the one before must not be taken for this one's.
      await visitor.page.reload();
      await visitor.fill("Your name", script.slice(0, 24));
      await visitor.press("button", "Enter");
      await visitor.find("alert", /\S/);
      assert.equal(await visitor.has("log", "Messages, lobby"), false);
    }
    assert.equal(await visitor.page.evaluate(made), 0);
  });

  test(`${name}: scripts in items are text`, async (t) => {
    const { server } = shared;
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    await register(visitor, `ada-${name}`);
    const text = `${name} ${SCRIPTS[1]}`;
    await offer(visitor, text, SCRIPTS.join("\n"));
    for (const script of SCRIPTS) await visitor.reads(script);
    await visitor.press("link", "← All items");
    await visitor.find("link", text);
    const peer = new Peer(server);
    await peer.register(`peer-${name}`);
    for (const script of SCRIPTS) {
      await peer.offer(`${script} ${name}`, { description: script });
      await visitor.find("link", `${script} ${name}`);
    }
    assert.equal(await visitor.page.evaluate(made), 0);
  });

  test(`${name}: scripts in addresses are text`, async (t) => {
    const visitor = await Visitor.open(t, name, `${shared.server.base}/`);
    visitor.expectFailures();
    const script = encodeURIComponent(SCRIPTS[1]);
    const addresses = [
      `/${script}`,
      `/?search=${script}`,
      `/compare?baseline=${script}&candidate=${script}`,
      `/reports/${script}`,
      `/measure?transports=${script}&messages=${script}`,
      `/demos/ticker?transport=${script}&stocks=${script}`,
      `/demos/chat?room=${script}&with=${script}`,
      `/demos/auction?item=${script}&search=${script}`,
    ];
    for (const address of addresses) {
      await visitor.page.goto(`${shared.server.base}${address}`);
      await visitor.reads(/\S/);
      assert.equal(await visitor.page.evaluate(made), 0, address);
    }
  });

  // `localhost` is another site; another port of the same host is another origin of the same site. Even a page that knew the
  // session could not use it: what names it in a field has to be asked about first.
  for (const [host, kind] of [
    ["localhost", "site"],
    ["127.0.0.1", "port"],
  ]) {
    test(`${name}: a page at ${host} cannot act for who is logged in`, async (t) => {
      const server = await serve(t);
      const suffix = `${name}-${kind}`;
      const peer = new Peer(server);
      await peer.register(`owner-${suffix}`);
      const id = await peer.offer(`vase of ${suffix}`);
      const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
      await register(visitor, `eve-${suffix}`);
      const session = await visitor.page.evaluate(keptSession);
      const { site, requests } = await startSite(t, host);
      visitor.expectFailures();
      await visitor.page.goto(site);
      assert.ok(requests.length > 0, "the page was asked for");
      assert.equal(requests.some((fields) => fields.includes(session)), false, "no request to another port has the session");
      assert.equal(await visitor.page.evaluate(keptSession), null, "nor has its page");
      const path = `${server.base}/api/demos/auction/items/${id}/bids`;
      const bids = async () => (await peer.items()).find((one) => one.id === id).bids;
      const errors = async () => JSON.parse((await server.request("GET", "/stats")).text).errors;
      const before = await errors();
      assert.deepEqual(await visitor.page.evaluate(postBids, path, session), ["failed", "failed", "failed"]);
      // What is refused no browser tells of, but the server counts it: a post, and the preflights of what only a script can
      // send, which are not granted, so that the requests are never sent.
      await until(async () => (await errors()) === before + 3, async () => `three refusals; ${(await errors()) - before}`);
      const leaves = visitor.page.waitForNavigation();
      await visitor.page.evaluate(submitBid, path);
      assert.equal((await leaves).status(), 403, "a form");
      assert.equal(await bids(), 0, "no bid was taken");
      // The same from a page of the house: nothing else was wrong with it.
      await visitor.page.goto(`${server.base}/demos/auction`);
      await visitor.reads(`You are eve-${suffix}.`);
      const [, own] = await visitor.page.evaluate(postBids, path, session);
      assert.deepEqual([own, await bids()], ["ok", 1]);
    });
  }

  test(`${name}: a program on another port of the host gets no pass, and one from a cookie is none`, async (t) => {
    const server = await serve(t, { command: "console" });
    const visitor = await Visitor.open(t, name, `${server.base}/`);
    await visitor.reads("The store is empty");
    assert.equal((await visitor.address()).includes(server.token), false, "the address does not show it");
    const { site, requests } = await startSite(t, "127.0.0.1");
    await visitor.page.evaluate((site) => {
      location.href = site;
    }, site);
    await until(() => requests.length > 0, "the link is followed");
    assert.deepEqual(requests.filter((fields) => fields.includes(server.token)), []);
    // What that program sets goes to the console's port too.
    const { port } = new URL(server.base);
    const cookie = `pushlab-pass-${port}=${server.token}`;
    const forged = await fetch(`${server.base}/api/results`, { headers: { cookie } });
    assert.equal(forged.status, 401);
  });

  test(`${name}: a console's pages keep the pass: reload, report, another tab, every transport`, async (t) => {
    const server = await serve(t, { command: "console" });
    await ask(server, "POST", "/api/measurements", MEASUREMENT);
    const visitor = await Visitor.open(t, name, `${server.base}/`);
    await visitor.find("link", /browser/i);
    await visitor.page.reload();
    await follow(visitor, /browser/i);
    await visitor.find("heading", "How to repeat it");
    await visitor.page.reload();
    await visitor.find("heading", "How to repeat it");
    const tab = await visitor.tab(t, await visitor.address());
    // It was opened by nobody, so it asks the first one, and is refused before.
    tab.expectFailures();
    await tab.find("heading", "How to repeat it");
    await follow(tab, /All results/);
    await tab.find("link", /browser/i);
    // One that asks for two things at once.
    const other = await visitor.tab(t, `${server.base}/live`);
    other.expectFailures();
    await other.find("heading", /^Nothing runs$|has ended$/);
    for (const transport of TRANSPORTS) {
      await visitor.page.goto(`${server.base}/demos/ticker?transport=${transport}`);
      await visitor.connected(transport);
    }
    const stranger = await Visitor.open(t, name, `${server.base.replace("127.0.0.1", "localhost")}/`);
    stranger.expectFailures();
    await stranger.reads("open the address that it printed");
    await stranger.page.goto(`${server.base.replace("127.0.0.1", "localhost")}/reports/1`);
    await stranger.reads("open the address that it printed");
  });

  test(`${name}: a page of another site gets nothing over any transport, unless its origin is named`, async (t) => {
    const { port, base } = shared.server;
    const all = { websocket: "cursor", later: "silence", sse: 200, stream: 200, poll: 200 };
    const nothing = { websocket: "end", later: "end", sse: "failed", stream: "failed", poll: "failed" };
    const visitor = await Visitor.open(t, name, `${base}/`);
    assert.deepEqual(await visitor.page.evaluate(listen, base, "demo.ticker"), all);
    visitor.expectFailures();
    const { site: page } = await startSite(t, "localhost");
    await visitor.page.goto(page);
    assert.deepEqual(await visitor.page.evaluate(listen, base, "demo.ticker"), nothing);
    // Its own name leads here: to a browser, that makes it a page of this server.
    await visitor.page.goto(`http://rebound.localhost:${port}/`);
    assert.deepEqual(await visitor.page.evaluate(listen, `http://rebound.localhost:${port}`, "demo.ticker"), {
      ...nothing,
      ...{ sse: 403, stream: 403, poll: 403 },
    });
    const { base: hosting } = await serve(t, { options: ["--allow-origin", new URL(page).origin] });
    await visitor.page.goto(page);
    assert.deepEqual(await visitor.page.evaluate(listen, hosting, "demo.ticker"), all);
  });

  test(`${name}: a page of another site cannot listen to the console, over no transport`, async (t) => {
    const { base } = await serve(t, { options: ["--allow-origin", "*"] });
    const visitor = await Visitor.open(t, name, `${base}/`);
    const own = await visitor.page.evaluate(listen, base, "console.live");
    assert.deepEqual(own, { websocket: "cursor", later: "silence", sse: 200, stream: 200, poll: 200 });
    visitor.expectFailures();
    for (const host of ["localhost", "127.0.0.1"]) {
      await visitor.page.goto((await startSite(t, host)).site);
      // What is for everybody gets through from there: the ways are right.
      const open = await visitor.page.evaluate(listen, base, "demo.ticker");
      assert.deepEqual(open, { websocket: "cursor", later: "silence", sse: 200, stream: 200, poll: 200 });
      const { websocket, later, ...http } = await visitor.page.evaluate(listen, base, "console.live");
      assert.ok(["error", "end"].includes(websocket), `the WebSocket shows ${websocket}`);
      assert.equal(later, "forbidden");
      assert.deepEqual(http, { sse: 403, stream: 403, poll: 403 });
    }
  });

  test(`${name}: a forged session is nobody's, and one that has ended stays so`, async (t) => {
    const { server } = shared;
    const who = `mallory-${name}`;
    const peer = new Peer(server);
    await peer.register(`target-${name}`);
    const id = await peer.offer(`urn of ${name}`);
    const path = `/api/demos/auction/items/${id}/bids`;
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    await register(visitor, who);
    const session = await visitor.page.evaluate(keptSession);
    assert.deepEqual(await visitor.page.browserContext().cookies(), []);
    visitor.expectFailures();
    const other = session.endsWith("a") ? "b" : "a";
    const forgeries = [
      `${session.slice(0, -1)}${other}`,
      session.slice(0, -1),
      `${session}${other}`,
      "0".repeat(session.length),
      who,
      "%00",
      "'%20OR%201=1%20--",
      "x".repeat(3000),
    ];
    for (const value of forgeries) {
      await visitor.page.evaluate(keepSession, value);
      await visitor.page.reload();
      await visitor.find("button", "Log in");
      const [, bidding] = await visitor.page.evaluate(postBids, path, value);
      assert.equal(bidding, "401", value);
    }
    await visitor.page.evaluate(keepSession, session);
    await visitor.page.reload();
    await visitor.reads(`You are ${who}.`);
    await visitor.press("button", "Log out");
    await visitor.find("button", "Log in");
    await visitor.page.evaluate(keepSession, session);
    await visitor.page.reload();
    await visitor.find("button", "Log in");
    const [, bidding] = await visitor.page.evaluate(postBids, path, session);
    assert.equal(bidding, "401", "the session has ended");
    const { bids } = (await peer.items()).find((one) => one.id === id);
    assert.equal(bids, 0);
  });
}

/** Follows a link to another document. */
async function follow(visitor, name) {
  const loads = visitor.page.waitForNavigation();
  await visitor.press("link", name);
  await loads;
}

/** In a page: the session that its origin keeps. */
const keptSession = () => localStorage.getItem("pushlab.auction.session");
const keepSession = (value) => localStorage.setItem("pushlab.auction.session", value);

/** Serves an empty page of another origin at `host`; gives its address, and the fields of each request to it. */
async function startSite(t, host) {
  const requests = [];
  const server = http.createServer(({ rawHeaders }, response) => {
    requests.push(rawHeaders.join("\n"));
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<!doctype html><title>Another site</title>");
  });
  server.listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return { site: `http://${host}:${server.address().port}/`, requests };
}

/**
 * In a page: posts a bid for whom the session is and says what the page sees of it: without asking for the answer, which
 * leaves the session out, as the house's own page does, and as plain text.
 */
async function postBids(path, session) {
  const body = JSON.stringify({ amount_cents: 500 });
  const common = { method: "POST", body, credentials: "include" };
  const fields = (type) => ({ "content-type": type, "auction-session": session });
  const ask = (init) =>
    fetch(path, { ...common, ...init }).then(
      ({ ok, status, type }) => (type === "opaque" ? type : ok ? "ok" : `${status}`),
      () => "failed",
    );
  return [
    await ask({ mode: "no-cors" }),
    await ask({ headers: fields("application/json") }),
    await ask({ headers: fields("text/plain") }),
  ];
}

/**
 * In a page: subscribes to a channel over each transport, and says what comes first: the name of the first frame of a
 * WebSocket; the error that another one is told which subscribes when it is open, if any comes before its echo; a status.
 */
async function listen(base, channel) {
  const ends = new AbortController();
  const sockets = [];
  const open = (channel) => {
    const socket = new WebSocket(`${base.replace("http", "ws")}/ws?channel=${channel}`);
    sockets.push(socket);
    return socket;
  };
  const first = new Promise((resolve) => {
    const socket = open(channel);
    socket.onmessage = ({ data }) => resolve(JSON.parse(data)[0]);
    socket.onclose = () => resolve("end");
  });
  const later = new Promise((resolve) => {
    const socket = open("demo.auction");
    socket.onopen = () => {
      socket.send(`["sub","${channel}"]`);
      socket.send('["echo",0]');
    };
    socket.onmessage = ({ data }) => {
      const [name, code] = JSON.parse(data);
      if (name === "error") resolve(code);
      if (name === "echo") resolve("silence");
    };
    socket.onclose = () => resolve("end");
  });
  const ask = async (path) => {
    const address = `${base}/${path}?channel=${channel}`;
    const answer = await fetch(address, { signal: ends.signal }).catch(() => null);
    return answer?.status ?? "failed";
  };
  const [websocket, after, sse, stream, poll] = await Promise.all([
    first,
    later,
    ...["sse", "stream", "poll"].map(ask),
  ]);
  ends.abort();
  for (const socket of sockets) socket.close();
  return { websocket, later: after, sse, stream, poll };
}

/** In a page: leaves it with a form that posts a bid. As plain text a form can be JSON too. */
function submitBid(path) {
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: path, enctype: "text/plain" });
  const field = document.createElement("input");
  Object.assign(field, { name: '{"amount_cents":500,"and":"', value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
}
