//! A client's streams on an HTTP/2 connection, and its frames, right or wrong.

use pushlab_http2::frame::PREFACE;
use pushlab_http2::hpack::Encoder;
use pushlab_wire::fields::FieldList;

/// Types of frames.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of a frame.
pub const END_STREAM: u8 = 1;
/// See above.
pub const END_HEADERS: u8 = 4;
/// A setting.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// Streams that a server allows.
pub const STREAMS: u32 = 100;

/// The fields that open a WebSocket, beside the method CONNECT (RFC 8441).
pub const WEBSOCKET: [(&str, &str); 2] = [(":protocol", "websocket"), ("sec-websocket-version", "13")];

/// The streams of one connection.
pub struct Streams {
    encoder: Encoder,
    /// The number of the next.
    pub next: u32,
}

impl Streams {
    /// There are none yet.
    pub fn new() -> Self {
        Self { encoder: Encoder::new(), next: 1 }
    }

    /// A request on the next stream, whose number it gives; nothing follows it.
    pub fn ask(&mut self, out: &mut Vec<u8>, method: &str, path: &str) -> u32 {
        self.open(out, END_STREAM, method, path, &[])
    }

    /// A request on the next stream, whose number it gives.
    pub fn open(&mut self, out: &mut Vec<u8>, flags: u8, method: &str, path: &str, more: &[(&str, &str)]) -> u32 {
        let block = self.block(method, path, more);
        let stream = self.next;
        frame(out, kind::HEADERS, END_HEADERS | flags, stream, &block);
        self.next += 2;
        stream
    }

    /// The fields of a request.
    pub fn block(&mut self, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let mut fields = FieldList::default();
        let always = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "bench")];
        for (name, value) in always.iter().chain(more) {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        let mut block = Vec::new();
        self.encoder.encode(fields.iter(), &mut block);
        block
    }
}

/// Begins a connection that allows the server so many bytes on each stream, and any number in all.
pub fn begin(out: &mut Vec<u8>, stream_window: u32) {
    out.extend_from_slice(PREFACE);
    frame(out, kind::SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, stream_window));
    frame(out, kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
}

/// What SETTINGS says of one of them.
pub fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A frame.
pub fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
