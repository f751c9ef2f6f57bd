import { expect, test } from "vitest";
import { readFrame, readReply } from "./frames.ts";

test("a reply is frames behind which stands a cursor", () => {
  const frames = [
    ["gap", "a.1", "b.2"],
    ["msg", "a", "b.3", { x: 1 }],
    ["cursor", "b.4"],
  ];
  expect(readReply(JSON.stringify(frames))).toEqual(frames);
  for (const text of [
    "",
    "{}",
    "[]",
    '[["msg","a","b.3",1]]',
    '[["cursor","b.4"],["gap","a","b"]]',
    '["cursor","b.4"]',
  ]) {
    expect(() => readReply(text), text).toThrow(expect.objectContaining({ code: "bad-frame" }));
  }
});

test("an error may be about one channel; no other frame has less or more than it should", () => {
  for (const frame of [
    ["error", "forbidden", "text"],
    ["error", "forbidden", "text", "a"],
    ["token-expires", 30],
    ["auth", 600],
  ]) {
    expect(readFrame(frame, "")).toEqual(frame);
  }
  for (const frame of [
    ["error", "forbidden"],
    ["error", "forbidden", "text", 1],
    ["error", "forbidden", "text", "a", "b"],
    ["echo"],
    ["msg", "a", "e.1"],
    ["auth"],
    ["auth", 1, 2],
    ["token-expires", "30"],
  ]) {
    expect(() => readFrame(frame, ""), `${frame}`).toThrow("not a frame");
  }
});
