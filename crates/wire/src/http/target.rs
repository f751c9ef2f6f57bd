//! Targets of requests (RFC 9112, section 3.2), and the hosts that they and their fields name.

use crate::fields::number;
use core::net::Ipv6Addr;
use memchr::{memchr, memchr2};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};
use std::borrow::Cow;

/// What is escaped in a query or a form: all but letters, digits and `-._~` (RFC 3986, section 2.3).
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Splits a request target into its path and an iterator over decoded query parameters.
///
/// Percent escapes and `+` are decoded; a broken escape stays as it is, since names and values are checked
/// by their own types afterwards. What has neither is borrowed.
pub fn split_target(target: &str) -> (&str, impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // Of `http://HOST?QUERY` the path is not written (RFC 9110, section 4.2.3).
    let path = if path.is_empty() { "/" } else { path };
    // Most have nothing to decode.
    let is_plain = memchr2(b'%', b'+', query.as_bytes()).is_none();
    let (plain, escaped) = if is_plain { (query, "") } else { ("", query) };
    let parts = plain.split('&').filter(|part| !part.is_empty());
    let parameters = parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (Cow::Borrowed(name), Cow::Borrowed(value))
    });
    (path, parameters.chain(form_urlencoded::parse(escaped.as_bytes())))
}

/// A path without its escapes; `None` where one is broken or the bytes are no UTF-8. A `+` stands for itself, and a `/`
/// that was escaped looks like any other. What has no escapes is borrowed.
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    // The decoder would leave a broken one as it is.
    if !has_whole_escapes(path) {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok()
}

fn has_whole_escapes(text: &str) -> bool {
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    text.split('%').skip(1).all(is_escape)
}

/// Reads a target: the host in it, if it is in absolute form, and path and query, of which the path may be missing then.
/// `None` of what is none.
pub(super) fn read_target<'b>(method: &str, target: &'b str) -> Option<(Option<&'b str>, &'b str)> {
    if memchr(b'#', target.as_bytes()).is_some() {
        return None;
    }
    if target.starts_with('/') || target == "*" && method == "OPTIONS" {
        return Some((None, target));
    }
    let (scheme, rest) = target.split_once("://")?;
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let is_ours = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_ours && is_host(host)).then_some((Some(host), rest))
}

/// Whether that is the value of a field `Host`: a host, or nothing (RFC 9110, section 7.2).
pub(super) fn is_host_field(value: &[u8]) -> bool {
    value.is_empty() || std::str::from_utf8(value).is_ok_and(is_host)
}

/// Whether that is `HOST` or `HOST:PORT` (RFC 3986, section 3.2); a name is not empty (RFC 9110, section 4.2.1).
fn is_host(text: &str) -> bool {
    let (is_name, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => (address.parse::<Ipv6Addr>().is_ok(), port),
        Some(None) => return false,
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let is_written = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&b);
            (!name.is_empty() && name.bytes().all(is_written) && has_whole_escapes(name), port)
        }
    };
    let is_port = |digits: &str| digits.is_empty() || number(digits.as_bytes()).is_some_and(|port| port <= 65_535);
    is_name && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Headers, HttpError, parse_request};
    use percent_encoding::utf8_percent_encode;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_undoes_percent_encoding(text: String) {
            let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
            let target = format!("/?{encoded}={encoded}");
            let parameter = (Cow::Borrowed(&*text), Cow::Borrowed(&*text));
            prop_assert_eq!(split_target(&target).1.collect::<Vec<_>>(), [parameter]);
            let path = decode_path(&encoded);
            prop_assert_eq!(path.as_deref(), Some(&*text));
        }
    }

    proptest! {
        #[test]
        fn what_has_no_escapes_is_read_as_the_standard_says(query in "[a-z&=?/.:é-]{0,40}") {
            let expected: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            let target = format!("/p?{query}");
            prop_assert_eq!(split_target(&target).1.collect::<Vec<_>>(), expected);
        }
    }

    /// The server decodes every target, and most have nothing to decode.
    #[test]
    fn what_is_not_escaped_is_not_copied() {
        let is_borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        assert!(decode_path("/a/b+c").is_some_and(|path| is_borrowed(&path)));
        let (_, mut parameters) = split_target("/ws?channel=a:b&cursor=1.5&x");
        assert!(parameters.all(|(name, value)| is_borrowed(&name) && is_borrowed(&value)));
    }

    #[test]
    fn a_path_is_decoded_or_refused() {
        for (path, decoded) in [
            ("/", Some("/")),
            ("/a+b", Some("/a+b")),
            ("/a%2Fb%20%c3%a9", Some("/a/b é")),
            ("/%", None),
            ("/%4", None),
            ("/%4g", None),
            ("/%+1", None),
            ("/%ff", None),
        ] {
            assert_eq!(decode_path(path).as_deref(), decoded, "{path}");
        }
    }

    #[test]
    fn targets_are_split_and_decoded() {
        let (path, parameters) = split_target("/ws?channel=a%3Ab&x=1+2&y&%zz=%e4");
        assert_eq!(path, "/ws");
        let all: Vec<_> = parameters.collect();
        let pairs: Vec<(&str, &str)> = all.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(pairs, [("channel", "a:b"), ("x", "1 2"), ("y", ""), ("%zz", "\u{fffd}")]);
    }

    /// Path and host of a request as its head says them.
    fn read(request: &str, fields: &str) -> Result<(String, Option<String>), HttpError> {
        let text = format!("{request}\r\n{fields}\r\n");
        let mut headers = Headers::default();
        let (head, size) = parse_request(text.as_bytes(), &mut headers)?.expect("it is whole");
        assert_eq!(size, text.len());
        Ok((split_target(head.target).0.to_owned(), head.header("host").map(str::to_owned)))
    }

    #[test]
    fn an_absolute_target_is_a_path_and_the_host_that_counts() {
        let same = "Host: h\r\n";
        for (target, path, host) in [
            ("/healthz", "/healthz", "h"),
            ("//healthz", "//healthz", "h"),
            ("/http://a/b", "/http://a/b", "h"),
            ("http://127.0.0.1:8000/healthz", "/healthz", "127.0.0.1:8000"),
            ("HTTPS://A.example/b?c=d://e/f", "/b", "A.example"),
            ("http://a.example", "/", "a.example"),
            ("http://a.example?x=/y", "/", "a.example"),
            ("http://[::1]:80/b", "/b", "[::1]:80"),
            ("http://a:/b", "/b", "a:"),
        ] {
            let expected = Ok((path.to_owned(), Some(host.to_owned())));
            assert_eq!(read(&format!("GET {target} HTTP/1.1"), same), expected, "{target}");
        }
        // The oldest version knows no Host.
        let old = read("GET http://a/b HTTP/1.0", "X: y\r\n");
        assert_eq!(old, Ok(("/b".to_owned(), Some("a".to_owned()))));
        assert_eq!(read("GET http://a/b HTTP/1.1", ""), Ok(("/b".to_owned(), None)), "it is missing all the same");
        assert_eq!(read("OPTIONS * HTTP/1.1", same).map(|(path, _)| path), Ok("*".to_owned()));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        let mut targets = vec!["*", "healthz", "h:80", "?x", "#", "/healthz#x", "/poll?channel=a#", "://h/", ":///"];
        targets.extend([
            "http:",
            "http:/",
            "http://",
            "http:///healthz",
            "http://?x",
            "http://:80/",
            "http:/h/healthz",
        ]);
        targets.extend([
            "ftp://h/",
            "ws://h/",
            "file:///etc/passwd",
            "http://user@h/",
            "http://h:x/",
            "http://h:65536/",
        ]);
        targets.extend(["http://[::1/", "http://::1/", "http://[h]/", "http://h%2/", "http://h\\/", "http://h\u{e9}/"]);
        for target in targets {
            let request = format!("GET {target} HTTP/1.1");
            assert_eq!(read(&request, "Host: h\r\n"), Err(HttpError::BadTarget), "{target}");
        }
        assert_eq!(read("CONNECT h:80 HTTP/1.1", "Host: h:80\r\n"), Err(HttpError::PlainConnect));
    }

    #[test]
    fn a_host_is_one_and_is_a_host() {
        for host in ["", "h", "A-b_c.example.", "127.0.0.1:8000", "[::1]", "[::ffff:1.2.3.4]:1", "h:", "h:080", "%41~"]
        {
            let found = read("GET /a HTTP/1.1", &format!("hOST:\t{host} \r\n"));
            assert_eq!(found, Ok(("/a".to_owned(), Some(host.to_owned()))), "{host:?}");
        }
        let bad: [&[u8]; 20] = [
            b"a b",
            b"a, b",
            b"a/",
            b"a/b",
            b"a?b",
            b"a#b",
            b"http://a",
            b"user@a",
            b":80",
            b"a:b",
            b"a:80:80",
            b"a:+80",
            b"a:65536",
            b"::1",
            b"[::1",
            b"[::1]80",
            b"[a]",
            b"a%zz",
            "b\u{fc}cher.example".as_bytes(),
            b"\xff",
        ];
        for bad in bad {
            for target in ["/a", "http://h/a"] {
                for version in ["1.0", "1.1"] {
                    let text = [format!("GET {target} HTTP/{version}\r\nHost: ").as_bytes(), bad, b"\r\n\r\n"].concat();
                    let mut headers = Headers::default();
                    let result = parse_request(&text, &mut headers).map(|_| ());
                    assert_eq!(result, Err(HttpError::BadHost), "{}", text.escape_ascii());
                }
            }
        }
        for twice in [&b"Host: a\r\nHost: a"[..], b"Host: a\r\nhost: \xff", b"Host: \xff\r\nhost: a", b"Host:\r\nHost:"]
        {
            let text = [b"GET http://a/ HTTP/1.1\r\n", twice, b"\r\n\r\n"].concat();
            let mut headers = Headers::default();
            assert_eq!(parse_request(&text, &mut headers).map(|_| ()), Err(HttpError::BadHost));
        }
    }
}
