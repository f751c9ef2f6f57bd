// Reload, Back, and a second tab: each demo keeps what one has chosen and done, and tabs do not disturb each other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import { bid, enterChat, register, say, ticks } from "./demos.js";
import { Peer } from "./peer.js";
import { serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

inEachBrowser("tabs", (name) => {
  const shared = serveForAll();

  test(`${name}: the ticker keeps what is in the chart, and two tabs tick alike`, async (t) => {
    const address = `${shared.server.base}/demos/ticker?transport=sse`;
    const visitor = await Visitor.open(t, name, address);
    await ticks(visitor);
    await visitor.press("checkbox", /^ALPN/);
    await visitor.press("checkbox", /^QRRY/);
    const isChosen = async (tab, stock) => {
      const box = await tab.find("checkbox", new RegExp(`^${stock}`));
      return box.evaluate((element) => element.checked);
    };
    const keeps = async (tab) => {
      await tab.connected("sse");
      await ticks(tab);
      assert.deepEqual([await isChosen(tab, "ALPN"), await isChosen(tab, "QRRY")], [false, true]);
    };
    await until(async () => (await visitor.address()).includes("QRRY"), "the address has the choice");
    await visitor.page.reload();
    await keeps(visitor);
    await visitor.press("link", "Demos");
    await visitor.find("heading", "Demos");
    await visitor.page.goBack();
    await keeps(visitor);
    const tab = await visitor.tab(t, await visitor.address());
    await keeps(tab);
    await visitor.reads(/Lost without a word\s*0/);
    await tab.reads(/Lost without a word\s*0/);
  });

  test(`${name}: who chats in two tabs is two people, and the one that is closed leaves`, async (t) => {
    const { server } = shared;
    const address = `${server.base}/demos/chat`;
    const [first, second] = [`${name}-one`, `${name}-two`];
    const visitor = await Visitor.open(t, name, address);
    const log = await enterChat(visitor, first);
    const tab = await visitor.tab(t, address);
    tab.expectFailures();
    await tab.fill("Your name", first);
    await tab.press("button", "Enter");
    await tab.reads(`Somebody here is called ${first}`);
    await enterChat(tab, second);
    await visitor.reads(`${second} joined`, log);
    await say(tab, "from the other tab");
    await visitor.reads("from the other tab", log);
    await tab.page.reload();
    await tab.reads("from the other tab");
    assert.equal(await tab.has("link", first), true, "both are there");
    await tab.page.close({ runBeforeUnload: true });
    await visitor.reads(new RegExp(`${second} left\\s*$`), log);
    await visitor.page.bringToFront();
    await say(visitor, "still here");
    await visitor.reads(/still here back in/, log);
  });

  test(`${name}: two tabs of the auction house are one account`, async (t) => {
    const { server } = shared;
    const address = `${server.base}/demos/auction`;
    const visitor = await Visitor.open(t, name, address);
    const peer = new Peer(server);
    await peer.register(`owner-${name}`);
    await peer.offer(`Globe of ${name}`);
    await register(visitor, name);
    await visitor.press("link", `Globe of ${name}`);
    await visitor.find("textbox", "Your bid, €");
    const tab = await visitor.tab(t, await visitor.address());
    await tab.reads(`You are ${name}.`);
    await bid(tab, "4");
    await tab.reads("You lead with €4.00.");
    await visitor.reads(`${name}, 1 bid`);
    await visitor.reads("You lead");
    assert.doesNotMatch(await visitor.text(), /outbid/);
    await tab.press("button", "Log out");
    await tab.find("button", "Log in");
    visitor.expectFailures();
    await visitor.page.bringToFront();
    await bid(visitor, "5");
    await visitor.reads("Your session has ended.");
    await visitor.page.reload();
    await visitor.find("button", "Log in");
    await visitor.reads(`${name}, 1 bid`);
  });
});
