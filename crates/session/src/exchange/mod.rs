//! One request and its answer, or the stream or WebSocket that it became.
//!
//! An exchange is told what came ([`Exchange::receive`]), the outcome of what it asked for, and that time has passed;
//! each time it returns what it needs next, an [`Effect`]. It never closes a connection, and it never blocks.

mod access;
mod answering;
mod http;
mod subscription;
#[cfg(test)]
mod tests;
mod time;
mod websocket;

use crate::effect::{Context, Effect};
use crate::framing::Framing;
use crate::gate::Identity;
use crate::incoming::PartialRequest;
use crate::request::Mode;
use crate::standing::Standing;
use crate::subscriber::Subscriber;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::http::Version;
use pushlab_wire::websocket::Decoder;
use std::num::NonZeroU32;

pub use answering::UNCONFIRMED;
pub use time::Silence;

/// What is exchanged with one peer over HTTP/1 or a WebSocket, one request at a time, or on one stream of HTTP/2, one
/// request in all.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    waiting: Option<Waiting>,
    /// What receives publications, if anything does.
    pub subscriber: Subscriber,
    /// Where the request came from.
    identity: Identity,
    /// Who sent it, where an access file says who may do what.
    standing: Option<Box<Standing>>,
    /// The version of the last request.
    version: Version,
    /// It is a stream of HTTP/2.
    is_http2: bool,
    /// The answer to the request may be gzip.
    takes_gzip: bool,
    /// The client speaks version 2 of the protocol, as far as its request could say so.
    speaks_v2: bool,
    /// The connection goes on after the answer.
    keeps_alive: bool,
    /// The request is a HEAD: its answer has no body.
    is_head: bool,
    /// A request has begun, and the time for it is running.
    is_expected: bool,
    /// The peer was sent a heartbeat and has sent nothing since.
    is_pinged: bool,
    /// What it waits for has not come by the first heartbeat.
    is_overdue: bool,
}

/// What the exchange is doing.
#[derive(Debug)]
enum State {
    /// Receiving requests; the one whose body is still coming, if any.
    Http(Option<Box<PartialRequest>>),
    /// Receiving and sending frames.
    WebSocket {
        decoder: Decoder,
        mode: Mode,
        /// When the unfinished message began to arrive, in seconds of
        /// [`Time`](crate::effect::Time), from 1.
        partial_since_s: Option<NonZeroU32>,
        /// Messages that come may be compressed.
        takes_compressed: bool,
        /// Messages that go may be compressed.
        sends_compressed: bool,
    },
    /// Sending an endless answer.
    Stream(Framing),
    /// Holding a poll that waits for a publication.
    HeldPoll,
    /// Sending an answer: the peer has not taken all of it, and the next request waits until it has.
    Answering,
    /// Nothing more: it has ended.
    Over,
}

/// What was asked for and has not come yet. Meanwhile, nothing that the peer sends is read.
#[derive(Debug)]
enum Waiting {
    /// The application's answer.
    Application,
    /// The position of what a request publishes; if it gave a cursor, it also wants to know what came after that.
    Publication(Option<Box<Cursor>>),
    /// The position of what a frame publishes.
    Frame,
    /// What a poll over HTTP has missed; the poll may be held for so long.
    Poll { wait_ms: u32 },
    /// What a poll over a WebSocket has missed.
    FramePoll,
    /// The log's position, where polls over a new WebSocket begin.
    Position,
    /// What a new subscriber has missed.
    Start,
    /// The next part of what it has missed.
    Part,
}

impl Default for Exchange {
    /// A request of which nothing has come yet.
    fn default() -> Self {
        Self {
            state: State::Http(None),
            waiting: None,
            subscriber: Subscriber::default(),
            identity: Identity::UNKNOWN,
            standing: None,
            version: Version::Http11,
            is_http2: false,
            takes_gzip: false,
            speaks_v2: false,
            keeps_alive: true,
            is_head: false,
            is_expected: false,
            is_pinged: false,
            is_overdue: false,
        }
    }
}

impl Exchange {
    /// Takes bytes from the peer (over HTTP/2, those of a body or of WebSocket frames). Returns how many it has used, and
    /// what it needs next. It may be called again with the unused bytes and those that came after them.
    pub fn receive(&mut self, bytes: &mut [u8], cx: &mut Context<'_>) -> (usize, Effect) {
        match self.state {
            _ if self.waiting.is_some() => (0, Effect::Nothing),
            State::Http(_) => self.receive_request(bytes, cx),
            State::WebSocket { .. } => self.receive_frame(bytes, cx),
            State::Stream(_) | State::Over => (bytes.len(), Effect::Nothing),
            State::HeldPoll | State::Answering => (0, Effect::Nothing),
        }
    }

    /// The peer has sent something.
    pub fn heard(&mut self) {
        self.is_pinged = false;
    }

    /// Ends it: nothing more is sent, and what still comes is ignored.
    pub fn end(&mut self) {
        self.state = State::Over;
        self.waiting = None;
        self.standing = None;
        self.subscriber.is_catching_up = false;
    }

    /// Bytes of memory it keeps for partly received input, and for what waits for its subscriber besides publications.
    pub fn kept_bytes(&self) -> usize {
        let partial = match &self.state {
            State::Http(Some(request)) => request.kept_bytes(),
            State::WebSocket { decoder, .. } => decoder.kept_bytes(),
            _ => 0,
        };
        partial + self.subscriber.kept_bytes()
    }

    /// Whether a request or message has come in part.
    pub fn has_partial(&self) -> bool {
        match &self.state {
            State::Http(request) => request.is_some(),
            State::WebSocket { decoder, .. } => decoder.is_inside_message(),
            _ => false,
        }
    }

    /// Whether the next bytes must wait for the answer to those before. Nothing is read then, not even the end: a peer
    /// that has sent its last request may close its sending side and still read.
    pub fn is_busy(&self) -> bool {
        self.waiting.is_some() || matches!(self.state, State::Answering)
    }

    /// Whether it is receiving a request or waiting for the next one.
    pub fn is_http(&self) -> bool {
        self.waiting.is_none() && matches!(self.state, State::Http(_))
    }

    /// Whether it is between two requests: no complete head of the next one has come.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_none() && matches!(self.state, State::Http(None))
    }

    /// Whether the peer has yet to take all of an answer.
    pub fn is_answering(&self) -> bool {
        matches!(self.state, State::Answering)
    }

    /// Whether it waits for the application's answer.
    pub fn is_with_application(&self) -> bool {
        matches!(self.waiting, Some(Waiting::Application))
    }

    /// The framing in which publications reach it, if they do.
    pub fn framing(&self) -> Option<Framing> {
        match &self.state {
            _ if self.subscriber.is_catching_up => None,
            &State::WebSocket { mode: Mode::Push, sends_compressed: is_compressed, .. } => {
                Some(Framing::WebSocket { is_compressed })
            }
            State::Stream(framing) => Some(*framing),
            State::HeldPoll => Some(Framing::Reply),
            _ => None,
        }
    }

    /// The framing of what is written.
    pub fn framing_out(&self) -> Framing {
        match self.state {
            State::WebSocket { sends_compressed: is_compressed, .. } => Framing::WebSocket { is_compressed },
            State::Stream(framing) => framing,
            _ => Framing::Reply,
        }
    }

    /// Whether a reply made for many fits this one too: it is text of HTTP/1.1, needs no header field of its own, and the
    /// connection goes on, as no stream of HTTP/2 does.
    pub fn takes_common_reply(&self) -> bool {
        self.keeps_alive && self.identity.is_for_own_pages()
    }

    /// Whether that reply is better compressed.
    pub fn takes_gzip(&self) -> bool {
        self.takes_gzip
    }
}
