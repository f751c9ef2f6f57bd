//! The data of a publication: JSON text of an exact size with a stamp inside.

use pushlab_wire::stamp::{STAMP_BYTES, Stamp};

/// Smallest data: a JSON string that holds nothing but a stamp.
pub const MIN_PAYLOAD_BYTES: u32 = STAMP_BYTES as u32 + 2;
/// Largest data; the most a client holds of one publication while it sends.
pub const MAX_PAYLOAD_BYTES: u32 = 1 << 20;

const OBJECT_START: &[u8] = b"{\"stamp\":\"";
const FILLER_START: &[u8] = b"\",\"text\":\"";
const OBJECT_END: &[u8] = b"\"}";

/// A size that no data can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("payload_bytes is {bytes}: it must be {MIN_PAYLOAD_BYTES} (a stamp in quotes) to {MAX_PAYLOAD_BYTES}")]
pub struct BadPayloadSize {
    /// The size asked for.
    pub bytes: u32,
}

/// JSON text of a fixed size, into which stamps are written.
///
/// From 42 bytes on it is `{"stamp":"~…~","text":"…"}`; below that a string that begins with the stamp.
#[derive(Debug, Clone)]
pub struct Payload {
    text: Vec<u8>,
    stamp_at: usize,
}

impl Payload {
    /// Data of exactly so many bytes.
    ///
    /// # Errors
    /// Below [`MIN_PAYLOAD_BYTES`] or above [`MAX_PAYLOAD_BYTES`].
    pub fn new(bytes: u32) -> Result<Self, BadPayloadSize> {
        if !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&bytes) {
            return Err(BadPayloadSize { bytes });
        }
        let size = bytes as usize;
        let is_object = size >= OBJECT_START.len() + STAMP_BYTES + FILLER_START.len() + OBJECT_END.len();
        let (start, middle, end): (&[u8], &[u8], &[u8]) =
            if is_object { (OBJECT_START, FILLER_START, OBJECT_END) } else { (b"\"", b"", b"\"") };
        let mut text = Vec::with_capacity(size);
        text.extend_from_slice(start);
        let stamp_at = text.len();
        text.extend_from_slice(&[b'~'; STAMP_BYTES]);
        text.extend_from_slice(middle);
        let filler = b"The quick brown fox jumps over the lazy dog. ";
        text.extend(filler.iter().cycle().take(size - text.len() - end.len()));
        text.extend_from_slice(end);
        Ok(Self { text, stamp_at })
    }

    /// The data with this stamp inside.
    pub fn stamped(&mut self, stamp: &Stamp) -> &[u8] {
        self.text[self.stamp_at..self.stamp_at + STAMP_BYTES].copy_from_slice(&stamp.encode());
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_exact_valid_json_with_its_stamp() {
        let stamp = Stamp { source: 5, sequence: 77, instant_ns: 123_456_700 };
        for bytes in (MIN_PAYLOAD_BYTES..300).chain([173, 2000, MAX_PAYLOAD_BYTES]) {
            let mut payload = Payload::new(bytes).unwrap();
            let text = payload.stamped(&stamp);
            assert_eq!(text.len(), bytes as usize);
            assert_eq!(Stamp::find(text), Some(stamp));
            assert!(pushlab_wire::native::is_json(std::str::from_utf8(text).unwrap()), "{bytes}");
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        for bytes in [0, MIN_PAYLOAD_BYTES - 1, MAX_PAYLOAD_BYTES + 1] {
            assert_eq!(Payload::new(bytes).unwrap_err(), BadPayloadSize { bytes });
        }
    }
}
