import { PushlabError } from "./errors.ts";

/** Longest frame, event or reply, in UTF-16 units: four times what a server can be told to take, 16 MiB. */
export const MAX_TEXT_LENGTH = 2 ** 26;
/** Longest cursor. The server's have at most 37 characters. */
const MAX_CURSOR_LENGTH = 64;

/** A frame of the native protocol, from the server. */
export type Frame =
  | ["server", announcement: { heartbeat_ms: number; http?: string }]
  | ["msg", channel: string, cursor: string, data: unknown]
  | ["cursor", cursor: string]
  | ["gap", from: string, to: string]
  | ["auth", seconds: number]
  | ["token-expires", seconds: number]
  | ["pong", n: number]
  | ["echo", data: unknown]
  | ["reconnect", after: number]
  | ["error", code: string, text: string, channel?: string];

/** What stands behind a frame's name: t text, o text or nothing, c cursor, n number, h an announcement, * anything. */
const SHAPES = new Map([
  ["server", "h"],
  ["msg", "tc*"],
  ["cursor", "c"],
  ["gap", "cc"],
  ["auth", "n"],
  ["token-expires", "n"],
  ["pong", "n"],
  ["echo", "*"],
  ["reconnect", "n"],
  ["error", "tto"],
]);

/** The error for bytes that are not what the protocol says. */
export function badFrame(text: string): PushlabError {
  return new PushlabError("bad-frame", `from the server: ${text}`);
}

/**
 * Parses JSON text.
 *
 * @throws PushlabError `bad-frame`
 */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badFrame(`not JSON: ${text.slice(0, 80)}`);
  }
}

/**
 * Checks a frame that came in `text`. One of an unknown name is undefined: a newer server may send some.
 *
 * @throws PushlabError `bad-frame`
 */
export function readFrame(value: unknown, text: string): Frame | undefined {
  if (Array.isArray(value) && typeof value[0] === "string") {
    const shape = SHAPES.get(value[0]);
    if (shape === undefined) return undefined;
    if (
      value.length <= shape.length + 1 &&
      [...shape].every((kind, at) => fits(kind, value[at + 1]))
    )
      return value as Frame;
  }
  throw badFrame(`not a frame: ${text.slice(0, 80)}`);
}

function fits(kind: string, value: unknown): boolean {
  if (kind === "*") return value !== undefined;
  if (kind === "o" && value === undefined) return true;
  if (kind === "n") return Number.isSafeInteger(value);
  if (kind === "h") {
    const told = value as { heartbeat_ms?: unknown; http?: unknown } | null;
    return fits("n", told?.heartbeat_ms) && fits("t", told?.http ?? "");
  }
  return (
    typeof value === "string" &&
    (kind !== "c" || (value !== "" && value.length <= MAX_CURSOR_LENGTH))
  );
}

/**
 * Reads the reply to a poll: an array of frames whose last is a cursor.
 *
 * @throws PushlabError `bad-frame`
 */
export function readReply(text: string): Frame[] {
  const reply = readJson(text);
  const frames = Array.isArray(reply)
    ? (reply.map((frame) => readFrame(frame, text)).filter(Boolean) as Frame[])
    : [];
  if (frames.at(-1)?.[0] !== "cursor") throw badFrame("a reply without a cursor");
  return frames;
}
