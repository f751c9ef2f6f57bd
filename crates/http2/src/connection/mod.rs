//! One connection, at either end.

mod receiving;
mod sending;

use crate::event::ConnectionError;
use crate::frame::{Code, MAX, PREFACE, encode, kind};
use crate::hpack::{Decoder, Encoder, INITIAL_TABLE_BYTES};
use crate::limits::{Allowance, Limits};
use crate::settings::{self, FIRST_WINDOW, Settings};
use crate::streams::Streams;
use std::collections::VecDeque;

pub use sending::Refused;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Accepts requests.
    Server,
    /// Sends requests.
    Client,
}

/// One end of a connection.
///
/// Whoever owns a stream is known by a number of the caller's choice.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    stage: Stage,
    decoder: Decoder,
    encoder: Encoder,
    streams: Streams,
    /// A head of which parts are still to come.
    block: Option<Box<Block>>,
    /// What the peer has told.
    peer: Settings,
    /// What we may send on all streams together.
    send_window: i64,
    /// What the peer may send, and what it was not told of yet.
    receive_window: u32,
    used: u32,
    /// The last stream that the peer has opened, or that we have.
    last: u32,
    resets: Allowance,
    idle_frames: Allowance,
    /// Streams that could not send all they had to, and now can, the longest-waiting first.
    ready: VecDeque<u32>,
    /// The stream that was told so last: it may send, whoever is behind it.
    turn: u32,
    output: Vec<u8>,
    /// How much of that has left.
    output_from: usize,
    /// The last frame in the output and its stream, which may still be made the stream's last.
    tail: Option<(u32, usize)>,
    counts: Counts,
    /// It has said that it takes no more streams.
    has_peer_left: bool,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client's first bytes are to come.
    Preface,
    /// The peer's settings are to come.
    Settings,
    Open,
    /// It has ended: nothing is read any more.
    Over,
}

/// A head of which parts are still to come.
#[derive(Debug)]
struct Block {
    stream: u32,
    is_end: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

/// What the bytes of a connection were for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Of those that have come.
    pub received: Uses,
    /// Of those that were put into the output.
    pub sent: Uses,
}

/// Bytes by what they are for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// Heads of frames, and frames that are neither head nor body of a message.
    pub frames: u64,
    /// Compressed heads of messages.
    pub heads: u64,
    /// Bodies.
    pub data: u64,
}

/// An output that was larger gives its memory back when it is empty, bytes.
const MAX_SPARE_BYTES: usize = 4096;

impl Connection {
    /// A new connection. Its preface and its SETTINGS are already in the output.
    pub fn new(role: Role, limits: Limits) -> Self {
        let mut connection = Self {
            role,
            stage: if role == Role::Server { Stage::Preface } else { Stage::Settings },
            decoder: Decoder::new(INITIAL_TABLE_BYTES),
            encoder: Encoder::new(),
            streams: Streams::default(),
            block: None,
            peer: Settings::default(),
            send_window: FIRST_WINDOW.into(),
            receive_window: limits.connection_window.max(FIRST_WINDOW),
            used: 0,
            last: 0,
            resets: Allowance::new(limits.resets),
            idle_frames: Allowance::new(limits.idle_frames),
            ready: VecDeque::new(),
            turn: 0,
            output: Vec::new(),
            output_from: 0,
            tail: None,
            counts: Counts::default(),
            has_peer_left: false,
            limits: Limits { stream_window: limits.stream_window.max(FIRST_WINDOW), ..limits },
        };
        if role == Role::Client {
            connection.output.extend_from_slice(PREFACE);
            connection.counts.sent.frames += PREFACE.len() as u64;
        }
        let own = settings::encode(role == Role::Server, &connection.limits);
        connection.control(kind::SETTINGS, 0, 0, &own);
        let more = connection.receive_window - FIRST_WINDOW;
        if more > 0 {
            connection.control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
        connection
    }

    /// What is to be sent.
    #[inline]
    pub fn output(&self) -> &[u8] {
        &self.output[self.output_from..]
    }

    /// So much of the output has been sent.
    pub fn sent(&mut self, size: usize) {
        self.output_from += size;
        self.tail = None;
        if self.output_from == self.output.len() {
            self.output_from = 0;
            self.output.clear();
            if self.output.capacity() > MAX_SPARE_BYTES {
                self.output = Vec::new();
            }
        } else if self.output_from > self.limits.max_output_bytes {
            self.output.drain(..self.output_from);
            self.output_from = 0;
        }
    }

    /// Bytes of memory it takes for heads, tables and output.
    pub fn kept_bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| block.bytes.capacity());
        block + self.output.capacity() + self.decoder.kept_bytes() + self.encoder.kept_bytes()
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// The owners of those.
    pub fn owners(&self) -> Vec<u32> {
        self.streams.iter().filter_map(|stream| stream.owner).collect()
    }

    /// Whether the connection is over: what still comes is discarded.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the peer takes WebSockets: it has said that it understands extended CONNECT (RFC 8441).
    pub fn takes_connect(&self) -> bool {
        self.peer.takes_connect
    }

    /// Whether the peer's settings have come.
    pub fn has_settings(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether a head has begun that is not complete yet.
    pub fn is_inside_head(&self) -> bool {
        self.block.is_some()
    }

    /// Whether the peer has said that it goes away: it opens no more streams.
    pub fn has_peer_left(&self) -> bool {
        self.has_peer_left
    }

    /// Streams that the peer allows at the same time; as many as there may be until it has said so.
    pub fn max_streams(&self) -> u32 {
        self.peer.max_streams
    }

    /// What the bytes so far were for.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Names the owner of a stream, who is told of what comes on it from now on.
    pub fn set_owner(&mut self, stream: u32, owner: u32) {
        if let Some(stream) = self.streams.get(stream) {
            stream.owner = Some(owner);
        }
    }

    /// Says that no new streams are looked at: those above the last so far, or, where `is_early`, those that the peer
    /// opens after it has heard.
    pub fn go_away(&mut self, code: Code, is_early: bool) {
        let last = if is_early { MAX } else { self.last_of_peer() };
        self.control(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.number().to_be_bytes()].concat());
        if !is_early {
            self.stage = Stage::Over;
        }
    }

    /// Asks whether the peer is there; it answers by [`crate::event::Event::Pong`].
    pub fn ping(&mut self, payload: [u8; 8]) {
        self.control(kind::PING, 0, 0, &payload);
    }

    fn last_of_peer(&self) -> u32 {
        if self.role == Role::Server { self.last } else { 0 }
    }

    /// Ends the connection for what the peer has done.
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        let payload = [&self.last_of_peer().to_be_bytes(), &error.code.number().to_be_bytes(), error.reason.as_bytes()];
        self.control(kind::GOAWAY, 0, 0, &payload.concat());
        self.stage = Stage::Over;
        self.block = None;
        error
    }

    /// Says something that no stream has to wait for. Nothing follows the last GOAWAY.
    fn control(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        if self.stage == Stage::Over {
            return;
        }
        let begin = self.output.len();
        encode(&mut self.output, kind, flags, stream, payload);
        self.counts.sent.frames += (self.output.len() - begin) as u64;
        self.tail = None;
    }
}
