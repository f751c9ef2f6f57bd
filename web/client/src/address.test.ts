import { expect, test } from "vitest";
import { addressOf, readBase } from "./address.ts";

test.each([
  ["http://host/#/room/7", undefined, "http://host/ws?channel=a"],
  ["ws://host#", undefined, "http://host/ws?channel=a"],
  ["https://host/push/?key=1#", undefined, "https://host/push/ws?key=1&channel=a"],
  ["#/room/7", "https://host/page?tab=2#top", "https://host/page/ws?tab=2&channel=a"],
])("%j, from the page %j, is asked as %s", (url, page, address) => {
  const base = readBase(url, page);
  expect(addressOf(base, "ws", ["a"], {})).toBe(address);
  // Tabs share by it.
  expect(base.href).not.toContain("#");
});

test.each([
  ["https://ada:secret@push.example", undefined],
  ["https://secret@push.example", undefined],
  ["https://:secret@push.example", undefined],
  ["ftp://ada:secret@push.example", undefined],
  ["/push", "https://ada:secret@push.example"],
])("%j, from the page %j, is refused, not quoted", (url, page) => {
  let text = "nothing";
  try {
    readBase(url, page);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    text = `${(error as Error).stack}`;
  }
  expect(text).toContain("getToken");
  expect(text).not.toContain("secret");
});
