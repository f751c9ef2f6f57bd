//! What a client says on a stream.

use super::Request;
use pushlab_wire::fields::FieldList;
use pushlab_wire::websocket::handshake;
use pushlab_workload::tally::WayTally;

/// What a client says on a stream, while it is put together: requests, or what an upgraded stream carries; and what
/// those bytes are for. One is enough for all clients of a loop.
#[derive(Debug, Default)]
pub struct Outgoing {
    form: Form,
    pub(super) bytes: Vec<u8>,
    pub(super) heads: u64,
    pub(super) frames: u64,
    texts: u64,
    payload: u64,
    /// Requests among them, and a handshake's key.
    pub(super) requests: u32,
    pub(super) key: Option<[u8; 16]>,
    /// The head of the only request, where that is no text; the bytes are its body then.
    pub(super) head: FieldList,
    /// Room for values of that head.
    value: Vec<u8>,
}

/// How heads are put together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As text of HTTP/1.1, among the bytes.
    #[default]
    Text,
    /// As fields of HTTP/2, apart from them.
    Fields,
}

impl Outgoing {
    /// For HTTP/2, whose heads are no text. There is room for one request.
    pub fn of_fields() -> Self {
        Self { form: Form::Fields, ..Self::default() }
    }

    /// Forgets all of it.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.heads, self.frames, self.texts, self.payload) = (0, 0, 0, 0);
        (self.requests, self.key) = (0, None);
        if self.form == Form::Fields {
            self.head.clear();
        }
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.head.is_empty()
    }

    /// The bytes to send.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What they are for.
    #[inline]
    pub fn tally(&self) -> WayTally {
        let Self { heads, frames, texts, payload, .. } = *self;
        WayTally { all: self.bytes.len() as u64, heads, frames, texts, payload }
    }

    /// Appends a request.
    pub fn request(&mut self, request: &Request<'_>) {
        let (before, body) = (self.bytes.len(), request.body.unwrap_or_default());
        match self.form {
            Form::Text => {
                request.encode(&mut self.bytes);
                self.heads += (self.bytes.len() - before - body.len()) as u64;
            }
            Form::Fields => {
                request.list(None, &mut self.head, &mut self.value);
                self.bytes.extend_from_slice(body);
            }
        }
        self.texts += body.len() as u64;
        self.requests += 1;
    }

    /// Appends the request for a WebSocket: over HTTP/1.1 with a random key (RFC 6455, section 4.1), over HTTP/2 as an
    /// extended CONNECT, which has none (RFC 8441, section 5).
    pub fn upgrade(&mut self, request: &Request<'_>, key: [u8; 16]) {
        match self.form {
            Form::Text => {
                let (before, lines) = (self.bytes.len(), [request.fields.lines(), request.lines].concat());
                let target = request.target.concat();
                handshake::encode_request_with(&mut self.bytes, request.authority, &target, key, &lines);
                self.heads += (self.bytes.len() - before) as u64;
            }
            Form::Fields => {
                request.list(Some("websocket"), &mut self.head, &mut self.value);
                self.head.push(b"sec-websocket-version", b"13");
            }
        }
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
