//! Patterns of channel names.

use serde_json::{Map, Value};

/// Which channels are meant: a name in which `*` stands for any characters, none among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Box<str>);

/// A pattern in which `{claim}` stands for what a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Claim(String),
}

/// What is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It could not match a channel.
    #[error(
        "{0:?} is no pattern of channels: write a channel's name, with * for any characters and {{claim}} for what the \
         token says, such as \"user:{{sub}}:*\""
    )]
    Malformed(String),
    /// It is ambiguous where the claim ends.
    #[error(
        "{0:?} would let one token reach another's channels: put a : or . between {{claim}} and a * or another \
         {{claim}} (write \"user:{{sub}}:*\", not \"user:{{sub}}*\")"
    )]
    Ambiguous(String),
}

/// What divides a channel's name into parts. A claim's value contains none, so it stays within its part of the pattern.
const SEPARATORS: [char; 2] = [':', '.'];

fn is_of_channel(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-')
}

impl Pattern {
    /// Reads a pattern that stands for the same channels for everybody.
    ///
    /// # Errors
    /// [`BadPattern`], for `{claim}` too.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let is_good = !text.is_empty() && text.bytes().all(|byte| is_of_channel(byte) || byte == b'*');
        if is_good { Ok(Self(text.into())) } else { Err(BadPattern::Malformed(text.to_owned())) }
    }

    /// Whether a channel is meant.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // Where the last star stands, and up to where it reaches: if what follows does not fit, it reaches one further.
        let mut last: Option<(usize, usize)> = None;
        while n < name.len() {
            if p < pattern.len() && pattern[p] == b'*' {
                last = Some((p, n));
                p += 1;
            } else if p < pattern.len() && pattern[p] == name[n] {
                (p, n) = (p + 1, n + 1);
            } else if let Some((star, reach)) = last {
                last = Some((star, reach + 1));
                (p, n) = (star + 1, reach + 1);
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|&byte| byte == b'*')
    }
}

impl Template {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`BadPattern`].
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let bad = || BadPattern::Malformed(text.to_owned());
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (claim, behind) = after.split_once('}').filter(|(claim, _)| !claim.is_empty()).ok_or_else(bad)?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Claim(claim.to_owned()));
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        let is_good = |piece: &Piece| match piece {
            Piece::Text(text) => Pattern::parse(text).is_ok(),
            Piece::Claim(claim) => !claim.contains(['{', '*']),
        };
        if pieces.is_empty() || !pieces.iter().all(is_good) {
            return Err(bad());
        }
        let template = Self(pieces);
        if template.is_ambiguous() { Err(BadPattern::Ambiguous(text.to_owned())) } else { Ok(template) }
    }

    /// Whether a part of the name has a claim together with a star or another claim.
    fn is_ambiguous(&self) -> bool {
        let shape: String = self.0.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "{" }).collect();
        shape.split(SEPARATORS).any(|part| {
            let claims = part.matches('{').count();
            claims > 1 || claims > 0 && part.contains('*')
        })
    }

    /// Whether it means other channels for other tokens.
    pub fn needs_token(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Claim(_)))
    }

    /// The pattern for somebody whose token claims this; `None`, which means no channel, if a value does not fit within
    /// one part of a channel's name. A claim never adds a star or a separator.
    pub fn fill(&self, claims: &Map<String, Value>) -> Option<Pattern> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(fixed) => text.push_str(fixed),
                Piece::Claim(name) => {
                    let value = match claims.get(name)? {
                        Value::String(value) => value.clone(),
                        Value::Number(number) => number.to_string(),
                        _ => return None,
                    };
                    if value.is_empty() || value.contains(SEPARATORS) || !value.bytes().all(is_of_channel) {
                        return None;
                    }
                    text.push_str(&value);
                }
            }
        }
        Some(Pattern(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a", "", false),
            ("*", "", true),
            ("*", "anything:at.all", true),
            ("news:*", "news:", true),
            ("news:*", "news:a:b", true),
            ("news:*", "news", false),
            ("*:public", "a:public", true),
            ("*:public", "a:public:b", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "axxbxxbyyc", true),
            ("a*b*c", "axxbxxbyy", false),
            ("a**c", "abc", true),
            ("*a*a*a*a*a*a*b", &"a".repeat(128), false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_claim_takes_its_place_and_brings_no_star() {
        let claims = json!({"sub": "ada", "id": 7, "evil": "*", "space": "a b", "empty": "", "list": ["a"], "yes": true,
                   "parts": "a:b", "dots": "a.b", "half": 1.5});
        let fill = |text: &str| Template::parse(text).unwrap().fill(claims.as_object().unwrap());
        assert_eq!(fill("user:{sub}:*"), Some(Pattern("user:ada:*".into())));
        assert_eq!(fill("{id}.{sub}"), Some(Pattern("7.ada".into())));
        for none in ["{evil}", "a:{space}", "{empty}", "{list}", "{yes}", "{missing}", "{parts}", "{dots}", "{half}"] {
            assert_eq!(fill(none), None, "{none}");
        }
        assert!(Template::parse("{sub}").unwrap().needs_token() && !Template::parse("a*").unwrap().needs_token());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["", "a b", "{", "a}", "{}", "{a", "a{b{c}", "ä", "a/b", "{*}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        for bad in ["{sub}*", "*{sub}", "a:*-{sub}", "a:{sub}-*:b", "{a}{b}", "{a}-{b}", "a:{sub}_x*"] {
            assert_eq!(Template::parse(bad), Err(BadPattern::Ambiguous(bad.to_owned())));
        }
        for good in ["a*:{sub}.*", "room-{sub}", "{sub}-room:*", "{a}:{b}", "*.{sub}"] {
            assert!(Template::parse(good).is_ok(), "{good}");
        }
        assert!(Pattern::parse("{sub}").is_err());
    }

    /// Whatever others' tokens claim, they do not reach the channels of one whose patterns are theirs too.
    #[test]
    fn no_claim_reaches_the_channels_of_another() {
        let files =
            [&["user:{sub}", "user:{sub}:*", "user.{sub}.inbox", "room-{sub}:*"][..], &["{sub}:*"], &["a_{sub}"]];
        let text = |pattern: &str| prop::string::string_regex(pattern).unwrap();
        let victims = (text("[ab_-]{1,2}"), text("[ab:.]{0,3}"));
        let strangers = (text("[ab]{0,2}[*:._-]?[ab]{0,2}"), text("[ab*:._-]{0,5}"));
        proptest!(|(at in 0..files.len(), (victim, rest) in victims, (more, other) in strangers)| {
            let templates = files[at].iter().map(|text| Template::parse(text).unwrap());
            let of = |claim: &str| -> Vec<Pattern> {
                let claims = json!({ "sub": claim });
                templates.clone().filter_map(|template| template.fill(claims.as_object().unwrap())).collect()
            };
            let channels: Vec<String> = of(&victim).iter().map(|pattern| pattern.0.replace('*', &rest)).collect();
            prop_assert_eq!(channels.len(), files[at].len());
            for stranger in [format!("{victim}{more}"), format!("{more}{victim}"), other] {
                let mut reached = channels.iter().filter(|channel| of(&stranger).iter().any(|own| own.matches(channel)));
                prop_assert!(stranger == victim || reached.next().is_none(), "{victim:?} and {stranger:?}");
            }
        });
    }
}
