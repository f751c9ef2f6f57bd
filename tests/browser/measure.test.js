// Measure this browser: every transport, what a proxy does to them, and what is kept of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TcpProxy, until } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";

const NAMES = {
  websocket: "WebSocket",
  sse: "Server-Sent Events",
  "http-streaming": "HTTP streaming",
  "long-polling": "Long polling",
  polling: "Polling",
};

/** Measures, and gives the cells of each transport's row by the heading of their column. */
async function measure(visitor, within_ms = 60_000) {
  await visitor.press("button", "Measure");
  await until(
    () => visitor.has("button", "Measure again"),
    async () => `the measurement ends; the page says: ${await visitor.text()}`,
    within_ms,
  );
  const rows = await visitor.page.$$eval("main table", ([table]) => {
    const text = (cell) => cell.innerText.replace(/\s+/g, " ").trim();
    const heads = [...table.querySelectorAll("thead th")].map(text);
    const cells = (row) => [...row.children].map((cell, at) => [heads[at], text(cell)]);
    return [...table.querySelectorAll("tbody tr")].map((row) => Object.fromEntries(cells(row)));
  });
  return Object.fromEntries(rows.map((row) => [row.Transport, row]));
}

inEachBrowser("measure this browser", (name) => {
  test(`${name}: every transport works, and the result is stored`, async (t) => {
    const server = await serve(t, { command: "console" });
    // Of ten, a stall of half a second would make a clump that counts.
    const visitor = await Visitor.open(t, name, `${server.base}/measure?messages=20`);
    const rows = await measure(visitor);
    assert.deepEqual(Object.keys(rows), Object.values(NAMES));
    for (const row of Object.values(rows)) {
      assert.match(row.Result, /works$/, JSON.stringify(row));
      for (const column of ["Opens in", "Message, median", "Slowest", "Jitter", "Echo, median"]) {
        assert.match(row[column], /^[\d.\s]+(µs|ms|s)$/, `${column} of ${JSON.stringify(row)}`);
      }
      assert.match(row.Received, /^[\d.\s]+(B|KiB)$/, JSON.stringify(row));
    }
    // The upgrade alone; elsewhere twenty messages are posted, and as many echoes, or as five seconds have room for.
    assert.equal(rows.WebSocket.Requests, "1");
    for (const [transport, row] of Object.entries(rows)) {
      if (transport !== "WebSocket") assert.ok(Number(row.Requests) > 30, JSON.stringify(row));
    }
    assert.match(rows.WebSocket.Sent, /^[\d.\s]+(B|KiB)$/);
    await visitor.reads("All 5 transports work.");
    await visitor.find("img", /^Polling: 20 messages, median/);
    await visitor.press("button", "Store as a run");
    const link = await visitor.find("link", "Report of this measurement");
    await Promise.all([visitor.page.waitForNavigation(), link.click()]);
    await visitor.reads("websocket");
    const back = await visitor.find("link", "← All results of this console");
    await Promise.all([visitor.page.waitForNavigation(), back.click()]);
    await visitor.find("heading", "Results");
    await visitor.find("link", "Measured in a browser");
  });

  test(`${name}: a WebSocket that is refused, and streams of which nothing comes through`, async (t) => {
    const server = await serve(t);
    const proxy = await TcpProxy.start(t, server.port);
    proxy.refused = /^\/ws/;
    proxy.held = /^\/(sse|stream)/;
    const address = `${proxy.base}/measure?messages=10&transports=websocket,sse,http-streaming,long-polling`;
    const visitor = await Visitor.open(t, name, address);
    visitor.expectFailures();
    const rows = await measure(visitor);
    assert.match(rows.WebSocket.Result, /^✗\s*fails/);
    assert.doesNotMatch(rows.WebSocket.Result, /held back/);
    assert.equal(rows.WebSocket["Message, median"], "–");
    for (const row of [rows["Server-Sent Events"], rows["HTTP streaming"]]) {
      assert.match(row.Result, /held back.*nothing came within 5 s/, JSON.stringify(row));
      assert.equal(row["Opens in"], "–");
    }
    assert.match(rows["Long polling"].Result, /works$/);
    await visitor.reads("Long polling works.");
    await visitor.reads("Server-Sent Events and HTTP streaming are held back");
    await visitor.reads("WebSocket does not get through.");
  });

  test(`${name}: streams that come in clumps, as from a proxy that collects them`, async (t) => {
    const server = await serve(t);
    const proxy = await TcpProxy.start(t, server.port);
    proxy.clumped = /^\/(sse|stream)/;
    const address = `${proxy.base}/measure?messages=20&transports=websocket,sse,http-streaming`;
    const visitor = await Visitor.open(t, name, address);
    const rows = await measure(visitor);
    assert.match(rows.WebSocket.Result, /works$/);
    for (const row of [rows["Server-Sent Events"], rows["HTTP streaming"]]) {
      assert.match(row.Result, /held back\s*messages came in clumps of about \d+/, JSON.stringify(row));
      assert.match(row["Message, median"], /^[\d.]+\s?(ms|s)$/, JSON.stringify(row));
    }
    await visitor.reads("WebSocket works.");
    await visitor.reads("Server-Sent Events and HTTP streaming are held back");
  });

  test(`${name}: options live in the address, and a measurement can be stopped`, async (t) => {
    const server = await serve(t);
    const visitor = await Visitor.open(t, name, `${server.base}/measure`);
    await visitor.press("checkbox", "WebSocket");
    await visitor.choose("Messages over each", "200");
    const query = () => visitor.page.evaluate(() => location.search);
    await until(async () => (await query()).includes("messages=200"), "the address has the choice");
    assert.doesNotMatch(await query(), /websocket/);
    await visitor.page.reload();
    const box = await visitor.find("checkbox", "WebSocket");
    assert.equal(await box.evaluate((element) => element.checked), false);
    await visitor.press("button", "Measure");
    await visitor.reads("Server-Sent Events, 1 of 4");
    await visitor.press("button", "Stop");
    await visitor.reads("Stopped");
    await visitor.find("button", "Measure again");
    // The server has nobody left: the stream was closed.
    await until(async () => {
      const { text } = await server.request("GET", "/stats");
      return JSON.parse(text).connections.sse === 0;
    }, "the stream is closed");
  });
});
