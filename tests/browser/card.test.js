// The scorecard on the report page: that the page opens with it, what the chooser leaves, and that it fits a phone. The
// page is built from a sample with every conclusion, since no run comes to all of them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inEachBrowser, testIn } from "./browsers.js";
import { drawn, overflow, violations } from "./in-page.js";
import { Visitor } from "./visitor.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = process.env.SCREENSHOTS ?? "screenshots";
const CONSOLE = fileURLToPath(new URL("../../web/console", import.meta.url));
const SAMPLES = pathToFileURL(join(CONSOLE, "dist/sample")).href;
const CARD = `${SAMPLES}/card.html`;
/** A small phone and a desktop. */
const WIDTHS = [360, 1280];

/** Titles of the quantities that are shown. */
const titles = (visitor) => visitor.page.$$eval(".quantity h3", (all) => all.map((one) => one.innerText));

/** Labels of the options that are marked in the first quantity as the choice or its runner-up, and as which. */
const marked = (visitor) =>
  visitor.page.$$eval(".quantity:first-of-type .factor-label:has(.choice)", (all) =>
    all.map((one) => one.innerText.replace(/\s+/g, " ").replace(/^\S+ /, "").trim()).sort(),
  );

/** What a quantity says of options that work or do not, as `label: word`. */
const outcomes = (region) =>
  region.$$eval(".whether", (all) =>
    all.map((one) => {
      const [label, word] = [".factor-label", ".whether-word"].map((part) => one.querySelector(part).innerText);
      return `${label.replace(/^[^]*(choice|runner-up):/, "").trim()}: ${word}`;
    }),
  );

const hash = (visitor) => visitor.page.evaluate(() => decodeURIComponent(location.hash));

describe("the scorecard", () => {
  before(() => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    execFileSync("npm", ["run", "--silent", "sample"], { cwd: CONSOLE, stdio: "pipe" });
  });

  inEachBrowser("in each browser", (name) => {
    test(`${name}: the page opens with the scorecard, and no script runs but its own`, async (t) => {
      const visitor = await Visitor.open(t, name, CARD);
      await visitor.find("heading", "Scorecard");
      const heads = await visitor.page.$$eval("h1, h2", (all) => all.map((one) => one.innerText));
      assert.equal(heads[1], "Scorecard");
      assert.equal((await titles(visitor)).length, 11);
      const verdict = await visitor.text(await visitor.find("region", "Verdict"));
      assert.match(verdict, /^248 runs count, 32 void;/);
      await visitor.reads(/Chat\s+WebSocket over HTTP\/2, as a compromise/);
      visitor.expectBlocks();
      // Neither a style counts.
      assert.deepEqual(await visitor.page.evaluate(intrude), { sheet: "0px", attribute: "0px", script: "none" });
    });

    test(`${name}: the chooser leaves what bears on a workload, and the address keeps it`, async (t) => {
      const visitor = await Visitor.open(t, name, CARD);
      await visitor.press("radio", "Dashboard");
      await visitor.reads(/✓ marks the choice below, and 2. the runner-up/);
      const dashboard = ["CPU per delivery", "Latency, office network", "Time to subscribe, 4G"];
      const choices = ["choice: sse · http2", "runner-up: websocket · http1"];
      assert.deepEqual(await titles(visitor), dashboard);
      assert.deepEqual(await marked(visitor), choices);
      assert.equal(await hash(visitor), "#workload=dashboard");
      await visitor.page.reload();
      await visitor.reads("the choice below");
      assert.deepEqual(await titles(visitor), dashboard);
      await visitor.press("radio", "Broadcast");
      await visitor.reads("Factors leave out what is too late: polling · http1, websocket-polling · http1.");
      await visitor.press("radio", "Mobile networks");
      await visitor.reads("Mobile networks: nothing is advised, because no option both works and has a figure for every quantity that counts.");
      assert.deepEqual(await marked(visitor), []);
      await visitor.press("radio", "Everything");
      await visitor.reads(/Dashboard\s+SSE over HTTP\/2. WebSocket over HTTP\/1.1 seems just as good/);
      assert.equal((await titles(visitor)).length, 11);
      assert.equal(await hash(visitor), "");
    });
  });

  testIn("chromium", "chromium: an unknown workload shows everything, and the keyboard alone chooses one", async (t) => {
    const visitor = await Visitor.open(t, "chromium", `${CARD}#workload=spaceflight`);
    const { keyboard } = visitor.page;
    await visitor.find("heading", "Scorecard");
    assert.equal((await titles(visitor)).length, 11);
    const focused = () => visitor.page.evaluate(() => document.activeElement?.closest("label")?.innerText ?? "");
    await keyboard.press("Tab");
    assert.equal(await focused(), "Everything");
    await keyboard.press("ArrowRight");
    await keyboard.press("ArrowRight");
    assert.equal(await focused(), "Chat");
    await visitor.reads("as a compromise");
    assert.deepEqual(await titles(visitor), ["CPU per client message", "Latency, office network"]);
  });

  testIn("chromium", "chromium: the scorecard fits every width and passes axe, light and dark", async (t) => {
    const visitor = await Visitor.open(t, "chromium", CARD);
    const { page } = visitor;
    const colours = { light: "all", dark: "colours" };
    // Colours do not depend on the width, but a phone does not show everything that has one.
    for (const [width, query, about] of [
      [WIDTHS[0], "", { light: "shape" }],
      [WIDTHS[1], "", colours],
      [WIDTHS[0], "#workload=chat", colours],
    ]) {
      await show(visitor, `${CARD}${query}`, width);
      await page.evaluate(AXE);
      for (const [scheme, rules] of Object.entries(about)) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        assert.deepEqual(await page.evaluate(violations, rules), [], `${query} at ${width} pixels, ${scheme}`);
        const name = `scorecard${query.replace("#workload=", "-")}-${width}-${scheme}.png`;
        await (await page.$("#scorecard")).screenshot({ path: join(SCREENSHOTS, name) });
      }
      assert.ok((await page.evaluate(overflow)) <= 0, `${query} is not wider than ${width} pixels`);
    }
  });

  testIn("chromium", "chromium: what the scorecard says", async (t) => {
    const visitor = await Visitor.open(t, "chromium", CARD);
    await t.test("what a bar shows is said in words, and is as long as its factor", async () => {
      await visitor.find("heading", "Scorecard");
      const texts = await visitor.page.$$eval(".factor", (all) => all.map((one) => one.textContent.replace(/\s+/g, " ")));
      for (const words of ["best", "equivalent", "at least", "undecided", "too few blocks", "lower bound"]) {
        assert.ok(texts.some((text) => text.includes(words)), `some bar is called ${words}`);
      }
      assert.ok(texts.every((text) => /[\d.]+× the best,/.test(text)), "each has its factor");
      const bars = await visitor.page.$$eval(".factor", (all) =>
        all.map((one) => {
          const fill = one.querySelector(".factor-fill");
          const length = fill.getBoundingClientRect().width / fill.parentElement.getBoundingClientRect().width;
          const factor = Number(/[\d.]+/.exec(one.querySelector(".factor-number").innerText)[0]);
          return { factor, length, isCut: fill.classList.contains("beyond") };
        }),
      );
      for (const { factor, length, isCut } of bars) {
        assert.equal(isCut, factor > 30, `a bar of ${factor}`);
        // The shortest bars are drawn, though they have no length.
        const wanted = Math.min(1, Math.log(factor) / Math.log(30));
        assert.ok(Math.abs(length - wanted) < 0.02, `a bar of ${factor} is ${length} long, not ${wanted}`);
      }
    });

    await t.test("what works is told as yes or no, with the reason", async () => {
      const region = await visitor.find("region", "Through nginx");
      assert.deepEqual(await outcomes(region), [
        "sse · http1: yes",
        "sse · http2: yes",
        "http-streaming · http1: yes",
        "http-streaming · http2: yes",
        "long-polling · http1: yes",
        "polling · http1: yes",
        "websocket-polling · http1: yes",
        "websocket · http1: no",
        "websocket · http2: no",
        "a-foreign-server · long-polling · http1: no",
      ]);
      assert.equal(await region.$(".factor-bar"), null, "no bar stands for what works");
      assert.match(await visitor.text(region), /Works: 7 of 10[^]*41 % of the messages arrived/);
      assert.doesNotMatch(await visitor.text(region), /is better|Best measured|send Upgrade: websocket/);
      const reason = await region.$("details.whether-reason summary");
      await reason.press("Enter");
      assert.match(await visitor.text(region), /send Upgrade: websocket/);
    });

    await t.test("what failed comes last in its quantity, and the table says so", async () => {
      const region = await visitor.find("region", "Deliveries/s, one core");
      assert.deepEqual(await outcomes(region), ["websocket-polling · http1: failed"]);
      const text = await visitor.text(region);
      assert.match(text, /14\.0×[^]*websocket-polling · http1\s+failed\s+the server ended with signal 9[^]*Not measured: polling/);
      const cells = await visitor.page.$$eval(".glance tr", (all) =>
        all.map((one) => [one.cells[0].innerText, one.cells[2].innerText, one.cells[11].innerText]),
      );
      const [failing, foreign] = cells.slice(-2);
      assert.deepEqual(failing.slice(1), ["fails", "yes"]);
      assert.match(foreign[1], /14\.0×/);
      assert.equal(foreign[2], "no");
    });
  });

  testIn("chromium", "chromium: a comparison with many options, of any name", async (t) => {
    const visitor = await Visitor.open(t, "chromium", `${SAMPLES}/hostile.html`);
    await t.test("of many options the best are shown, the others at a press", async () => {
      const region = await visitor.find("region", "CPU per client message");
      const visible = () =>
        region.$$eval(".factor", (all) => all.filter((one) => one.checkVisibility()).length);
      assert.equal(await visible(), 12);
      await visitor.press("button", /^38 more, from [\d.]+×$/, region);
      assert.equal(await visible(), 50);
    });

    await t.test("what a comparison found stands before the scorecard", async () => {
      await visitor.find("heading", "Scorecard");
      const heads = await visitor.page.$$eval("h2", (all) => all.map((one) => one.innerText));
      assert.deepEqual(heads.slice(0, 2), ["Comparison", "Scorecard"]);
    });

    await t.test("names without end and what is no number do not widen the page", async () => {
      for (const width of WIDTHS) {
        await show(visitor, `${SAMPLES}/hostile.html`, width);
        assert.ok((await visitor.page.evaluate(overflow)) <= 0, `it is not wider than ${width} pixels`);
      }
    });
  });
});

/** Loads a page anew at a width, with all of its scorecard unfolded. */
async function show(visitor, address, width) {
  const { page } = visitor;
  await page.setViewport({ width, height: 900 });
  // A fragment alone loads nothing.
  await page.goto("about:blank");
  await page.goto(address);
  await visitor.find("heading", "Scorecard");
  await page.$$eval("#scorecard details", (all) => all.forEach((one) => (one.open = true)));
  await page.evaluate(drawn);
}

/** In a page: what comes of a style sheet, a style in a text and a script that somebody put into it. */
function intrude() {
  const put = (tag, text) => document.head.appendChild(Object.assign(document.createElement(tag), { textContent: text }));
  put("style", "#page { text-indent: 7px }");
  put("script", "document.body.title = 'ran'");
  document.body.insertAdjacentHTML("beforeend", "<p id='intruder' style='text-indent: 9px'>");
  const indent = (id) => getComputedStyle(document.getElementById(id)).textIndent;
  return { sheet: indent("page"), attribute: indent("intruder"), script: document.body.title || "none" };
}
