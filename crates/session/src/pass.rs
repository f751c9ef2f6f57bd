//! A secret without which a server answers only health checks and requests for its pages' files. Clients send it
//! explicitly, as a bearer token or a WebSocket subprotocol; a cookie would go to every port of the host, whoever
//! listens there.

use core::hint::black_box;
use pushlab_wire::fields::trimmed;
use std::fmt;

/// The secret. It is printed where whoever starts the server reads it, and nowhere else.
#[derive(Clone)]
pub struct Pass(String);

impl Pass {
    /// A pass that is shown by this text, which has only letters and digits.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// Whether this is its text. How long that takes does not tell how much of it is right.
    pub fn is(&self, text: &str) -> bool {
        let differences = self.0.bytes().zip(text.bytes()).fold(0, |all, (a, b)| all | black_box(a ^ b));
        self.0.len() == text.len() && differences == 0
    }
}

/// The values of the fields of a name.
pub(crate) fn named<'h>(
    fields: impl Iterator<Item = (&'h str, &'h str)>,
    name: &'static str,
) -> impl Iterator<Item = &'h str> {
    fields.filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| trimmed(value))
}

/// The bearer tokens that come with a request (RFC 6750, section 2.1).
pub(crate) fn bearers<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>) -> impl Iterator<Item = &'h str> {
    let schemes = named(fields, "authorization").filter_map(|value| value.split_once(' '));
    schemes.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| trimmed(token))
}

/// Does not tell it, so that it reaches no output by mistake.
impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pass")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_its_whole_text_and_prints_nothing() {
        let pass = Pass::new("0123abc".to_owned());
        assert_eq!(
            ["0123abc", "0123ab", "0123abcd", "0123abd", ""].map(|text| pass.is(text)),
            [true, false, false, false, false]
        );
        assert_eq!(format!("{pass:?}"), "Pass");
    }
}
