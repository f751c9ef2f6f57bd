//! Messages compressed by deflate (RFC 1951), each by itself, as permessage-deflate has them (RFC 7692). Without
//! context takeover, a message is compressed once for everybody who receives it, and a connection needs no memory for it.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// What each message ends with, and is not sent (section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Bytes for which room is made at a time.
const PART_BYTES: usize = 4096;

/// Compresses messages: working space of about 300 KiB for as many connections as there are, made when it is first needed.
#[derive(Debug, Default)]
pub struct Deflater(Option<Compress>);

impl Deflater {
    /// The payload of a message, compressed; `None` where that is not smaller.
    pub fn deflate(&mut self, payload: &[u8]) -> Option<Box<[u8]>> {
        let deflate = self.0.get_or_insert_with(|| Compress::new(Compression::fast(), false));
        deflate.reset();
        // What is not smaller has no room.
        let mut out = Vec::with_capacity(payload.len() + TAIL.len());
        let status = deflate.compress_vec(payload, &mut out, FlushCompress::Sync);
        let is_whole =
            matches!(status, Ok(Status::Ok)) && deflate.total_in() == payload.len() as u64 && out.ends_with(&TAIL);
        out.truncate(out.len().saturating_sub(TAIL.len()));
        (is_whole && out.len() < payload.len()).then(|| out.into_boxed_slice())
    }
}

/// A message that cannot be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    /// It would be larger than it may be.
    #[error("message of more than {max} bytes after decompression")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// It is not compressed as was agreed.
    #[error("invalid compressed message")]
    Malformed,
}

/// Inflates messages: working space of about 50 KiB for as many connections as there are, made when it is first needed.
#[derive(Debug, Default)]
pub struct InflateDecoder {
    inflate: Option<Decompress>,
    out: Vec<u8>,
}

impl InflateDecoder {
    /// A message of at most `max` bytes that refers to no earlier one. However much a few bytes would become, no more
    /// than that is held.
    ///
    /// # Errors
    /// Where it is larger, or not compressed as was agreed.
    pub fn inflate(&mut self, payload: &[u8], max: usize) -> Result<&mut [u8], InflateError> {
        if let Some(inflate) = &mut self.inflate {
            inflate.reset(false);
        }
        self.inflate_next(payload, max)
    }

    /// The same for the next message of a connection that this decoder alone serves: it may refer to those before.
    ///
    /// # Errors
    /// As [`Self::inflate`]; what refers to a message before the error is lost.
    pub fn inflate_next(&mut self, payload: &[u8], max: usize) -> Result<&mut [u8], InflateError> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        self.out.clear();
        if self.out.capacity() > max.max(PART_BYTES) {
            self.out = Vec::new();
        }
        for part in [payload, &TAIL] {
            let mut rest = part;
            loop {
                if self.out.len() == self.out.capacity() {
                    // One more byte than there may be shows that there are too many.
                    self.out.reserve_exact(PART_BYTES.min(max + 1 - self.out.len()));
                }
                let (read, made) = (inflate.total_in(), self.out.len());
                let status = inflate.decompress_vec(rest, &mut self.out, FlushDecompress::Sync);
                let used = (inflate.total_in() - read) as usize;
                rest = &rest[used..];
                if self.out.len() > max {
                    return Err(InflateError::TooLarge { max });
                }
                let has_room = self.out.len() < self.out.capacity();
                match status {
                    Err(_) => return Err(InflateError::Malformed),
                    // A block may say that it is the last, and others follow (section 7.2.3.4).
                    Ok(Status::StreamEnd) => inflate.reset(false),
                    Ok(_) if !has_room => {}
                    Ok(_) if rest.is_empty() => {}
                    Ok(_) if used == 0 && self.out.len() == made => return Err(InflateError::Malformed),
                    Ok(_) => {}
                }
                if rest.is_empty() && has_room {
                    break;
                }
            }
        }
        Ok(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7692, section 7.2.3: the examples.
    #[test]
    fn the_examples_of_the_standard_are_inflated() {
        let mut decoder = InflateDecoder::default();
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(decoder.inflate(&hello, 5).unwrap(), b"Hello");
        // Not compressed, and with a block that says it is the last.
        let stored = [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
        assert_eq!(decoder.inflate(&stored, 5).unwrap(), b"Hello");
        let last = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
        assert_eq!(decoder.inflate(&last, 5).unwrap(), b"Hello");
        let two_blocks = [0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(decoder.inflate(&two_blocks, 5).unwrap(), b"Hello");
        assert_eq!(decoder.inflate(&hello, 4), Err(InflateError::TooLarge { max: 4 }));
        assert_eq!(decoder.inflate(&[0xff, 0xff], 100), Err(InflateError::Malformed));
        assert_eq!(decoder.inflate(&hello, 5).unwrap(), b"Hello", "an error leaves nothing behind");
    }

    #[test]
    fn messages_that_refer_to_earlier_ones_need_a_decoder_of_their_own() {
        let text = br#"{"id":17,"name":"sensor","unit":"degrees"}"#;
        let mut compress = Compress::new(Compression::fast(), false);
        let mut next = || {
            let mut out = Vec::with_capacity(200);
            compress.compress_vec(text, &mut out, FlushCompress::Sync).unwrap();
            out.truncate(out.len() - TAIL.len());
            out
        };
        let (first, second) = (next(), next());
        assert!(second.len() < first.len() / 2, "it refers to the first");
        let mut own = InflateDecoder::default();
        assert_eq!(own.inflate_next(&first, 100).unwrap(), text);
        assert_eq!(own.inflate_next(&second, 100).unwrap(), text);
        let mut shared = InflateDecoder::default();
        assert_eq!(shared.inflate(&first, 100).unwrap(), text);
        assert_ne!(shared.inflate(&second, 100).map(|text| text.to_vec()), Ok(text.to_vec()));
    }

    #[test]
    fn a_bomb_is_held_within_the_limit() {
        let mut out = Vec::with_capacity(1 << 20);
        let mut compress = Compress::new(Compression::best(), false);
        compress.compress_vec(&vec![0; 50 << 20], &mut out, FlushCompress::Sync).unwrap();
        assert!(out.len() < 100_000);
        let mut decoder = InflateDecoder::default();
        assert_eq!(decoder.inflate(&out, 64 * 1024), Err(InflateError::TooLarge { max: 64 * 1024 }));
        assert!(decoder.out.capacity() <= 64 * 1024 + PART_BYTES, "{}", decoder.out.capacity());
    }

    #[test]
    fn what_does_not_get_smaller_is_left_as_it_is() {
        let mut deflater = Deflater::default();
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<u8> = (0..1000).map(|_| random.u8(..)).collect();
        assert_eq!(deflater.deflate(&noise), None);
        assert_eq!(deflater.deflate(b""), None);
        let text = br#"{"id":17,"name":"sensor","values":[1,2,3,4,5,6,7,8,9],"unit":"degrees"}"#.repeat(10);
        let size = deflater.deflate(&text).unwrap().len();
        assert!(size < text.len() / 5, "{size}");
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(word in prop::collection::vec(any::<u8>(), 0..40), times in 0usize..400) {
            let payload = word.repeat(times);
            let mut decoder = InflateDecoder::default();
            if let Some(small) = Deflater::default().deflate(&payload) {
                prop_assert!(small.len() < payload.len());
                prop_assert_eq!(decoder.inflate(&small, payload.len()).unwrap(), &*payload);
                prop_assert!(decoder.inflate(&small, payload.len() - 1).is_err());
            }
        }

        #[test]
        fn no_bytes_are_held_beyond_the_limit(payload in prop::collection::vec(any::<u8>(), 0..200), max in 0usize..5_000) {
            let mut decoder = InflateDecoder::default();
            if let Ok(inflated) = decoder.inflate(&payload, max) {
                prop_assert!(inflated.len() <= max);
            }
        }
    }
}
