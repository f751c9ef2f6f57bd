import type { ServerCode } from "./codes.ts";

export type { ServerCode };

/**
 * An error that the client finds itself.
 *
 * - `busy`: too much waits for the server's answer already; nothing was sent. Publish less, or later.
 * - `closed`: `close()` was called.
 * - `connection-lost`: the connection ended before the answer came; the publication may have been accepted or not.
 * - `no-token`: `getToken` threw, gave no token, or took too long; nothing was sent.
 * - `refused`: something between client and server answered in the server's place.
 * - `timeout`: no answer came in time; the publication may have been accepted or not.
 * - `unreachable`: the request did not get through.
 */
export type ClientCode =
  | "busy"
  | "closed"
  | "connection-lost"
  | "no-token"
  | "refused"
  | "timeout"
  | "unreachable";

/** A code of the server or of the client; servers newer than this client may know others. */
export type ErrorCode = ServerCode | ClientCode | (string & {});

/** What was refused or failed: `code` says what, `message` where and what to try. */
export class PushlabError extends Error {
  override readonly name = "PushlabError";
  declare readonly code: ErrorCode;
  /** Milliseconds after which the server wants to be asked again; 0 where it did not say. */
  declare readonly retryAfter: number;
  /** The same, where it told this client exactly when. @internal */
  declare readonly returnAfter: number | undefined;

  constructor(code: ErrorCode, text: string, retryAfter = 0, returnAfter?: number) {
    super(text);
    this.code = code;
    this.retryAfter = returnAfter ?? retryAfter;
    this.returnAfter = returnAfter;
  }
}
