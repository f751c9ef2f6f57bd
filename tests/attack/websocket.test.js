// Every violation of RFC 6455 gets its documented close code, and the server goes on.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { Server, until } from "../foreign/harness.js";
import { assertDelivers } from "../foreign/socket.js";
import { frame, Peer } from "./peer.js";

let server;
before(async (t) => {
  server = await Server.start(t);
});

const close = (code, reason = "") =>
  frame(0x88, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason, "latin1")]));
const all = (...frames) => Buffer.concat(frames);
const bytes = (...values) => Buffer.from(values);

/** Name, what the peer sends, close code. */
const VIOLATIONS = [
  ["a reserved bit", frame(0xc1, "[]"), 1002],
  ["the second reserved bit", frame(0xa1, "[]"), 1002],
  ["the third reserved bit", frame(0x91, "[]"), 1002],
  ["a reserved bit on a control frame", frame(0xc9), 1002],
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => [
    `opcode ${opcode}`,
    frame(0x80 | opcode),
    1002,
  ]),
  ["a frame without a mask", bytes(0x81, 2, 0x5b, 0x5d), 1002],
  ["a ping without a mask", bytes(0x89, 0), 1002],
  ["a ping in fragments", frame(0x09), 1002],
  ["a close in fragments", frame(0x08), 1002],
  ["a ping of 126 bytes", frame(0x89, "x".repeat(126)), 1002],
  ["a length of 2 bytes that fits in 1", bytes(0x81, 0xfe, 0, 2, 0, 0, 0, 0, 0x5b, 0x5d), 1002],
  [
    "a length of 8 bytes that fits in 1",
    bytes(0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x5b, 0x5d),
    1002,
  ],
  ["a negative length", bytes(0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0), [1002, 1009]],
  ["a continuation of nothing", frame(0x80, "x"), 1002],
  [
    "a continuation after the end",
    all(frame(0x01, '["ping"'), frame(0x80, ",1]"), frame(0x80, "x")),
    1002,
  ],
  ["a message inside of another", all(frame(0x01, "["), frame(0x81, '["ping",1]')), 1002],
  ["a close of one byte", frame(0x88, "x"), 1002],
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].map((code) => [
    `close code ${code}`,
    close(code),
    1002,
  ]),
  ["a close reason that is not UTF-8", close(1000, "\xff"), 1007],
  ["text that is not UTF-8", frame(0x81, bytes(0x22, 0xff, 0x22)), 1007],
  ["text that ends inside of a character", frame(0x81, bytes(0x22, 0xc3)), 1007],
  ["a surrogate in UTF-8", frame(0x81, bytes(0xed, 0xa0, 0x80)), 1007],
  [
    "fragments that are not UTF-8 together",
    all(frame(0x01, bytes(0xc3)), frame(0x80, bytes(0x28))),
    1007,
  ],
  ["a binary message", frame(0x82, '["ping",1]'), 1003],
  ["a message of 64 KiB and a byte", frame(0x81, "x".repeat(65_537)), 1009],
  ["a length of 2^40", bytes(0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), 1009],
  [
    "fragments of more than 64 KiB",
    all(frame(0x01, "x".repeat(40_000)), frame(0x80, "x".repeat(40_000))),
    1009,
  ],
  [
    "fragments without end",
    all(frame(0x01), ...Array.from({ length: 100_000 }, () => frame(0x00))),
    1009,
  ],
];

describe("is closed", () => {
  for (const [name, sent, code] of VIOLATIONS) {
    test(`${name}: ${code}`, async (t) => {
      const peer = await Peer.upgrade(t, server, "channel=a");
      peer.send(sent);
      await peer.closed();
      assert.ok([code].flat().includes(peer.closeCode), `closed with ${peer.closeCode}`);
      assert.equal(peer.frames.at(-1).opcode, 8, "nothing comes after the close");
      await assertDelivers(t, server);
    });
  }
});

test("a violation in small pieces is one as well", async (t) => {
  const peer = await Peer.upgrade(t, server);
  for (const byte of all(frame(0x01, "["), frame(0x89, "ping"), frame(0x81, "]"))) {
    peer.send(bytes(byte));
    await new Promise(setImmediate);
  }
  await peer.closed();
  assert.equal(peer.closeCode, 1002);
  assert.ok(
    peer.frames.some(({ opcode }) => opcode === 10),
    "the ping between was answered",
  );
});

test("nothing is read after a close", async (t) => {
  const peer = await Peer.upgrade(t, server, "channel=after");
  await until(() => peer.frames.length > 0, "the cursor");
  peer.send(all(close(1000), frame(0x81, '["pub","after","too late"]')));
  await peer.closed();
  assert.equal(peer.closeCode, 1000);
  assert.ok(!peer.text.includes("too late"));
});

test("a peer that leaves in the middle of a frame harms nobody", async (t) => {
  const peer = await Peer.upgrade(t, server);
  peer.send(frame(0x81, "x".repeat(1000)).subarray(0, 500));
  peer.socket.resetAndDestroy();
  await assertDelivers(t, server);
});
