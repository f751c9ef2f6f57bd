//! How polling transports ask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How polling transports ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Polling {
    /// Time between two polls of a client (polling, websocket-polling), in ms.
    pub interval_ms: u64,
    /// How long a long poll may be held, in seconds.
    pub wait_s: u64,
    /// Whether polls (polling alone) ask for the newest message, whether or not the client has it, in place of what is new
    /// since the last: a poll then carries no position. A message that comes again counts once.
    pub newest: bool,
    /// Whether clients that poll at an interval ask for the list of users too, with a request of its own.
    pub user_list: bool,
}

impl Default for Polling {
    fn default() -> Self {
        Self { interval_ms: 500, wait_s: 25, newest: false, user_list: false }
    }
}
