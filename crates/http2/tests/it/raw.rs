//! A peer that writes frames as it likes.

use pushlab_http2::connection::{Connection, Role};
use pushlab_http2::event::{ConnectionError, Event};
use pushlab_http2::frame::{Code, PREFACE};
use pushlab_http2::hpack::{Decoder, Encoder};
use pushlab_http2::limits::Limits;
use pushlab_wire::fields::FieldList;
use std::time::Duration;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const WITH_PRIORITY: u8 = 32;

/// What happened, in words.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Happened {
    Request(u32, Vec<(String, String)>, bool),
    Data(u32, Vec<u8>, bool),
    Reset(u32, Code, bool),
    Response(u32, String, bool),
    GoingAway(u32, Code),
    Pong([u8; 8]),
}

pub type Frame = (u8, u8, u32, Vec<u8>);

/// A server's end, and somebody who writes to it.
pub struct Raw {
    pub connection: Connection,
    pub encoder: Encoder,
    decoder: Decoder,
    pub now: Duration,
}

pub fn list(fields: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::default();
    fields.iter().for_each(|(name, value)| list.push(name.as_bytes(), value.as_bytes()));
    list
}

pub const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":path", "/a"), (":authority", "h")];
pub const POST: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "https"), (":path", "/a"), (":authority", "h")];

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    [&size[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Raw {
    /// One that has said and heard what comes first.
    pub fn new(limits: Limits) -> Self {
        let mut raw = Self::fresh(limits);
        raw.say(PREFACE).unwrap();
        raw.frame(SETTINGS, 0, 0, &[]).unwrap();
        raw.heard();
        raw
    }

    pub fn fresh(limits: Limits) -> Self {
        Self {
            connection: Connection::new(Role::Server, limits),
            encoder: Encoder::new(),
            decoder: Decoder::new(4096),
            now: Duration::ZERO,
        }
    }

    /// Says bytes; gives what happened.
    pub fn say(&mut self, bytes: &[u8]) -> Result<Vec<Happened>, ConnectionError> {
        let mut bytes = bytes.to_vec();
        let (mut at, mut all) = (0, Vec::new());
        while at < bytes.len() {
            let mut head = FieldList::default();
            let (used, event) = self.connection.receive(&mut bytes[at..], self.now, &mut head)?;
            all.extend(in_words(event));
            assert!(used > 0, "whole frames are used");
            at += used;
        }
        Ok(all)
    }

    pub fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> Result<Vec<Happened>, ConnectionError> {
        self.say(&frame(kind, flags, stream, payload))
    }

    pub fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.encode(list(fields).iter(), &mut block);
        block
    }

    pub fn head(
        &mut self,
        stream: u32,
        fields: &[(&str, &str)],
        is_end: bool,
    ) -> Result<Vec<Happened>, ConnectionError> {
        let block = self.block(fields);
        self.frame(HEADERS, END_HEADERS | u8::from(is_end), stream, &block)
    }

    /// What it was told since the last call.
    pub fn heard(&mut self) -> Vec<Frame> {
        let bytes = self.connection.output().to_vec();
        self.connection.sent(bytes.len());
        let (mut at, mut frames) = (0, Vec::new());
        while at < bytes.len() {
            let size = u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]]) as usize;
            let stream = u32::from_be_bytes(bytes[at + 5..at + 9].try_into().unwrap());
            frames.push((bytes[at + 3], bytes[at + 4], stream, bytes[at + 9..at + 9 + size].to_vec()));
            at += 9 + size;
        }
        frames
    }

    /// The fields of a head that it was told.
    pub fn decode(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut head = FieldList::default();
        assert!(!self.decoder.decode(block, 1 << 20, &mut head).unwrap().is_cut);
        words(&head)
    }
}

fn words(head: &FieldList) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    head.iter().map(|(name, value)| (text(name), text(value))).collect()
}

pub fn in_words(event: Event<'_>) -> Option<Happened> {
    Some(match event {
        Event::Nothing => return None,
        Event::Request { stream, head, is_end, .. } => Happened::Request(stream, words(head), is_end),
        Event::Response { owner, head, is_end } => Happened::Response(owner, words(head)[0].1.clone(), is_end),
        Event::Data { owner, bytes, is_end } => Happened::Data(owner, bytes.to_vec(), is_end),
        Event::Reset { owner, code, is_by_peer } => Happened::Reset(owner, code, is_by_peer),
        Event::GoingAway { last, code } => Happened::GoingAway(last, code),
        Event::Pong(payload) => Happened::Pong(payload),
    })
}
