//! What a client says on a stream.

use super::Request;
use crate::tally::WayTally;
use pushlab_wire::websocket::handshake;

/// What a client says on a stream, while it is put together: requests, or what an upgraded stream carries; and what
/// those bytes are for. One is enough for all clients of a loop.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    heads: u64,
    texts: u64,
    payload: u64,
    /// Requests among them, and a handshake's key.
    pub(super) requests: u32,
    pub(super) key: Option<[u8; 16]>,
}

impl Outgoing {
    /// Forgets all of it.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.heads, self.texts, self.payload) = (0, 0, 0);
        (self.requests, self.key) = (0, None);
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes to send.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What they are for.
    #[inline]
    pub fn tally(&self) -> WayTally {
        WayTally { all: self.bytes.len() as u64, heads: self.heads, texts: self.texts, payload: self.payload }
    }

    /// Appends a request.
    pub fn request(&mut self, request: &Request<'_>) {
        let (before, body) = (self.bytes.len(), request.body.map_or(0, <[u8]>::len));
        request.encode(&mut self.bytes);
        self.heads += (self.bytes.len() - before - body) as u64;
        self.texts += body as u64;
        self.requests += 1;
    }

    /// Appends the request for a WebSocket, with a random key (RFC 6455, section 4.1).
    pub fn upgrade(&mut self, authority: &str, target: &str, lines: &str, key: [u8; 16]) {
        let before = self.bytes.len();
        handshake::encode_request_with(&mut self.bytes, authority, target, key, lines);
        self.heads += (self.bytes.len() - before) as u64;
        self.key = Some(key);
    }

    /// The same, to append what an upgraded stream carries, or to put frames around all of it.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Notes that so many of the bytes are text.
    #[inline]
    pub fn note_text(&mut self, bytes: usize) {
        self.texts += bytes as u64;
    }

    /// Notes that so many of the text's bytes are the data of a publication or an echo.
    #[inline]
    pub fn note_payload(&mut self, bytes: usize) {
        self.payload += bytes as u64;
    }
}
