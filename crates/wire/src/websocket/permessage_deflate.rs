//! Agreeing on compressed messages, as client and as server: the extension permessage-deflate (RFC 7692).

use crate::fields::trimmed;

/// What a server agrees to.
const AGREED: &str = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
macro_rules! with_window {
    ($($bits:literal)*) => {
        [$(($bits, concat!(
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=",
            $bits
        ))),*]
    };
}

/// The same for a client that has named the server's window: two to the power of so many bytes.
const AGREED_WITH_WINDOW: [(&str, &str); 8] = with_window!("8" "9" "10" "11" "12" "13" "14" "15");
/// The largest window.
const WHOLE_WINDOW: &str = "15";

/// What a server agrees to with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// What to answer.
    pub answer: &'static str,
    /// The client takes messages that were compressed with a window of 32 KiB. Otherwise none is compressed for it, which is
    /// allowed: a copy of its own would cost more than it saves.
    pub takes_whole_window: bool,
}

/// What a client offers in its field `Sec-WebSocket-Extensions`, as browsers do.
pub const OFFER: &str = "permessage-deflate; client_max_window_bits";

/// What a server has agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Whether its messages may refer to earlier ones, so that they can be inflated only in their order.
    pub keeps_context: bool,
    /// How far back our messages may refer, bytes.
    pub window_bytes: usize,
}

/// An invalid answer to [`OFFER`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Sec-WebSocket-Extensions {text:?}: {why}")]
pub struct BadAgreement {
    /// What the server answered.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Agreement {
    /// Checks a server's fields `Sec-WebSocket-Extensions`. `None` where it agrees to nothing, which it may.
    ///
    /// # Errors
    /// Where it agrees to what was not offered (RFC 6455, section 4.1), or not as it may (RFC 7692, section 7.1).
    pub fn of<'a>(
        fields: impl Iterator<Item = &'a str> + Clone,
        is_offered: bool,
    ) -> Result<Option<Self>, BadAgreement> {
        let bad = |why| BadAgreement { text: fields.clone().collect::<Vec<_>>().join(", "), why };
        let mut extensions = fields.clone().flat_map(|field| field.split(',')).map(trimmed);
        let mut extensions = extensions.by_ref().filter(|extension| !extension.is_empty());
        let Some(extension) = extensions.next() else { return Ok(None) };
        if !is_offered {
            return Err(bad("no extension was offered"));
        }
        if extensions.next().is_some() {
            return Err(bad("more than one extension, and one was offered"));
        }
        Self::of_extension(extension).map(Some).map_err(bad)
    }

    fn of_extension(extension: &str) -> Result<Self, &'static str> {
        let mut parts = extension.split(';').map(trimmed);
        if parts.next() != Some("permessage-deflate") {
            return Err("only permessage-deflate was offered");
        }
        let mut agreed = Self { keeps_context: true, window_bytes: 1 << 15 };
        let mut seen: Vec<&str> = Vec::new();
        for part in parts {
            let (name, value) = parameter(part);
            if seen.contains(&name) {
                return Err("a parameter is repeated");
            }
            seen.push(name);
            match (name, value) {
                ("server_no_context_takeover", None) => agreed.keeps_context = false,
                // Ours never refer to earlier messages.
                ("client_no_context_takeover", None) => {}
                // Whatever its window is, ours is as large.
                ("server_max_window_bits", Some(bits)) if is_window(bits) => {}
                ("client_max_window_bits", Some(bits)) if is_window(bits) => {
                    agreed.window_bytes =
                        1 << bits.parse::<u32>().map_err(|_| "max_window_bits must be a number from 8 to 15")?;
                }
                ("server_max_window_bits" | "client_max_window_bits", _) => {
                    return Err("max_window_bits must be a number from 8 to 15");
                }
                ("server_no_context_takeover" | "client_no_context_takeover", Some(_)) => {
                    return Err("a parameter has a value, though it takes none");
                }
                _ => return Err("unknown parameter"),
            }
        }
        Ok(agreed)
    }
}

/// Chooses among what a client offers in its fields `Sec-WebSocket-Extensions`, in its order: gives what to answer.
/// An offer is skipped if a parameter is unknown, repeated or has an invalid value (section 7.1), and one that asks for a
/// server window smaller than 32 KiB is taken only where there is no other.
pub fn agree<'a>(fields: impl Iterator<Item = &'a str>) -> Option<Agreed> {
    let mut offers = fields.flat_map(|field| field.split(',')).filter_map(agree_to);
    let first = offers.next()?;
    if first.takes_whole_window { Some(first) } else { offers.find(|one| one.takes_whole_window).or(Some(first)) }
}

fn agree_to(offer: &str) -> Option<Agreed> {
    let mut parts = offer.split(';').map(trimmed);
    if parts.next() != Some("permessage-deflate") {
        return None;
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut agreed = Agreed { answer: AGREED, takes_whole_window: true };
    for part in parts {
        let (name, value) = parameter(part);
        let is_right = match (name, value) {
            ("server_no_context_takeover" | "client_no_context_takeover" | "client_max_window_bits", None) => true,
            ("client_max_window_bits", Some(value)) => is_window(value),
            ("server_max_window_bits", Some(value)) => match AGREED_WITH_WINDOW.iter().find(|(bits, _)| *bits == value)
            {
                Some((bits, answer)) => {
                    agreed = Agreed { answer, takes_whole_window: *bits == WHOLE_WINDOW };
                    true
                }
                None => false,
            },
            _ => false,
        };
        if !is_right || seen.contains(&name) {
            return None;
        }
        seen.push(name);
    }
    Some(agreed)
}

/// A parameter's name and value, which may be quoted (RFC 6455, section 9.1).
fn parameter(part: &str) -> (&str, Option<&str>) {
    let Some((name, value)) = part.split_once('=') else { return (part, None) };
    let value = trimmed(value);
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    (trimmed(name), Some(quoted.unwrap_or(value)))
}

fn is_window(value: &str) -> bool {
    matches!(value, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str]) -> Result<Option<Agreement>, &'static str> {
        Agreement::of(fields.iter().copied(), true).map_err(|bad| bad.why)
    }

    #[test]
    fn what_our_server_answers_is_agreed_on() {
        let answer = agree([OFFER].into_iter()).unwrap().answer;
        assert_eq!(of(&[answer]), Ok(Some(Agreement { keeps_context: false, window_bytes: 1 << 15 })));
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[""]), Ok(None));
    }

    #[test]
    fn what_others_may_answer_is_agreed_on() {
        let kept = Agreement { keeps_context: true, window_bytes: 1 << 15 };
        assert_eq!(of(&["permessage-deflate"]), Ok(Some(kept)));
        assert_eq!(of(&["permessage-deflate; client_no_context_takeover"]), Ok(Some(kept)));
        assert_eq!(of(&["permessage-deflate;server_max_window_bits=10"]), Ok(Some(kept)));
        assert_eq!(
            of(&["permessage-deflate; client_max_window_bits=\"9\"; server_no_context_takeover"]),
            Ok(Some(Agreement { keeps_context: false, window_bytes: 512 }))
        );
    }

    #[test]
    fn what_may_not_be_answered_says_why() {
        for (answer, why) in [
            ("permessage-deflate; unknown", "unknown parameter"),
            ("permessage-deflate;", "unknown parameter"),
            ("permessage-deflate; server_no_context_takeover; server_no_context_takeover", "a parameter is repeated"),
            ("permessage-deflate; server_no_context_takeover=1", "a parameter has a value, though it takes none"),
            ("permessage-deflate; client_max_window_bits", "max_window_bits must be a number from 8 to 15"),
            ("permessage-deflate; client_max_window_bits=16", "max_window_bits must be a number from 8 to 15"),
            ("permessage-deflate; server_max_window_bits=015", "max_window_bits must be a number from 8 to 15"),
            ("x-webkit-deflate-frame", "only permessage-deflate was offered"),
            ("permessage-deflate, permessage-deflate", "more than one extension, and one was offered"),
        ] {
            assert_eq!(of(&[answer]), Err(why), "{answer}");
        }
        assert_eq!(of(&["permessage-deflate", "other"]), Err("more than one extension, and one was offered"));
        let unasked = Agreement::of(["permessage-deflate"].into_iter(), false).unwrap_err();
        assert_eq!(unasked.to_string(), "Sec-WebSocket-Extensions \"permessage-deflate\": no extension was offered");
        assert_eq!(Agreement::of([].into_iter(), false), Ok(None));
    }

    #[test]
    fn offers_are_taken_or_passed_over() {
        let taken = |fields: &[&str]| super::agree(fields.iter().copied());
        let agree =
            |fields: &[&str]| taken(fields).filter(|agreed| agreed.takes_whole_window).map(|agreed| agreed.answer);
        let with_window = |bits: usize| AGREED_WITH_WINDOW[bits - 8].1;
        assert_eq!(agree(&["permessage-deflate"]), Some(AGREED));
        assert_eq!(agree(&["permessage-deflate; client_max_window_bits"]), Some(AGREED), "as browsers offer");
        assert_eq!(agree(&["x-webkit-deflate-frame, permessage-deflate;client_max_window_bits=10"]), Some(AGREED));
        assert_eq!(agree(&["permessage-deflate; server_max_window_bits=15"]), Some(with_window(15)));
        assert_eq!(agree(&["permessage-deflate; server_max_window_bits=\"15\""]), Some(with_window(15)));
        assert_eq!(
            agree(&["a", "permessage-deflate; server_no_context_takeover; client_no_context_takeover"]),
            Some(AGREED)
        );
        let second = "permessage-deflate; server_max_window_bits=10, permessage-deflate";
        assert_eq!(agree(&[second]), Some(AGREED), "the second fits");
        for offer in [
            "",
            "deflate",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=7",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits=015",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
            "permessage-deflate; unknown",
            "permessage-deflate;",
            "permessage-deflate\u{a0}",
            "permessage-deflate; server_max_window_bits=\u{a0}15",
        ] {
            assert_eq!(taken(&[offer]), None, "{offer:?}");
        }
        for bits in 8..15 {
            let offer = format!("permessage-deflate; server_max_window_bits={bits}");
            let agreed = taken(&[&offer, "permessage-deflate; server_max_window_bits=9"]).unwrap();
            assert_eq!((agreed.answer, agreed.takes_whole_window), (with_window(bits), false));
        }
    }
}
