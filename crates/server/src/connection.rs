//! One connection: its bytes, in both directions, and the exchange that they are.

use crate::config::Limits;
use crate::http2::Shared;
use crate::stream::Stream;
use pushlab_access::Peer;
use pushlab_log::Ticket;
use pushlab_session::exchange::Exchange;
use pushlab_session::groups::NO_GROUP;
use pushlab_session::unsent::Unsent;
use pushlab_session::wheel::Tick;
use pushlab_wire::transport::Transport;
use std::sync::Arc;

/// State of one connection: about 200 bytes, and nothing on the heap while it is idle and without TLS.
pub struct Connection {
    /// Tells it from earlier and later connections in its place.
    pub generation: u32,
    /// The socket, with TLS or without.
    pub stream: Stream,
    /// Whether anything is still to be said on it.
    pub stage: Stage,
    /// What its bytes are, unless they are those of many streams.
    pub exchange: Exchange,
    /// What its streams share, where it speaks HTTP/2.
    pub http2: Option<Shared>,
    /// Group it subscribes to, or [`NO_GROUP`].
    pub group: u32,
    /// Its place among the group's members, if it is one.
    pub slot: u32,
    /// When to look at it next.
    pub deadline: Tick,
    /// When something was read last, or an answer began to leave, behind which nothing is read until it has been taken.
    pub last_read: Tick,
    /// When something was written last while a queue existed.
    pub last_progress: Tick,
    /// What it held when it was last counted.
    pub counted_bytes: Holds,
    /// Bytes read and not used yet.
    pub carry: Vec<u8>,
    /// Bytes that the socket did not take.
    pub unsent: Option<Box<Unsent>>,
    /// What the log is to answer for it.
    pub ticket: Option<Ticket>,
    /// The other end of its socket, if there is an access file.
    pub peer: Option<Arc<Peer>>,
    /// Transport it counts as.
    pub counted: Option<Transport>,
    /// What is known of its peer.
    pub known: Known,
    /// It stands among those to go on with.
    pub is_unfinished: bool,
    /// Something came, or its end, while nothing was read.
    pub has_unread: bool,
    /// `carry` holds more than one turn may take; nothing is read until it has been used.
    pub is_behind: bool,
    /// The peer says nothing more: behind what it has sent comes its end.
    pub has_ended: bool,
    /// The peer reads nothing more either.
    pub is_peer_gone: bool,
}

/// Where a connection stands between its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its exchange goes on.
    Open,
    /// Everything is sent: waits for the peer to close, so that a reset does not overtake our last bytes.
    Lingering,
    /// Its queue was dropped because too much was kept in total: it ends as soon as nothing iterates over it.
    Abandoned,
    /// It has ended, and goes when the turn does. Nothing is read or written any more.
    Ended,
}

/// What a peer has said so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing that could be used.
    Nothing,
    /// Its beginning, something that is not whole yet, or more than one read takes. What comes is read when others had their turn: there may be
    /// thousands of an attacker's.
    Beginning,
    /// More than its beginning, and all of it whole: what comes is read at once.
    Whole,
}

/// What the server keeps for a connection, bytes; 4 GiB and more count as that.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// What waits for the socket, including publications that others hold as well.
    pub queued: u32,
    /// Its own memory: what waits, publications excluded, and partly received input.
    pub kept: u32,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(stream: Stream, now: Tick) -> Self {
        Self {
            generation: 0,
            stream,
            stage: Stage::Open,
            exchange: Exchange::default(),
            http2: None,
            known: Known::Nothing,
            group: NO_GROUP,
            slot: 0,
            deadline: Tick::MAX,
            counted_bytes: Holds::default(),
            last_read: now,
            last_progress: now,
            carry: Vec::new(),
            unsent: None,
            ticket: None,
            peer: None,
            counted: None,
            is_unfinished: false,
            is_peer_gone: false,
            has_unread: false,
            is_behind: false,
            has_ended: false,
        }
    }

    /// Whether its exchange goes on.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether nothing is read or written any more.
    pub fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Abandoned | Stage::Ended)
    }

    /// Whether something waits for the socket to take it.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.unsent.is_some() || self.exchange.subscriber.has_queued()
    }

    /// Something that has come was used.
    #[inline]
    pub fn begin(&mut self) {
        if self.known == Known::Nothing {
            self.known = Known::Beginning;
        }
    }

    /// Whether it has said something that it has not finished.
    pub fn has_partial(&self) -> bool {
        !self.carry.is_empty() || self.exchange.kept_bytes() > 0
    }

    /// What it holds now. With HTTP/2, what the socket did not take at the last write counts as queued.
    pub fn holds(&self) -> Holds {
        if self.stage == Stage::Ended {
            return Holds::default();
        }
        let queued = match &self.http2 {
            Some(http2) => http2.borrow().queued,
            None => {
                let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.len());
                unsent + self.exchange.subscriber.queued_bytes()
            }
        };
        let bytes = |size| u32::try_from(size).unwrap_or(u32::MAX);
        Holds { queued: bytes(queued), kept: bytes(self.kept_bytes()) }
    }

    fn kept_bytes(&self) -> usize {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.kept_bytes());
        let http2 = self.http2.as_ref().map_or(0, |http2| http2.borrow().protocol.kept_bytes());
        unsent + http2 + self.carry.capacity() + self.stream.kept_bytes() + self.exchange.kept_bytes()
    }

    /// Its weight when some have to go: the memory it takes, and the publications waiting for it.
    pub fn weight(&self) -> usize {
        self.kept_bytes() + self.exchange.subscriber.queued_bytes()
    }

    /// That weight, with its own memory as last counted.
    pub fn counted_weight(&self) -> usize {
        self.counted_bytes.kept as usize + self.exchange.subscriber.queued_bytes()
    }

    /// Whether its peer has left more replies unread than it may.
    #[inline]
    pub fn is_held_back(&self, limits: &Limits) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| unsent.replies() > limits.max_unread_replies_bytes)
    }

    /// Whether nothing is read from its peer: not before an answer has come, or replies have been taken.
    #[inline]
    pub fn waits(&self, limits: &Limits) -> bool {
        self.exchange.is_busy() || self.is_held_back(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // The goal is 512 bytes with the slab's slack of a doubling.
        assert!(size_of::<Connection>() <= 200, "{} bytes", size_of::<Connection>());
    }
}
