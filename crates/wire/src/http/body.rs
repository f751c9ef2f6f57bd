//! Bodies of HTTP/1.1, as they come and as they are sent.

use super::{BodyKind, HttpError};

/// Reads a body piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyDecoder(Body);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    Length(u64),
    UntilClose,
    /// In the digits of a chunk's size.
    Size {
        value: u64,
        digits: u8,
    },
    /// Behind the digits: white space, then perhaps an extension, of which so many bytes were read.
    Extension {
        value: u64,
        is_named: bool,
        read: u32,
    },
    /// At the line feed of a size line.
    SizeEnd {
        value: u64,
    },
    Data {
        rest: u64,
    },
    /// Behind a chunk's data.
    DataEnd {
        is_past_cr: bool,
    },
    /// In the trailers, of which so many bytes were read.
    Trailer {
        is_line_empty: bool,
        is_past_cr: bool,
        read: u32,
    },
    Done,
}

/// One step of a [`BodyDecoder`].
#[derive(Debug, PartialEq, Eq)]
pub struct BodyStep<'a> {
    /// Bytes to drop from the front of the input.
    pub consumed: usize,
    /// Bytes of the body; may be empty.
    pub data: &'a [u8],
    /// Whether the body has ended.
    pub is_done: bool,
}

/// Longest extension of a chunk and longest trailer section, in bytes.
pub const MAX_TRAILER_BYTES: u32 = 4096;

impl BodyDecoder {
    /// A decoder for one body.
    pub fn new(kind: BodyKind) -> Self {
        Self(match kind {
            BodyKind::Length(0) => Body::Done,
            BodyKind::Length(n) => Body::Length(n),
            BodyKind::UntilClose => Body::UntilClose,
            BodyKind::Chunked => CHUNK_START,
        })
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.0 == Body::Done
    }

    /// Reads at most one run of body bytes. Call again while it consumes something and is not done.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, HttpError> {
        let mut at = 0;
        loop {
            match &mut self.0 {
                Body::Done => return Ok(BodyStep { consumed: at, data: &[], is_done: true }),
                Body::UntilClose => {
                    return Ok(BodyStep { consumed: input.len(), data: &input[at..], is_done: false });
                }
                Body::Length(rest) | Body::Data { rest } => {
                    let take = usize::try_from(*rest).unwrap_or(usize::MAX).min(input.len() - at);
                    *rest -= take as u64;
                    let data = &input[at..at + take];
                    let mut consumed = at + take;
                    if *rest == 0 {
                        self.0 = match self.0 {
                            Body::Length(_) => Body::Done,
                            _ if input[consumed..].starts_with(CHUNK_END) => {
                                consumed += CHUNK_END.len();
                                CHUNK_START
                            }
                            _ => Body::DataEnd { is_past_cr: false },
                        };
                    }
                    return Ok(BodyStep { consumed, data, is_done: self.is_done() });
                }
                framing => {
                    if let (Body::Size { digits: 0, .. }, Some((rest, line))) = (&*framing, plain_size(&input[at..])) {
                        self.0 = Body::Data { rest };
                        at += line;
                        continue;
                    }
                    let Some(&byte) = input.get(at) else {
                        return Ok(BodyStep { consumed: at, data: &[], is_done: false });
                    };
                    at += 1;
                    let next = chunk_framing(framing, byte)?;
                    self.0 = next;
                }
            }
        }
    }
}

const CHUNK_START: Body = Body::Size { value: 0, digits: 0 };

/// The size of a chunk that is not the last, and the length of its line, where all of that line lies in the input and is
/// as most servers write it: digits alone.
fn plain_size(input: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, &byte) in input.iter().take(9).enumerate() {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return (value > 0 && input[place..].starts_with(CHUNK_END)).then_some((value, place + CHUNK_END.len()));
        };
        value = value << 4 | u64::from(digit);
    }
    None
}

/// Moves on by one byte outside of chunk data. Lines end in CR LF and nothing else: what one parser takes for the end
/// of a line and another does not is how requests are smuggled.
fn chunk_framing(state: &Body, byte: u8) -> Result<Body, HttpError> {
    Ok(match (state, byte) {
        (&Body::Size { value, digits }, _) => match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) if digits < 15 => Body::Size { value: value << 4 | u64::from(digit), digits: digits + 1 },
            (None, b'\r') if digits > 0 => Body::SizeEnd { value },
            (None, b' ' | b'\t' | b';') if digits > 0 => Body::Extension { value, is_named: byte == b';', read: 1 },
            _ => return Err(HttpError::BadChunk),
        },
        (&Body::Extension { value, .. }, b'\r') => Body::SizeEnd { value },
        (&Body::Extension { value, is_named, read }, _) => {
            let is_allowed = byte != b'\n' && (is_named || matches!(byte, b' ' | b'\t' | b';'));
            if !is_allowed || read >= MAX_TRAILER_BYTES {
                return Err(HttpError::BadChunk);
            }
            Body::Extension { value, is_named: is_named || byte == b';', read: read + 1 }
        }
        (Body::SizeEnd { value: 0 }, b'\n') => Body::Trailer { is_line_empty: true, is_past_cr: false, read: 0 },
        (&Body::SizeEnd { value }, b'\n') => Body::Data { rest: value },
        (Body::DataEnd { is_past_cr: false }, b'\r') => Body::DataEnd { is_past_cr: true },
        (Body::DataEnd { is_past_cr: true }, b'\n') => CHUNK_START,
        (Body::Trailer { is_line_empty: true, is_past_cr: true, .. }, b'\n') => Body::Done,
        (&Body::Trailer { is_past_cr: true, read, .. }, b'\n') => {
            Body::Trailer { is_line_empty: true, is_past_cr: false, read }
        }
        (&Body::Trailer { is_line_empty, is_past_cr: false, read }, b'\r') => {
            Body::Trailer { is_line_empty, is_past_cr: true, read }
        }
        (&Body::Trailer { is_past_cr: false, read, .. }, _) if byte != b'\n' && read < MAX_TRAILER_BYTES => {
            Body::Trailer { is_line_empty: false, is_past_cr: false, read: read + 1 }
        }
        _ => return Err(HttpError::BadChunk),
    })
}

/// The chunk that ends a body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the size line of a chunk; the caller appends `size` bytes and [`CHUNK_END`].
pub fn encode_chunk_head(out: &mut Vec<u8>, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for shift in (0..digits).rev() {
        out.push(DIGITS[size >> (shift * 4) & 15]);
    }
    out.extend_from_slice(CHUNK_END);
}

/// Ends a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes a body fed in pieces of the given sizes (the last repeats).
    fn decode(kind: BodyKind, input: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, bool, usize), HttpError> {
        let mut decoder = BodyDecoder::new(kind);
        let (mut body, mut start, mut cut) = (Vec::new(), 0, 0);
        while start < input.len() && !decoder.is_done() {
            let size = cuts.get(cut).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
            cut += 1;
            let end = (start + size).min(input.len());
            while start < end && !decoder.is_done() {
                let step = decoder.decode(&input[start..end])?;
                body.extend_from_slice(step.data);
                start += step.consumed;
            }
        }
        Ok((body, decoder.is_done(), start))
    }

    proptest! {
        #[test]
        fn chunks_come_back_however_they_are_cut(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8), cuts in prop::collection::vec(1usize..20, 1..6)) {
            let mut wire = Vec::new();
            for piece in &pieces {
                encode_chunk_head(&mut wire, piece.len());
                wire.extend_from_slice(piece);
                wire.extend_from_slice(CHUNK_END);
            }
            wire.extend_from_slice(LAST_CHUNK);
            let size = wire.len();
            wire.extend_from_slice(b"next");
            prop_assert_eq!(decode(BodyKind::Chunked, &wire, &cuts), Ok((pieces.concat(), true, size)));
        }

        #[test]
        fn any_bytes_give_the_same_result_however_they_are_cut(input in prop::collection::vec(prop_oneof![Just(b'0'), Just(b'3'), Just(b'\r'), Just(b'\n'), Just(b';'), any::<u8>()], 0..60), cuts in prop::collection::vec(1usize..9, 1..6)) {
            prop_assert_eq!(decode(BodyKind::Chunked, &input, &cuts), decode(BodyKind::Chunked, &input, &[1]));
        }
    }

    #[test]
    fn extensions_and_trailers_are_skipped() {
        let wire = b"3;name=value\r\nabc\r\n0\r\nTrailer: x\r\n\r\n";
        assert_eq!(decode(BodyKind::Chunked, wire, &[]), Ok((b"abc".to_vec(), true, wire.len())));
        assert_eq!(decode(BodyKind::Chunked, b"\r\n", &[]), Err(HttpError::BadChunk));
        assert_eq!(decode(BodyKind::Chunked, b"ffffffffffffffff\r\n", &[]), Err(HttpError::BadChunk));
        assert_eq!(decode(BodyKind::Chunked, b"1\r\nab", &[]), Err(HttpError::BadChunk));
        for smuggled in ["3 5\r\n", "3\r5\n", "3\nabc", "1\r\na\n", "0\r\n\n", "1;x\n", "\r\n", ";\r\n"] {
            assert_eq!(decode(BodyKind::Chunked, smuggled.as_bytes(), &[]), Err(HttpError::BadChunk), "{smuggled:?}");
        }
        for endless in [format!("1;{}", "x".repeat(5000)), format!("0\r\n{}", "x".repeat(5000))] {
            assert_eq!(decode(BodyKind::Chunked, endless.as_bytes(), &[]), Err(HttpError::BadChunk));
        }
    }
}
