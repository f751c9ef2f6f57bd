//! Clients: what they ask for on each transport, and what they know.

mod asking;
mod frames;
mod reading;

pub use asking::some_data;

use crate::link::Socket;
use crate::tally::Tally;
use crate::truth::{CHANNELS, Checked, Kind, Reception, Truth, found};
use fastrand::Rng;
use flate2::write::GzDecoder;
use pushlab_session::queue::Policy;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::fields::FieldList;
use pushlab_wire::http::BodyDecoder;
use pushlab_wire::lines::LineDecoder;
use pushlab_wire::websocket::Decoder;
use std::collections::VecDeque;

/// Cursors that a client remembers.
const TOLD_MAX: usize = 8;

/// What a client keeps from one connection to the next.
#[derive(Debug, Default)]
pub struct Memory {
    pub channels: Vec<usize>,
    /// From where it resumes.
    pub cursor: Option<Cursor>,
    /// Cursors that it was told before.
    told: VecDeque<Cursor>,
    pub tally: Tally,
}

impl Memory {
    pub fn tell(&mut self, cursor: Cursor) {
        if self.cursor != Some(cursor) {
            self.cursor = Some(cursor);
            if self.told.len() == TOLD_MAX {
                self.told.pop_front();
            }
            self.told.push_back(cursor);
        }
    }
}

/// What was asked for, and has not been answered.
#[derive(Debug)]
pub enum Asked {
    /// A poll over HTTP, or over a WebSocket.
    Poll(Reception),
    /// To publish this to a channel; answered by its cursor.
    Publish(usize, String),
    /// The same, but answered by what is new, this among it.
    PublishAndPoll(Reception),
    /// To say this.
    Echo(Vec<u8>),
    /// An answer of this status.
    Status(u16),
    /// A WebSocket.
    WebSocket {
        key: [u8; 16],
        channels: Vec<usize>,
        is_told: bool,
        reception: Option<Reception>,
    },
    /// A stream.
    Stream {
        form: Form,
        is_told: bool,
        reception: Reception,
    },
    /// To publish in a frame, which is answered only if it fails.
    Frame,
    Subscribe(usize),
    Unsubscribe(usize),
    Ping(u64),
    /// An RFC 6455 ping.
    Probe(Vec<u8>),
    /// An error of this code.
    Refusal(&'static str),
    /// The end of the WebSocket.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Events,
    Lines,
    Script,
}

/// A request, as far as its answer depends on it.
#[derive(Debug)]
pub struct Expected {
    pub asked: Asked,
    pub is_head: bool,
    pub has_origin: bool,
    /// The answer may be gzip.
    pub takes_gzip: bool,
    /// It was sent in two parts with 100 (Continue) between them.
    pub expects_continue: bool,
    /// The answer may wait for a publication.
    pub may_wait: bool,
}

impl Expected {
    /// Whether the answer is a WebSocket, which ends when its client's side does.
    fn is_websocket(&self) -> bool {
        matches!(self.asked, Asked::WebSocket { .. })
    }

    pub fn frame(asked: Asked) -> Self {
        Self { asked, is_head: false, has_origin: false, takes_gzip: false, expects_continue: false, may_wait: false }
    }
}

/// What is spoken on a connection.
pub enum Mode {
    /// An answer whose body is coming, if any.
    Http(Option<Answer>),
    WebSocket {
        decoder: Decoder,
        /// `None` where the client polls.
        reception: Option<Reception>,
        /// What it has subscribed to, as far as it has said so.
        channels: Vec<usize>,
        is_told: bool,
    },
    Stream {
        body: BodyDecoder,
        /// What the body is, if it is gzip.
        gzip: Option<Box<GzDecoder<Vec<u8>>>>,
        lines: Lines,
        reception: Reception,
        is_told: bool,
    },
    /// The last answer has come.
    Over,
}

/// An answer whose body is coming: how that is delimited, and what has come.
pub struct Answer {
    body: BodyDecoder,
    content: Vec<u8>,
    is_gzip: bool,
    status: u16,
    is_last: bool,
}

impl Peer {
    /// Whether it has become a WebSocket.
    pub fn is_websocket(&self) -> bool {
        matches!(self.mode, Mode::WebSocket { .. })
    }
}

/// How a stream's body becomes frames.
pub enum Lines {
    Events(EventStreamDecoder),
    Json(LineDecoder),
    /// The first line is HTML.
    Script(LineDecoder, bool),
}

/// One connection of a client.
pub struct Peer {
    pub socket: Socket,
    /// Its place at the server.
    pub place: (usize, u32),
    /// It is a stream of HTTP/2, on which one thing is asked.
    pub is_http2: bool,
    /// It has asked for compressed messages.
    pub takes_compressed: bool,
    /// The head of that which has not arrived, and whether the client's side ends with it.
    pub head: Option<(FieldList, bool)>,
    /// What was said and has not arrived.
    pub out: Vec<u8>,
    /// It says nothing more: behind `out` comes its end.
    pub is_ending: bool,
    /// It asks for nothing more.
    pub is_last: bool,
    pub expected: VecDeque<Expected>,
    mode: Mode,
    buffer: Vec<u8>,
    answers_pings: bool,
}

pub struct Client {
    pub rng: Rng,
    pub policy: Policy,
    /// Requests may fail, or be answered too late.
    pub may_fail: bool,
    pub is_draining: bool,
    pub max_channels: usize,
    pub memory: Memory,
    pub peer: Option<Peer>,
    pings: u64,
}

impl Client {
    pub fn new(mut rng: Rng, policy: Policy, may_fail: bool, max_channels: usize) -> Self {
        let channels = some_channels(&mut rng, 1);
        let memory = Memory { channels, ..Memory::default() };
        Self { rng, policy, may_fail, is_draining: false, max_channels, memory, peer: None, pings: 0 }
    }

    /// It has a new connection.
    pub fn connect(&mut self, socket: Socket, place: (usize, u32)) {
        if self.memory.channels.is_empty() || self.rng.u32(..4) == 0 {
            self.memory.channels = some_channels(&mut self.rng, 1);
        }
        self.peer = Some(Peer {
            socket,
            place,
            is_http2: self.rng.u32(..3) == 0,
            takes_compressed: false,
            head: None,
            out: Vec::new(),
            is_ending: false,
            is_last: false,
            expected: VecDeque::new(),
            mode: Mode::Http(None),
            buffer: Vec::new(),
            answers_pings: self.rng.u32(..10) > 0,
        });
    }

    /// Its connection has ended, by its own doing if `is_cut`.
    pub fn disconnect(&mut self, is_cut: bool) -> Checked {
        let Some(peer) = self.peer.take() else { return Ok(()) };
        let is_whole = !is_cut && peer.socket.0.borrow().is_whole;
        if let Mode::WebSocket { reception: Some(reception), .. } | Mode::Stream { reception, .. } = &peer.mode {
            reception.close_account()?;
        }
        let has_asked = peer.is_http2 && peer.head.is_none() && peer.socket.0.borrow().head_to_server.is_none();
        let is_torn = match &peer.mode {
            Mode::Http(None) if has_asked && !peer.expected.is_empty() => true,
            Mode::Http(body) => body.is_some() || !peer.buffer.is_empty(),
            // The close frame was the last; or the end of a stream of HTTP/2 is answered by another.
            Mode::WebSocket { .. } => !(peer.is_http2 && peer.is_ending),
            Mode::Stream { .. } | Mode::Over => !peer.buffer.is_empty(),
        };
        if is_whole && is_torn {
            let what = format!("it ended in the middle; expected were {:?}, then {:?}", peer.expected, peer.buffer);
            return found(Kind::Malformed, what);
        }
        Ok(())
    }

    /// All has arrived and been answered that can be: checks that nothing is missing.
    pub fn check_at_rest(&mut self, truth: &Truth) -> Checked {
        let Some(peer) = &mut self.peer else { return Ok(()) };
        let is_lasting = matches!(peer.mode, Mode::WebSocket { .. } | Mode::Stream { .. });
        if self.is_draining && (is_lasting || !peer.expected.is_empty()) {
            return found(Kind::Unanswered, format!("the server stops, and it waits for {:?}", peer.expected));
        }
        if let Mode::WebSocket { reception: Some(reception), .. } | Mode::Stream { reception, .. } = &mut peer.mode {
            if !reception.has_begun() {
                return found(Kind::Unanswered, format!("it has not begun: {reception:?}"));
            }
            reception.close_account_at_head(truth)?;
        }
        while let Some(Expected { asked: Asked::Frame, .. }) = peer.expected.front() {
            peer.expected.pop_front();
        }
        let now = peer.socket.0.borrow().nows.front().copied();
        match peer.expected.front_mut() {
            Some(Expected { asked: Asked::Poll(reception), may_wait: true, .. }) => {
                reception.begin_reply(now, truth);
                if !reception.has_begun() || reception.is_due(truth) {
                    return found(Kind::Lost, format!("a poll is held: {reception:?}"));
                }
                Ok(())
            }
            Some(expected) if !peer.is_ending || peer.is_http2 && !expected.is_websocket() => {
                found(Kind::Unanswered, format!("{expected:?}"))
            }
            _ => Ok(()),
        }
    }
}

/// Some channels, each once.
pub fn some_channels(rng: &mut Rng, min: usize) -> Vec<usize> {
    let mut channels: Vec<usize> = (0..CHANNELS.len()).collect();
    rng.shuffle(&mut channels);
    channels.truncate(rng.usize(min..=3));
    channels
}
