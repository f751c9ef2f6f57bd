//! Positions in a server's stream of publications.

use std::fmt;

/// Longest epoch, in bytes.
pub const MAX_EPOCH_BYTES: usize = 16;

/// Names one life of a server: a restart begins a new one. 1 to 16 of `A-Za-z0-9`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    bytes: [u8; MAX_EPOCH_BYTES],
    len: u8,
}

/// `epoch.offset`: the offset counts publications of the whole server, so one cursor resumes any set of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The server's life.
    pub epoch: Epoch,
    /// Publications up to and including this one have been seen; 0 before the first.
    pub offset: u64,
}

/// Text that is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor: expected EPOCH.OFFSET as the server gave it, for example k3x9a.42")]
pub struct BadCursor;

impl Epoch {
    /// Checks an epoch's text.
    pub fn parse(text: &str) -> Result<Self, BadCursor> {
        if text.is_empty() || text.len() > MAX_EPOCH_BYTES || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(BadCursor);
        }
        let mut bytes = [0; MAX_EPOCH_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes, len: text.len() as u8 })
    }

    /// A five-character epoch from any number, base 36; the caller brings the randomness.
    pub fn from_number(number: u64) -> Self {
        let mut bytes = [0; MAX_EPOCH_BYTES];
        let mut rest = number;
        for slot in &mut bytes[..5] {
            *slot = b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize];
            rest /= 36;
        }
        Self { bytes, len: 5 }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("an epoch is ASCII by construction")
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Cursor {
    /// Parses `epoch.offset`.
    pub fn parse(text: &str) -> Result<Self, BadCursor> {
        let (epoch, offset) = text.split_once('.').ok_or(BadCursor)?;
        if offset.is_empty() || !offset.bytes().all(|b| b.is_ascii_digit()) {
            return Err(BadCursor);
        }
        Ok(Self { epoch: Epoch::parse(epoch)?, offset: offset.parse().map_err(|_| BadCursor)? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch.as_str(), self.offset)
    }
}

/// Longest cursor that is kept: an epoch of 16, a dot and 20 digits, and some more for other servers.
pub const MAX_CURSOR_BYTES: usize = 39;

/// A cursor as a server gave it, whatever it looks like, without heap memory. Empty before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorText {
    len: u8,
    bytes: [u8; MAX_CURSOR_BYTES],
}

impl Default for CursorText {
    fn default() -> Self {
        Self { len: 0, bytes: [0; MAX_CURSOR_BYTES] }
    }
}

impl CursorText {
    /// Remembers a cursor, unless it is too long. Most are never sent, so they are looked at when one is.
    #[inline]
    pub fn set(&mut self, cursor: &str) {
        let kept = if cursor.len() <= MAX_CURSOR_BYTES { cursor.as_bytes() } else { b"" };
        self.len = kept.len() as u8;
        self.bytes[..kept.len()].copy_from_slice(kept);
    }

    /// The text, if there is one that a request line can carry. Without one the client resumes from "now", and the
    /// check shows what it missed.
    pub fn get(&self) -> Option<&str> {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'~');
        let text = &self.bytes[..usize::from(self.len)];
        if text.is_empty() || !text.iter().all(plain) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_printed_is_parsed(number: u64, offset: u64) {
            let cursor = Cursor { epoch: Epoch::from_number(number), offset };
            prop_assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
        }
    }

    #[test]
    fn refuses_what_is_no_cursor() {
        for bad in [
            "",
            ".",
            "a",
            "a.",
            ".1",
            "a.x",
            "a.-1",
            "a.+1",
            "a.1.2",
            "a.99999999999999999999",
            "toolongtoolongtoolong.1",
            "ä.1",
        ] {
            assert_eq!(Cursor::parse(bad), Err(BadCursor), "{bad}");
        }
    }

    #[test]
    fn a_cursor_is_kept_or_forgotten_whole() {
        let mut cursor = CursorText::default();
        assert_eq!(cursor.get(), None);
        cursor.set("k3x9a.18446744073709551615");
        assert_eq!(cursor.get(), Some("k3x9a.18446744073709551615"));
        cursor.set("a.1");
        assert_eq!(cursor.get(), Some("a.1"));
        for bad in ["a b", "a\r\nX: y", "ä", &"x".repeat(40)] {
            cursor.set("a.1");
            cursor.set(bad);
            assert_eq!(cursor.get(), None, "{bad:?}");
        }
    }
}
