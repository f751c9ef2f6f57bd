//! How polling transports ask.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// How polling transports ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Polling {
    /// Time between two polls of a client (polling, websocket-polling), in ms.
    pub interval_ms: u64,
    /// How long a long poll may be held, in seconds.
    pub wait_s: u64,
    /// How many of the newest messages each poll brings (polling alone), whether or not the client has them: 1 to 100. A poll
    /// then carries no position, and a message that comes again counts once. Without it, a poll brings what is new.
    #[serde(deserialize_with = "newest")]
    pub newest: Option<u32>,
    /// How long after its messages are due a client's polls leave, in ms, less than `interval_ms`: the same for all messages
    /// and in all runs, in place of a phase that each run draws. It needs a steady chat in which one client or all of them
    /// publish, evenly spread, at the polling interval.
    pub phase_ms: Option<u64>,
    /// Whether clients that poll at an interval ask for the list of users too, with a request of its own.
    pub user_list: bool,
}

impl Default for Polling {
    fn default() -> Self {
        Self { interval_ms: 500, wait_s: 25, newest: None, phase_ms: None, user_list: false }
    }
}

/// A number of messages, or what results of before have: whether it is the newest alone.
fn newest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Count(u32),
        Flag(bool),
    }
    let stored = Option::deserialize(deserializer);
    match stored.map_err(|_| D::Error::custom("newest is a number of messages: 1 for the newest alone"))? {
        None | Some(Stored::Flag(false)) => Ok(None),
        Some(Stored::Flag(true)) => Ok(Some(1)),
        Some(Stored::Count(count)) => Ok(Some(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_is_a_number_of_messages() {
        let read = |text: &str| toml::from_str::<Polling>(text).map(|polling| polling.newest);
        assert_eq!([read("newest = 10"), read("")], [Ok(Some(10)), Ok(None)]);
        assert_eq!([read("newest = true"), read("newest = false")], [Ok(Some(1)), Ok(None)], "stored before");
        for wrong in ["newest = -1", "newest = \"ten\""] {
            let why = read(wrong).unwrap_err().to_string();
            assert!(why.contains("newest is a number of messages"), "{why}");
        }
    }
}
