//! Secrets that cannot be guessed.

use std::fmt;
use std::io;

/// 128 random bits: a token, a session, the name of a channel that is one person's own. Its text is 32 hexadecimal
/// digits in lower case.
///
/// It may be the key of a [`std::collections::HashMap`] without telling anything by the time a look-up takes: the
/// map compares digests under a key of its own (SipHash), not prefixes that an attacker could extend.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new one, from the operating system's randomness.
    pub fn new() -> io::Result<Self> {
        Ok(Self(pushlab_os::random::bytes()?))
    }

    /// Reads the text of one; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let is_text = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let number = if is_text { u128::from_str_radix(text, 16).ok()? } else { return None };
        Some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Does not tell it, so that it reaches no output by mistake.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_is_printed_is_parsed_and_each_is_another() {
        let secrets: Vec<Secret> = (0..1000).map(|_| Secret::new().unwrap()).collect();
        for secret in &secrets {
            assert_eq!(Secret::parse(&secret.to_string()), Some(*secret));
        }
        assert_eq!(secrets.iter().collect::<HashSet<_>>().len(), 1000);
        assert_eq!(Secret::parse(&"0".repeat(32)), Some(Secret([0; 16])));
        assert_eq!(format!("{:?}", secrets[0]), "Secret");
    }

    #[test]
    fn refuses_other_text() {
        for bad in ["", "0", &"0".repeat(31), &"0".repeat(33), &"F".repeat(32), &format!("+{}", "0".repeat(31)), "é"] {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }
}
