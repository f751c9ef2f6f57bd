//! The stamp: who published what, and when it was meant to be sent, as text that survives any dialect.
//!
//! Twenty characters, `~SSSSQQQQQTTTTTTTTT~`, each six bits of a URL-safe base 64 alphabet, most significant
//! first: 4 for the source, 5 for the sequence number, 9 for the intended instant in units of 100 ns. Nothing
//! in it needs escaping in JSON, HTML, an event stream or a URL.

use memchr::memchr_iter;

/// Length of a stamp's text, in bytes.
pub const STAMP_BYTES: usize = 20;
/// Largest source number (24 bits).
pub const MAX_SOURCE: u32 = (1 << 24) - 1;
/// Largest sequence number (30 bits).
pub const MAX_SEQUENCE: u32 = (1 << 30) - 1;
/// Resolution of the instant, in nanoseconds.
pub const RESOLUTION_NS: u64 = 100;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MARK: u8 = b'~';
const INVALID: u8 = 0xff;
const VALUES: [u8; 256] = {
    let mut values = [INVALID; 256];
    let mut i = 0;
    while i < 64 {
        values[ALPHABET[i] as usize] = i as u8;
        i += 1;
    }
    values
};

/// Sequence number and intended send instant of one publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The publisher, at most [`MAX_SOURCE`].
    pub source: u32,
    /// Counts that publisher's publications from 0, at most [`MAX_SEQUENCE`].
    pub sequence: u32,
    /// Intended send instant on the monotonic clock of the host, in nanoseconds; kept to 100 ns.
    pub instant_ns: u64,
}

impl Stamp {
    /// The stamp as text.
    ///
    /// Source and sequence beyond their limits are cut to their low bits.
    pub fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut text = [MARK; STAMP_BYTES];
        put(&mut text[1..5], u64::from(self.source));
        put(&mut text[5..10], u64::from(self.sequence));
        put(&mut text[10..19], self.instant_ns / RESOLUTION_NS);
        text
    }

    /// Finds the first stamp in a text.
    #[inline]
    pub fn find(text: &[u8]) -> Option<Self> {
        for start in memchr_iter(MARK, text) {
            let candidate = text.get(start..start + STAMP_BYTES)?;
            if candidate[STAMP_BYTES - 1] != MARK {
                continue;
            }
            let fields = (take(&candidate[1..5]), take(&candidate[5..10]), take(&candidate[10..19]));
            if let (Some(source), Some(sequence), Some(instant)) = fields {
                return Some(Self {
                    source: source as u32,
                    sequence: sequence as u32,
                    instant_ns: instant * RESOLUTION_NS,
                });
            }
        }
        None
    }
}

pub(crate) fn put(slots: &mut [u8], mut value: u64) {
    for slot in slots.iter_mut().rev() {
        *slot = ALPHABET[(value & 63) as usize];
        value >>= 6;
    }
}

pub(crate) fn take(slots: &[u8]) -> Option<u64> {
    let mut value = 0;
    for &byte in slots {
        let six = VALUES[usize::from(byte)];
        if six == INVALID {
            return None;
        }
        value = value << 6 | u64::from(six);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stamp_is_found_in_any_text(source in 0..=MAX_SOURCE, sequence in 0..=MAX_SEQUENCE, tenths in 0u64..1 << 54, before in "[^~]{0,40}", after: String) {
            let stamp = Stamp { source, sequence, instant_ns: tenths * RESOLUTION_NS };
            let mut text = before.into_bytes();
            text.extend_from_slice(&stamp.encode());
            text.extend_from_slice(after.as_bytes());
            prop_assert_eq!(Stamp::find(&text), Some(stamp));
        }

        #[test]
        fn a_cut_stamp_is_not_found(cut in 0usize..STAMP_BYTES) {
            let text = Stamp { source: 7, sequence: 9, instant_ns: 123_400 }.encode();
            prop_assert_eq!(Stamp::find(&text[..cut]), None);
        }
    }

    #[test]
    fn a_lone_mark_does_not_hide_a_stamp() {
        let stamp = Stamp { source: 1, sequence: 2, instant_ns: 300 };
        let mut text = b"{\"t\":\"a~b~~".to_vec();
        text.extend_from_slice(&stamp.encode());
        assert_eq!(Stamp::find(&text), Some(stamp));
    }

    #[test]
    fn needs_no_escaping() {
        let text = Stamp { source: MAX_SOURCE, sequence: MAX_SEQUENCE, instant_ns: 1 }.encode();
        assert!(text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'~' | b'-' | b'_')));
    }
}
