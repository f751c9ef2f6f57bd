// Generated from schema/codes.toml: change that and run `make generate`.

/** An error that the server names. */
export type ServerCode =
  | "bad-request"
  | "bad-channel"
  | "too-many-channels"
  | "bad-cursor"
  | "bad-json"
  | "json-too-deep"
  | "bad-frame"
  | "unknown-path"
  | "method-not-allowed"
  | "request-timeout"
  | "body-too-large"
  | "upgrade-required"
  | "head-too-large"
  | "unsupported"
  | "overloaded"
  | "too-many-connections"
  | "draining"
  | "forbidden"
  | "not-found"
  | "unauthorized"
  | "token-expired"
  | "disconnected"
  | "key-reused"
  | "name-taken"
  | "busy"
  | "outbid"
  | "expired"
  | "database-away"
  | "internal-error"
  | "limit-reached"
  | "outcome-unknown";

/** Refusals that would come again, close codes among them: what was asked for is wrong, not the moment or the way. */
export const FINAL_CODES: readonly unknown[] = [
  "bad-request",
  "bad-channel",
  "too-many-channels",
  "bad-cursor",
  "bad-json",
  "body-too-large",
  "head-too-large",
  "forbidden",
  "not-found",
  "unauthorized",
  "token-expired",
  "disconnected",
  "key-reused",
  "name-taken",
  "outbid",
  "expired",
  "outcome-unknown",
  "policy-violation",
  "token-expired",
  "disconnected",
];

/** Refusals that another transport may not meet. */
export const WAY_CODES: readonly unknown[] = [
  "unknown-path",
  "method-not-allowed",
  "upgrade-required",
  "unsupported",
];

/** The names of those that are close codes of a WebSocket. */
export const FINAL_CLOSES: Readonly<Record<number, string>> = {
  1008: "policy-violation",
  4004: "token-expired",
  4005: "disconnected",
};
