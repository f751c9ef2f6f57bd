//! A client's end of a WebSocket: frames, pings. What the texts mean is for others.

use super::{Hearing, MAX_MESSAGE_BYTES, Requests};
use crate::connection::{Outgoing, Request};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode};

/// The state of one client's end.
#[derive(Debug, Default)]
pub struct Frames(Decoder);

impl Frames {
    /// Starts again on a new stream: appends the handshake for a target below the subject's path.
    pub fn open(&mut self, requests: &Requests, target: &str, rng: &mut Rng, out: &mut Outgoing) {
        let request = Request {
            method: "GET",
            scheme: requests.scheme,
            authority: &requests.authority,
            target: &[&requests.path, target],
            fields: &requests.headers.websocket,
            lines: "",
            body: None,
        };
        self.open_with(&request, rng, out);
    }

    /// [`Self::open`] with a request.
    pub fn open_with(&mut self, request: &Request<'_>, rng: &mut Rng, out: &mut Outgoing) {
        let mut key = [0; 16];
        rng.fill(&mut key);
        out.upgrade(request, key);
        *self = Self::default();
    }

    /// Reads frames, answers pings and passes texts on, with who is told what they mean. Returns the bytes that are done
    /// with.
    ///
    /// # Errors
    /// A broken frame, the peer's close frame, or what `on_text` answers.
    #[inline]
    pub fn receive<S>(
        &mut self,
        input: &mut [u8],
        hearing: &mut Hearing<'_, S>,
        mut on_text: impl FnMut(&str, &mut S) -> Result<(), Cut>,
    ) -> Result<usize, Cut> {
        const CONFIG: Config =
            Config { max_message_bytes: MAX_MESSAGE_BYTES, max_fragments: 1 << 16, ..Config::new(Role::Client) };
        let mut at = 0;
        while at < input.len() {
            match self.0.decode(&mut input[at..], &CONFIG)? {
                Decoded::Incomplete { .. } => break,
                Decoded::Frame { consumed, event } => {
                    at += consumed;
                    match event {
                        Some(Event::Text(text)) => {
                            *hearing.texts += text.len() as u64;
                            on_text(text, hearing.sink)?;
                        }
                        Some(Event::Ping(payload)) => {
                            encode(hearing.out.bytes_mut(), Opcode::Pong, payload, Some(mask(hearing.rng)));
                        }
                        Some(Event::Close(code)) => return Err(close_frame(code)),
                        // The decoder gives no compressed ones unless it was told to.
                        Some(Event::Binary(_) | Event::Compressed { .. } | Event::Pong(_)) | None => {}
                    }
                }
            }
        }
        Ok(at)
    }
}

/// A random mask (RFC 6455, section 5.3).
pub fn mask(rng: &mut Rng) -> [u8; 4] {
    rng.u32(..).to_ne_bytes()
}

/// Appends a masked text message.
pub fn encode_text(out: &mut Outgoing, text: &[u8], rng: &mut Rng) {
    encode(out.bytes_mut(), Opcode::Text, text, Some(mask(rng)));
    out.note_text(text.len());
}

fn close_frame(code: Option<(u16, &str)>) -> Cut {
    /// Section 7.1.5: no code was given.
    const NO_STATUS: u16 = 1005;
    let (code, reason) = code.unwrap_or((NO_STATUS, ""));
    Cut::CloseFrame { code, reason: reason.to_owned() }
}
