/** Errors as the server names them: the first table of docs/codes.md. A test holds this list against it. */
export const SERVER_CODES = [
  "bad-request",
  "bad-channel",
  "too-many-channels",
  "bad-cursor",
  "bad-json",
  "bad-frame",
  "unknown-path",
  "method-not-allowed",
  "request-timeout",
  "body-too-large",
  "upgrade-required",
  "head-too-large",
  "unsupported",
  "overloaded",
  "too-many-connections",
  "draining",
  "forbidden",
  "not-found",
  "unauthorized",
  "name-taken",
  "busy",
  "outbid",
  "expired",
  "database-away",
  "internal-error",
  "limit-reached",
  "outcome-unknown",
] as const;

/** An error that the server names. */
export type ServerCode = (typeof SERVER_CODES)[number];

/**
 * An error that the client finds itself.
 *
 * - `busy`: too much waits for the server's answer already; nothing was sent. Publish less, or later.
 * - `closed`: `close()` was called.
 * - `connection-lost`: the connection ended before the answer came; the publication may have been accepted or not.
 * - `refused`: something between client and server answered in the server's place.
 * - `timeout`: no answer came in time; the publication may have been accepted or not.
 * - `unreachable`: the request did not get through.
 */
export type ClientCode =
  | "busy"
  | "closed"
  | "connection-lost"
  | "refused"
  | "timeout"
  | "unreachable";

/** A code of the server or of the client; servers newer than this client may know others. */
export type ErrorCode = ServerCode | ClientCode | (string & {});

/** What was refused or failed: `code` says what, `message` where and what to try. */
export class PushlabError extends Error {
  override readonly name = "PushlabError";
  readonly code: ErrorCode;
  /** Milliseconds after which the server wants to be asked again; 0 where it did not say. */
  readonly retryAfter: number;

  constructor(code: ErrorCode, text: string, retryAfter = 0) {
    super(text);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}
