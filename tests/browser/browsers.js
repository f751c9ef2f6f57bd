// Debian's Chromium and Firefox, each started once for all tests of a process.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import puppeteer from "puppeteer-core";

const CHROMIUM_FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking " +
  "--disable-component-update --disable-sync --disable-backgrounding-occluded-windows " +
  "--disable-renderer-backgrounding --no-proxy-server " +
  // Pages of the address bar, two with each window, which nobody sees and which cost more than a page of ours.
  "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup";

const OPTIONS = {
  chromium: {
    browser: "chrome",
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: CHROMIUM_FLAGS.split(" "),
  },
  firefox: {
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    extraPrefsFirefox: {
      // Nothing may go through a proxy, nor to elsewhere.
      "network.proxy.type": 0,
      "network.captive-portal-service.enabled": false,
      "network.connectivity-service.enabled": false,
      // Where several pages are open at once, those behind are not slowed down.
      "dom.min_background_timeout_value": 4,
      "dom.timeout.enable_budget_timer_throttling": false,
    },
  },
};

/** The browsers of this run: the everyday one has Chromium, the long one Firefox, and neither repeats the other. */
const CHOSEN = (process.env.BROWSERS ?? Object.keys(OPTIONS).join(" ")).split(" ");
for (const name of CHOSEN) if (!(name in OPTIONS)) throw new Error(`BROWSERS names ${name}; there are chromium and firefox`);

/** A test that belongs to one of the browsers: to Firefox, if it needs both. */
export function testIn(name, title, run) {
  if (CHOSEN.includes(name)) test(title, run);
}

/**
 * A `describe` with one for each browser of this run in it, whose name `define` is given. The browsers go on side by side,
 * because tests wait more than they work. Within a browser one test follows the other, unless `concurrency` says otherwise.
 */
export function inEachBrowser(title, define, { concurrency = 1 } = {}) {
  describe(title, { concurrency: true }, () => {
    for (const name of CHOSEN) describe(name, { concurrency }, () => define(name));
  });
}

const started = new Map();

/** A page in a window and a context of its own: no cookie or store is shared with another, and what is in front is seen. */
export async function openWindow(name) {
  const context = await (await browser(name)).createBrowserContext();
  // Chromium has a window for each context. Firefox has tabs of one window unless it is told, and those behind stand still.
  return context.newPage(name === "firefox" ? { type: "window" } : undefined);
}

/** The browser of that name; it ends after the last test. */
function browser(name) {
  if (!started.has(name)) started.set(name, launch(name));
  return started.get(name).then((one) => one.browser);
}

async function launch(name) {
  const userDataDir = await mkdtemp(join(tmpdir(), `pushlab-${name}-`));
  // What a killed browser leaves behind is removed with its profile.
  const env = { ...process.env, TMPDIR: userDataDir };
  // The certificate of a test is signed by nobody.
  const options = { headless: true, acceptInsecureCerts: true, userDataDir, env, ...OPTIONS[name] };
  return { browser: await puppeteer.launch(options), userDataDir };
}

after(async () => {
  for (const one of started.values()) {
    const { browser, userDataDir } = await one;
    await browser.close();
    await rm(userDataDir, { recursive: true, force: true, maxRetries: 10 });
  }
});
