// Pages in Chromium: what browsers themselves bring along, in heads, preflights, and when they resume.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(new URL("../foreign/package.json", import.meta.url));
const puppeteer = require("puppeteer-core");

const FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking " +
  "--disable-component-update --disable-sync --no-proxy-server";
/** Where pages of another origin are; the same each time. */
const PAGES_PORT = 18_001;

/** A page of another origin, or with `own` one of the server's, which is its error. */
async function open({ t, base, settled }, { own = false } = {}) {
  const userDataDir = await mkdtemp(join(tmpdir(), "pushlab-recorded-"));
  t.after(() => rm(userDataDir, { recursive: true, force: true, maxRetries: 10 }));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS.split(" "),
    headless: true,
    userDataDir,
    env: { ...process.env, TMPDIR: userDataDir },
  });
  t.after(() => browser.close());
  const pages = http.createServer((_, answer) => {
    answer.writeHead(200, { "content-type": "text/html", connection: "close" });
    answer.end("<!doctype html><title>Page of another origin</title>");
  });
  pages.listen(PAGES_PORT, "127.0.0.1");
  await once(pages, "listening");
  t.after(() => pages.close());
  const page = await browser.newPage();
  await page.setUserAgent({ userAgent: "Chromium" });
  await page.goto(own ? `${base}/page` : `http://127.0.0.1:${PAGES_PORT}/`);
  await settled();
  return page;
}

const chromium = (name, about, run, options) => ({
  name: `chromium-${name}`,
  about,
  by: "Chromium",
  async run(at) {
    const page = await open(at, options);
    /** Runs in the page; the promise that it gives settles when the page has what it waits for. */
    const inPage = async (work, ...args) => {
      await page.evaluate(work, at.base, ...args);
      await at.settled();
    };
    await run(inPage, at);
    await page.close();
    await at.settled();
  },
});

/** Publishes as a page does, with a content type that needs no preflight. */
const publish = (base, data) =>
  fetch(`${base}/publish?channel=a`, { method: "POST", body: data }).then((answer) =>
    answer.text(),
  );

export const BROWSERS = [
  chromium(
    "websocket",
    "a page's WebSocket publishes, hears it, and closes with a code of its own",
    async (inPage) => {
      await inPage((base) => {
        globalThis.socket = new WebSocket(`${base.replace("http", "ws")}/ws?channel=a`);
        return new Promise((go) => {
          globalThis.socket.onmessage = go;
        });
      });
      await inPage(() => globalThis.socket.send('["pub","a",{"from":"page"}]'));
      await inPage(() => globalThis.socket.send('["ping",1]'));
      await inPage(() => globalThis.socket.close(3001, "done"));
    },
  ),
  chromium("eventsource", "a page's event stream", async (inPage) => {
    await inPage((base) => {
      globalThis.source = new EventSource(`${base}/sse?channel=a`);
      return new Promise((go) => {
        globalThis.source.onopen = go;
      });
    });
    await inPage(publish, "1");
    await inPage(publish, '"zwei \u20ac"');
    await inPage(() => globalThis.source.close());
  }),
  chromium(
    "fetch",
    "a page reads a stream by fetch, publishes JSON behind a preflight, polls and reads an error",
    async (inPage, at) => {
      await inPage(async (base) => {
        globalThis.end = new AbortController();
        const answer = await fetch(`${base}/stream?channel=a`, { signal: globalThis.end.signal });
        await answer.body.getReader().read();
      });
      const post = async (base, path, type) => {
        const answer = await fetch(`${base}${path}`, {
          method: "POST",
          headers: { "content-type": type },
          body: '{"from":"page"}',
        });
        await answer.text();
      };
      await inPage(post, "/publish?channel=a", "application/json");
      await inPage(post, "/publish?channel=a", "text/plain");
      await inPage(post, "/publish?channel=-", "application/json");
      await inPage(async (base, epoch) => {
        await (await fetch(`${base}/poll?channel=a&after=${epoch}.0&wait=25`)).text();
      }, at.epoch);
      await inPage(() => globalThis.end.abort());
    },
  ),
  chromium(
    "forever-frame",
    "a page of the server's own origin hosts a forever frame",
    async (inPage) => {
      await inPage((base) => {
        const frame = document.createElement("iframe");
        frame.src = `${base}/stream?channel=a&format=script`;
        return new Promise((go) => {
          globalThis.pushlab = go;
          document.documentElement.append(frame);
        });
      });
      await inPage((base) => {
        const heard = new Promise((go) => {
          globalThis.pushlab = go;
        });
        fetch(`${base}/publish?channel=a`, { method: "POST", body: '"</script>\'"' });
        return heard;
      });
      await inPage(() => document.querySelector("iframe").remove());
    },
    { own: true },
  ),
];
