import { describe, expect, test, vi } from "vitest";
import { eventsOf } from "../../../tests/foreign/event-streams.js";
import { forSeeds, pick, split } from "../test/random.ts";
import { PushlabError } from "./errors.ts";
import { type Frame, MAX_TEXT_LENGTH } from "./frames.ts";
import { EventStreamDecoder, LineDecoder, type StreamDecoder } from "./stream-decoders.ts";

// To scan what is as long as the true limit would take seconds.
vi.mock("./frames.ts", async (importOriginal) => {
  return { ...(await importOriginal<object>()), MAX_TEXT_LENGTH: 2 ** 18 };
});

const DATA = [null, 0, -1.5e9, "", "é\u2028😀", "\r\n", "</script>", [], {}, { a: [{ b: null }] }];

function anyFrame(random: () => number): Frame {
  const cursor = () => `k3x9a.${Math.floor(random() * 1e6)}`;
  return pick<() => Frame>(random, [
    () => ["msg", pick(random, ["a", "b:c.d-e_f"]), cursor(), pick(random, DATA)],
    () => ["cursor", cursor()],
    () => ["gap", cursor(), cursor()],
    () => ["error", "overloaded", "try: again"],
  ])();
}

function decode(decoder: StreamDecoder, parts: string[]): Frame[] {
  return parts.flatMap((part) => decoder.push(part));
}

/** Without the reconnection times, which stand between events. */
function decodeEvents(parts: string[]): Frame[] {
  return decode(new EventStreamDecoder(), parts).filter(([name]) => name !== "reconnect");
}

/** The frame as an event, in one of the ways that the standard allows. */
function encodeEvent(random: () => number, frame: Frame, end: string): string {
  const space = () => pick(random, ["", " "]);
  const noise = () => pick(random, ["", `: comment${end}`, `retry: 10${end}`, `x${end}`]);
  const [name] = frame;
  if (name === "cursor") return `${noise()}id:${space()}${frame[1]}${end}${noise()}${end}`;
  const id = name === "msg" ? frame[2] : "k3x9a.1";
  const body = name === "msg" ? [name, frame[1], frame[3]] : frame;
  const fields = [`id:${space()}${id}${end}`, `data:${space()}${JSON.stringify(body)}${end}`];
  if (random() < 0.5) fields.reverse();
  return `${noise()}${fields.join(noise())}${end}`;
}

describe("decoding undoes encoding, however the text is parted", () => {
  test("lines", () => {
    forSeeds(300, (random) => {
      const frames = Array.from({ length: 1 + random() * 20 }, () => anyFrame(random));
      const text = frames.map((frame) => `${JSON.stringify(frame)}\n`).join("");
      expect(decode(new LineDecoder(), split(random, text))).toEqual(frames);
    });
  });

  test("event streams", () => {
    forSeeds(500, (random) => {
      const frames = Array.from({ length: 1 + random() * 20 }, () => anyFrame(random));
      const end = pick(random, ["\n", "\r\n", "\r"]);
      const text = frames.map((frame) => encodeEvent(random, frame, end)).join("");
      expect(decodeEvents(split(random, text))).toEqual(frames);
    });
  });
});

test("a reconnection time is a frame, where it is a number", () => {
  const text = "retry: 250\n\nretry:7\nretry:x\nretry\nretry:-1\n\n";
  const expected = [250, 7].map((after) => ["reconnect", after]);
  expect(new EventStreamDecoder().push(text)).toEqual(expected);
});

test("data may stand on several lines", () => {
  const text = 'id:e.1\ndata:["msg","a",\ndata: {"x":1}]\n\n';
  expect(new EventStreamDecoder().push(text)).toEqual([["msg", "a", "e.1", { x: 1 }]]);
});

test("an event without an id keeps the one before, and an event without anything is none", () => {
  const text = 'id:e.1\n\ndata:["error","x","y"]\n\n\n\n:\n\nevent:x\n\nid\n\nid:a\0b\n\n';
  const frames = [
    ["cursor", "e.1"],
    ["error", "x", "y"],
  ];
  expect(new EventStreamDecoder().push(text)).toEqual(frames);
});

test("frames of unknown names are passed over", () => {
  expect(new LineDecoder().push('["new",1,2]\n["cursor","e.1"]\n')).toEqual([["cursor", "e.1"]]);
  expect(new EventStreamDecoder().push('data:["constructor"]\n\n')).toEqual([]);
});

describe("bytes that are no protocol", () => {
  const bad = (work: () => unknown) => {
    try {
      work();
    } catch (error) {
      expect(error).toBeInstanceOf(PushlabError);
      expect((error as PushlabError).code).toBe("bad-frame");
      return;
    }
    throw new Error("it was taken");
  };

  const LINES = [
    "<html>",
    "{}",
    "[]",
    "[1]",
    '["msg"]',
    '["msg","a","e.1"]',
    '["msg","a","",1]',
    '["msg","a","e.1",1,2]',
    '["msg",1,"e.1",1]',
    '["cursor",null]',
    `["cursor","${"x".repeat(65)}"]`,
    '["gap","e.1"]',
    '["pong","1"]',
    '["pong",1e99]',
    '["error","x"]',
    "[".repeat(100_000),
    "[".repeat(100_000) + "]".repeat(100_000),
  ];

  test.each(LINES.map((line) => [line.slice(0, 40), line]))("%s", (_, line) => {
    bad(() => new LineDecoder().push(`${line}\n`));
    if (line !== '["msg","a","e.1"]') bad(() => new EventStreamDecoder().push(`data:${line}\n\n`));
  });

  test("of any kind throw only what they should", () => {
    const pieces = [
      "[",
      "]",
      '"',
      "msg",
      "cursor",
      ",",
      "e.1",
      "\n",
      "\r",
      "data:",
      "id:",
      ":",
      "{",
      "}",
      "\0",
      "9",
      "\ud800",
    ];
    forSeeds(2000, (random) => {
      for (const decoder of [new LineDecoder(), new EventStreamDecoder()]) {
        try {
          for (let count = 0; count < 60; count++) decoder.push(pick(random, pieces));
        } catch (error) {
          expect((error as PushlabError).code).toBe("bad-frame");
        }
      }
    });
  });

  test("without an end are not kept", () => {
    const part = "x".repeat(2 ** 16);
    const feed = (decoder: StreamDecoder, piece: string) => {
      for (let length = 0; length <= MAX_TEXT_LENGTH; length += part.length) decoder.push(piece);
    };
    bad(() => feed(new LineDecoder(), part));
    bad(() => feed(new EventStreamDecoder(), part));
    bad(() => feed(new EventStreamDecoder(), `data:${part}\n`));
  });
});

test("event streams are read as eventsource-parser reads them", () => {
  forSeeds(300, (random) => {
    const frames = Array.from({ length: 1 + random() * 20 }, () => anyFrame(random));
    const text = frames
      .map((frame) => encodeEvent(random, frame, pick(random, ["\n", "\r", "\r\n"])))
      .join("");
    const read = decodeEvents(split(random, text));
    const expected = eventsOf(text).map(([id, , data]) => {
      const [name, ...rest] = JSON.parse(data);
      return name === "msg" ? [name, rest[0], id, rest[1]] : [name, ...rest];
    });
    expect(read.filter(([name]) => name !== "cursor")).toEqual(expected);
  });
});
