// Clients that run in a page of Debian's Chromium.

import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import puppeteer from "puppeteer-core";
import { prepare } from "./page.js";

const FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking " +
  "--disable-component-update --disable-sync";

let started;

/** One browser for all tests of a file. */
function browser() {
  started ??= launch();
  return started;
}

async function launch() {
  const userDataDir = await mkdtemp(join(tmpdir(), "pushlab-chromium-"));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS.split(" "),
    headless: true,
    // The certificate of a test is signed by nobody.
    acceptInsecureCerts: true,
    userDataDir,
    // What a killed browser leaves behind is removed with its profile.
    env: { ...process.env, TMPDIR: userDataDir },
  });
  return { browser, userDataDir };
}

after(async () => {
  if (started === undefined) return;
  const { browser, userDataDir } = await started;
  await browser.close();
  await rm(userDataDir, { recursive: true, force: true, maxRetries: 10 });
});

const pageServer = http.createServer((_, response) => {
  // Closing keeps a browser from sending its next request for this origin to the page's connection.
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", connection: "close" });
  response.end("<!doctype html><title>Page of another origin</title><body></body>");
});

/** The port on which the test's own page is served. */
export async function servePages() {
  if (!pageServer.listening) {
    await new Promise((resolve) => pageServer.listen(0, "127.0.0.1", resolve));
    pageServer.unref();
  }
  return pageServer.address().port;
}

/** A blank page of that origin; `onFrame` and `onEnd` hear what runs in it. */
export async function openPage(origin, { onFrame, onEnd }) {
  const { browser: running } = await browser();
  const page = await running.newPage();
  await page.exposeFunction("deliver", (batch) => {
    for (const frame of JSON.parse(batch)) frame === null ? onEnd() : onFrame(frame);
  });
  await page.evaluateOnNewDocument(prepare);
  await page.goto(`${origin}/page`);
  return page;
}
