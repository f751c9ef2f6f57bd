// Event streams of every kind (HTML standard, section 9.2), and what `eventsource-parser` reads in them: what the decoders of
// load and client must read too.

import { createParser } from "eventsource-parser";

/** Random numbers from 0 to 1 that follow from a seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pick = (random, list) => list[Math.floor(random() * list.length)];

/** The standard's own examples, and what has been read wrongly before, by somebody. */
export const STREAMS = [
  "data: YHOO\ndata: +2\ndata: 10\n\n",
  ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
  "data\n\ndata\ndata\n\ndata:",
  "data:test\n\ndata: test\n\n",
  "\uFEFFdata: behind a mark of the byte order\n\n",
  "\uFEFF\uFEFFdata: only the first one is none\n\ndata: a\n\n",
  "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
  "id: 1\ndata: a\n\nid: with\0nul\ndata: b\n\nid:\ndata: c\n\ndata: d\n\n",
  "data: a\rdata: b\r\rdata: c\r\n\r\ndata: d\n\r\n",
  "event: only a type\n\ndata: of type message\n\n",
  "data: one\nevent: late\nid: 9\n\n",
  "retry: 10\ndata: a\n\nretry: x\ndata: b\n\n",
  "Data: unknown\ndata : unknown too\n data: and this\n\ndata: known\n\n",
  "data: a:b: c\n\ndata:: d\n\n:data: e\n\n::\n\n",
  "data: without an end",
  "data: without an empty line\n",
  "data: é😀\u2028\u0085 no ends of lines\n\n",
  `data: ${"long ".repeat(20_000)}\n\n`,
  "\n\n\n\r\r\n\n",
];

/** A stream of lines at random. */
export function anyStream(random) {
  const end = () => pick(random, ["\n", "\n", "\r\n", "\r"]);
  const value = () => pick(random, ["", "a", " a", "  a ", "a: b", ":", "é😀", "1", "\t", "{}", "a\u2028b"]);
  const name = () => pick(random, ["data", "data", "data", "id", "event", "retry", "", "x", "Data", "data "]);
  const line = () => pick(random, [() => `${name()}:${value()}`, () => `${name()}: ${value()}`, name, () => "", () => ""])();
  const lines = Array.from({ length: 1 + Math.floor(random() * 30) }, () => line() + end());
  return lines.join("");
}

/** A text cut into pieces at random, between characters. */
export function cut(random, text) {
  const pieces = [];
  let rest = Array.from(text);
  while (rest.length > 0) {
    const size = 1 + Math.floor(random() * pick(random, [1, 5, 50, rest.length]));
    pieces.push(rest.slice(0, size).join(""));
    rest = rest.slice(size);
  }
  return pieces;
}

/** Its events by `eventsource-parser`: `[id, name, data]`, where the id is undefined if the event has none of its own. */
export function eventsOf(text) {
  const events = [];
  const parser = createParser({ onEvent: ({ id, event, data }) => events.push([id, event ?? "message", data]) });
  // A mark of the byte order is taken off by whoever decodes the bytes. A return at the end waits for what comes behind it: the
  // beginning of a comment changes nothing.
  parser.feed(`${text.replace(/^\uFEFF/, "")}${text.endsWith("\r") ? ":" : ""}`);
  return events;
}
