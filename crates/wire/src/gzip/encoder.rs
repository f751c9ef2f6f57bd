//! gzip (RFC 1952) as a server writes it: whole bodies, and streams whose messages are compressed once
//! for everybody.
//!
//! The messages of a stream refer to nothing before them and end on whole bytes, so that the same bytes fit into every
//! stream, wherever it is. A stream therefore has a head, and no trailer: that holds a checksum of all it has said, which
//! each stream would have to keep for itself.

use crate::deflate::Deflater;
use flate2::Crc;

/// What a body begins with: deflate, no name, no time, unknown system.
pub const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes in front of a stored block behind whole bytes: its kind, its length, and that inverted (RFC 1951, section 3.2.4).
const BLOCK_HEAD_BYTES: usize = 5;
/// Most bytes of a stored block.
const MAX_BLOCK_BYTES: usize = 65_535;
/// An empty block of fixed codes that says that it is the last.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// A whole body; `None` where that is not smaller.
pub fn encode(deflater: &mut Deflater, body: &[u8]) -> Option<Vec<u8>> {
    let deflated = deflater.deflate(body)?;
    let mut crc = Crc::new();
    crc.update(body);
    let mut out = HEAD.to_vec();
    push_deflated(&mut out, &deflated, b"");
    out.extend_from_slice(&LAST_BLOCK);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
    (out.len() < body.len()).then_some(out)
}

/// Appends what a [`Deflater`] made, and a few bytes as they are behind it: `tail`, which fills the stored block that it
/// has begun.
pub fn push_deflated(out: &mut Vec<u8>, deflated: &[u8], tail: &'static [u8]) {
    out.extend_from_slice(deflated);
    push_size(out, tail.len() as u16);
    out.extend_from_slice(tail);
}

/// The bytes that [`push_deflated`] appends.
pub fn deflated_len(deflated: &[u8], tail: &'static [u8]) -> usize {
    deflated.len() + BLOCK_HEAD_BYTES - 1 + tail.len()
}

/// Appends bytes as they are, in stored blocks.
pub fn push_stored(out: &mut Vec<u8>, bytes: &[u8]) {
    for block in bytes.chunks(MAX_BLOCK_BYTES) {
        out.push(0);
        push_size(out, block.len() as u16);
        out.extend_from_slice(block);
    }
}

/// The bytes that [`push_stored`] appends.
pub fn stored_len(bytes: &[u8]) -> usize {
    bytes.len() + bytes.len().div_ceil(MAX_BLOCK_BYTES) * BLOCK_HEAD_BYTES
}

fn push_size(out: &mut Vec<u8>, size: u16) {
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&(!size).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use flate2::write::GzDecoder as GzWriter;
    use proptest::prelude::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn a_body_that_does_not_shrink_stays_as_it_is() {
        let mut deflater = Deflater::default();
        assert_eq!(encode(&mut deflater, b"[\"cursor\",\"abc:17\"]"), None);
        let body = b"[\"msg\",\"a\",\"abc:17\",{\"price\":1}],".repeat(9);
        let mut back = Vec::new();
        GzDecoder::new(&encode(&mut deflater, &body).unwrap()[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, body);
    }

    proptest! {
        /// Messages, each compressed apart or stored, are one stream; each is there as soon as its bytes are.
        #[test]
        fn messages_of_any_kind_are_one_stream(
            messages in prop::collection::vec((prop::collection::vec(0u8..4, 0..300), any::<bool>()), 0..9),
            large in 0usize..200_000,
        ) {
            let mut deflater = Deflater::default();
            let (mut decoder, mut said) = (GzWriter::new(Vec::new()), Vec::new());
            decoder.write_all(&HEAD).unwrap();
            let large = (vec![b'x'; large], false);
            for (text, wants_deflate) in messages.iter().chain([&large]) {
                let mut out = Vec::new();
                match deflater.deflate(text).filter(|_| *wants_deflate) {
                    Some(deflated) => {
                        push_deflated(&mut out, &deflated, b"\n\n");
                        prop_assert_eq!(out.len(), deflated_len(&deflated, b"\n\n"));
                        said.extend_from_slice(&[text, &b"\n\n"[..]].concat());
                    }
                    None => {
                        push_stored(&mut out, text);
                        prop_assert_eq!(out.len(), stored_len(text));
                        said.extend_from_slice(text);
                    }
                }
                decoder.write_all(&out).unwrap();
                decoder.flush().unwrap();
                prop_assert_eq!(decoder.get_ref(), &said);
            }
        }
    }
}
