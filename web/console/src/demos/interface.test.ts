import { expect, test } from "vitest";
import { readSent } from "./interface";

test.each([
  [[7, [["ABC", 100]], 1_700_000_000_000.25], 1_700_000_000_000.25],
  [{ kind: "said", sent_ms: 5 }, 5],
  [[7, []], null],
  [{ kind: "reload" }, null],
  [{ sent_ms: "5" }, null],
  [null, null],
  ["text", null],
])("%j was published at %s", (data, sent) => {
  expect(readSent(data)).toBe(sent);
});
