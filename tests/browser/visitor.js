// Somebody who looks at a page in a browser, finds things by role and name, and notices what goes wrong.

import assert from "node:assert/strict";
import { tokens, until } from "../foreign/harness.js";
import { openWindow } from "./browsers.js";
import { findByRole, textOf } from "./in-page.js";

/** What browsers report of requests that failed, which is no fault of the page: a server that is away, a refusal. */
const OF_THE_NETWORK =
  /Failed to load resource|net::ERR_|NetworkError|Cross-Origin|blocked by CORS policy|WebSocket connection to/;
/** What browsers report when a page's policy blocks a script or a style. */
const OF_THE_POLICY = /^(exception: )?(Content-Security-Policy: |.* violates the following Content Security Policy)/;
/** What Firefox reports of open WebSockets and event streams when a page is left. A test that waits for a connection sees one fail. */
const OF_LEAVING = /^exception: (Firefox can’t establish a connection|The connection to .* was interrupted)/;

/** How long a page may take to load. Generous, because the machine may be busy and no test measures this. */
const LOADS_WITHIN_MS = 90_000;

/** Those who are there, by the test that they came for. */
const visitors = new WeakMap();

/** Closes the pages of a test's visitors. */
export async function leave(t) {
  const leaving = visitors.get(t) ?? [];
  visitors.delete(t);
  for (const { page } of leaving) await page.browserContext().close();
}

/** What a page that is being loaded, and is another one next, has no answer to: Chromium's words, then Firefox's. */
const OF_LOADING = /Execution context was destroyed|Cannot find context|detached|no such (node|frame|handle)/;

/** What `look` gives of a page, or `nothing` while the page becomes another one. */
async function onceLoaded(look, nothing) {
  try {
    return await look();
  } catch (error) {
    if (!OF_LOADING.test(error.message)) throw error;
    return nothing;
  }
}

/** A visitor's page, alone in a context of its own. */
export class Visitor {
  /** What the page reported as an error, dialogs that it opened, and exceptions nobody caught. */
  problems = [];
  #expected = [OF_LEAVING];

  constructor(name, page) {
    this.name = name;
    this.page = page;
    page.setDefaultNavigationTimeout(LOADS_WITHIN_MS);
  }

  /** Opens an address in the browser of that name. After the test it is closed, and nothing may have gone wrong. */
  static async open(t, name, address, { width = 1280, height = 900, prepare } = {}) {
    const page = await openWindow(name);
    const visitor = new Visitor(name, page);
    visitor.#listen();
    visitors.set(t, [...(visitors.get(t) ?? []), visitor]);
    t.after(async () => {
      await leave(t);
      visitor.assertQuiet();
    });
    await page.setViewport({ width, height });
    await prepare?.(page);
    const { origin } = new URL(address);
    // A console lets in whoever opens the address that it printed.
    if (tokens.has(origin)) {
      await page.goto(`${origin}/#token=${tokens.get(origin)}`);
      // A change of the part behind the # alone would load no page.
      await page.waitForFunction(() => location.hash === "");
    }
    await page.goto(address);
    return visitor;
  }

  /** Opens an address in another tab of the same visitor. */
  async tab(t, address) {
    const tab = new Visitor(this.name, await this.page.browserContext().newPage());
    tab.#listen();
    t.after(() => tab.assertQuiet());
    await tab.page.goto(address);
    return tab;
  }

  /** From now on requests may fail: the server is about to refuse something, or to go away. */
  expectFailures() {
    this.#expected.push(OF_THE_NETWORK);
  }

  /** From now on the page's policy may block something; Firefox reports that with a delay. */
  expectBlocks() {
    this.#expected.push(OF_THE_POLICY);
  }

  /** @throws if anything went wrong in the page */
  assertQuiet() {
    assert.deepEqual(this.problems, [], `${this.name} reports nothing`);
  }

  #listen() {
    const { page, problems } = this;
    const report = (text) => {
      if (!this.#expected.some((pattern) => pattern.test(text))) problems.push(text);
    };
    page.on("console", (message) => {
      if (message.type() === "error") report(message.text());
    });
    page.on("pageerror", (error) => report(`exception: ${error.message}`));
    page.on("dialog", async (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
  }

  /** The page's address as the page itself knows it: the browser tells of a new one only later. */
  address() {
    return this.page.evaluate(() => location.href);
  }

  /** Waits for the element of this role and name (a text, or a RegExp), below `within` if that is given. */
  async find(role, name, within) {
    const pattern = name instanceof RegExp ? { source: name.source, flags: name.flags } : name;
    let handle;
    const look = async () => {
      const scope = within ?? (await this.page.$("body"));
      const found = await scope?.evaluateHandle(findByRole, role, pattern);
      handle = found?.asElement() ?? null;
      return handle !== null;
    };
    await until(
      () => (within === undefined ? onceLoaded(look, false) : look()),
      async () => `${this.name} finds ${role} ${name}; the page says: ${await this.text()}`,
    );
    return handle;
  }

  /** Whether there is such an element now. */
  async has(role, name) {
    const pattern = name instanceof RegExp ? { source: name.source, flags: name.flags } : name;
    const body = await this.page.$("body");
    return (await body.evaluateHandle(findByRole, role, pattern)).asElement() !== null;
  }

  async press(role, name, within) {
    await (await this.find(role, name, within)).click();
  }

  /** Replaces what is in a field. */
  async fill(name, text, within) {
    const field = await this.find("textbox", name, within);
    await field.evaluate((element) => element.select?.());
    await field.type(text);
  }

  async choose(name, value) {
    const handle = await this.find("combobox", name);
    await handle.select(value);
  }

  /** The text of the page, or of an element. */
  async text(of) {
    const read = async () => (await (of ?? (await this.page.$("body")))?.evaluate(textOf)) ?? "";
    return of === undefined ? onceLoaded(read, "") : read();
  }

  /** Waits until the page's text has that (a text, or a RegExp). */
  async reads(wanted, of) {
    const has = (text) => (wanted instanceof RegExp ? wanted.test(text) : text.includes(wanted));
    await until(
      async () => has(await this.text(of)),
      async () => `${this.name} reads ${wanted}; the page says: ${await this.text(of)}`,
    );
  }

  /** Waits until the page's connection is open, over this transport if one is named. */
  async connected(transport) {
    const wanted = transport === undefined ? "" : `[data-transport="${transport}"]`;
    await until(
      () => this.page.$(`[data-state="open"]${wanted}`),
      async () => `${this.name} is connected over ${transport}; the page says: ${await this.text()}`,
    );
  }
}
