import { expect, test } from "vitest";
import { formatDuration } from "./duration";

test.each([
  [0, "1 s"],
  [59.4, "59 s"],
  [61, "1 min"],
  [420, "7 min"],
  [3599, "1 h"],
  [4800, "1 h 20 min"],
  [86_400, "24 h"],
])("%d s is %s", (seconds, text) => {
  expect(formatDuration(seconds).replaceAll("\u202f", " ")).toBe(text);
});
