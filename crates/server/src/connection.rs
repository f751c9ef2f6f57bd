//! One connection: a small state machine on shared buffers.

use crate::pool::Errand;
use crate::stream::Stream;
use crate::unsent::Unsent;
use crate::wheel::Tick;
use pushlab_session::exchange::Exchange;
use pushlab_session::framing::Framing;
use pushlab_session::subscriber::Subscriber;
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
    /// Its latest request.
    pub exchange: Exchange,
    /// What receives on it, if something does.
    pub subscriber: Subscriber,
    /// Group it subscribes to, or [`NO_GROUP`].
    pub group: u32,
    /// Its place among the group's members, if it is one.
    pub slot: u32,
    /// When to look at it next.
    pub deadline: Tick,
    /// The earliest entry in the wheel; `Tick::MAX` for none.
    pub scheduled: Tick,
    /// When something was read last.
    pub last_read: Tick,
    /// When something was written last while a queue existed.
    pub last_progress: Tick,
    /// It was asked for a sign of life since then.
    pub is_pinged: bool,
    /// Bytes read and not understood yet.
    pub carry: Vec<u8>,
    /// Bytes that the socket did not take.
    pub unsent: Option<Box<Unsent>>,
    /// Transport it counts as.
    pub counted: Option<Transport>,
    /// Something came, or its end, while nothing was read.
    pub has_unread: bool,
    /// `carry` holds more than one turn may take; nothing is read until it has been understood.
    pub is_behind: bool,
    /// The peer says nothing more: behind what it has sent comes its end.
    pub has_ended: bool,
}

/// Bytes that wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// All.
    pub bytes: usize,
    /// What of that nobody else holds in memory, as history and other queues hold publications.
    pub own: usize,
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
    /// An answer is on its way: the socket did not take all of it, and the next request waits until it has.
    Answering {
        /// When it must have been taken.
        until: Instant,
    },
    /// Everything is said: waits for the peer to close, so that our last words are not reset away.
    Lingering,
    /// It has ended, and goes when the turn does. Nothing is read or written any more.
    Ended,
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
            exchange: Exchange::NEW,
            subscriber: Subscriber::default(),
            deadline: Tick::MAX,
            scheduled: Tick::MAX,
            last_read: now,
            last_progress: now,
            is_pinged: false,
            carry: Vec::new(),
            unsent: None,
            counted: None,
            has_unread: false,
            is_behind: false,
            has_ended: false,
        }
    }

    /// Whether it has ended.
    pub fn is_gone(&self) -> bool {
        matches!(self.kind, Kind::Ended)
    }

    /// Whether its next request waits for the answer to the one before, so that nothing on it is read: not even its end,
    /// since who has asked all may close that way and still read.
    pub fn is_answering(&self) -> bool {
        matches!(self.kind, Kind::Awaiting { .. } | Kind::Answering { .. })
    }

    /// Whether something waits for the socket to take it.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.unsent.is_some() || self.subscriber.has_queued()
    }

    /// What waits for that.
    pub fn queued(&self) -> Queued {
        let own = self.unsent.as_ref().map_or(0, |unsent| unsent.len());
        Queued { bytes: own + self.subscriber.queued_bytes(), own }
    }

    /// The framing in which publications reach it, if they do.
    pub fn framing(&self) -> Option<Framing> {
        match &self.kind {
            _ if self.subscriber.is_catching_up => None,
            Kind::WebSocket { is_polling: false, .. } => Some(Framing::WebSocket),
            Kind::Stream(framing) => Some(*framing),
            Kind::HeldPoll => Some(Framing::Reply),
            _ => None,
        }
    }

    /// The framing of what is written on it.
    pub fn framing_out(&self) -> Framing {
        match self.kind {
            Kind::WebSocket { .. } => Framing::WebSocket,
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
