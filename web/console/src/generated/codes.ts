// Generated from schema/codes.toml: change that and run `make generate`.

/** Why a request or a frame was refused: `["error",name,text]` on a connection, `{"error":name,"message":text}` in an HTTP body. */
export const errorCodes = {
  "bad-request": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "The request is not valid HTTP, or a query parameter is missing, unknown or malformed.",
    action: "Correct what the message names; docs/protocol.md lists the parameters of each path.",
  },
  "bad-channel": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "A channel name is outside the alphabet or longer than 128 characters, or none was given.",
    action: "Start it with a letter or digit and use at most 128 of A-Z a-z 0-9 . _ : -",
  },
  "too-many-channels": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "One connection or request asked for more channels than the server allows.",
    action: "Spread the channels over several connections, or raise the server's limit.",
  },
  "bad-cursor": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "The cursor is not EPOCH.OFFSET as a server gives it.",
    action: "Send a cursor exactly as it was received, or none, to start from now.",
  },
  "bad-json": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "The data to publish is not one JSON value in UTF-8.",
    action: "Send exactly one JSON value; text must be a quoted JSON string.",
  },
  "json-too-deep": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "The data to publish is nested more than 60 levels deep, which many clients' parsers refuse.",
    action: "Make the data flatter, or publish it as text and let the client parse it.",
  },
  "bad-frame": {
    httpStatus: 400,
    mayRetry: false,
    meaning: "A message is no frame of the native protocol: not a JSON array, of an unknown kind, or with wrong arguments.",
    action: "Compare it with the frames in docs/protocol.md.",
  },
  "unknown-path": {
    httpStatus: 404,
    mayRetry: false,
    meaning: "Nothing is served at this path.",
    action: "Use one of the paths in docs/protocol.md; a proxy in between may have rewritten it.",
  },
  "method-not-allowed": {
    httpStatus: 405,
    mayRetry: false,
    meaning: "The path exists but does not answer this method.",
    action: "Use a method that the Allow header of the response names.",
  },
  "request-timeout": {
    httpStatus: 408,
    mayRetry: true,
    meaning: "The request head or body did not arrive in full within the server's time limit.",
    action: "Send the request again without a pause; on a slow network raise the server's limit.",
  },
  "body-too-large": {
    httpStatus: 413,
    mayRetry: false,
    meaning: "The request body, or a published message, is larger than the server accepts.",
    action: "Publish smaller messages, or raise the server's limit.",
  },
  "upgrade-required": {
    httpStatus: 426,
    mayRetry: false,
    meaning: "A path that only speaks WebSocket was asked without a valid WebSocket 13 handshake.",
    action: "Connect with a WebSocket client; a proxy in between must pass Upgrade and Connection on; over HTTP/2, send an extended CONNECT (RFC 8441).",
  },
  "head-too-large": {
    httpStatus: 431,
    mayRetry: false,
    meaning: "The request line and headers are larger, or more, than the server accepts.",
    action: "Send fewer cookies, headers or channels in one request, or raise the server's limit.",
  },
  "unsupported": {
    httpStatus: 501,
    mayRetry: false,
    meaning: "The request is valid but uses something this server does not implement, such as a transfer coding.",
    action: "Do without what the message names.",
  },
  "overloaded": {
    httpStatus: 503,
    mayRetry: true,
    meaning: "The publication was refused because the queue into the server's cores is full, or a request because its application does not keep up.",
    action: "Try again after the seconds in Retry-After; if it lasts, publish or ask less, or add cores.",
  },
  "too-many-connections": {
    httpStatus: 503,
    mayRetry: true,
    meaning: "The server holds as many connections as it may.",
    action: "Connect again later or to another server, or raise the limit and the descriptors it needs.",
  },
  "draining": {
    httpStatus: 503,
    mayRetry: true,
    meaning: "The server is about to stop and takes no new work.",
    action: "Connect again after the seconds in Retry-After, to another server if there is one.",
  },
  "forbidden": {
    httpStatus: 403,
    mayRetry: false,
    meaning: "This client may not do that: no rule of the access file allows it, the channel is the application's own, the request comes from another site's page or under a name that the server does not have, or the thing belongs to somebody else.",
    action: "Do it from the page that the server itself serves, as the one it belongs to; subscribe to such channels instead of publishing. Behind a proxy: --public-url. For pages of another origin: --allow-origin. With --access: add a rule that allows it.",
  },
  "not-found": {
    httpStatus: 404,
    mayRetry: false,
    meaning: "The path exists, but what it names does not, or no longer.",
    action: "Reload the list it was taken from.",
  },
  "unauthorized": {
    httpStatus: 401,
    mayRetry: false,
    meaning: "The request needs a log-in, a name in the chat or a token; its cookie or token is missing or wrong.",
    action: "Log in or enter the chat again, or send a token that the server's access file accepts; the message says what is wrong with this one. Open a console at the address that it printed.",
  },
  "token-expired": {
    httpStatus: 401,
    mayRetry: false,
    meaning: "The client's token was valid once and has expired.",
    action: "Get another token from whoever issued this one. On a WebSocket, send it as [\"auth\",token] before the old one expires; otherwise connect again with it.",
  },
  "disconnected": {
    httpStatus: 403,
    mayRetry: false,
    meaning: "The back end has ended the connections of this identity.",
    action: "Do not reconnect automatically; ask the application why.",
  },
  "key-reused": {
    httpStatus: 409,
    mayRetry: false,
    meaning: "An Idempotency-Key came a second time with another request.",
    action: "Make a new key for each request; send the same key only to repeat the same request.",
  },
  "name-taken": {
    httpStatus: 409,
    mayRetry: false,
    meaning: "Somebody has this name.",
    action: "Choose another name.",
  },
  "busy": {
    httpStatus: 409,
    mayRetry: true,
    meaning: "It can only be done once at a time, and it goes on already.",
    action: "Wait until it has ended, or end it.",
  },
  "outbid": {
    httpStatus: 409,
    mayRetry: false,
    meaning: "The bid is not above the leading one, or not at the minimum; another may have come first.",
    action: "Look at the leading bid in the answer and bid more.",
  },
  "expired": {
    httpStatus: 409,
    mayRetry: false,
    meaning: "The auction of this item has ended.",
    action: "Bid on another item.",
  },
  "database-away": {
    httpStatus: 503,
    mayRetry: true,
    meaning: "The database does not answer or refused the work; nothing was changed.",
    action: "Try again after the seconds in Retry-After; the operator should look at the database that the message names.",
  },
  "internal-error": {
    httpStatus: 500,
    mayRetry: true,
    meaning: "An application of the server failed; its message stands in the server's output.",
    action: "Report it with that output.",
  },
  "limit-reached": {
    httpStatus: 429,
    mayRetry: true,
    meaning: "A limit is reached: connections, subscriptions or publications of one identity or address, or an application's own.",
    action: "Try again after the seconds in Retry-After, or when the message says that there is room.",
  },
  "outcome-unknown": {
    httpStatus: 504,
    mayRetry: false,
    meaning: "An application of the server did not answer in time, or its answer had no room, or its database went away at the last moment; what the request asks for may have been done, or may yet be.",
    action: "Look whether it has been done before asking again.",
  },
} as const;

/** Name of a row of {@link errorCodes}. */
export type ErrorCode = keyof typeof errorCodes;

/** Status of a WebSocket close frame (RFC 6455 section 7.4; 4000 to 4999 are private). */
export const closeCodes = {
  "normal": {
    number: 1000,
    mayRetry: false,
    meaning: "The connection did what it was opened for.",
    action: "Nothing.",
  },
  "going-away": {
    number: 1001,
    mayRetry: true,
    meaning: "The server stops, or the page was left.",
    action: "Reconnect after a random delay and resume with the last cursor.",
  },
  "protocol-error": {
    number: 1002,
    mayRetry: false,
    meaning: "The peer broke the WebSocket protocol: a reserved bit, an unmasked frame, a bad control frame.",
    action: "Correct the peer; if it is a well-known library, look for a proxy that alters bytes.",
  },
  "unsupported-data": {
    number: 1003,
    mayRetry: false,
    meaning: "A binary message came where only text is accepted.",
    action: "Send the native protocol's frames as text messages.",
  },
  "invalid-payload": {
    number: 1007,
    mayRetry: false,
    meaning: "A text message was not valid UTF-8, or a compressed one could not be decompressed.",
    action: "Encode text as UTF-8 before sending; if it was compressed, check the client's permessage-deflate, or connect without compression.",
  },
  "policy-violation": {
    number: 1008,
    mayRetry: false,
    meaning: "The peer did what the server's settings forbid and no other code names.",
    action: "Read the reason in the close frame.",
  },
  "message-too-big": {
    number: 1009,
    mayRetry: false,
    meaning: "A frame or an assembled message is larger than accepted.",
    action: "Send smaller messages, or raise the limit.",
  },
  "internal-error": {
    number: 1011,
    mayRetry: true,
    meaning: "The server failed in a way it did not expect.",
    action: "Reconnect after a random delay; report it with the server's log.",
  },
  "service-restart": {
    number: 1012,
    mayRetry: true,
    meaning: "The server restarts and will be back at the same address.",
    action: "Reconnect after a random delay of 5 to 30 seconds and resume with the last cursor.",
  },
  "try-again-later": {
    number: 1013,
    mayRetry: true,
    meaning: "The server is overloaded and sheds connections.",
    action: "Reconnect later, to another server if there is one.",
  },
  "slow-subscriber": {
    number: 4001,
    mayRetry: true,
    meaning: "The subscriber read more slowly than its channels publish, its queue was full, and the policy is close.",
    action: "Resume with the last cursor and, after a gap, fetch the state again; subscribe to less, or choose another slow-subscriber policy.",
  },
  "idle-timeout": {
    number: 4002,
    mayRetry: true,
    meaning: "The peer sent nothing within the server's time limit, not even an answer to a ping, or began a message and did not finish it in time.",
    action: "Reconnect and resume with the last cursor; a client must answer pings and finish the messages it begins.",
  },
  "too-many-connections": {
    number: 4003,
    mayRetry: true,
    meaning: "The server holds as many connections as it may and chose this one to go.",
    action: "Connect again later or to another server, or raise the limit and the descriptors it needs.",
  },
  "token-expired": {
    number: 4004,
    mayRetry: false,
    meaning: "The client's token has expired, and it has sent no other.",
    action: "Connect again with a new token and resume with the last cursor.",
  },
  "disconnected": {
    number: 4005,
    mayRetry: false,
    meaning: "The back end has ended the connections of this identity.",
    action: "Do not reconnect automatically; ask the application why.",
  },
} as const;

/** Name of a row of {@link closeCodes}. */
export type CloseCode = keyof typeof closeCodes;

/** Status with which the `pushlab` process ends. */
export const exitCodes = {
  "ok": {
    number: 0,
    mayRetry: false,
    meaning: "Everything asked for was done.",
    action: "Nothing.",
  },
  "failed": {
    number: 1,
    mayRetry: false,
    meaning: "Something failed that no other code names.",
    action: "Read the message; it names what was wrong, where, and what to try next.",
  },
  "usage": {
    number: 2,
    mayRetry: false,
    meaning: "The command line is wrong: an unknown command or option, or a value out of range.",
    action: "Read the message, or run the command with --help.",
  },
  "bad-experiment": {
    number: 3,
    mayRetry: false,
    meaning: "The experiment file cannot be read, or asks for something impossible.",
    action: "Correct what the message names; schema/experiment.schema.json defines the format.",
  },
  "subject-failed": {
    number: 4,
    mayRetry: true,
    meaning: "A subject did not start, stopped early, or could not be reached, and a cell is left with no valid run.",
    action: "Read the reason that each failed run gives, with the subject's last output; the runs of the other subjects are stored.",
  },
  "interrupted": {
    number: 5,
    mayRetry: true,
    meaning: "The experiment was interrupted; every finished run is stored.",
    action: "Give the same command again to resume.",
  },
  "results-unwritable": {
    number: 6,
    mayRetry: false,
    meaning: "Results, a report or a command's output cannot be written: no space, no permission, or another process holds them.",
    action: "Make the place that the message names writable, or choose another, and give the command again; runs that the message says are stored need not be repeated.",
  },
  "machine-check-failed": {
    number: 7,
    mayRetry: false,
    meaning: "This machine does not meet a requirement: descriptors, ports, memory, cores, a device, a kernel setting or a program.",
    action: "Do what the message or the failed line of `pushlab doctor` says, or ask for a smaller experiment.",
  },
  "all-void": {
    number: 8,
    mayRetry: true,
    meaning: "Every run was void, so there is nothing to report: the generator, not the subject, was the bottleneck.",
    action: "Lower the load, give the generator more cores, or quieten the machine; each run says which warning voided it.",
  },
  "condition-met": {
    number: 9,
    mayRetry: false,
    meaning: "What --fail-if names holds, or a comparison found a change for the worse (with --undecided fail: or could not rule it out): the measurement itself went well.",
    action: "Read the message, which gives the assertion and where it holds, and the report that the command names.",
  },
  "undecided": {
    number: 10,
    mayRetry: true,
    meaning: "What --fail-if names, or whether something got worse, was neither shown nor ruled out: too few runs, or a change near the margin.",
    action: "Use more repeats, which decide; or say what undecided is worth to you: --undecided pass, or --undecided fail.",
  },
} as const;

/** Name of a row of {@link exitCodes}. */
export type ExitCode = keyof typeof exitCodes;
