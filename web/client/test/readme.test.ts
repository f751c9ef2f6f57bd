import { readFileSync } from "node:fs";
import vm from "node:vm";
import { expect, test } from "vitest";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");

test("after a gap, the example fetches its state again, at a random time, and leaves the page as it is", async () => {
  const [, example] = /```js\nimport .+\n([\s\S]+?)```/.exec(README) ?? [];
  const connection = Object.assign(new EventTarget(), { publish: async () => {}, close: () => {} });
  const asked: string[] = [];
  const delays: number[] = [];
  let reloads = 0;
  const page = {
    connect: () => connection,
    console: { log: () => {} },
    fetch: async (address: string) => {
      asked.push(address);
      return Response.json([]);
    },
    location: { reload: () => reloads++ },
    setTimeout: (then: () => void, delay: number) => {
      delays.push(delay);
      then();
    },
  };
  await vm.runInNewContext(`(async () => {${example}})()`, page);
  const before = asked.length;
  for (let count = 0; count < 3; count++) connection.dispatchEvent(new Event("gap"));
  expect(reloads).toBe(0);
  expect(asked.length).toBe(before + 3);
  expect(new Set(delays).size).toBe(3);
});
