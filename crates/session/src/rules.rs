//! What a server allows, as far as the protocol is concerned.

use crate::gate::Gate;
use crate::request::{Mode, RequestRules};
use pushlab_wire::http::Version;
use pushlab_wire::native::Announcement;
use pushlab_wire::websocket::{Config, Role};
use std::time::Duration;

/// Fragments of a message that comes back: it may be many times as long as one that is published.
const MAX_ECHO_FRAGMENTS: u32 = 1 << 20;

/// The rules of a server.
#[derive(Debug)]
pub struct Rules {
    /// Who may do what.
    pub gate: Gate,
    /// Something answers on the paths that are not the server's own.
    pub has_application: bool,
    /// WebSockets may be opened whose messages come back.
    pub echoes: bool,
    /// Every connection speaks TLS.
    pub is_tls: bool,
    /// A request's head, bytes.
    pub max_head_bytes: usize,
    /// A request's body, bytes.
    pub max_body_bytes: usize,
    /// A WebSocket message, bytes.
    pub max_message_bytes: usize,
    /// Messages and replies of at least so many bytes are compressed for clients that ask for it.
    pub compression_from: Option<usize>,
    /// Channels of one subscriber.
    pub max_channels: usize,
    /// A reply to a poll, bytes; the rest comes with the next.
    pub max_reply_bytes: usize,
    /// Longest time a poll is held.
    pub max_wait: Duration,
    /// Time for a request to arrive in full.
    pub head_timeout: Duration,
    /// Time for the application, or the log, to answer.
    pub answer_timeout: Duration,
    /// Time without progress while a peer takes what is sent.
    pub write_timeout: Duration,
    /// Time between two requests.
    pub idle_timeout: Duration,
    /// Time between two heartbeats.
    pub heartbeat: Duration,
    /// Time until the first heartbeat of a stream whose client asks for an early one, if that is shorter.
    pub first_heartbeat: Duration,
}

impl Rules {
    /// What a request may ask for at most.
    pub(crate) fn of_requests(&self, takes_gzip: bool, is_draining: bool) -> RequestRules {
        RequestRules {
            max_channels: self.max_channels,
            max_wait: self.max_wait,
            compresses: self.compression_from.is_some(),
            takes_gzip,
            echoes: self.echoes,
            is_draining,
        }
    }

    /// How frames from clients are read.
    pub(crate) fn of_frames(&self, mode: Mode, takes_compressed: bool) -> Config {
        let usual = Config::new(Role::Server);
        let max_fragments = if mode == Mode::Echo { MAX_ECHO_FRAGMENTS } else { usual.max_fragments };
        Config { max_message_bytes: self.max_message_bytes, max_fragments, takes_compressed, ..usual }
    }

    /// What a client that speaks this version is told of the server before all else, if it asks.
    pub(crate) fn announcement(&self, http: Version) -> Announcement {
        Announcement {
            // Rounded up: whoever waits for two of them must not be early.
            heartbeat_ms: u64::try_from(self.heartbeat.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1),
            max_message_bytes: self.max_message_bytes as u64,
            max_channels: self.max_channels as u64,
            http: Some(http),
        }
    }
}
