import { expect, test } from "vitest";
import { readReply } from "./frames.ts";

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
