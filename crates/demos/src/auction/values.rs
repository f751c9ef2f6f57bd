//! What comes from outside, read into types that cannot be wrong, and the limits of each.

use pushlab_application::requests::{Refusal, bad};

/// Characters of an account's name: at least 2.
pub const MIN_ACCOUNT_NAME_CHARS: usize = 2;
/// Characters of an account's name: 24 at most.
pub const MAX_ACCOUNT_NAME_CHARS: usize = 24;
/// Characters of a password: at least 8.
pub const MIN_PASSWORD_CHARS: usize = 8;
/// Characters of a password: 128 at most. What is hashed is bounded with it, 512 bytes.
pub const MAX_PASSWORD_CHARS: usize = 128;
/// Characters of an item's name: 100 at most.
pub const MAX_ITEM_NAME_CHARS: usize = 100;
/// Characters of a description: 1,000 at most. Each change of an item tells all clients the whole of it, so it is at
/// most 8 KiB a message, escapes included.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;
/// The highest amount, cents: ten thousand million whole ones, far below 2⁵³, so that every program reads it exactly.
pub const MAX_AMOUNT_CENTS: i64 = 1_000_000_000_000;
/// An auction lasts a second at least.
pub const MIN_AUCTION_MS: i64 = 1000;
/// An auction lasts 90 days at most.
pub const MAX_AUCTION_MS: i64 = 90 * 24 * 3600 * 1000;

/// The name of an account: [`MIN_ACCOUNT_NAME_CHARS`] to [`MAX_ACCOUNT_NAME_CHARS`] of `A-Z a-z 0-9 - _`, the first a
/// letter or digit. Names that differ in capitals alone are one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName(String);

impl AccountName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let is_sized = (MIN_ACCOUNT_NAME_CHARS..=MAX_ACCOUNT_NAME_CHARS).contains(&text.len());
        let is_spelt = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if is_sized && is_spelt && text.as_bytes()[0].is_ascii_alphanumeric() {
            return Ok(Self(text.to_owned()));
        }
        Err(bad(format!(
            "a name has {MIN_ACCOUNT_NAME_CHARS} to {MAX_ACCOUNT_NAME_CHARS} letters without accents, digits, hyphens \
             or underscores, and begins with a letter or digit"
        )))
    }

    /// As it is shown.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What tells names apart.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// A password, [`MIN_PASSWORD_CHARS`] to [`MAX_PASSWORD_CHARS`] characters of any kind.
pub struct Password(String);

impl Password {
    /// Reads a password.
    pub fn parse(text: String) -> Result<Self, Refusal> {
        if (MIN_PASSWORD_CHARS..=MAX_PASSWORD_CHARS).contains(&text.chars().count()) {
            return Ok(Self(text));
        }
        Err(bad(format!("a password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters")))
    }

    /// What is hashed.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// An amount above nothing, whole cents, [`MAX_AMOUNT_CENTS`] at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cents(i64);

impl Cents {
    /// Reads an amount.
    pub fn parse(cents: i64) -> Result<Self, Refusal> {
        if (1..=MAX_AMOUNT_CENTS).contains(&cents) {
            return Ok(Self(cents));
        }
        Err(bad(format!("an amount is 1 to {MAX_AMOUNT_CENTS} cents")))
    }

    /// How many.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// What somebody offers.
#[derive(Debug, Clone)]
pub struct Offer {
    /// 1 to [`MAX_ITEM_NAME_CHARS`] characters in one line.
    pub name: String,
    /// At most [`MAX_DESCRIPTION_CHARS`] characters; may have line breaks and tabs.
    pub description: String,
    /// The least that a bid must be.
    pub minimum: Cents,
    /// When the auction ends, milliseconds since 1970.
    pub expires_ms: i64,
}

impl Offer {
    /// Reads an offer; `now_ms` is the clock by which the auction ends.
    pub fn parse(
        name: &str,
        description: &str,
        minimum_cents: i64,
        expires_ms: i64,
        now_ms: i64,
    ) -> Result<Self, Refusal> {
        let name = name.trim();
        if !(1..=MAX_ITEM_NAME_CHARS).contains(&name.chars().count()) || name.chars().any(char::is_control) {
            return Err(bad(format!("an item's name has 1 to {MAX_ITEM_NAME_CHARS} characters in one line")));
        }
        let description = description.trim();
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        if description.chars().count() > MAX_DESCRIPTION_CHARS || !description.chars().all(is_text) {
            return Err(bad(format!("a description has at most {MAX_DESCRIPTION_CHARS} characters of text")));
        }
        let lasts_ms = expires_ms.saturating_sub(now_ms);
        if !(MIN_AUCTION_MS..=MAX_AUCTION_MS).contains(&lasts_ms) {
            let (least, most) = (MIN_AUCTION_MS / 1000, MAX_AUCTION_MS / 86_400_000);
            return Err(bad(format!("an auction ends {least} second to {most} days from now")));
        }
        let (name, description) = (name.to_owned(), description.to_owned());
        Ok(Self { name, description, minimum: Cents::parse(minimum_cents)?, expires_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_accounts_have_an_alphabet_and_a_length() {
        for good in ["ab", "Ada-Lovelace_1815", "0x", &"a".repeat(MAX_ACCOUNT_NAME_CHARS)] {
            assert_eq!(AccountName::parse(good).expect(good).text(), good);
        }
        let long = "a".repeat(MAX_ACCOUNT_NAME_CHARS + 1);
        for bad in ["", "a", &long, "-ab", "_ab", "a b", "é1", "ab\0", "<b>", "a'b", "аda", " ab", "ab\n"] {
            assert!(AccountName::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(AccountName::parse("ADA").expect("good").key(), AccountName::parse("ada").expect("good").key());
    }

    #[test]
    fn passwords_have_a_length_in_characters() {
        for (count, is_taken) in [
            (MIN_PASSWORD_CHARS - 1, false),
            (MIN_PASSWORD_CHARS, true),
            (MAX_PASSWORD_CHARS, true),
            (MAX_PASSWORD_CHARS + 1, false),
        ] {
            assert_eq!(Password::parse("🔑".repeat(count)).is_ok(), is_taken, "{count}");
        }
    }

    #[test]
    fn amounts_are_above_nothing_and_bounded() {
        for (cents, is_taken) in
            [(i64::MIN, false), (-1, false), (0, false), (1, true), (MAX_AMOUNT_CENTS, true), (i64::MAX, false)]
        {
            assert_eq!(Cents::parse(cents).is_ok(), is_taken, "{cents}");
        }
        assert_eq!(Cents::parse(MAX_AMOUNT_CENTS + 1).map_err(|r| r.code().name()), Err("bad-request"));
    }

    #[test]
    fn offers_have_a_name_a_text_and_an_end() {
        let parse = |name: &str, text: &str, expires_ms| Offer::parse(name, text, 1, expires_ms, 1_000_000);
        let end = 1_000_000 + MIN_AUCTION_MS;
        assert_eq!(parse(" Krøyer 🎨 ", "one\n\ttwo ", end).expect("good").name, "Krøyer 🎨");
        assert!(parse(&"ß".repeat(MAX_ITEM_NAME_CHARS), &"ß".repeat(MAX_DESCRIPTION_CHARS), end).is_ok());
        for (name, text) in [
            ("", ""),
            ("  ", ""),
            ("a\nb", ""),
            ("a\0", ""),
            ("a", "\0"),
            ("a", "\u{1b}[2J"),
            (&"a".repeat(MAX_ITEM_NAME_CHARS + 1), ""),
            ("a", &"a".repeat(MAX_DESCRIPTION_CHARS + 1)),
        ] {
            assert!(parse(name, text, end).is_err(), "{name:?} {text:?}");
        }
        for (expires_ms, is_taken) in [
            (i64::MIN, false),
            (end - 1, false),
            (1_000_000 + MAX_AUCTION_MS, true),
            (1_000_001 + MAX_AUCTION_MS, false),
            (i64::MAX, false),
        ] {
            assert_eq!(parse("a", "", expires_ms).is_ok(), is_taken, "{expires_ms}");
        }
    }
}
