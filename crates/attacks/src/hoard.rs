//! Attacks that make the server keep as much as each connection may hold: deliveries and replies that are never read,
//! or input that is never finished.

use crate::streams::{self, END_STREAM, STREAMS, Streams, WEBSOCKET, frame, kind};
use clap::ValueEnum;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// An attack by what the server has to keep, and the protocol it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hoard {
    keeps: Keeps,
    over: Over,
}

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keeps {
    /// Deliveries to a WebSocket that is not read, on a channel of its own.
    SlowWebsocket,
    /// The same on an event stream.
    SlowSse,
    /// The same on an HTTP stream.
    SlowStreaming,
    /// The reply to a poll.
    SlowPolling,
    /// The beginning of a head.
    HalfHead,
    /// The beginning of a message, in fragments.
    HalfMessage,
    /// The beginning of a body.
    HalfBody,
    /// The beginning of a TLS handshake.
    HalfHello,
    /// The beginning of a TLS record.
    HalfRecord,
}

/// The protocol it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, on as many streams of a connection as the server allows.
    Http2,
    /// HTTP/1.1 and TLS.
    Tls,
}

/// Just below the limit of a head, field names included, bytes.
const HEAD_BYTES: usize = 16_000;
/// Just below the limit of a body and of a message.
const BODY_BYTES: usize = 65_000;
/// What is published to a slow reader: more than the kernel takes, and in several messages, because the server may know
/// more about one that is half sent than about those behind it.
const MESSAGES: usize = 8;
const MESSAGE_BYTES: usize = 8_000;
/// Of a handshake message, whose limit includes the heads of its records.
const HELLO_BYTES: usize = 58 * 1024;
/// The largest record (RFC 8446, section 5.2).
const RECORD_BYTES: usize = 16_384 + 256;
/// The largest payload that a server has to take (RFC 9113, section 4.2).
const FRAME_BYTES: usize = 16_384;

impl FromStr for Hoard {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let (keeps, over) = name.rsplit_once('-').ok_or_else(|| format!("{name} has one part"))?;
        Ok(Self { keeps: Keeps::from_str(keeps, false)?, over: Over::from_str(over, false)? })
    }
}

impl fmt::Display for Hoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keeps, over) = (self.keeps.to_possible_value(), self.over.to_possible_value());
        let name = |value: Option<clap::builder::PossibleValue>| value.expect("none is hidden").get_name().to_owned();
        write!(f, "{}-{}", name(keeps), name(over))
    }
}

impl Hoard {
    /// Whether the server's port speaks TLS.
    pub fn is_secure(self) -> bool {
        self.over == Over::Tls
    }

    /// Whether the handshake is completed before anything is sent.
    pub fn shakes_hands(self) -> bool {
        self.is_secure() && self.keeps != Keeps::HalfHello
    }

    /// Whether what is kept is published, and to a channel for each subscriber.
    pub fn is_published(self) -> bool {
        matches!(self.keeps, Keeps::SlowWebsocket | Keeps::SlowSse | Keeps::SlowStreaming | Keeps::SlowPolling)
    }

    /// Whether it reads nothing because its connections' receive buffers are tiny, instead of their streams' windows.
    pub fn has_small_buffers(self) -> bool {
        self.is_published() && self.over != Over::Http2
    }

    /// Whether the streams' windows are opened by a byte now and then.
    pub fn dribbles(self) -> bool {
        self.is_published() && self.over == Over::Http2
    }

    /// Streams of a connection: all that the server allows, or `most`.
    pub fn streams(self, most: usize) -> usize {
        // The frames of a head come one after the other.
        if self.over == Over::Http2 && self.keeps != Keeps::HalfHead { most.min(STREAMS as usize) } else { 1 }
    }

    /// Whether each of them is open, and counts, before it is filled.
    pub fn opens_streams(self) -> bool {
        self.path(0).is_some()
    }

    /// The server's counter of the connections open before the attack begins.
    pub fn counter(self) -> &'static str {
        match self.keeps {
            _ if self.is_websocket() => "/connections/websocket",
            Keeps::SlowSse => "/connections/sse",
            Keeps::SlowStreaming => "/connections/http-streaming",
            Keeps::SlowPolling => "/held_polls",
            _ => "/open",
        }
    }

    /// What a connection sends first, which makes the server keep nothing yet: a stream for each of these channels.
    pub fn opening(self, channels: Range<usize>) -> Vec<u8> {
        let mut out = Vec::new();
        if self.over == Over::Http2 {
            streams::begin(&mut out, 0);
            self.open_streams(&mut out, channels);
            return out;
        }
        match (self.path(channels.start), self.is_websocket()) {
            (Some(path), true) => handshake::encode_request(&mut out, "bench", &path, *b"0123456789abcdef"),
            (Some(path), false) => out.extend(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").bytes()),
            (None, _) => {}
        }
        out
    }

    fn open_streams(self, out: &mut Vec<u8>, channels: Range<usize>) {
        let mut streams = Streams::new();
        for channel in channels {
            match (self.path(channel), self.is_websocket()) {
                (Some(path), true) => drop(streams.open(out, 0, "CONNECT", &path, &WEBSOCKET)),
                (Some(path), false) => drop(streams.ask(out, "GET", &path)),
                (None, _) => {}
            }
        }
    }

    fn is_websocket(self) -> bool {
        // Who has shaken hands and says nothing is not waited for as long.
        matches!(self.keeps, Keeps::SlowWebsocket | Keeps::HalfMessage | Keeps::HalfRecord)
    }

    fn path(self, channel: usize) -> Option<String> {
        let channel = channel_name(channel);
        match self.keeps {
            _ if self.is_websocket() => Some(format!("/ws?channel={channel}")),
            Keeps::SlowSse => Some(format!("/sse?channel={channel}")),
            Keeps::SlowStreaming => Some(format!("/stream?channel={channel}")),
            Keeps::SlowPolling => Some(format!("/poll?channel={channel}&wait=60")),
            _ => None,
        }
    }

    /// What each connection with so many streams says then, and the server keeps. Nothing of it is behind TLS.
    pub fn filling(self, streams: usize) -> Vec<u8> {
        let mut out = Vec::new();
        match (self.keeps, self.over) {
            (Keeps::HalfHead, Over::Http2) => half_head_of_frames(&mut out),
            (Keeps::HalfHead, _) => {
                out.extend_from_slice(b"GET /healthz HTTP/1.1\r\nHost: bench\r\nX: ");
                out.resize(HEAD_BYTES, b'x');
            }
            (Keeps::HalfMessage | Keeps::HalfBody, Over::Http2) => self.fill_streams(&mut out, streams),
            (Keeps::HalfMessage, _) => half_message(&mut out),
            (Keeps::HalfBody, _) => {
                let length = BODY_BYTES + 1;
                let head = "POST /publish?channel=quiet HTTP/1.1\r\nHost: bench\r\nContent-Length:";
                out.extend(format!("{head} {length}\r\n\r\n").bytes());
                out.resize(out.len() + BODY_BYTES, b'1');
            }
            (Keeps::HalfHello, _) => half_hello(&mut out),
            (Keeps::HalfRecord, _) => {
                // Application data.
                out.extend([23, 3, 3]);
                out.extend((RECORD_BYTES as u16).to_be_bytes());
                out.resize(out.len() + RECORD_BYTES - 1, 0);
            }
            _ => {}
        }
        out
    }

    fn fill_streams(self, out: &mut Vec<u8>, count: usize) {
        let mut streams = Streams::new();
        let mut half = Vec::new();
        match self.keeps {
            Keeps::HalfMessage => half_message(&mut half),
            _ => half.resize(BODY_BYTES, b'1'),
        }
        for n in 0..count {
            let stream = match self.keeps {
                Keeps::HalfMessage => 2 * n as u32 + 1,
                _ => streams.open(out, 0, "POST", "/publish?channel=quiet", &[]),
            };
            half.chunks(FRAME_BYTES).for_each(|part| frame(out, kind::DATA, 0, stream, part));
        }
    }
}

/// A channel of one slow reader.
pub fn channel_name(number: usize) -> String {
    format!("slow-{number:05}")
}

/// Publications to such a channel.
pub fn publications(out: &mut Vec<u8>, number: usize) {
    let text = format!("[\"pub\",\"{}\",\"{}\"]", channel_name(number), "x".repeat(MESSAGE_BYTES));
    (0..MESSAGES).for_each(|_| encode(out, Opcode::Text, text.as_bytes(), Some([0; 4])));
}

/// Opens the windows of so many streams by a byte.
pub fn dribble(streams: usize) -> Vec<u8> {
    let mut out = Vec::new();
    (0..streams as u32).for_each(|n| frame(&mut out, kind::WINDOW_UPDATE, 0, 2 * n + 1, &1_u32.to_be_bytes()));
    out
}

/// The first fragment of a message.
fn half_message(out: &mut Vec<u8>) {
    const FINAL: u8 = 0x80;
    let at = out.len();
    encode(out, Opcode::Text, &[b' '; BODY_BYTES], Some([0; 4]));
    out[at] &= !FINAL;
}

fn half_head_of_frames(out: &mut Vec<u8>) {
    frame(out, kind::HEADERS, END_STREAM, 1, &[0; FRAME_BYTES]);
    frame(out, kind::CONTINUATION, 0, 1, &[0; HEAD_BYTES]);
}

/// The records of a client's first message of a handshake, which is longer than they are.
fn half_hello(out: &mut Vec<u8>) {
    // ClientHello, with a length of three bytes.
    let mut message = vec![1, 0, 0xff, 0xff];
    message.resize(HELLO_BYTES, 0);
    for part in message.chunks(FRAME_BYTES) {
        out.extend([22, 3, 1]);
        out.extend((part.len() as u16).to_be_bytes());
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_http2::connection::{Connection, Role};
    use pushlab_http2::event::Event;
    use pushlab_http2::limits::Limits;
    use pushlab_wire::fields::FieldList;
    use pushlab_wire::http::{Headers, parse_request};
    use pushlab_wire::websocket::{self, Config, Decoded, Decoder};
    use std::time::Duration;

    fn hoard(name: &str) -> Hoard {
        let hoard: Hoard = name.parse().unwrap();
        assert_eq!(hoard.to_string(), name);
        hoard
    }

    /// Heads and bytes of bodies that a server's end of HTTP/2 is left with.
    fn kept_of_streams(name: &str) -> (usize, usize) {
        let streams = hoard(name).streams(usize::MAX);
        let limits = Limits { connection_window: 16 << 20, ..Limits::default() };
        let mut server = Connection::new(Role::Server, limits);
        let mut bytes = [hoard(name).opening(0..streams), hoard(name).filling(streams)].concat();
        let (mut at, mut head, mut heads, mut kept) = (0, FieldList::default(), 0, 0);
        while at < bytes.len() {
            let (used, event) = server.receive(&mut bytes[at..], Duration::ZERO, &mut head).unwrap();
            match event {
                Event::Request { is_end: false, stream, .. } => {
                    heads += 1;
                    server.set_owner(stream, stream);
                }
                Event::Data { bytes, is_end: false, .. } => kept += bytes.len(),
                Event::Nothing => assert!(used > 0, "{name} says half a frame"),
                other => panic!("{name}: {other:?}"),
            }
            at += used;
        }
        (heads, kept)
    }

    #[test]
    fn half_of_it_is_as_much_as_is_kept_without_an_answer() {
        let mut headers = Headers::default();
        let head = hoard("half-head-http1").filling(1);
        assert!(head.len() == HEAD_BYTES && parse_request(&head, &mut headers).unwrap().is_none());
        let body = hoard("half-body-http1").filling(1);
        let size = parse_request(&body, &mut headers).unwrap().unwrap().1;
        assert_eq!(body.len() - size, BODY_BYTES);
        let (mut message, mut decoder) = (hoard("half-message-http1").filling(1), Decoder::default());
        let config = Config::new(websocket::Role::Server);
        let decoded = decoder.decode(&mut message, &config).unwrap();
        assert!(matches!(decoded, Decoded::Frame { .. }));
        assert!(decoder.is_inside_message());
        assert!(hoard("half-hello-tls").filling(1).len() > HELLO_BYTES);
        assert_eq!(hoard("half-record-tls").filling(1).len(), 5 + RECORD_BYTES - 1);
    }

    #[test]
    fn every_stream_is_half_full() {
        let streams = STREAMS as usize;
        assert_eq!(kept_of_streams("half-body-http2"), (streams, streams * BODY_BYTES));
        let (heads, kept) = kept_of_streams("half-message-http2");
        assert!(heads == streams && kept > streams * BODY_BYTES);
        assert_eq!(kept_of_streams("half-head-http2"), (0, 0));
    }

    #[test]
    fn slow_readers_have_channels_of_their_own_to_which_is_published() {
        let mut bytes = Vec::new();
        publications(&mut bytes, 7);
        assert!(bytes.len() > MESSAGES * MESSAGE_BYTES);
        let request = String::from_utf8(hoard("slow-sse-http1").opening(7..8)).unwrap();
        assert!(request.starts_with(&format!("GET /sse?channel={} HTTP/1.1\r\n", channel_name(7))), "{request}");
        assert!(hoard("slow-sse-http1").filling(1).is_empty());
    }
}
