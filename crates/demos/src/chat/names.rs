//! What may be a name, a room and a text.
//!
//! A name is somebody's alone, so no two may look alike: its alphabet is Latin letters with or without accents, each
//! one code point, and digits. Other scripts have letters that look like these, and combining marks give one letter
//! several spellings. What is left of likeness is folded away, a small part of what UTS #39 calls a skeleton: capitals,
//! accents, which of the joiners it is, I and l and 1, O and 0, rn and m, vv and w. Texts are free: they are shown
//! beside a name that cannot be imitated.

use serde::{Deserialize, Serialize, Serializer};

/// Longest name, characters.
pub const MAX_NAME_CHARS: usize = 24;
/// Longest name of a room, characters; it is part of a channel's name.
pub const MAX_ROOM_CHARS: usize = 32;
/// Longest text, characters: at most 4 KB in a message.
pub const MAX_TEXT_CHARS: usize = 1000;

/// Stands between two letters or digits of a name, never two together.
const JOINERS: [char; 5] = [' ', '.', '_', '-', '\''];

/// Somebody's name. Names that look alike have the same [`Name::key`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Name {
    // First, so that names are in the order of the alphabet.
    lower: String,
    shown: String,
    key: String,
}

/// A room's name, which is also the end of its channel's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct RoomName(String);

/// What somebody says. It is data: whoever shows it, shows it as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Text(String);

/// What is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// As a name.
    #[error(
        "a name has 1 to {MAX_NAME_CHARS} Latin letters or digits, with single spaces, dots, hyphens, underscores or \
         apostrophes only between them"
    )]
    Name,
    /// As a room.
    #[error("a room's name has 1 to {MAX_ROOM_CHARS} of a-z and 0-9, with single hyphens only between them")]
    Room,
    /// As a text.
    #[error("a text has 1 to {MAX_TEXT_CHARS} characters, no control characters, and not spaces alone")]
    Text,
}

impl Name {
    /// As its owner wrote it.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The same for all names that look alike: one of them is taken at a time.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether it is this name, in whatever capitals, and not just one that looks like it.
    pub fn is(&self, other: &Self) -> bool {
        self.lower == other.lower
    }
}

impl RoomName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = Unfit;

    fn try_from(shown: String) -> Result<Self, Unfit> {
        let is_short = shown.chars().count() <= MAX_NAME_CHARS;
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_letter_or_digit);
        if !is_short || !shown.split(JOINERS).all(is_part) {
            return Err(Unfit::Name);
        }
        Ok(Self { lower: shown.to_lowercase(), key: skeleton(&shown), shown })
    }
}

impl TryFrom<String> for RoomName {
    type Error = Unfit;

    fn try_from(text: String) -> Result<Self, Unfit> {
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9'));
        if text.len() <= MAX_ROOM_CHARS && text.split('-').all(is_part) { Ok(Self(text)) } else { Err(Unfit::Room) }
    }
}

impl TryFrom<String> for Text {
    type Error = Unfit;

    fn try_from(text: String) -> Result<Self, Unfit> {
        let is_short = text.chars().count() <= MAX_TEXT_CHARS;
        let is_fit = is_short && !text.trim().is_empty() && !text.chars().any(char::is_control);
        if is_fit { Ok(Self(text)) } else { Err(Unfit::Text) }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}

/// Latin-1 and Latin Extended-A, without the long s, which small letters turn into no other, and without those that
/// stand for two letters and look like them.
fn is_letter_or_digit(c: char) -> bool {
    let is_accented = ('\u{c0}'..='\u{17e}').contains(&c) && c.is_alphabetic();
    let is_pair = matches!(c, '\u{132}' | '\u{133}' | '\u{13f}' | '\u{140}' | '\u{149}');
    c.is_ascii_alphanumeric() || (is_accented && !is_pair)
}

/// What is left of a name when everything is taken away that is easily overlooked.
fn skeleton(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'i' | 'I' | 'l' | 'L' | '1' => plain.push('l'),
            'o' | 'O' | '0' => plain.push('o'),
            _ if JOINERS.contains(&c) => plain.push(' '),
            _ if c.is_ascii() => plain.push(c.to_ascii_lowercase()),
            _ => plain.push_str(without_accent(c)),
        }
    }
    // Each of the two letters as the pair, and not the pair as the letter: pairs may overlap, as in vvv.
    plain.replace('m', "rn").replace('w', "vv")
}

/// What a letter of a name looks like, accents aside, as [`skeleton`] spells it; `""` for what is in no name.
fn without_accent(c: char) -> &'static str {
    match c {
        'À'..='Å' | 'à'..='å' | 'Ā'..='ą' => "a",
        'Æ' | 'æ' => "ae",
        // Sharp s does look like it.
        'ß' => "b",
        'Ç' | 'ç' | 'Ć'..='č' => "c",
        'Ð' | 'ð' | 'Ď'..='đ' => "d",
        'È'..='Ë' | 'è'..='ë' | 'Ē'..='ě' => "e",
        'Ĝ'..='ģ' => "g",
        'Ĥ'..='ħ' => "h",
        'Ĵ' | 'ĵ' => "j",
        'Ķ'..='ĸ' => "k",
        'Ì'..='Ï' | 'ì'..='ï' | 'Ĩ'..='ı' | 'Ĺ'..='ľ' | 'Ł' | 'ł' => "l",
        'Ñ' | 'ñ' | 'Ń'..='ň' | 'Ŋ' | 'ŋ' => "n",
        'Ò'..='Ö' | 'Ø' | 'ò'..='ö' | 'ø' | 'Ō'..='ő' => "o",
        'Œ' | 'œ' => "oe",
        'Þ' | 'þ' => "p",
        'Ŕ'..='ř' => "r",
        'Ś'..='š' => "s",
        'Ţ'..='ŧ' => "t",
        'Ù'..='Ü' | 'ù'..='ü' | 'Ũ'..='ų' => "u",
        'Ŵ' | 'ŵ' => "w",
        'Ý' | 'ý' | 'ÿ' | 'Ŷ'..='Ÿ' => "y",
        'Ź'..='ž' => "z",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_and_digits_with_single_joiners_between() {
        for good in ["a", "7", "Ida", "Bjørn Åse", "O'Neil", "j.r-r_t", "Žižek", "ÀÿŽ", &"é".repeat(24)] {
            assert!(Name::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let bad = [
            "",
            " ",
            " a",
            "a ",
            "a  b",
            "a-",
            "-a",
            "a.-b",
            "a\tb",
            "a\nb",
            "a\u{a0}b",
            "a\u{200b}b",
            "a\u{2003}b",
            "a\u{202e}b",
            "a\u{0}",
            "<script>",
            "a&b",
            "a\"b",
            "e\u{301}",
            "р\u{430}",
            "ａ",
            "ĳ",
            "ſ",
            "李",
            "×",
            "😀",
            &"a".repeat(25),
        ];
        for bad in bad {
            assert_eq!(Name::try_from(bad.to_owned()), Err(Unfit::Name), "{bad:?}");
        }
    }

    fn name(text: &str) -> Name {
        Name::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn names_that_look_alike_have_one_key() {
        for (one, other) in [
            ("ÅSE O'Neil", "åse o'NEIL"),
            ("Ida", "lda"),
            ("Ida", "1DA"),
            ("Bill", "BiIl"),
            ("Otto", "0tt0"),
            ("Åse", "Ase"),
            ("Žižek", "Zizek"),
            ("Łukasz", "Iukasz"),
            ("Isa İ ı", "lsa.I-l"),
            ("Bernd", "Bemd"),
            ("Wim", "vvim"),
            ("vw-fan", "vvv-fan"),
            ("vw-fan", "wv-fan"),
            ("ŵv", "vvv"),
            ("rmn", "rrnn"),
            ("j.r-r_t", "j r'r t"),
        ] {
            assert_eq!(name(one).key(), name(other).key(), "{one} {other}");
        }
        for (one, other) in [("Ida", "Ada"), ("Bo", "Bob"), ("a b", "ab"), ("p1", "p2"), ("Ole", "Ule"), ("rn", "rm")] {
            assert_ne!(name(one).key(), name(other).key(), "{one} {other}");
        }
    }

    #[test]
    fn a_name_is_itself_in_any_capitals_and_no_other() {
        assert!(name("ÅSE O'Neil").is(&name("åse o'NEIL")));
        assert!(!name("Ida").is(&name("lda")) && !name("Åse").is(&name("Ase")));
        assert!(name("lda") > name("Ida"), "names are in the order of the alphabet");
    }

    /// Every letter of the alphabet is something in the key, and small and capital are the same there.
    #[test]
    fn every_letter_has_a_place_in_the_key() {
        for c in ('\0'..='\u{17f}').filter(|&c| is_letter_or_digit(c)) {
            let key = skeleton(&c.to_string());
            assert!(!key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric()), "{c} {key}");
            let other: String = if c.is_lowercase() { c.to_uppercase().collect() } else { c.to_lowercase().collect() };
            if other.chars().all(is_letter_or_digit) && c != 'ß' {
                assert_eq!(key, skeleton(&other), "{c} {other}");
            }
        }
    }

    #[test]
    fn rooms_fit_into_channel_names() {
        for good in ["lobby", "a", "7", "room-9", &"r".repeat(32)] {
            assert!(RoomName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "Lobby", "-a", "a-", "a--b", "a.b", "a b", "å", "a/b", &"r".repeat(33)] {
            assert_eq!(RoomName::try_from(bad.to_owned()), Err(Unfit::Room), "{bad}");
        }
    }

    #[test]
    fn texts_are_anything_but_control_characters() {
        for good in ["a", "<script>alert(1)</script>", "שלום", "e\u{301}", " 😀 ", "' OR 1=1 --", &"ß".repeat(1000)]
        {
            assert!(Text::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "  ", "\u{2003}", "a\u{0}", "a\u{1b}[2J", "a\nb", "a\u{85}b", &"a".repeat(1001)] {
            assert_eq!(Text::try_from(bad.to_owned()), Err(Unfit::Text), "{bad:?}");
        }
    }
}
