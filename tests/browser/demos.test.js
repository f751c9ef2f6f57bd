// The three demos over each transport, in each browser, and several browsers at once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inEachBrowser, testIn } from "./browsers.js";
import { bid, demo, enterChat, offer, register, say, TRANSPORTS, ticks } from "./demos.js";
import { Peer } from "./peer.js";
import { serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

inEachBrowser("each demo", demos, { concurrency: TRANSPORTS.length });

function demos(name) {
  const shared = serveForAll();

  for (const transport of TRANSPORTS) {
    test(`${name} over ${transport}: ticker, chat, auction house`, async (t) => {
      const { server } = shared;
      // Names have 24 characters at most.
      const who = `${name.slice(0, 2)}-${transport}`;
      const visitor = await Visitor.open(t, name, demo(server.base, "ticker", transport));
      await visitor.connected(transport);
      await ticks(visitor);
      await visitor.reads(/Lost without a word\s*0/);
      await visitor.reads(/Latest message\s*[\d.]+\s?(µs|ms|s)/);

      await visitor.page.goto(demo(server.base, "chat", transport));
      const log = await enterChat(visitor, who);
      await visitor.connected(transport);
      const peer = new Peer(server);
      await peer.enter(`peer-${who}`);
      peer.stay(t);
      await visitor.reads(`peer-${who} joined`, log);
      await peer.say(`hello, ${who}`);
      await visitor.reads(`hello, ${who}`, log);
      await say(visitor, "hello yourself");
      await visitor.reads(/hello yourself back in/, log);
      await peer.tell(who, "in private");
      await visitor.press("link", new RegExp(`^peer-${who}`), await visitor.find("navigation", "Conversations"));
      await visitor.reads("in private", await visitor.find("log", `Messages, peer-${who}`));

      await visitor.page.goto(demo(server.base, "auction", transport));
      await visitor.connected(transport);
      await register(visitor, who);
      await peer.register(`owner-${who}`);
      const id = await peer.offer(`lamp of ${who}`);
      await visitor.press("link", `lamp of ${who}`);
      await bid(visitor, "2.50");
      await visitor.reads("You lead with");
      const rival = new Peer(server);
      await rival.register(`rival-${who}`);
      await rival.bid(id, 300);
      await visitor.reads(`You were outbid on lamp of ${who}`);
      await visitor.reads(/€3\.00|3[.,]00\s?€/);
    });
  }
}

describe("several browsers in one demo", () => {
  const shared = serveForAll();

  testIn("firefox", "two browsers in one auction: a bid in one appears in the other", async (t) => {
    const address = `${shared.server.base}/demos/auction`;
    const [ada, bob] = await Promise.all([
      Visitor.open(t, "chromium", address),
      Visitor.open(t, "firefox", address),
    ]);
    await Promise.all([register(ada, "ada"), register(bob, "bob")]);
    await offer(ada, "Sextant", "brass, in its box");
    await bob.press("link", "Sextant");
    await bob.reads("brass, in its box");
    await bid(bob, "5");
    await bob.reads("You lead");
    await ada.reads("bob, 1 bid");
    const carol = await Visitor.open(t, "chromium", address);
    await register(carol, "carol");
    await carol.press("link", "Sextant");
    await bid(carol, "6.25");
    await bob.reads("You were outbid on Sextant");
    await ada.reads("carol, 2 bids");
    assert.equal(await bob.has("button", "Remove this item"), false, "only the owner removes it");
    await ada.press("button", "Remove this item");
    await ada.press("button", "Yes, remove it");
    await bob.reads("There is no such item, or it was removed.");
  });

  testIn("firefox", "two browsers in one chat: names are unique, and who leaves is gone", async (t) => {
    const address = `${shared.server.base}/demos/chat`;
    const [one, two] = await Promise.all([
      Visitor.open(t, "chromium", address),
      Visitor.open(t, "firefox", address),
    ]);
    const log = await enterChat(one, "Grace");
    two.expectFailures();
    await two.fill("Your name", "grace");
    await two.press("button", "Enter");
    await two.reads("Somebody here is called grace");
    await enterChat(two, "Alan");
    await two.reads(/Alan\s+you/);
    await one.reads("Alan joined", log);
    await two.press("button", "Leave the chat");
    await one.reads("Alan left", log);
  });
});
