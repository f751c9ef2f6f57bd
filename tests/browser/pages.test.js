// Every page: no violation of axe's rules, no error in the console, nothing wider than the window, nothing that moves while
// it is filled; and a picture of each, at two widths, light and dark, for people to look at.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { BROWSERS } from "./browsers.js";
import { overflow, violations, watchShifts } from "./in-page.js";
import { serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = process.env.SCREENSHOTS ?? "screenshots";
const WIDTHS = [390, 1280];
const SCHEMES = ["light", "dark"];
/** What Web Vitals call good. */
const MAX_SHIFTS = 0.1;

/** Path, heading, and what makes the page show what it is for. */
const PAGES = [
  { path: "/", heading: "Results" },
  { path: "/live", heading: "Live" },
  { path: "/compare", heading: "Compare two results" },
  { path: "/new", heading: "New experiment" },
  { path: "/measure?messages=10&transports=websocket,sse,polling", heading: "Measure this browser", fill: measure },
  { path: "/demos", heading: "Demos" },
  { path: "/demos/ticker", heading: "Ticker", fill: (visitor) => visitor.connected() },
  { path: "/demos/chat", heading: "Chat" },
  { path: "/demos/auction", heading: "Auction house" },
];

async function measure(visitor) {
  await visitor.press("button", "Measure");
  await visitor.find("button", "Measure again");
}

/** `/demos/ticker?x` as part of a file's name. */
const fileOf = (path) => path.split("?")[0].slice(1).replaceAll("/", "-") || "results";

describe("pages", () => {
  const shared = serveForAll({ command: "console" });
  before(() => mkdirSync(SCREENSHOTS, { recursive: true }));

  for (const { path, heading, fill } of PAGES) {
    test(`chromium: ${path}`, async (t) => {
      const prepare = (page) => page.evaluateOnNewDocument(watchShifts);
      const visitor = await Visitor.open(t, "chromium", `${shared.server.base}${path}`, { prepare });
      const { page } = visitor;
      await visitor.find("heading", heading);
      await fill?.(visitor);
      const shifts = await page.evaluate(() => window.shifts);
      assert.ok(shifts <= MAX_SHIFTS, `${path} moves by ${shifts} while it is filled`);
      await page.evaluate(AXE);
      for (const width of WIDTHS) {
        await page.setViewport({ width, height: 900 });
        for (const scheme of SCHEMES) {
          await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
          const where = `${path} at ${width} pixels, ${scheme}`;
          assert.deepEqual(await page.evaluate(violations), [], where);
          const file = join(SCREENSHOTS, `${fileOf(path)}-${width}-${scheme}.png`);
          await page.screenshot({ path: file, fullPage: true });
        }
        assert.ok((await page.evaluate(overflow)) <= 0, `${path} is not wider than ${width} pixels`);
      }
    });
  }

  for (const name of BROWSERS.filter((one) => one !== "chromium")) {
    test(`${name}: every page`, async (t) => {
      const visitor = await Visitor.open(t, name, `${shared.server.base}/`);
      for (const { path, heading } of PAGES) {
        await visitor.page.goto(`${shared.server.base}${path}`);
        await visitor.find("heading", heading);
        await visitor.page.evaluate(AXE);
        assert.deepEqual(await visitor.page.evaluate(violations), [], path);
      }
    });
  }

  test("the keyboard alone goes from page to page, and Back returns", async (t) => {
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
