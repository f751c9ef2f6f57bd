//! Error, close and exit codes.
//!
//! Generated from `schema/codes.toml`: change that and run `make generate`.

use std::fmt;

struct Row {
    name: &'static str,
    number: u16,
    retry: bool,
    meaning: &'static str,
    action: &'static str,
}

/// Why a request or a frame was refused: `["error",name,text]` on a connection, `{"error":name,"message":text}` in an HTTP body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorCode {
    /// `bad-request`, 400: The request is not valid HTTP, or a query parameter is missing, unknown or malformed.
    BadRequest,
    /// `bad-channel`, 400: A channel name is outside the alphabet or longer than 128 characters, or none was given.
    BadChannel,
    /// `too-many-channels`, 400: One connection or request asked for more channels than the server allows.
    TooManyChannels,
    /// `bad-cursor`, 400: The cursor is not EPOCH.OFFSET as a server gives it.
    BadCursor,
    /// `bad-json`, 400: The data to publish is not one JSON value in UTF-8.
    BadJson,
    /// `json-too-deep`, 400: The data to publish is nested more than 60 levels deep, which many clients' parsers refuse.
    JsonTooDeep,
    /// `bad-frame`, 400: A message is no frame of the native protocol: not a JSON array, of an unknown kind, or with wrong arguments.
    BadFrame,
    /// `unknown-path`, 404: Nothing is served at this path.
    UnknownPath,
    /// `method-not-allowed`, 405: The path exists but does not answer this method.
    MethodNotAllowed,
    /// `request-timeout`, 408: The request head or body did not arrive in full within the server's time limit.
    RequestTimeout,
    /// `body-too-large`, 413: The request body, or a published message, is larger than the server accepts.
    BodyTooLarge,
    /// `upgrade-required`, 426: A path that only speaks WebSocket was asked without a valid WebSocket 13 handshake.
    UpgradeRequired,
    /// `head-too-large`, 431: The request line and headers are larger, or more, than the server accepts.
    HeadTooLarge,
    /// `unsupported`, 501: The request is valid but uses something this server does not implement, such as a transfer coding.
    Unsupported,
    /// `overloaded`, 503: The publication was refused because the queue into the server's cores is full, or a request because its application does not keep up.
    Overloaded,
    /// `too-many-connections`, 503: The server holds as many connections as it may.
    TooManyConnections,
    /// `draining`, 503: The server is about to stop and takes no new work.
    Draining,
    /// `forbidden`, 403: This client may not do that: no rule of the access file allows it, the channel is the application's own, the request comes from another site's page or under a name that the server does not have, or the thing belongs to somebody else.
    Forbidden,
    /// `not-found`, 404: The path exists, but what it names does not, or no longer.
    NotFound,
    /// `unauthorized`, 401: The request needs a log-in, a name in the chat or a token; its cookie or token is missing or wrong.
    Unauthorized,
    /// `token-expired`, 401: The client's token was valid once and has expired.
    TokenExpired,
    /// `disconnected`, 403: The back end has ended the connections of this identity.
    Disconnected,
    /// `key-reused`, 409: An Idempotency-Key came a second time with another request.
    KeyReused,
    /// `name-taken`, 409: Somebody has this name.
    NameTaken,
    /// `busy`, 409: It can only be done once at a time, and it goes on already.
    Busy,
    /// `outbid`, 409: The bid is not above the leading one, or not at the minimum; another may have come first.
    Outbid,
    /// `expired`, 409: The auction of this item has ended.
    Expired,
    /// `database-away`, 503: The database does not answer or refused the work; nothing was changed.
    DatabaseAway,
    /// `internal-error`, 500: An application of the server failed; its message stands in the server's output.
    InternalError,
    /// `limit-reached`, 429: A limit is reached: connections, subscriptions or publications of one identity or address, or an application's own.
    LimitReached,
    /// `outcome-unknown`, 504: An application of the server did not answer in time, or its answer had no room, or its database went away at the last moment; what the request asks for may have been done, or may yet be.
    OutcomeUnknown,
}

const ERROR_CODES: [Row; 31] = [
    Row {
        name: "bad-request",
        number: 400,
        retry: false,
        meaning: "The request is not valid HTTP, or a query parameter is missing, unknown or malformed.",
        action: "Correct what the message names; docs/protocol.md lists the parameters of each path.",
    },
    Row {
        name: "bad-channel",
        number: 400,
        retry: false,
        meaning: "A channel name is outside the alphabet or longer than 128 characters, or none was given.",
        action: "Start it with a letter or digit and use at most 128 of A-Z a-z 0-9 . _ : -",
    },
    Row {
        name: "too-many-channels",
        number: 400,
        retry: false,
        meaning: "One connection or request asked for more channels than the server allows.",
        action: "Spread the channels over several connections, or raise the server's limit.",
    },
    Row {
        name: "bad-cursor",
        number: 400,
        retry: false,
        meaning: "The cursor is not EPOCH.OFFSET as a server gives it.",
        action: "Send a cursor exactly as it was received, or none, to start from now.",
    },
    Row {
        name: "bad-json",
        number: 400,
        retry: false,
        meaning: "The data to publish is not one JSON value in UTF-8.",
        action: "Send exactly one JSON value; text must be a quoted JSON string.",
    },
    Row {
        name: "json-too-deep",
        number: 400,
        retry: false,
        meaning: "The data to publish is nested more than 60 levels deep, which many clients' parsers refuse.",
        action: "Make the data flatter, or publish it as text and let the client parse it.",
    },
    Row {
        name: "bad-frame",
        number: 400,
        retry: false,
        meaning: "A message is no frame of the native protocol: not a JSON array, of an unknown kind, or with wrong arguments.",
        action: "Compare it with the frames in docs/protocol.md.",
    },
    Row {
        name: "unknown-path",
        number: 404,
        retry: false,
        meaning: "Nothing is served at this path.",
        action: "Use one of the paths in docs/protocol.md; a proxy in between may have rewritten it.",
    },
    Row {
        name: "method-not-allowed",
        number: 405,
        retry: false,
        meaning: "The path exists but does not answer this method.",
        action: "Use a method that the Allow header of the response names.",
    },
    Row {
        name: "request-timeout",
        number: 408,
        retry: true,
        meaning: "The request head or body did not arrive in full within the server's time limit.",
        action: "Send the request again without a pause; on a slow network raise the server's limit.",
    },
    Row {
        name: "body-too-large",
        number: 413,
        retry: false,
        meaning: "The request body, or a published message, is larger than the server accepts.",
        action: "Publish smaller messages, or raise the server's limit.",
    },
    Row {
        name: "upgrade-required",
        number: 426,
        retry: false,
        meaning: "A path that only speaks WebSocket was asked without a valid WebSocket 13 handshake.",
        action: "Connect with a WebSocket client; a proxy in between must pass Upgrade and Connection on; over HTTP/2, send an extended CONNECT (RFC 8441).",
    },
    Row {
        name: "head-too-large",
        number: 431,
        retry: false,
        meaning: "The request line and headers are larger, or more, than the server accepts.",
        action: "Send fewer cookies, headers or channels in one request, or raise the server's limit.",
    },
    Row {
        name: "unsupported",
        number: 501,
        retry: false,
        meaning: "The request is valid but uses something this server does not implement, such as a transfer coding.",
        action: "Do without what the message names.",
    },
    Row {
        name: "overloaded",
        number: 503,
        retry: true,
        meaning: "The publication was refused because the queue into the server's cores is full, or a request because its application does not keep up.",
        action: "Try again after the seconds in Retry-After; if it lasts, publish or ask less, or add cores.",
    },
    Row {
        name: "too-many-connections",
        number: 503,
        retry: true,
        meaning: "The server holds as many connections as it may.",
        action: "Connect again later or to another server, or raise the limit and the descriptors it needs.",
    },
    Row {
        name: "draining",
        number: 503,
        retry: true,
        meaning: "The server is about to stop and takes no new work.",
        action: "Connect again after the seconds in Retry-After, to another server if there is one.",
    },
    Row {
        name: "forbidden",
        number: 403,
        retry: false,
        meaning: "This client may not do that: no rule of the access file allows it, the channel is the application's own, the request comes from another site's page or under a name that the server does not have, or the thing belongs to somebody else.",
        action: "Do it from the page that the server itself serves, as the one it belongs to; subscribe to such channels instead of publishing. Behind a proxy: --public-url. For pages of another origin: --allow-origin. With --access: add a rule that allows it.",
    },
    Row {
        name: "not-found",
        number: 404,
        retry: false,
        meaning: "The path exists, but what it names does not, or no longer.",
        action: "Reload the list it was taken from.",
    },
    Row {
        name: "unauthorized",
        number: 401,
        retry: false,
        meaning: "The request needs a log-in, a name in the chat or a token; its cookie or token is missing or wrong.",
        action: "Log in or enter the chat again, or send a token that the server's access file accepts; the message says what is wrong with this one. Open a console at the address that it printed.",
    },
    Row {
        name: "token-expired",
        number: 401,
        retry: false,
        meaning: "The client's token was valid once and has expired.",
        action: "Get another token from whoever issued this one. On a WebSocket, send it as [\"auth\",token] before the old one expires; otherwise connect again with it.",
    },
    Row {
        name: "disconnected",
        number: 403,
        retry: false,
        meaning: "The back end has ended the connections of this identity.",
        action: "Do not reconnect automatically; ask the application why.",
    },
    Row {
        name: "key-reused",
        number: 409,
        retry: false,
        meaning: "An Idempotency-Key came a second time with another request.",
        action: "Make a new key for each request; send the same key only to repeat the same request.",
    },
    Row {
        name: "name-taken",
        number: 409,
        retry: false,
        meaning: "Somebody has this name.",
        action: "Choose another name.",
    },
    Row {
        name: "busy",
        number: 409,
        retry: true,
        meaning: "It can only be done once at a time, and it goes on already.",
        action: "Wait until it has ended, or end it.",
    },
    Row {
        name: "outbid",
        number: 409,
        retry: false,
        meaning: "The bid is not above the leading one, or not at the minimum; another may have come first.",
        action: "Look at the leading bid in the answer and bid more.",
    },
    Row {
        name: "expired",
        number: 409,
        retry: false,
        meaning: "The auction of this item has ended.",
        action: "Bid on another item.",
    },
    Row {
        name: "database-away",
        number: 503,
        retry: true,
        meaning: "The database does not answer or refused the work; nothing was changed.",
        action: "Try again after the seconds in Retry-After; the operator should look at the database that the message names.",
    },
    Row {
        name: "internal-error",
        number: 500,
        retry: true,
        meaning: "An application of the server failed; its message stands in the server's output.",
        action: "Report it with that output.",
    },
    Row {
        name: "limit-reached",
        number: 429,
        retry: true,
        meaning: "A limit is reached: connections, subscriptions or publications of one identity or address, or an application's own.",
        action: "Try again after the seconds in Retry-After, or when the message says that there is room.",
    },
    Row {
        name: "outcome-unknown",
        number: 504,
        retry: false,
        meaning: "An application of the server did not answer in time, or its answer had no room, or its database went away at the last moment; what the request asks for may have been done, or may yet be.",
        action: "Look whether it has been done before asking again.",
    },
];

impl ErrorCode {
    /// Every code, in the table's order.
    pub const ALL: [Self; 31] = [
        Self::BadRequest,
        Self::BadChannel,
        Self::TooManyChannels,
        Self::BadCursor,
        Self::BadJson,
        Self::JsonTooDeep,
        Self::BadFrame,
        Self::UnknownPath,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::BodyTooLarge,
        Self::UpgradeRequired,
        Self::HeadTooLarge,
        Self::Unsupported,
        Self::Overloaded,
        Self::TooManyConnections,
        Self::Draining,
        Self::Forbidden,
        Self::NotFound,
        Self::Unauthorized,
        Self::TokenExpired,
        Self::Disconnected,
        Self::KeyReused,
        Self::NameTaken,
        Self::Busy,
        Self::Outbid,
        Self::Expired,
        Self::DatabaseAway,
        Self::InternalError,
        Self::LimitReached,
        Self::OutcomeUnknown,
    ];

    const fn row(self) -> &'static Row {
        &ERROR_CODES[self as usize]
    }

    /// Its name, kebab-case: what goes over the wire and into results.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// HTTP status of a response that carries it (RFC 9110 section 15).
    pub const fn http_status(self) -> u16 {
        self.row().number
    }

    /// Whether trying the same again later may succeed.
    pub const fn may_retry(self) -> bool {
        self.row().retry
    }

    /// What it means, one sentence.
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// What to do about it, one sentence.
    pub const fn action(self) -> &'static str {
        self.row().action
    }

    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Status of a WebSocket close frame (RFC 6455 section 7.4; 4000 to 4999 are private).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CloseCode {
    /// `normal`, 1000: The connection did what it was opened for.
    Normal,
    /// `going-away`, 1001: The server stops, or the page was left.
    GoingAway,
    /// `protocol-error`, 1002: The peer broke the WebSocket protocol: a reserved bit, an unmasked frame, a bad control frame.
    ProtocolError,
    /// `unsupported-data`, 1003: A binary message came where only text is accepted.
    UnsupportedData,
    /// `invalid-payload`, 1007: A text message was not valid UTF-8, or a compressed one could not be decompressed.
    InvalidPayload,
    /// `policy-violation`, 1008: The peer did what the server's settings forbid and no other code names.
    PolicyViolation,
    /// `message-too-big`, 1009: A frame or an assembled message is larger than accepted.
    MessageTooBig,
    /// `internal-error`, 1011: The server failed in a way it did not expect.
    InternalError,
    /// `service-restart`, 1012: The server restarts and will be back at the same address.
    ServiceRestart,
    /// `try-again-later`, 1013: The server is overloaded and sheds connections.
    TryAgainLater,
    /// `slow-subscriber`, 4001: The subscriber read more slowly than its channels publish, its queue was full, and the policy is close.
    SlowSubscriber,
    /// `idle-timeout`, 4002: The peer sent nothing within the server's time limit, not even an answer to a ping, or began a message and did not finish it in time.
    IdleTimeout,
    /// `too-many-connections`, 4003: The server holds as many connections as it may and chose this one to go.
    TooManyConnections,
    /// `token-expired`, 4004: The client's token has expired, and it has sent no other.
    TokenExpired,
    /// `disconnected`, 4005: The back end has ended the connections of this identity.
    Disconnected,
}

const CLOSE_CODES: [Row; 15] = [
    Row {
        name: "normal",
        number: 1000,
        retry: false,
        meaning: "The connection did what it was opened for.",
        action: "Nothing.",
    },
    Row {
        name: "going-away",
        number: 1001,
        retry: true,
        meaning: "The server stops, or the page was left.",
        action: "Reconnect after a random delay and resume with the last cursor.",
    },
    Row {
        name: "protocol-error",
        number: 1002,
        retry: false,
        meaning: "The peer broke the WebSocket protocol: a reserved bit, an unmasked frame, a bad control frame.",
        action: "Correct the peer; if it is a well-known library, look for a proxy that alters bytes.",
    },
    Row {
        name: "unsupported-data",
        number: 1003,
        retry: false,
        meaning: "A binary message came where only text is accepted.",
        action: "Send the native protocol's frames as text messages.",
    },
    Row {
        name: "invalid-payload",
        number: 1007,
        retry: false,
        meaning: "A text message was not valid UTF-8, or a compressed one could not be decompressed.",
        action: "Encode text as UTF-8 before sending; if it was compressed, check the client's permessage-deflate, or connect without compression.",
    },
    Row {
        name: "policy-violation",
        number: 1008,
        retry: false,
        meaning: "The peer did what the server's settings forbid and no other code names.",
        action: "Read the reason in the close frame.",
    },
    Row {
        name: "message-too-big",
        number: 1009,
        retry: false,
        meaning: "A frame or an assembled message is larger than accepted.",
        action: "Send smaller messages, or raise the limit.",
    },
    Row {
        name: "internal-error",
        number: 1011,
        retry: true,
        meaning: "The server failed in a way it did not expect.",
        action: "Reconnect after a random delay; report it with the server's log.",
    },
    Row {
        name: "service-restart",
        number: 1012,
        retry: true,
        meaning: "The server restarts and will be back at the same address.",
        action: "Reconnect after a random delay of 5 to 30 seconds and resume with the last cursor.",
    },
    Row {
        name: "try-again-later",
        number: 1013,
        retry: true,
        meaning: "The server is overloaded and sheds connections.",
        action: "Reconnect later, to another server if there is one.",
    },
    Row {
        name: "slow-subscriber",
        number: 4001,
        retry: true,
        meaning: "The subscriber read more slowly than its channels publish, its queue was full, and the policy is close.",
        action: "Resume with the last cursor and, after a gap, fetch the state again; subscribe to less, or choose another slow-subscriber policy.",
    },
    Row {
        name: "idle-timeout",
        number: 4002,
        retry: true,
        meaning: "The peer sent nothing within the server's time limit, not even an answer to a ping, or began a message and did not finish it in time.",
        action: "Reconnect and resume with the last cursor; a client must answer pings and finish the messages it begins.",
    },
    Row {
        name: "too-many-connections",
        number: 4003,
        retry: true,
        meaning: "The server holds as many connections as it may and chose this one to go.",
        action: "Connect again later or to another server, or raise the limit and the descriptors it needs.",
    },
    Row {
        name: "token-expired",
        number: 4004,
        retry: false,
        meaning: "The client's token has expired, and it has sent no other.",
        action: "Connect again with a new token and resume with the last cursor.",
    },
    Row {
        name: "disconnected",
        number: 4005,
        retry: false,
        meaning: "The back end has ended the connections of this identity.",
        action: "Do not reconnect automatically; ask the application why.",
    },
];

impl CloseCode {
    /// Every code, in the table's order.
    pub const ALL: [Self; 15] = [
        Self::Normal,
        Self::GoingAway,
        Self::ProtocolError,
        Self::UnsupportedData,
        Self::InvalidPayload,
        Self::PolicyViolation,
        Self::MessageTooBig,
        Self::InternalError,
        Self::ServiceRestart,
        Self::TryAgainLater,
        Self::SlowSubscriber,
        Self::IdleTimeout,
        Self::TooManyConnections,
        Self::TokenExpired,
        Self::Disconnected,
    ];

    const fn row(self) -> &'static Row {
        &CLOSE_CODES[self as usize]
    }

    /// Its name, kebab-case: what goes over the wire and into results.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The status in the close frame.
    pub const fn number(self) -> u16 {
        self.row().number
    }

    /// Whether trying the same again later may succeed.
    pub const fn may_retry(self) -> bool {
        self.row().retry
    }

    /// What it means, one sentence.
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// What to do about it, one sentence.
    pub const fn action(self) -> &'static str {
        self.row().action
    }

    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The code of this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Status with which the `pushlab` process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExitCode {
    /// `ok`, 0: Everything asked for was done.
    Ok,
    /// `failed`, 1: Something failed that no other code names.
    Failed,
    /// `usage`, 2: The command line is wrong: an unknown command or option, or a value out of range.
    Usage,
    /// `bad-experiment`, 3: The experiment file cannot be read, or asks for something impossible.
    BadExperiment,
    /// `subject-failed`, 4: A subject did not start, stopped early, or could not be reached, and a cell is left with no valid run.
    SubjectFailed,
    /// `interrupted`, 5: The experiment was interrupted; every finished run is stored.
    Interrupted,
    /// `results-unwritable`, 6: Results, a report or a command's output cannot be written: no space, no permission, or another process holds them.
    ResultsUnwritable,
    /// `machine-check-failed`, 7: This machine does not meet a requirement: descriptors, ports, memory, cores, a device, a kernel setting or a program.
    MachineCheckFailed,
    /// `all-void`, 8: Every run was void, so there is nothing to report: the generator, not the subject, was the bottleneck.
    AllVoid,
    /// `condition-met`, 9: What --fail-if names holds, or a comparison found a change for the worse (with --undecided fail: or could not rule it out): the measurement itself went well.
    ConditionMet,
    /// `undecided`, 10: What --fail-if names, or whether something got worse, was neither shown nor ruled out: too few runs, or a change near the margin.
    Undecided,
}

const EXIT_CODES: [Row; 11] = [
    Row { name: "ok", number: 0, retry: false, meaning: "Everything asked for was done.", action: "Nothing." },
    Row {
        name: "failed",
        number: 1,
        retry: false,
        meaning: "Something failed that no other code names.",
        action: "Read the message; it names what was wrong, where, and what to try next.",
    },
    Row {
        name: "usage",
        number: 2,
        retry: false,
        meaning: "The command line is wrong: an unknown command or option, or a value out of range.",
        action: "Read the message, or run the command with --help.",
    },
    Row {
        name: "bad-experiment",
        number: 3,
        retry: false,
        meaning: "The experiment file cannot be read, or asks for something impossible.",
        action: "Correct what the message names; schema/experiment.schema.json defines the format.",
    },
    Row {
        name: "subject-failed",
        number: 4,
        retry: true,
        meaning: "A subject did not start, stopped early, or could not be reached, and a cell is left with no valid run.",
        action: "Read the reason that each failed run gives, with the subject's last output; the runs of the other subjects are stored.",
    },
    Row {
        name: "interrupted",
        number: 5,
        retry: true,
        meaning: "The experiment was interrupted; every finished run is stored.",
        action: "Give the same command again to resume.",
    },
    Row {
        name: "results-unwritable",
        number: 6,
        retry: false,
        meaning: "Results, a report or a command's output cannot be written: no space, no permission, or another process holds them.",
        action: "Make the place that the message names writable, or choose another, and give the command again; runs that the message says are stored need not be repeated.",
    },
    Row {
        name: "machine-check-failed",
        number: 7,
        retry: false,
        meaning: "This machine does not meet a requirement: descriptors, ports, memory, cores, a device, a kernel setting or a program.",
        action: "Do what the message or the failed line of `pushlab doctor` says, or ask for a smaller experiment.",
    },
    Row {
        name: "all-void",
        number: 8,
        retry: true,
        meaning: "Every run was void, so there is nothing to report: the generator, not the subject, was the bottleneck.",
        action: "Lower the load, give the generator more cores, or quieten the machine; each run says which warning voided it.",
    },
    Row {
        name: "condition-met",
        number: 9,
        retry: false,
        meaning: "What --fail-if names holds, or a comparison found a change for the worse (with --undecided fail: or could not rule it out): the measurement itself went well.",
        action: "Read the message, which gives the assertion and where it holds, and the report that the command names.",
    },
    Row {
        name: "undecided",
        number: 10,
        retry: true,
        meaning: "What --fail-if names, or whether something got worse, was neither shown nor ruled out: too few runs, or a change near the margin.",
        action: "Use more repeats, which decide; or say what undecided is worth to you: --undecided pass, or --undecided fail.",
    },
];

impl ExitCode {
    /// Every code, in the table's order.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::BadExperiment,
        Self::SubjectFailed,
        Self::Interrupted,
        Self::ResultsUnwritable,
        Self::MachineCheckFailed,
        Self::AllVoid,
        Self::ConditionMet,
        Self::Undecided,
    ];

    const fn row(self) -> &'static Row {
        &EXIT_CODES[self as usize]
    }

    /// Its name, kebab-case: what goes over the wire and into results.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The status of the process.
    pub const fn number(self) -> u8 {
        self.row().number as u8
    }

    /// Whether trying the same again later may succeed.
    pub const fn may_retry(self) -> bool {
        self.row().retry
    }

    /// What it means, one sentence.
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// What to do about it, one sentence.
    pub const fn action(self) -> &'static str {
        self.row().action
    }

    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The code of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
