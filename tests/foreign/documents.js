// The examples of docs, for tests that run them. tests/deployment and tests/monitoring use them too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** The first example in a document of docs, or the first behind one of its headings. */
export function example(document, heading) {
  let text = readFileSync(new URL(`../../docs/${document}`, import.meta.url), "utf8");
  if (heading !== undefined) [, text] = text.split(`\n## ${heading}\n`);
  assert.ok(text, `docs/${document} has a section "${heading}"`);
  return /```\w*\n(.*?)```/s.exec(text)[1];
}

/** Puts values into the places of others, each of which must be there. */
export function put(text, values) {
  for (const [from, to] of values) {
    assert.ok(text.includes(from), `the example says ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}
