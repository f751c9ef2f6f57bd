// The auction house where the network or the server goes away: nothing that was committed is lost, who was outbid is told,
// and what a restarted server has kept is there again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TcpProxy, until } from "../foreign/harness.js";
import { inEachBrowser, testIn } from "./browsers.js";
import { bid, demo, goOffline, noticesTheEnd, offer, register } from "./demos.js";
import { Peer } from "./peer.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";

/** An owner who has offered a globe, and a rival. */
async function rivals(server) {
  const [owner, rival] = [new Peer(server), new Peer(server)];
  await owner.register("owner");
  await rival.register("rival");
  return { owner, rival, globe: await owner.offer("Globe") };
}

/** Makes the visitor an account and the first bidder. */
async function leadsOnGlobe(visitor) {
  await register(visitor, "ada");
  await visitor.press("link", "Globe");
  await bid(visitor, "4");
  await visitor.reads("You lead with");
}

inEachBrowser("the auction house", auction, { concurrency: true });

function auction(name) {
  test(`${name}: bids that were made while one was offline are there when one is back`, async (t) => {
    const server = await serve(t);
    const proxy = await TcpProxy.start(t, server.port);
    const visitor = await Visitor.open(t, name, `${proxy.base}/demos/auction`);
    const { owner, rival, globe } = await rivals(server);
    await leadsOnGlobe(visitor);
    const goOnline = await goOffline(visitor, proxy);
    await rival.bid(globe, 500);
    await owner.bid(globe, 600);
    await rival.bid(globe, 700);
    await owner.offer("Lamp");
    assert.doesNotMatch(await visitor.text(), /€7\.00/, "nothing of it is known before");
    await goOnline();
    await visitor.connected();
    await visitor.reads("You were outbid on Globe: rival bids €7.00.");
    await visitor.reads("rival, 4 bids");
    // The history as well, and one's own bid in it.
    await visitor.reads(/€7\.00[^]*€6\.00[^]*€5\.00[^]*ada[^]*€4\.00/);
    await bid(visitor, "8");
    await visitor.reads("You lead with €8.00.");
    await visitor.press("link", "← All items");
    await visitor.find("link", "Lamp");
    assert.equal(await visitor.has("link", "Globe"), true);
  });

  test(`${name}: a restarted server has kept items, bids and the session in its database`, async (t) => {
    const server = await serve(t);
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    const { globe } = await rivals(server);
    await leadsOnGlobe(visitor);
    visitor.expectFailures();
    await server.kill();
    await noticesTheEnd(visitor);
    const restarted = await serve(t, { port: server.port, like: server });
    const late = new Peer(restarted);
    await late.register("late");
    await late.bid(globe, 500);
    await visitor.connected();
    await visitor.reads("You were outbid on Globe");
    await bid(visitor, "6");
    await visitor.reads("You lead with €6.00.");
    await visitor.reads("ada, 3 bids");
    assert.doesNotMatch(await visitor.text(), /another house/);
    await visitor.page.reload();
    await visitor.reads("You are ada.");
    await visitor.reads(/€6\.00[^]*€5\.00[^]*€4\.00/);
  });

  test(`${name}: a restarted server without a database is told to be another house`, async (t) => {
    const server = await serve(t, { database: "sqlite::memory:" });
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    await rivals(server);
    await leadsOnGlobe(visitor);
    visitor.expectFailures();
    await server.kill();
    await noticesTheEnd(visitor);
    await serve(t, { port: server.port, like: server, database: "sqlite::memory:" });
    await visitor.connected();
    await visitor.reads("This is another house than before");
    await visitor.reads("Your session has ended.");
    await visitor.reads("There is no such item, or it was removed.");
    await register(visitor, "ada");
    await visitor.press("link", "← All items");
    await offer(visitor, "Sextant", "of the new house");
    await bid(visitor, "4");
    await visitor.reads("You lead with €4.00.");
  });
}

testIn("firefox", "two browsers bid against each other over connections that are cut: nothing is lost, the outbid are told", async (t) => {
  const server = await serve(t);
  const bidders = await Promise.all(
    [
      ["chromium", "ada", "sse"],
      ["firefox", "bob", "websocket"],
    ].map(async ([name, account, transport]) => {
      const proxy = await TcpProxy.start(t, server.port);
      const visitor = await Visitor.open(t, name, demo(proxy.base, "auction", transport));
      await register(visitor, account);
      return { visitor, proxy, account };
    }),
  );
  await rivals(server);
  for (const { visitor } of bidders) {
    visitor.expectFailures();
    await visitor.press("link", "Globe");
  }
  for (let number = 1; number <= 8; number++) {
    const [leader, other] = number % 2 === 1 ? bidders : bidders.toReversed();
    // The bid comes while the other one's connection is cut in the middle of a message, and stays cut until it is taken.
    other.proxy.cutAfter(40);
    await bid(leader.visitor, `${number + 2}`);
    await leader.visitor.reads(`You lead with €${number + 2}.00.`);
    await until(() => other.proxy.isCut, "the connection is cut");
    other.proxy.restore();
    await other.visitor.reads(`${leader.account}, ${number} bid`);
    if (number > 1) {
      await other.visitor.reads(`You were outbid on Globe: ${leader.account} bids €${number + 2}.00.`);
    }
  }
  const bids = [8, 7, 6, 5, 4, 3, 2, 1].map((number) => [
    `${number}`,
    number % 2 === 1 ? "ada" : "bob",
    `€${number + 2}.00`,
  ]);
  for (const { visitor } of bidders) {
    await visitor.reads(/Bidder[^]*€10\.00[^]*€3\.00/);
    const rows = await visitor.page.$$eval("tbody tr", (rows) => rows.map((row) => row.innerText.split("\t")));
    assert.deepEqual(rows.map((cells) => cells.slice(0, 3)), bids);
  }
});
