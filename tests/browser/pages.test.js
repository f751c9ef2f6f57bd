// Every page, empty and filled: no violation of axe's rules, no error in the console, nothing wider than the window, nothing
// that moves while its data come; and a picture of each, on a phone, and light and dark on a desktop, for people to look at.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, describe } from "node:test";
import { TcpProxy, until } from "../foreign/harness.js";
import { testIn } from "./browsers.js";
import { enterChat, ticks } from "./demos.js";
import { drawn, overflow, violations, watchShifts } from "./in-page.js";
import { PASSWORD } from "./peer.js";
import { fillAuction, fillChat, fillStore, LONG_NAME } from "./seeds.js";
import { serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = process.env.SCREENSHOTS ?? "screenshots";
/**
 * What is asked of a page, by the width of the window and the colours that its owner prefers. Colours do not depend on the width,
 * but a phone does not show everything that has one.
 */
const ABOUT = { 390: { light: "shape" }, 1280: { light: "all", dark: "colours" } };
/** How much of a page may move by itself: what people do not see. Web Vitals call 0.1 good. */
const MAX_SHIFTS = 0.01;
const MAX_SHIFTS_OF_PROBLEMS = 0.1;
/** How long answers are kept back, so that a page is drawn before its data come, as it is on a real network. */
const ANSWERS_AFTER_MS = 150;

/** Where a visitor looks, and what shows that the data have come; `name` is that of the pictures. */
const EMPTY = [
  { name: "results-empty", path: "/", shows: (visitor) => visitor.reads("The store is empty") },
  { name: "live-empty", path: "/live", shows: (visitor) => visitor.reads("Nothing runs") },
  { name: "compare-empty", path: "/compare", shows: (visitor) => visitor.reads("There are no results yet.") },
  { name: "new-refused", path: "/new", shows: (visitor) => visitor.reads("This server starts no experiments") },
  { name: "measure-empty", path: "/measure", shows: (visitor) => visitor.reads("Nothing is measured yet.") },
  { name: "chat-entry", path: "/demos/chat", shows: (visitor) => visitor.find("button", "Enter") },
  { name: "auction-empty", path: "/demos/auction", shows: (visitor) => visitor.reads("The house is empty") },
];

/** `path` is given the numbers of what is shown. */
const FILLED = [
  { name: "results", path: () => "/", shows: (visitor) => visitor.reads("See it live") },
  {
    name: "results-chosen",
    path: ({ imported, complete }) => `/?chosen=${imported},${complete}`,
    shows: (visitor) => visitor.page.waitForSelector('a.primary[href^="/compare?"]'),
  },
  {
    name: "live",
    path: () => "/live",
    shows: async (visitor) => {
      await visitor.connected();
      await visitor.find("img", /^Latency\. Latest: median [\d.]/);
      await visitor.reads(/Delivered\s+\d/);
    },
  },
  { name: "report", path: ({ complete }) => `/reports/${complete}`, shows: isReport },
  { name: "report-imported", path: ({ imported }) => `/reports/${imported}`, shows: isReport },
  { name: "report-browser", path: ({ browser }) => `/reports/${browser}`, shows: isReport },
  {
    name: "report-compared",
    path: ({ baseline, candidate }) => `/reports/compare?baseline=${baseline}&candidate=${candidate}`,
    shows: isReport,
  },
  {
    name: "compare",
    path: ({ baseline, candidate }) => `/compare?baseline=${baseline}&candidate=${candidate}`,
    shows: (visitor) => visitor.find("link", "Open the comparison"),
  },
  { name: "new", path: () => "/new", shows: (visitor) => visitor.reads(/\d+ runs/) },
  { name: "demos", path: () => "/demos", shows: (visitor) => visitor.find("link", /Ticker/) },
  { name: "ticker", path: () => "/demos/ticker", shows: (visitor) => ticks(visitor, 12) },
];

async function isReport(visitor) {
  await visitor.find("heading", "How to repeat it");
}

/** Keeps back answers of the server's interface: a page of before is drawn first. */
async function slowDown(page) {
  const client = await page.createCDPSession();
  client.on("Fetch.requestPaused", ({ requestId }) => {
    setTimeout(() => client.send("Fetch.continueRequest", { requestId }).catch(() => {}), ANSWERS_AFTER_MS);
  });
  await client.send("Fetch.enable", { patterns: [{ urlPattern: "*/api/*" }] });
}

/** Opens an address in Chromium, where what moves is noted and answers come late. */
function open(t, address) {
  const prepare = async (page) => {
    await page.evaluateOnNewDocument(watchShifts);
    await slowDown(page);
  };
  return Visitor.open(t, "chromium", address, { prepare });
}

/** Loads an address, or the page that a visitor is on, at each width, and looks at everything once `shows` has seen its data. */
async function inspect(visitor, name, shows, { address } = {}) {
  const { page } = visitor;
  for (const width of Object.keys(ABOUT).map(Number)) {
    await page.setViewport({ width, height: 900 });
    await (address === undefined ? page.reload() : page.goto(address));
    await shows(visitor);
    await page.evaluate(drawn);
    await page.evaluate(AXE);
    for (const [scheme, about] of Object.entries(ABOUT[width])) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const where = `${name} at ${width} pixels, ${scheme}`;
      assert.deepEqual(await page.evaluate(violations, about), [], where);
      await assertStill(page, where);
      const path = join(SCREENSHOTS, `${name}-${width}-${scheme}.png`);
      await page.screenshot({ path, fullPage: true, optimizeForSpeed: true });
    }
    assert.ok((await page.evaluate(overflow)) <= 0, `${name} is not wider than ${width} pixels`);
  }
}

/** Looks at one page after the other, with the same visitor. */
async function inspectAll(t, { base }, pages, results) {
  const visitor = await open(t, `${base}/`);
  for (const { name, path, shows } of pages) {
    await t.test(`chromium: ${name}`, () => inspect(visitor, name, shows, { address: `${base}${path(results)}` }));
  }
}

async function assertStill(page, where) {
  const shifts = await page.evaluate(() => window.shifts);
  // Why a transport fails, or is cut, needs more words than its row and the verdict have room for.
  const maxShifts = (await page.$(".measure-problem")) === null ? MAX_SHIFTS : MAX_SHIFTS_OF_PROBLEMS;
  const sum = shifts.reduce((sum, { value }) => sum + value, 0);
  assert.ok(sum <= maxShifts, `${where} moves by itself by ${sum}: ${JSON.stringify(shifts, null, 1)}`);
}

describe("pages", { concurrency: true }, () => {
  describe("pages with nothing to show", { concurrency: 1 }, () => {
    const shared = serveForAll();
    before(() => mkdirSync(SCREENSHOTS, { recursive: true }));

    testIn("chromium", "chromium: every page", async (t) => {
      await inspectAll(t, shared.server, EMPTY.map(({ path, ...one }) => ({ ...one, path: () => path })));
    });
  });

  describe("pages with something to show", { concurrency: 1 }, () => {
    const shared = serveForAll({ command: "console" });
    before(async () => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      const { server } = shared;
      [shared.results, shared.items] = await Promise.all([fillStore(server), fillAuction(server)]);
    });

    // Side by side, because some wait most of the time.
    describe("while an experiment runs", { concurrency: true }, () => {
      testIn("chromium", "chromium: every page", (t) => inspectAll(t, shared.server, FILLED, shared.results));

      describe("chromium talks and bids", { concurrency: 1 }, () => {
        testIn("chromium", "chromium: chat", async (t) => {
          const visitor = await open(t, `${shared.server.base}/demos/chat`);
          await enterChat(visitor, "Ada");
          await fillChat(t, shared.server, "Ada");
          const hasCome = async (one) => {
            await one.reads("break=anywhere");
            await one.reads("a-room-with-a-rather-long-name");
          };
          await hasCome(visitor);
          // What is told while the page is loaded anew has nobody to hear it.
          const conversations = () => visitor.find("navigation", "Conversations");
          await visitor.find("link", new RegExp(LONG_NAME), await conversations());
          await inspect(visitor, "chat", hasCome);
          await visitor.press("link", new RegExp(LONG_NAME), await conversations());
          await inspect(visitor, "chat-private", (one) => one.reads("Nor is this for the others."));
        });

        testIn("chromium", "chromium: auction house", async (t) => {
          const { base } = shared.server;
          const visitor = await open(t, `${base}/demos/auction`);
          await logIn(visitor);
          for (const [name, query, text] of auctionViews(shared.items)) {
            await inspect(visitor, name, (one) => isAuction(one, text), { address: `${base}/demos/auction${query}` });
          }
        });
      });

      describe("chromium measures", { concurrency: true }, () => {
        testIn("chromium", "chromium: a measurement", async (t) => {
          const visitor = await open(t, `${shared.server.base}/measure?messages=10&transports=websocket,sse,polling`);
          await inspect(visitor, "measure", measures);
        });

        testIn("chromium", "chromium: a measurement in which a transport fails and another is held back", async (t) => {
          const proxy = await TcpProxy.start(t, shared.server.port);
          proxy.refused = /^\/ws/;
          proxy.held = /^\/sse/;
          const query = "messages=10&transports=websocket,sse,long-polling";
          const visitor = await open(t, `${proxy.base}/measure?${query}#token=${shared.server.token}`);
          visitor.expectFailures();
          await inspect(visitor, "measure-failed", measures);
        });
      });

      testIn("firefox", "firefox: every page", async (t) => {
        const { base } = shared.server;
        const visitor = await Visitor.open(t, "firefox", `${base}/demos/auction`, { width: 390 });
        await logIn(visitor);
        const auction = auctionViews(shared.items).map(([name, query, text]) => ({
          name,
          path: () => `/demos/auction${query}`,
          shows: (one) => isAuction(one, text),
        }));
        for (const { name, path, shows } of [...FILLED, ...auction]) {
          await t.test(`firefox: ${name}`, async () => {
            await visitor.page.goto(`${base}${path(shared.results)}`);
            await shows(visitor);
            await visitor.page.evaluate(AXE);
            assert.deepEqual(await visitor.page.evaluate(violations, "all"), [], name);
            assert.ok((await visitor.page.evaluate(overflow)) <= 0, `${name} is not wider than the window`);
          });
        }
      });
    });

    testIn("chromium", "chromium: an experiment that has ended", async (t) => {
      const visitor = await open(t, `${shared.server.base}/live`);
      await visitor.connected();
      await visitor.press("button", "Interrupt…");
      await visitor.press("button", "Interrupt");
      await visitor.reads("long has ended");
      await inspect(visitor, "live-ended", (one) => one.reads("long has ended"));
    });

    testIn("chromium", "the keyboard alone goes from page to page, and Back returns", async (t) => {
      const visitor = await Visitor.open(t, "chromium", `${shared.server.base}/`);
      const { page } = visitor;
      await visitor.find("heading", "Results");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      const isIn = (id) => page.evaluate((id) => document.activeElement?.id === id, id);
      assert.ok(await isIn("content"), "the skip link leads to the content");
      await (await visitor.find("link", "Demos")).focus();
      await page.keyboard.press("Enter");
      await visitor.find("heading", "Demos");
      assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Demos");
      await page.goBack();
      await visitor.find("heading", "Results");
    });
  });
});

/** Views of the auction house: a name, the query, and what shows that it has come. */
function auctionViews({ barometer, sextant, word, clock, own }) {
  return [
    ["auction", "", "4 items of 6"],
    ["auction-all", "?show=all", "6 items of 6"],
    ["auction-ended", `?item=${barometer}`, /Sold to[^]*When/],
    ["auction-leading", `?item=${sextant}`, /You lead[^]*€260\.00/],
    ["auction-long", `?item=${word}`, "no bid yet"],
    ["auction-other", `?item=${clock}`, /ساعة[^]*When/],
    ["auction-own", `?item=${own}`, /Remove this item[^]*When/],
    ["auction-offer", "?add=1", "The auction lasts"],
  ];
}

async function isAuction(visitor, text) {
  await visitor.connected();
  await visitor.reads("You are ada.");
  await visitor.reads(text);
}

async function logIn(visitor) {
  await visitor.fill("Name", "ada");
  await visitor.fill("Password", PASSWORD);
  await visitor.press("button", "Log in");
  await visitor.reads("You are ada.");
}

async function measures(visitor) {
  await visitor.press("button", "Measure");
  const isDone = () => visitor.has("button", "Measure again");
  await until(isDone, async () => `it is measured; the page says: ${await visitor.text()}`, 60_000);
}
