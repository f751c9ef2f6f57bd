//! A secret without which a server answers nothing but health checks: whoever has it shows it in a cookie, or as
//! a bearer token.

use core::hint::black_box;
use std::fmt;

/// The secret. It is printed where whoever starts the server reads it, and nowhere else.
#[derive(Clone)]
pub struct Pass(String);

impl Pass {
    /// A pass that is shown by this text, which has only letters and digits.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// Its text.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether this is its text. How long that takes does not tell how much of it is right.
    pub fn is(&self, text: &str) -> bool {
        let differences = self.0.bytes().zip(text.bytes()).fold(0, |all, (a, b)| all | black_box(a ^ b));
        self.0.len() == text.len() && differences == 0
    }

    /// Whether a request with these fields shows it.
    pub fn is_shown<'h>(&self, fields: impl Iterator<Item = (&'h str, &'h str)> + Clone) -> bool {
        let host = named(fields.clone(), "host").next();
        let names = [false, true].map(|is_tls| cookie_name(host, is_tls));
        let mut kept = cookies(fields.clone()).filter(|(name, _)| names.iter().any(|own| own == name));
        kept.any(|(_, value)| self.is(value)) || bearers(fields).any(|text| self.is(text))
    }
}

/// The values of the fields of a name.
pub(crate) fn named<'h>(
    fields: impl Iterator<Item = (&'h str, &'h str)>,
    name: &'static str,
) -> impl Iterator<Item = &'h str> {
    fields.filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The cookies that come with a request, by name and value.
pub fn cookies<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>) -> impl Iterator<Item = (&'h str, &'h str)> {
    named(fields, "cookie").flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// The bearer tokens that come with a request (RFC 6750, section 2.1).
pub(crate) fn bearers<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>) -> impl Iterator<Item = &'h str> {
    let schemes = named(fields, "authorization").filter_map(|value| value.split_once(' '));
    schemes.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim())
}

/// The cookie's name. Browsers send a cookie to all ports of a host, so the name has the port that was asked: two
/// servers on one machine then do not overwrite each other's. Over TLS, its prefix keeps other hosts, and plain HTTP,
/// from setting it.
pub fn cookie_name(host: Option<&str>, is_tls: bool) -> String {
    let port = host.and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    let port = port.filter(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    format!("{}pushlab-pass-{}", if is_tls { "__Host-" } else { "" }, port.unwrap_or("0"))
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
    fn a_pass_is_shown_by_the_cookie_of_its_port_or_as_bearer() {
        let pass = Pass::new("0123abc".to_owned());
        let shown = |fields: &[(&str, &str)]| pass.is_shown(fields.iter().copied());
        let host = ("Host", "127.0.0.1:8080");
        assert!(shown(&[host, ("Cookie", "a=b; pushlab-pass-8080=0123abc")]));
        assert!(shown(&[host, ("cookie", "a=b"), ("cookie", "pushlab-pass-8080=0123abc")]), "over HTTP/2");
        assert!(shown(&[host, ("cookie", "pushlab-pass-8080=0; pushlab-pass-8080=0123abc")]), "of another path");
        assert!(shown(&[("host", "push.example"), ("cookie", "pushlab-pass-0=0123abc")]));
        assert!(shown(&[host, ("cookie", "__Host-pushlab-pass-8080=0123abc")]));
        assert!(shown(&[("host", "[::1]:80"), ("cookie", "pushlab-pass-80=0123abc")]));
        assert!(shown(&[("authorization", "bearer 0123abc")]) && shown(&[("Authorization", "Bearer  0123abc ")]));
        for bad in [
            &[][..],
            &[host],
            &[host, ("cookie", "pushlab-pass-8081=0123abc")],
            &[host, ("cookie", "pushlab-pass-8080=0123ab")],
            &[host, ("cookie", "pushlab-pass-8080=0123abcd")],
            &[host, ("cookie", "pushlab-pass-8080=")],
            &[host, ("cookie", "pushlab-pass-8080")],
            &[host, ("cookie", "Pushlab-Pass-8080=0123abc")],
            &[host, ("x-cookie", "pushlab-pass-8080=0123abc")],
            &[("authorization", "0123abc")],
            &[("authorization", "Basic 0123abc")],
            &[("authorization", "Bearer 0123abc, Bearer x")],
        ] {
            assert!(!shown(bad), "{bad:?}");
        }
        assert_eq!(format!("{pass:?}"), "Pass");
    }
}
