import { expect, test } from "vitest";
import { type Place, personPlace, roomPlace } from "./chat-state";
import { placeHref, readPlaceOf } from "./place-href";

const read = (href: string, joined: string[] = []) =>
  readPlaceOf(new URL(href, "http://localhost").searchParams, joined);

test("a conversation survives the address", () => {
  const places: Place[] = [roomPlace("tea-room"), personPlace("Ola & Kari's"), personPlace("a:b")];
  for (const place of places) expect(read(placeHref(place, "sse"))).toBe(place);
  expect(placeHref(roomPlace("tea"), "sse")).toBe("/demos/chat?room=tea&transport=sse");
  expect(placeHref(personPlace("bo"), null)).toBe("/demos/chat?with=bo");
});

test("without a name in it, it is the first room that one is in", () => {
  expect(read("/demos/chat", ["lobby", "tea"])).toBe("room:lobby");
  expect(read("/demos/chat?room=", ["lobby"])).toBe("room:lobby");
  expect(read("/demos/chat")).toBeNull();
});
