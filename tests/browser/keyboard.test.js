// The demos with the keyboard alone: what is pressed may go, the focus may not, and what was done is told.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../foreign/harness.js";
import { inEachBrowser, testIn } from "./browsers.js";
import { PASSWORD, Peer } from "./peer.js";
import { serveForAll } from "./serve.js";
import { Visitor } from "./visitor.js";

/** Waits until the focus is on an element whose text, or value, begins so. */
async function focused(visitor, wanted) {
  const text = () =>
    visitor.page.evaluate(() => {
      const { tagName, value, textContent } = document.activeElement ?? document.body;
      return tagName === "BODY" ? "nothing" : (value || textContent || tagName).trim();
    });
  let found;
  await until(
    async () => {
      found = await text();
      return found.startsWith(wanted);
    },
    () => `${visitor.name}: ${JSON.stringify(wanted)} has the focus, not ${JSON.stringify(found)}`,
  );
}

/** Presses a button or link with the key that a person would. */
async function enter(visitor, role, name) {
  await (await visitor.find(role, name)).focus();
  await visitor.page.keyboard.press("Enter");
}

async function type(visitor, name, text) {
  await (await visitor.find("textbox", name)).focus();
  await visitor.page.keyboard.type(text);
}

inEachBrowser("the keyboard alone", (name) => {
  const shared = serveForAll();

  test(`${name}: chat`, async (t) => {
    const { server } = shared;
    const peer = new Peer(server);
    await peer.enter(`host of ${name}`, `attic-${name}`);
    peer.stay(t);
    const visitor = await Visitor.open(t, name, `${server.base}/demos/chat`);
    await type(visitor, "Your name", `guest of ${name}`);
    await visitor.page.keyboard.press("Enter");
    await focused(visitor, "lobby");
    await enter(visitor, "button", `Join attic-${name}`);
    await focused(visitor, `attic-${name}`);
    await visitor.find("status", `You are in attic-${name} now.`);
    await enter(visitor, "button", "Leave the room");
    await focused(visitor, "lobby");
    await visitor.find("status", `You have left attic-${name}.`);
    await enter(visitor, "button", "Leave the chat");
    await focused(visitor, "Choose a name");
  });

  test(`${name}: auction house`, async (t) => {
    const { server } = shared;
    const visitor = await Visitor.open(t, name, `${server.base}/demos/auction`);
    const { keyboard } = visitor.page;
    await enter(visitor, "button", "I have no account yet");
    await type(visitor, "Name", `owner-${name}`);
    await type(visitor, "Password", PASSWORD);
    await keyboard.press("Enter");
    await focused(visitor, `You are owner-${name}`);
    await enter(visitor, "link", "Offer something");
    await focused(visitor, "Offer something");
    await type(visitor, "Name", "Kite");
    await keyboard.press("Enter");
    await focused(visitor, "Kite");
    await enter(visitor, "button", "Remove this item");
    await focused(visitor, "No");
    await keyboard.press("Enter");
    await focused(visitor, "Remove this item");
    await keyboard.press("Enter");
    await focused(visitor, "No");
    await keyboard.down("Shift");
    await keyboard.press("Tab");
    await keyboard.up("Shift");
    await keyboard.press("Enter");
    await focused(visitor, "Items");
    await visitor.find("status", `owner-${name} has removed Kite.`);
    await enter(visitor, "button", "Log out");
    await until(
      () => visitor.page.evaluate(() => document.activeElement?.getAttribute("name") === "name"),
      "the name's field has the focus",
    );
  });
});

describe("the keyboard on the console", () => {
  const shared = serveForAll();

  testIn("chromium", "the list of results", async (t) => {
    const visitor = await Visitor.open(t, "chromium", `${shared.server.base}/`);
    await visitor.find("heading", "Results");
    assert.ok(await visitor.has("status", "Choose two to compare."), "what is still to choose is told");
  });
});
