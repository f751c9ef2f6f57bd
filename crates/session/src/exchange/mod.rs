//! One request and its answer, or the stream or WebSocket that it became.
//!
//! An exchange is told what came ([`Exchange::receive`]), what was asked for, and that time has passed; each time it says
//! what it needs next, an [`Effect`]. It closes nothing and waits for nothing by itself.

mod answering;
mod http;
mod subscription;
mod time;
mod websocket;

use crate::effect::{Context, Effect};
use crate::framing::Framing;
use crate::gate::Identity;
use crate::incoming::PartialRequest;
use crate::subscriber::Subscriber;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::websocket::Decoder;

pub use time::Silence;

/// What is exchanged with one peer over HTTP/1 or a WebSocket: one request at a time.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    waiting: Option<Waiting>,
    /// What receives publications, if something does.
    pub subscriber: Subscriber,
    /// Who sent the request.
    identity: Identity,
    /// The request named an `Origin`: pages of other sites may read the answer.
    has_origin: bool,
    /// The connection goes on after the answer.
    keeps_alive: bool,
    /// The request is a HEAD: its answer has no body.
    is_head: bool,
    /// A request has begun, and its time runs.
    is_expected: bool,
    /// The peer was asked for a sign of life, and has given none since.
    is_pinged: bool,
    /// What it waits for has not come by the first heartbeat.
    is_overdue: bool,
}

/// What is spoken.
#[derive(Debug)]
enum State {
    /// Requests and answers; a request whose body is still coming, if any.
    Http(Option<Box<PartialRequest>>),
    /// Frames both ways.
    WebSocket {
        decoder: Decoder,
        /// The client asks; nothing is pushed.
        is_polling: bool,
    },
    /// An endless answer.
    Stream(Framing),
    /// A poll that waits for a publication.
    HeldPoll,
    /// An answer is on its way: the peer has not taken all of it, and the next request waits until it has.
    Answering,
    /// Everything is said.
    Over,
}

/// What was asked for and has not come yet. Nothing that the peer sends is read meanwhile.
#[derive(Debug)]
enum Waiting {
    /// The application's answer.
    Application,
    /// The place of what a request publishes, which wants to know what came after the cursor too.
    Publication(Option<Box<Cursor>>),
    /// The place of what a frame publishes.
    Frame,
    /// What a poll over HTTP has missed; it may be held for so long.
    Poll { wait_ms: u32 },
    /// What a poll over a WebSocket has missed.
    FramePoll,
    /// Where the log stands, as polls over a new WebSocket begin there.
    Position,
    /// What a new subscriber has missed.
    Start,
    /// What else it has missed.
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
            has_origin: false,
            keeps_alive: true,
            is_head: false,
            is_expected: false,
            is_pinged: false,
            is_overdue: false,
        }
    }
}

impl Exchange {
    /// Takes bytes from the peer: says how many it has used, and what it needs next. It may be called again with those that
    /// it has not used, together with what came behind them.
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

    /// Nothing more is said: what comes is ignored.
    pub fn end(&mut self) {
        self.state = State::Over;
        self.waiting = None;
        self.subscriber.is_catching_up = false;
    }

    /// Whether the next bytes wait for the answer to those before, so that nothing is read: not even the end, since who has
    /// asked all may close that way and still read.
    pub fn is_busy(&self) -> bool {
        self.waiting.is_some() || matches!(self.state, State::Answering)
    }

    /// Whether requests come, or part of one.
    pub fn is_http(&self) -> bool {
        self.waiting.is_none() && matches!(self.state, State::Http(_))
    }

    /// Whether it is between two requests, of which nothing has come.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_none() && matches!(self.state, State::Http(None))
    }

    /// Whether an answer is on its way that the peer has not taken.
    pub fn is_answering(&self) -> bool {
        matches!(self.state, State::Answering)
    }

    /// Whether the application is to answer.
    pub fn is_with_application(&self) -> bool {
        matches!(self.waiting, Some(Waiting::Application))
    }

    /// The framing in which publications reach it, if they do.
    pub fn framing(&self) -> Option<Framing> {
        match &self.state {
            _ if self.subscriber.is_catching_up => None,
            State::WebSocket { is_polling: false, .. } => Some(Framing::WebSocket),
            State::Stream(framing) => Some(*framing),
            State::HeldPoll => Some(Framing::Reply),
            _ => None,
        }
    }

    /// The framing of what is written.
    pub fn framing_out(&self) -> Framing {
        match self.state {
            State::WebSocket { .. } => Framing::WebSocket,
            State::Stream(framing) => framing,
            _ => Framing::Reply,
        }
    }

    /// Whether a reply that is the same for many may be its own: it needs no field of its own, and the connection goes on.
    pub fn takes_common_reply(&self) -> bool {
        self.keeps_alive && !self.has_origin
    }
}
