// Scripts in names, messages, items and addresses are text and nothing else; what another site asks for is refused. No page
// opens a dialog or reports an error: the policy of the pages would report a script that it stopped.

import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import { describe, test } from "node:test";
import { BROWSERS } from "./browsers.js";
import { enterChat, offer, register, say } from "./demos.js";
import { Peer } from "./peer.js";
import { serveForAll } from "./serve.js";
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

describe("hostile input", () => {
  const shared = serveForAll();

  for (const name of BROWSERS) {
    test(`${name}: scripts in what is said are text`, async (t) => {
      const { server } = shared;
      const visitor = await Visitor.open(t, name, `${server.base}/demos/chat`);
      const log = await enterChat(visitor, `Ada of ${name}`);
      const peer = new Peer(server);
      await peer.enter(`peer of ${name}`);
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

    test(`${name}: another site cannot act for who is logged in`, async (t) => {
      const { server } = shared;
      const peer = new Peer(server);
      await peer.register(`owner-${name}`);
      const id = await peer.offer(`vase of ${name}`);
      const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
      await register(visitor, `eve-${name}`);
      const site = http.createServer((_, response) => {
        response.writeHead(200, { "content-type": "text/html" });
        response.end("<!doctype html><title>Another site</title>");
      });
      site.listen(0, "127.0.0.1");
      t.after(() => site.close());
      await once(site, "listening");
      visitor.expectFailures();
      await visitor.page.goto(`http://localhost:${site.address().port}/`);
      const path = `${server.base}/api/demos/auction/items/${id}/bids`;
      const outcomes = await visitor.page.evaluate(async (path) => {
        const body = JSON.stringify({ amount_cents: 500 });
        const common = { method: "POST", body, credentials: "include" };
        const tries = [
          { ...common, mode: "no-cors" },
          { ...common, headers: { "content-type": "application/json" } },
          { ...common, headers: { "content-type": "text/plain" } },
        ];
        const ask = (init) => fetch(path, init).then(({ ok }) => ok, () => false);
        return Promise.all(tries.map(ask));
      }, path);
      assert.deepEqual(outcomes, [false, false, false]);
      const item = (await peer.items()).find((one) => one.id === id);
      assert.equal(item.bids, 0, "no bid was taken");
    });
  }
});
