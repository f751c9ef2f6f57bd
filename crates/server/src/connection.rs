//! One connection: a small state machine on shared buffers.

use crate::framing::Framing;
use crate::gate::Identity;
use crate::outbox::Outbox;
use crate::pool::Errand;
use crate::stream::Stream;
use crate::wheel::Tick;
use pushlab_wire::http::BodyDecoder;
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::Decoder;
use std::sync::Arc;
use std::time::Instant;

/// No group.
pub const NO_GROUP: u32 = u32::MAX;

/// State of one connection: about 150 bytes, and nothing on the heap while it is idle and without TLS.
pub struct Connection {
    /// Tells it from earlier and later connections in its place.
    pub generation: u32,
    /// The socket, with TLS or without.
    pub stream: Stream,
    /// What is spoken on it now.
    pub kind: Kind,
    /// Group it subscribes to, or [`NO_GROUP`].
    pub group: u32,
    /// Its place among the group's members, if it is one.
    pub slot: u32,
    /// Publications up to here have been delivered or are queued, or are not for it.
    pub seen: u64,
    /// When to look at it next.
    pub deadline: Tick,
    /// The earliest entry in the wheel; `Tick::MAX` for none.
    pub scheduled: Tick,
    /// When something was read last.
    pub last_read: Tick,
    /// When something was written last while a queue existed.
    pub last_progress: Tick,
    /// Bytes read and not understood yet.
    pub carry: Vec<u8>,
    /// Bytes and messages that the socket did not take.
    pub outbox: Option<Box<Outbox>>,
    /// Transport it counts as.
    pub counted: Option<Transport>,
    /// The request named an `Origin`.
    pub has_origin: bool,
    /// The connection goes on after the answer.
    pub keeps_alive: bool,
    /// The request is a HEAD: its answer has no body.
    pub is_head: bool,
    /// A request has begun, and its time runs.
    pub is_expecting: bool,
    /// What it missed is still being sent; until then it is no member of its group.
    pub is_catching_up: bool,
    /// Something came, or its end, while nothing was read.
    pub has_unread: bool,
    /// `carry` holds more than one turn may take; nothing is read until it has been understood.
    pub is_behind: bool,
    /// The peer says nothing more: behind what it has sent comes its end.
    pub has_ended: bool,
    /// Who sent its latest request.
    pub identity: Identity,
}

/// What is spoken on a connection.
pub enum Kind {
    /// Requests and answers; a request whose body is still coming, if any.
    Http(Option<Box<PartialRequest>>),
    /// Frames both ways.
    WebSocket {
        /// Reads frames.
        decoder: Decoder,
        /// The client asks; nothing is pushed.
        is_polling: bool,
    },
    /// An endless response.
    Stream(Framing),
    /// A poll that waits for a publication.
    HeldPoll,
    /// A request that waits for the application.
    Awaiting {
        /// Which answer is its own.
        errand: Arc<Errand>,
    },
    /// The application's answer is being sent.
    Answering {
        /// When it must have been taken.
        until: Instant,
    },
    /// Our own connection to a back end.
    Feed(FeedPhase),
    /// Everything is said: waits for the peer to close, so that our last words are not reset away.
    Lingering,
}

/// Where a connection to a back end stands.
pub enum FeedPhase {
    /// TCP is being connected.
    Connecting,
    /// The handshake was sent with this key.
    Handshake([u8; 16]),
    /// Messages come.
    Open(Decoder),
}

/// A request whose body is still coming.
pub struct PartialRequest {
    /// The head as it was sent, which is read again when the body is there.
    pub head: Vec<u8>,
    /// Reads the body.
    pub decoder: BodyDecoder,
    /// The body so far.
    pub body: Vec<u8>,
}

impl Connection {
    /// A connection that was just accepted or begun.
    pub fn new(stream: Stream, kind: Kind, now: Tick) -> Self {
        Self {
            generation: 0,
            stream,
            kind,
            group: NO_GROUP,
            slot: 0,
            seen: 0,
            deadline: Tick::MAX,
            scheduled: Tick::MAX,
            last_read: now,
            last_progress: now,
            carry: Vec::new(),
            outbox: None,
            counted: None,
            has_origin: false,
            keeps_alive: true,
            is_head: false,
            is_expecting: false,
            is_catching_up: false,
            has_unread: false,
            is_behind: false,
            has_ended: false,
            identity: Identity::UNKNOWN,
        }
    }

    /// The framing in which publications reach it, if they do.
    pub fn framing(&self) -> Option<Framing> {
        match &self.kind {
            _ if self.is_catching_up => None,
            Kind::WebSocket { is_polling: false, .. } => Some(Framing::WebSocket),
            Kind::Stream(framing) => Some(*framing),
            Kind::HeldPoll => Some(Framing::Reply),
            _ => None,
        }
    }

    /// The framing of what is written on it.
    pub fn framing_out(&self) -> Framing {
        match self.kind {
            Kind::WebSocket { .. } | Kind::Feed(_) => Framing::WebSocket,
            Kind::Stream(framing) => framing,
            _ => Framing::Reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // The goal is 512 bytes with the slab's slack of a doubling.
        assert!(size_of::<Connection>() <= 160, "{} bytes", size_of::<Connection>());
    }
}
