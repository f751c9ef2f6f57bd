//! Channel names.

use std::sync::Arc;

/// Longest channel name, in bytes.
pub const MAX_CHANNEL_BYTES: usize = 128;

/// A checked channel name: `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`. Cloning shares the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel(Arc<str>);

/// A name that is no channel name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a channel name: it starts with a letter or digit and has at most 128 of A-Z a-z 0-9 . _ : -")]
pub struct BadChannel;

impl Channel {
    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self, BadChannel> {
        if Self::is_valid(name) { Ok(Self(name.into())) } else { Err(BadChannel) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name can be a channel's.
    pub fn is_valid(name: &str) -> bool {
        let bytes = name.as_bytes();
        let Some(first) = bytes.first() else { return false };
        bytes.len() <= MAX_CHANNEL_BYTES
            && first.is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
    }
}

impl std::borrow::Borrow<str> for Channel {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_documented_alphabet_up_to_the_limit() {
        for good in ["a", "9", "a.b_c:d-e", &"x".repeat(128)] {
            assert!(Channel::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".a", "-", "a b", "a/b", "ä", "a\"", &"x".repeat(129)] {
            assert_eq!(Channel::parse(bad), Err(BadChannel), "{bad}");
        }
    }
}
