import { expect, test } from "vitest";
import { type ChatMemory, recall, remember } from "./chat-memory";

function storage(full = false) {
  const values = new Map<string, string>();
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (full) throw new DOMException("full", "QuotaExceededError");
      values.set(key, value);
    },
    values,
  };
}

const MEMORY: ChatMemory = {
  name: "ann",
  token: "00",
  hasLeft: true,
  cursor: "a.1",
  joined: ["lobby"],
  conversations: { "room:lobby": { entries: [], unread: 1, isCut: false } },
};

test("what was kept is there after the page was loaded anew, until it is forgotten", () => {
  const tab = storage();
  remember(tab, MEMORY);
  expect(recall(tab)).toEqual(MEMORY);
  remember(tab, null);
  expect(recall(tab)).toBeNull();
});

test("what cannot be read is nothing, and what cannot be kept is let go", () => {
  const tab = storage();
  expect(recall(tab)).toBeNull();
  remember(tab, MEMORY);
  for (const key of tab.values.keys()) {
    for (const broken of ["{", "[]", '{"name":1}', '"ann"']) {
      tab.values.set(key, broken);
      expect(recall(tab), broken).toBeNull();
    }
  }
  expect(() => remember(storage(true), MEMORY)).not.toThrow();
});
