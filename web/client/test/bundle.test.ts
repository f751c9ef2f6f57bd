import { readFileSync } from "node:fs";
import vm from "node:vm";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { bundles } from "./bundles.ts";

/** The most that the client may weigh, and the most that sharing among tabs may add, compressed. */
const MAX_GZIPPED_BYTES = 8 * 1024;
const MAX_SHARED_BYTES = 2 * 1024;

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const PROJECT = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");

const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`;

/** The sizes, minified and compressed, in the row of the README's table that begins with a file. */
function published(file: string): string[] {
  const row = README.split("\n").find((line) => line.startsWith(`| \`${file}\``));
  return (
    row
      ?.split("|")
      .slice(2, 4)
      .map((cell) => cell.trim()) ?? []
  );
}

test("is as small as the README says, and a script tag makes a global of it", async () => {
  const files = await bundles();
  expect([...files.keys()].sort()).toEqual(["pushlab.iife.js", "pushlab.js", "shared.js"]);
  const gzipped = (name: string) => {
    const code = files.get(name) ?? "";
    const bytes = Buffer.byteLength(code);
    const packed = gzipSync(code, { level: 9 }).length;
    console.log(`${name}: ${bytes} bytes minified, ${packed} gzipped`);
    expect(published(name), "web/client/README.md").toEqual([kib(bytes), kib(packed)]);
    return packed;
  };
  expect(gzipped("pushlab.js")).toBeLessThanOrEqual(MAX_GZIPPED_BYTES);
  expect(PROJECT).toContain(`takes less than ${MAX_GZIPPED_BYTES / 1024} KiB gzipped`);
  expect(gzipped("pushlab.iife.js")).toBeLessThanOrEqual(MAX_GZIPPED_BYTES);
  expect(gzipped("shared.js")).toBeLessThanOrEqual(MAX_SHARED_BYTES);
  const page = vm.createContext({ EventTarget, Event, URL });
  vm.runInContext(files.get("pushlab.iife.js") ?? "", page);
  const types = vm.runInContext("typeof Pushlab.connect + typeof Pushlab.PushlabError", page);
  expect(types).toBe("functionfunction");
});
