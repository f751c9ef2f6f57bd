// What a visitor does in the demos.

import { until } from "../foreign/harness.js";
import { PASSWORD } from "./peer.js";

export const TRANSPORTS = ["websocket", "sse", "http-streaming", "long-polling", "polling"];

/** The address of a demo over one transport. */
export function demo(base, name, transport) {
  return `${base}/demos/${name}?transport=${transport}`;
}

/** The number of the latest message of the ticker; 0 before there is one. */
export async function tick(visitor) {
  const [, number = "0"] = /the latest is number ([\d\s\u202f]+)/.exec(await visitor.text()) ?? [];
  return Number(number.replace(/\D/g, ""));
}

/** Waits for so many more messages of the ticker. */
export async function ticks(visitor, more = 3) {
  const first = await tick(visitor);
  const seen = new Set([first]);
  await until(
    async () => seen.add(await tick(visitor)).size > more,
    async () => `${visitor.name} sees prices after number ${first}; the page says: ${await visitor.text()}`,
  );
}

/** Comes into the chat under a name and gives what was said in the lobby, an element. */
export async function enterChat(visitor, name) {
  await visitor.fill("Your name", name);
  await visitor.press("button", "Enter");
  return visitor.find("log", "Messages, lobby");
}

export async function say(visitor, text, room = "lobby") {
  await visitor.fill(`Message to ${room}`, text);
  await visitor.press("button", "Send");
}

/** Makes an account and is logged in. */
export async function register(visitor, name) {
  await visitor.press("button", "I have no account yet");
  await visitor.fill("Name", name);
  await visitor.fill("Password", PASSWORD);
  await visitor.press("button", "Register");
  await visitor.reads(`You are ${name}.`);
}

/** Offers something and is shown its page. */
export async function offer(visitor, name, description) {
  await visitor.press("link", "Offer something");
  await visitor.fill("Name", name);
  await visitor.fill("Description", description);
  await visitor.press("button", "Offer it");
  await visitor.find("heading", name);
  await visitor.reads("minimum, no bid yet");
}

/** Takes the network away, and gives how to bring it back. Chromium can be told; for Firefox the proxy cuts. */
export async function goOffline(visitor, proxy) {
  visitor.expectFailures();
  if (visitor.name === "chromium") {
    await visitor.page.setOfflineMode(true);
    await until(() => visitor.page.$('[data-state="offline"]'), "the page knows that it is offline");
    return () => visitor.page.setOfflineMode(false);
  }
  proxy.cut();
  await noticesTheEnd(visitor);
  return () => proxy.restore();
}

/** Waits until the page knows that its connection is gone. */
export async function noticesTheEnd(visitor) {
  await until(async () => (await visitor.page.$('[data-state="open"]')) === null, "the page notices that it is cut");
}

/** Bids for the item whose page is shown. */
export async function bid(visitor, amount) {
  await visitor.fill("Your bid, €", amount);
  await visitor.press("button", "Bid");
}
