// Reload, back, a network that goes away and comes back, and a server that is restarted: what history covers is not lost,
// and what it does not cover is told.

import { test } from "node:test";
import { TcpProxy } from "../foreign/harness.js";
import { inEachBrowser } from "./browsers.js";
import {
  bid,
  demo,
  enterChat,
  goOffline,
  noticesTheEnd,
  register,
  say,
  TRANSPORTS,
  ticks,
} from "./demos.js";
import { Peer } from "./peer.js";
import { serve } from "./serve.js";
import { Visitor } from "./visitor.js";

inEachBrowser("the network", network, { concurrency: true });

function network(name) {
  test(`${name}: reload and Back keep the chat, and bring what was said meanwhile`, async (t) => {
    const server = await serve(t);
    const visitor = await Visitor.open(t, name, `${server.base}/demos/chat`);
    const peer = new Peer(server);
    await peer.enter("peer");
    peer.stay(t);
    await visitor.reads("in the chat", await enterChat(visitor, "Ada").then(async (log) => {
      await peer.say("in the chat");
      return log;
    }));
    await visitor.page.reload();
    const log = await visitor.find("log", "Messages, lobby");
    await visitor.reads("in the chat", log);
    await visitor.page.goto("about:blank");
    await peer.say("while nobody looked");
    await visitor.page.goBack();
    await visitor.reads(/in the chat[^]*while nobody looked/, await visitor.find("log", "Messages, lobby"));
    await say(visitor, "back again");
    await visitor.reads(/back again back in/);
  });

  test(`${name}: reload keeps who is logged in and what is shown`, async (t) => {
    const server = await serve(t);
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    const peer = new Peer(server);
    await peer.register("peer");
    await peer.offer("Globe");
    await register(visitor, "ada");
    await visitor.press("link", "Globe");
    await bid(visitor, "4");
    await visitor.reads("You lead with");
    await visitor.page.reload();
    await visitor.find("heading", "Globe");
    await visitor.reads("You are ada.");
    await visitor.reads("You lead");
    await visitor.page.goBack();
    await visitor.find("heading", "Items");
    await visitor.find("link", "Globe");
  });

  test(`${name}: offline and online again, nothing is lost over any transport`, async (t) => {
    const server = await serve(t);
    await Promise.all(TRANSPORTS.map((transport) => losesNothing(t, { name, server, transport })));
  });

  test(`${name}: a restarted server is found again, and what is gone is told`, async (t) => {
    const server = await serve(t);
    const ticker = await Visitor.open(t, name, `${server.base}/demos/ticker`);
    await ticks(ticker);
    const chat = await Visitor.open(t, name, `${server.base}/demos/chat`);
    await enterChat(chat, "Ada");
    await say(chat, "before the restart");
    await chat.reads(/before the restart back in/);
    for (const visitor of [ticker, chat]) visitor.expectFailures();
    await server.kill();
    await Promise.all([ticker, chat].map(noticesTheEnd));
    await serve(t, { port: server.port });
    await ticker.connected();
    await ticks(ticker);
    await ticker.reads("Prices were missed");
    await chat.connected();
    const log = await chat.find("log", "Messages, lobby");
    await chat.reads(/before the restart[^]*Some messages are missing here/, log);
    await say(chat, "after the restart");
    await chat.reads(/after the restart back in/);
  });
}

async function losesNothing(t, { name, server, transport }) {
  const proxy = await TcpProxy.start(t, server.port);
  const visitor = await Visitor.open(t, name, demo(proxy.base, "chat", transport));
  const log = await enterChat(visitor, `Ada ${transport}`);
  await visitor.connected(transport);
  const peer = new Peer(server);
  await peer.enter(`peer ${transport}`);
  peer.stay(t);
  await visitor.reads(`peer ${transport} joined`, log);
  const goOnline = await goOffline(visitor, proxy);
  const said = [1, 2, 3, 4, 5].map((number) => `number ${number} of five, ${transport}.`);
  for (const text of said) await peer.say(text);
  await goOnline();
  await visitor.connected(transport);
  await visitor.reads(new RegExp(said.join("[^]*")), log);
}
