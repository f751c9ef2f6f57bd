//! A client's end of a WebSocket: handshake, frames, pings. What the texts mean is for others.

use super::{Cut, MAX_MESSAGE_BYTES, Requests, Tally};
use fastrand::Rng;
use pushlab_wire::http::{Headers, parse_response};
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, handshake};

/// Longest head of a response, in bytes.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The state of one client's end.
#[derive(Debug, Default)]
pub struct Frames {
    decoder: Decoder,
    /// What the handshake's answer must fit; `None` once it did, and before it is sent.
    key: Option<Box<[u8; 16]>>,
    is_open: bool,
}

impl Frames {
    /// Starts again on a new connection: appends the handshake for a target below the subject's path.
    pub fn open(&mut self, requests: &Requests, target: &str, rng: &mut Rng, out: &mut Vec<u8>) {
        let target = [&requests.path, target].concat();
        self.open_with(&requests.authority, &target, &requests.lines.websocket, rng, out);
    }

    /// [`Self::open`] at an authority and a whole target, with these header lines.
    pub fn open_with(&mut self, authority: &str, target: &str, lines: &str, rng: &mut Rng, out: &mut Vec<u8>) {
        let mut key = [0; 16];
        rng.fill(&mut key);
        handshake::encode_request_with(out, authority, target, key, lines);
        *self = Self { decoder: Decoder::default(), key: Some(Box::new(key)), is_open: false };
    }

    /// Whether the handshake is done.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Reads frames, answers pings into `out` and passes texts on. Returns the bytes that are done with.
    ///
    /// # Errors
    /// A refused handshake, a broken frame, the peer's close frame, or what `on_text` answers.
    #[inline]
    pub fn receive(
        &mut self,
        rng: &mut Rng,
        input: &mut [u8],
        out: &mut Vec<u8>,
        tally: &mut Tally,
        mut on_text: impl FnMut(&str) -> Result<(), Cut>,
    ) -> Result<usize, Cut> {
        const CONFIG: Config =
            Config { role: Role::Client, max_message_bytes: MAX_MESSAGE_BYTES, max_fragments: 1 << 16 };
        let mut at = if self.is_open { 0 } else { self.finish_handshake(input, tally)? };
        while self.is_open && at < input.len() {
            match self.decoder.decode(&mut input[at..], &CONFIG)? {
                Decoded::Incomplete { .. } => break,
                Decoded::Frame { consumed, event } => {
                    at += consumed;
                    match event {
                        Some(Event::Text(text)) => {
                            tally.down.texts += text.len() as u64;
                            on_text(text)?;
                        }
                        Some(Event::Ping(payload)) => encode(out, Opcode::Pong, payload, Some(mask(rng))),
                        Some(Event::Close(code)) => return Err(close_frame(code)),
                        Some(Event::Binary(_) | Event::Pong(_)) | None => {}
                    }
                }
            }
        }
        Ok(at)
    }

    #[cold]
    fn finish_handshake(&mut self, input: &[u8], tally: &mut Tally) -> Result<usize, Cut> {
        let Some(key) = self.key.as_deref().copied() else { return Err(Cut::Unasked) };
        let mut headers = Headers::default();
        let Some((head, size)) = parse_response(input, &mut headers)? else {
            return if input.len() > MAX_HEAD_BYTES { Err(Cut::HeadTooLarge { max: MAX_HEAD_BYTES }) } else { Ok(0) };
        };
        tally.down.heads += size as u64;
        if head.status != 101 {
            return Err(Cut::Status {
                path: "the WebSocket's handshake".to_owned(),
                status: head.status,
                text: excerpt(&input[size..]),
            });
        }
        handshake::check_response(&head, key)?;
        self.key = None;
        self.is_open = true;
        Ok(size)
    }
}

/// A random mask (RFC 6455, section 5.3).
pub fn mask(rng: &mut Rng) -> [u8; 4] {
    rng.u32(..).to_ne_bytes()
}

/// Appends a masked text message.
pub fn encode_text(out: &mut Vec<u8>, text: &[u8], rng: &mut Rng) {
    encode(out, Opcode::Text, text, Some(mask(rng)));
}

/// The beginning of a body, for a message about it.
pub(super) fn excerpt(body: &[u8]) -> String {
    const MAX_EXCERPT_BYTES: usize = 120;
    String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT_BYTES)]).trim().to_owned()
}

fn close_frame(code: Option<(u16, &str)>) -> Cut {
    /// Section 7.1.5: no code was given.
    const NO_STATUS: u16 = 1005;
    let (code, reason) = code.unwrap_or((NO_STATUS, ""));
    Cut::CloseFrame { code, reason: reason.to_owned() }
}
