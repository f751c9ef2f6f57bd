import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SERVER_CODES } from "./errors.ts";

test("the server's codes are those of the table", () => {
  const table = readFileSync(new URL("../../../schema/codes.toml", import.meta.url), "utf8");
  const names = [...table.matchAll(/^\[\[error\]\]\nname = "(.+)"$/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(SERVER_CODES).toEqual(names);
});
