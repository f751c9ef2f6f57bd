// The decoder of event streams that load and foreign subjects use reads what `eventsource-parser` reads.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { anyStream, cut, eventsOf, randomOf, STREAMS } from "./event-streams.js";

const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
const READER = `${TARGET}/debug/examples/events`;
const RANDOM = 3000;

test("event streams are read as eventsource-parser reads them, however they are cut", () => {
  assert.ok(existsSync(READER), `${READER} is not there: cargo build -p pushlab-wire --example events`);
  const random = randomOf(7);
  const streams = [...STREAMS, ...Array.from({ length: RANDOM }, () => anyStream(random))];
  const lines = streams.map((text) => `${JSON.stringify(cut(random, text))}\n`);
  const options = { input: lines.join(""), encoding: "utf8", maxBuffer: 1 << 28 };
  const answers = execFileSync(READER, [], options).trimEnd().split("\n");
  assert.equal(answers.length, streams.length);
  let events = 0;
  answers.forEach((answer, at) => {
    const expected = eventsOf(streams[at]);
    const read = JSON.parse(answer);
    // Of an id that came in an earlier event, the parser leaves it to its caller to remember it.
    const own = read.map(([id, ...rest], n) => [expected[n]?.[0] === undefined ? undefined : id, ...rest]);
    assert.deepEqual(own, expected, JSON.stringify(streams[at].slice(0, 2000)));
    events += expected.length;
  });
  assert.ok(events > RANDOM, `${events} events`);
});
