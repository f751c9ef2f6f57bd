//! The receipt mark: when a server received a publication, written by it into the publication's data.
//!
//! A publisher that wants to know leaves a place, `!.........!`. The server overwrites it with `!TTTTTTTTT!`, the
//! instant on the monotonic clock of the host in units of 100 ns, in the digits of a stamp. Both are eleven
//! characters that need no escaping in JSON, HTML, an event stream or a URL, so nothing around them moves; and as
//! a stamp holds no `!` and a mark no `~`, neither is ever taken for the other.

use crate::stamp::{RESOLUTION_NS, put, take};
use memchr::{memchr_iter, memmem};

/// Length of a mark, and of the place for one, in bytes.
pub const RECEIPT_BYTES: usize = 11;
/// The place for a mark.
pub const PLACE: &[u8; RECEIPT_BYTES] = b"!.........!";

const MARK: u8 = b'!';

/// When a server received a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Instant on the monotonic clock of the host, in nanoseconds; kept to 100 ns, downwards.
    pub instant_ns: u64,
}

impl Receipt {
    /// The mark as text.
    pub fn encode(&self) -> [u8; RECEIPT_BYTES] {
        let mut text = [MARK; RECEIPT_BYTES];
        put(&mut text[1..RECEIPT_BYTES - 1], self.instant_ns / RESOLUTION_NS);
        text
    }

    /// Writes the mark into the first place for one; `false`, and nothing is changed, where there is none.
    ///
    /// ASCII replaces ASCII: text that was UTF-8 still is.
    pub fn fill(&self, text: &mut [u8]) -> bool {
        let Some(start) = memmem::find(text, PLACE) else { return false };
        text[start..start + RECEIPT_BYTES].copy_from_slice(&self.encode());
        true
    }

    /// Finds the first mark in a text; a place that nobody filled is none.
    pub fn find(text: &[u8]) -> Option<Self> {
        for start in memchr_iter(MARK, text) {
            let candidate = text.get(start..start + RECEIPT_BYTES)?;
            if candidate[RECEIPT_BYTES - 1] != MARK {
                continue;
            }
            if let Some(instant) = take(&candidate[1..RECEIPT_BYTES - 1]) {
                return Some(Self { instant_ns: instant * RESOLUTION_NS });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{MAX_SEQUENCE, MAX_SOURCE, STAMP_BYTES, Stamp};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_filled_place_is_found_in_any_text(tenths in 0u64..1 << 54, before in "[^!]{0,40}", after: String) {
            let receipt = Receipt { instant_ns: tenths * RESOLUTION_NS };
            let place = std::str::from_utf8(PLACE).unwrap();
            let original = format!("{before}{place}{after}");
            let mut text = original.clone().into_bytes();
            prop_assert!(receipt.fill(&mut text));
            prop_assert_eq!(Receipt::find(&text), Some(receipt));
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!((text.len(), &text[..before.len()]), (original.len(), before.as_str()));
            prop_assert_eq!(&text[before.len() + RECEIPT_BYTES..], after.as_str());
        }

        #[test]
        fn a_text_without_a_place_stays_as_it_is(text: String, tenths in 0u64..1 << 54) {
            let mut bytes = text.clone().into_bytes();
            let is_filled = Receipt { instant_ns: tenths * RESOLUTION_NS }.fill(&mut bytes);
            prop_assert_eq!(is_filled, text.contains(std::str::from_utf8(PLACE).unwrap()));
            prop_assert_eq!(bytes == text.as_bytes(), !is_filled);
        }

        #[test]
        fn stamps_and_marks_are_never_confused(source in 0..=MAX_SOURCE, sequence in 0..=MAX_SEQUENCE, sent in 0u64..1 << 54, received in 0u64..1 << 54) {
            let stamp = Stamp { source, sequence, instant_ns: sent * RESOLUTION_NS };
            let receipt = Receipt { instant_ns: received * RESOLUTION_NS };
            for parts in [[&stamp.encode()[..], &receipt.encode()], [&receipt.encode(), &stamp.encode()]] {
                let text = parts.concat();
                prop_assert_eq!((Stamp::find(&text), Receipt::find(&text)), (Some(stamp), Some(receipt)));
            }
        }

        #[test]
        fn a_cut_mark_is_not_found(cut in 0usize..RECEIPT_BYTES) {
            prop_assert_eq!(Receipt::find(&Receipt { instant_ns: 123_400 }.encode()[..cut]), None);
        }
    }

    #[test]
    fn a_place_and_a_stamp_are_no_marks() {
        assert_eq!(Receipt::find(PLACE), None);
        assert_eq!(Stamp::find(&[PLACE.as_slice(); STAMP_BYTES].concat()), None);
        assert_eq!(Receipt::find(&Stamp { source: 1, sequence: 2, instant_ns: 300 }.encode()), None);
    }

    #[test]
    fn a_lone_exclamation_mark_hides_nothing() {
        let mut text = b"{\"t\":\"so!much!!".to_vec();
        text.extend_from_slice(PLACE);
        let receipt = Receipt { instant_ns: 700 };
        assert!(receipt.fill(&mut text));
        assert!(!receipt.fill(&mut text), "a filled place is none");
        assert_eq!(Receipt::find(&text), Some(receipt));
    }

    #[test]
    fn needs_no_escaping() {
        let text = [Receipt { instant_ns: u64::MAX }.encode(), *PLACE].concat();
        assert!(text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'!' | b'.' | b'-' | b'_')));
    }
}
