//! A client's end of a WebSocket: frames, pings. What the texts mean is for others.

use super::{Hearing, MAX_MESSAGE_BYTES, Requests};
use crate::connection::{Outgoing, Request};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::deflate::InflateDecoder;
use pushlab_wire::websocket::permessage_deflate::Agreement;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, encode_compressed};

/// The state of one client's end.
#[derive(Debug, Default)]
pub struct Frames {
    decoder: Decoder,
    /// Messages may be compressed.
    compression: Option<Box<Compression>>,
}

/// What was agreed on.
#[derive(Debug)]
struct Compression {
    /// Inflates a message that may refer to earlier ones of this connection; others share the loop's.
    own: Option<InflateDecoder>,
    /// How far back ours may refer.
    window_bytes: usize,
}

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

    /// The server has agreed to compressed messages.
    pub fn agree(&mut self, agreement: Agreement) {
        let Agreement { keeps_context, window_bytes } = agreement;
        let own = keeps_context.then(InflateDecoder::default);
        self.compression = Some(Box::new(Compression { own, window_bytes }));
    }

    /// See [`super::Receiver::compressed_bytes_max`]: what is not longer than the window refers to nothing outside it.
    pub fn compressed_bytes_max(&self) -> usize {
        self.compression.as_ref().map_or(0, |compression| compression.window_bytes)
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
        on_text: impl FnMut(&str, &mut S) -> Result<(), Cut>,
    ) -> Result<usize, Cut>
    where
        S: FnMut(super::Event<'_>),
    {
        match self.compression {
            None => self.receive_as::<false, S>(input, hearing, on_text),
            Some(_) => self.receive_as::<true, S>(input, hearing, on_text),
        }
    }

    /// Compiled twice, so that who agreed to nothing pays nothing for it.
    #[inline]
    fn receive_as<const IS_COMPRESSED: bool, S>(
        &mut self,
        input: &mut [u8],
        hearing: &mut Hearing<'_, S>,
        mut on_text: impl FnMut(&str, &mut S) -> Result<(), Cut>,
    ) -> Result<usize, Cut>
    where
        S: FnMut(super::Event<'_>),
    {
        let config = const {
            &Config {
                max_message_bytes: MAX_MESSAGE_BYTES,
                max_fragments: 1 << 16,
                takes_compressed: IS_COMPRESSED,
                ..Config::new(Role::Client)
            }
        };
        let Self { decoder, compression } = self;
        let mut at = 0;
        while at < input.len() {
            match decoder.decode(&mut input[at..], config)? {
                Decoded::Incomplete { .. } => break,
                Decoded::Frame { consumed, event } => {
                    at += consumed;
                    match event {
                        Some(Event::Text(text)) => {
                            *hearing.texts += text.len() as u64;
                            on_text(text, hearing.sink)?;
                        }
                        Some(Event::Compressed { is_text, payload }) if IS_COMPRESSED => {
                            let Hearing { inflater, texts, sink, .. } = hearing;
                            let own = compression.as_deref_mut().and_then(|compression| compression.own.as_mut());
                            let inflated = match own {
                                Some(own) => own.inflate_next(payload, MAX_MESSAGE_BYTES)?,
                                None => inflater.inflate(payload, MAX_MESSAGE_BYTES)?,
                            };
                            if !is_text {
                                continue;
                            }
                            let text = str::from_utf8(inflated).map_err(|_| Cut::NotUtf8)?;
                            **texts += payload.len() as u64;
                            sink(super::Event::Compressed { sent: payload.len(), inflated: text.len() });
                            on_text(text, sink)?;
                            sink(super::Event::Uncompressed);
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

/// Appends a masked text message that `small` is when it is inflated.
pub fn encode_compressed_text(out: &mut Outgoing, small: &[u8], rng: &mut Rng) {
    encode_compressed(out.bytes_mut(), Opcode::Text, small, Some(mask(rng)));
    out.note_text(small.len());
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
