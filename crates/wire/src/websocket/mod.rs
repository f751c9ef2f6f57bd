//! WebSocket (RFC 6455), both sides: frames here, the opening handshake in [`handshake`].

pub mod handshake;
pub mod permessage_deflate;

use crate::codes::CloseCode;

/// Which end of the connection decodes. A server demands masked frames, a client refuses them (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Accepts connections.
    Server,
    /// Opens connections.
    Client,
}

/// What a decoder accepts; one value serves every connection of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which end we are.
    pub role: Role,
    /// Largest payload of one message, all fragments together, in bytes. Also the most a connection can make
    /// the decoder hold.
    pub max_message_bytes: usize,
    /// Most fragments of one message, so that empty fragments cannot go on for ever.
    pub max_fragments: u32,
    /// Messages may be compressed: [`deflate`] was agreed on.
    pub takes_compressed: bool,
}

impl Config {
    /// 64 KiB messages of at most 1,024 fragments.
    pub const fn new(role: Role) -> Self {
        Self { role, max_message_bytes: 64 * 1024, max_fragments: 1024, takes_compressed: false }
    }
}

/// Frame types (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Goes on with a fragmented message.
    Continuation = 0,
    /// UTF-8 text.
    Text = 1,
    /// Any bytes.
    Binary = 2,
    /// Ends the connection.
    Close = 8,
    /// Asks for a pong.
    Ping = 9,
    /// Answers a ping.
    Pong = 10,
}

/// What a peer sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole text message.
    Text(&'a str),
    /// A whole binary message.
    Binary(&'a [u8]),
    /// A whole message that is to be inflated ([`deflate::InflateDecoder`]).
    Compressed {
        /// It is then a text, or any bytes.
        is_text: bool,
        /// As it was sent.
        payload: &'a [u8],
    },
    /// A ping with at most 125 bytes; answer with the same.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// A close frame with its code and reason; `None` when it was empty.
    Close(Option<(u16, &'a str)>),
}

/// Outcome of one [`Decoder::decode`].
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The frame is not all there yet: call again with at least `needed` bytes from the same start.
    Incomplete {
        /// Bytes of this frame known to be needed so far.
        needed: usize,
    },
    /// One frame was read.
    Frame {
        /// Bytes to drop from the front of the input.
        consumed: usize,
        /// What it was; `None` for a fragment that does not end its message.
        event: Option<Event<'a>>,
    },
}

/// A violation of the protocol; the connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Section 5.2: no extension was agreed that uses these bits.
    #[error("reserved bits are set")]
    ReservedBits,
    /// Section 5.2.
    #[error("unknown opcode {0}")]
    UnknownOpcode(u8),
    /// Section 5.1.
    #[error("a client's frame must be masked")]
    Unmasked,
    /// Section 5.1.
    #[error("a server's frame must not be masked")]
    Masked,
    /// Section 5.5.
    #[error("a control frame must be whole and at most 125 bytes")]
    BadControl,
    /// Section 5.2: the shortest form must be used.
    #[error("length is not in its shortest form")]
    LongLength,
    /// Beyond [`Config::max_message_bytes`].
    #[error("message of more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// Beyond [`Config::max_fragments`].
    #[error("message in too many fragments")]
    TooManyFragments,
    /// Section 5.4.
    #[error("continuation without a message to continue")]
    StrayContinuation,
    /// Section 5.4.
    #[error("new message inside a fragmented one")]
    Interleaved,
    /// Section 8.1.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// Section 7.4.
    #[error("close code {0} may not be sent")]
    BadCloseCode(u16),
    /// Section 5.5.1: a close body is empty or begins with two bytes.
    #[error("close frame of one byte")]
    ShortClose,
}

impl FrameError {
    /// The code to close with (section 7.4.1).
    pub fn close_code(&self) -> CloseCode {
        match self {
            Self::TooLarge { .. } | Self::TooManyFragments => CloseCode::MessageTooBig,
            Self::NotUtf8 => CloseCode::InvalidPayload,
            _ => CloseCode::ProtocolError,
        }
    }
}

/// Reads frames. Holds nothing but an unfinished fragmented message: one pointer when idle.
#[derive(Debug, Default)]
pub struct Decoder {
    message: Option<Box<Fragments>>,
}

#[derive(Debug)]
struct Fragments {
    is_text: bool,
    is_compressed: bool,
    finished: bool,
    count: u32,
    payload: Vec<u8>,
}

struct Head {
    is_final: bool,
    is_compressed: bool,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    /// Bytes of the head itself.
    size: usize,
    payload: usize,
}

impl Decoder {
    /// Reads one frame from the front of `input`, unmasking it in place.
    ///
    /// The caller keeps bytes that were not consumed and calls again when more have come. A frame is only
    /// touched once it is whole, so any split of the stream gives the same events.
    pub fn decode<'a>(&'a mut self, input: &'a mut [u8], config: &Config) -> Result<Decoded<'a>, FrameError> {
        if self.message.as_ref().is_some_and(|m| m.finished) {
            self.message = None;
        }
        let head = match parse_head(input, config)? {
            Ok(head) => head,
            Err(needed) => return Ok(Decoded::Incomplete { needed }),
        };
        self.check_order(&head, config)?;
        let consumed = head.size + head.payload;
        if input.len() < consumed {
            return Ok(Decoded::Incomplete { needed: consumed });
        }
        let payload = &mut input[head.size..consumed];
        if let Some(mask) = head.mask {
            apply_mask(payload, mask);
        }
        let event = match head.opcode {
            Opcode::Ping => Some(Event::Ping(payload)),
            Opcode::Pong => Some(Event::Pong(payload)),
            Opcode::Close => Some(close_event(payload)?),
            Opcode::Text | Opcode::Binary if head.is_final => {
                Some(message(head.opcode == Opcode::Text, head.is_compressed, payload)?)
            }
            _ => self.fragment(&head, payload)?,
        };
        Ok(Decoded::Frame { consumed, event })
    }

    /// Bytes of memory it takes besides itself.
    pub fn kept_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |message| size_of::<Fragments>() + message.payload.capacity())
    }

    /// Whether a fragmented message has begun and not ended.
    pub fn is_inside_message(&self) -> bool {
        self.message.as_ref().is_some_and(|m| !m.finished)
    }

    fn check_order(&self, head: &Head, config: &Config) -> Result<(), FrameError> {
        let open = self.message.as_ref().map(|m| (m.payload.len(), m.count));
        match (head.opcode, open) {
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => Ok(()),
            (Opcode::Continuation, None) => Err(FrameError::StrayContinuation),
            (Opcode::Continuation, Some((held, count))) => {
                if held + head.payload > config.max_message_bytes {
                    return Err(FrameError::TooLarge { max: config.max_message_bytes });
                }
                if count >= config.max_fragments {
                    return Err(FrameError::TooManyFragments);
                }
                Ok(())
            }
            (_, Some(_)) => Err(FrameError::Interleaved),
            (_, None) => Ok(()),
        }
    }

    fn fragment(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event<'_>>, FrameError> {
        let &Head { is_final, is_compressed, opcode, .. } = head;
        let begun = self.message.get_or_insert_with(|| {
            let is_text = opcode == Opcode::Text;
            Box::new(Fragments { is_text, is_compressed, finished: false, count: 0, payload: Vec::new() })
        });
        begun.payload.extend_from_slice(payload);
        begun.count += 1;
        if !is_final {
            return Ok(None);
        }
        begun.finished = true;
        message(begun.is_text, begun.is_compressed, &begun.payload).map(Some)
    }
}

/// A whole message.
fn message(is_text: bool, is_compressed: bool, payload: &[u8]) -> Result<Event<'_>, FrameError> {
    Ok(match (is_compressed, is_text) {
        (true, _) => Event::Compressed { is_text, payload },
        (false, true) => Event::Text(utf8(payload)?),
        (false, false) => Event::Binary(payload),
    })
}

/// `Ok(Err(needed))` when the head is not all there.
fn parse_head(input: &[u8], config: &Config) -> Result<Result<Head, usize>, FrameError> {
    let Some(&first) = input.first() else { return Ok(Err(2)) };
    // The first of them marks a compressed message, in its first frame (RFC 7692, section 6).
    let is_compressed = first & COMPRESSED != 0;
    if first & 0x30 != 0 || is_compressed && (!config.takes_compressed || !matches!(first & 0x0f, 1 | 2)) {
        return Err(FrameError::ReservedBits);
    }
    let is_final = first & 0x80 != 0;
    let opcode = match first & 0x0f {
        0 => Opcode::Continuation,
        1 => Opcode::Text,
        2 => Opcode::Binary,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        other => return Err(FrameError::UnknownOpcode(other)),
    };
    let is_control = opcode as u8 >= 8;
    if is_control && !is_final {
        return Err(FrameError::BadControl);
    }
    let Some(&second) = input.get(1) else { return Ok(Err(2)) };
    match (second & 0x80 != 0, config.role) {
        (false, Role::Server) => return Err(FrameError::Unmasked),
        (true, Role::Client) => return Err(FrameError::Masked),
        _ => {}
    }
    let (length_bytes, short) = match second & 0x7f {
        126 => (2, None),
        127 => (8, None),
        short => (0, Some(u64::from(short))),
    };
    if is_control && short.is_none() {
        return Err(FrameError::BadControl);
    }
    let mask_bytes = if config.role == Role::Server { 4 } else { 0 };
    let size = 2 + length_bytes + mask_bytes;
    let Some(extended) = input.get(2..2 + length_bytes) else { return Ok(Err(size)) };
    let length = short.unwrap_or_else(|| extended.iter().fold(0, |n, &b| n << 8 | u64::from(b)));
    if (length_bytes == 2 && length < 126) || (length_bytes == 8 && length < 65_536) {
        return Err(FrameError::LongLength);
    }
    if length > config.max_message_bytes as u64 && !is_control {
        return Err(FrameError::TooLarge { max: config.max_message_bytes });
    }
    if input.len() < size {
        return Ok(Err(size));
    }
    let mask = (mask_bytes == 4).then(|| {
        let at = size - 4;
        [input[at], input[at + 1], input[at + 2], input[at + 3]]
    });
    Ok(Ok(Head { is_final, is_compressed, opcode, mask, size, payload: length as usize }))
}

fn close_event(payload: &[u8]) -> Result<Event<'_>, FrameError> {
    match payload {
        [] => Ok(Event::Close(None)),
        [_] => Err(FrameError::ShortClose),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                return Err(FrameError::BadCloseCode(code));
            }
            Ok(Event::Close(Some((code, utf8(reason)?))))
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, FrameError> {
    std::str::from_utf8(bytes).map_err(|_| FrameError::NotUtf8)
}

fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let mut words = payload.chunks_exact_mut(8);
    for word in &mut words {
        let masked = u64::from_ne_bytes(word.try_into().expect("chunks of 8")) ^ wide;
        word.copy_from_slice(&masked.to_ne_bytes());
    }
    for (i, byte) in words.into_remainder().iter_mut().enumerate() {
        *byte ^= mask[i % 4];
    }
}

/// The bit that marks a compressed message.
const COMPRESSED: u8 = 0x40;

/// Appends the whole frame of a compressed message. A client passes a mask, a server none.
pub fn encode_compressed(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) {
    let begin = out.len();
    encode(out, opcode, payload, mask);
    out[begin] |= COMPRESSED;
}

/// Appends one whole frame. A client passes a mask, a server none.
pub fn encode(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) {
    encode_head(out, opcode, payload.len(), mask);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask);
    }
}

/// Appends the head of a whole frame, for a payload that the caller appends (and masks) itself.
pub fn encode_head(out: &mut Vec<u8>, opcode: Opcode, payload: usize, mask: Option<[u8; 4]>) {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    out.push(0x80 | opcode as u8);
    match payload {
        0..126 => out.push(masked | payload as u8),
        126..65_536 => {
            out.push(masked | 126);
            out.extend_from_slice(&(payload as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&(payload as u64).to_be_bytes());
        }
    }
    if let Some(mask) = mask {
        out.extend_from_slice(&mask);
    }
}

/// Appends a close frame; a reason beyond 123 bytes is cut at a character border.
pub fn encode_close(out: &mut Vec<u8>, code: CloseCode, reason: &str, mask: Option<[u8; 4]>) {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = Vec::with_capacity(2 + end);
    payload.extend_from_slice(&code.number().to_be_bytes());
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    encode(out, Opcode::Close, &payload, mask);
}

#[cfg(test)]
mod tests;
