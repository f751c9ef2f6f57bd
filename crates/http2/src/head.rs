//! What a head may be (RFC 9113, sections 8.2 and 8.3; RFC 8441, section 4).

use pushlab_wire::fields::{FieldList, number, trimmed_bytes};

/// Fields that belong to a connection of HTTP/1.
const OF_CONNECTIONS: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Pseudo-header fields of a request.
const OF_REQUESTS: [&[u8]; 5] = [b":method", b":scheme", b":path", b":authority", b":protocol"];

/// What a head says of its message.
#[derive(Debug, PartialEq, Eq)]
pub struct Meaning {
    /// How long the body is, if it says so.
    pub length: Option<u64>,
    /// It is that of an answer that is not the last: its status is 1xx.
    pub is_interim: bool,
}

impl Meaning {
    /// Of a head that is not all here.
    pub const UNKNOWN: Self = Self { length: None, is_interim: false };
}

/// Checks the head of a request; `None` if it is malformed.
pub fn request(fields: &FieldList, takes_connect: bool) -> Option<Meaning> {
    let mut values = [None; OF_REQUESTS.len()];
    let length = regular(fields, |name, value| {
        let at = OF_REQUESTS.iter().position(|known| *known == name)?;
        values[at].replace(value).is_none().then_some(())
    })?;
    let [method, scheme, path, authority, protocol] = values;
    let method = method.filter(|method| is_token(method))?;
    let is_whole = match (method, protocol) {
        (b"CONNECT", None) => scheme.is_none() && path.is_none() && authority.is_some(),
        (b"CONNECT", Some(_)) => takes_connect && scheme.is_some() && path.is_some() && authority.is_some(),
        (_, Some(_)) => false,
        _ => scheme.is_some() && path.is_some(),
    };
    let is_path = |path: &[u8]| path.starts_with(b"/") || path == b"*" && method == b"OPTIONS";
    let is_reached = path.is_none_or(is_path) && path.is_none_or(|path| path.iter().all(u8::is_ascii_graphic));
    (is_whole && is_reached).then_some(Meaning { length, is_interim: false })
}

/// Checks the head of an answer.
pub fn response(fields: &FieldList) -> Option<Meaning> {
    let mut status = None;
    let length = regular(fields, |name, value| (name == b":status" && status.replace(value).is_none()).then_some(()))?;
    let &[first, b'0'..=b'9', b'0'..=b'9'] = status? else { return None };
    let is_interim = first == b'1';
    (first.is_ascii_digit() && status != Some(b"101")).then_some(Meaning { length, is_interim })
}

/// Checks the trailers of a message.
pub fn trailers(fields: &FieldList) -> Option<()> {
    regular(fields, |_, _| None).map(|_| ())
}

/// Checks all fields, and gives pseudo-header fields to `pseudo`, which refuses those that it does not know. Gives the
/// length of the body.
fn regular<'f>(fields: &'f FieldList, mut pseudo: impl FnMut(&'f [u8], &'f [u8]) -> Option<()>) -> Option<Option<u64>> {
    let (mut is_behind, mut length) = (false, None);
    for (name, value) in fields.iter() {
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) || trimmed_bytes(value) != value {
            return None;
        }
        if name.starts_with(b":") {
            if is_behind {
                return None;
            }
            pseudo(name, value)?;
            continue;
        }
        is_behind = true;
        if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) || OF_CONNECTIONS.contains(&name) {
            return None;
        }
        match name {
            b"te" if value != b"trailers" => return None,
            b"content-length" => {
                let one = number(value)?;
                if length.replace(one).is_some_and(|other| other != one) {
                    return None;
                }
            }
            _ => {}
        }
    }
    Some(length)
}

/// Whether a text may be the name of a field or a method (RFC 9110, section 5.6.2).
fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &[(&str, &str)]) -> FieldList {
        let mut list = FieldList::default();
        fields.iter().for_each(|(name, value)| list.push(name.as_bytes(), value.as_bytes()));
        list
    }

    const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":path", "/a?b"), (":authority", "h")];

    fn get_with(more: &[(&str, &str)]) -> Option<Meaning> {
        request(&list(&[&GET[..], more].concat()), true)
    }

    #[test]
    fn requests_are_whole() {
        let plain = Some(Meaning { length: None, is_interim: false });
        assert_eq!(get_with(&[]), plain);
        assert_eq!(get_with(&[("te", "trailers"), ("cookie", "a=b"), ("x", "")]), plain);
        assert_eq!(get_with(&[("content-length", "07")]), Some(Meaning { length: Some(7), is_interim: false }));
        assert_eq!(get_with(&[("content-length", "7"), ("content-length", "7")]).unwrap().length, Some(7));
        for (missing, (name, _)) in GET[..3].iter().enumerate() {
            let mut fields = GET.to_vec();
            fields.remove(missing);
            assert_eq!(request(&list(&fields), true), None, "without {name}");
        }
        assert_eq!(request(&list(&GET[..3]), true), plain, "the host may stand in a field");
    }

    #[test]
    fn malformed_fields_are_found() {
        for more in [
            ("X", "a"),
            ("", "a"),
            ("a b", "a"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("te", "gzip"),
            ("a", "b\r\nc: d"),
            ("a", "\0"),
            ("a", " b"),
            ("a", "b\t"),
            ("content-length", "-1"),
            ("content-length", "+1"),
            ("content-length", ""),
            ("content-length", "99999999999999999999"),
            (":status", "200"),
            (":unknown", "a"),
            (":path", "/again"),
        ] {
            assert_eq!(get_with(&[more]), None, "{more:?}");
        }
        assert_eq!(get_with(&[("content-length", "7"), ("content-length", "8")]), None);
        let late = [&[("a", "b")][..], &GET[..]].concat();
        assert_eq!(request(&list(&late), true), None, "pseudo-header fields come first");
        for path in ["", "a", "*", "/a b"] {
            let fields = [(":method", "GET"), (":scheme", "http"), (":path", path)];
            assert_eq!(request(&list(&fields), true), None, "{path:?}");
        }
        assert!(request(&list(&[(":method", "OPTIONS"), (":scheme", "http"), (":path", "*")]), true).is_some());
    }

    #[test]
    fn connect_has_two_forms() {
        let connect = [(":method", "CONNECT"), (":authority", "h:1")];
        assert!(request(&list(&connect), true).is_some());
        let extended = [&connect[..], &[(":protocol", "websocket"), (":scheme", "https"), (":path", "/ws")]].concat();
        assert!(request(&list(&extended), true).is_some());
        assert_eq!(request(&list(&extended), false), None, "it was not offered");
        assert_eq!(request(&list(&extended[..3]), true), None);
        assert_eq!(get_with(&[(":protocol", "websocket")]), None);
    }

    #[test]
    fn answers_have_a_status() {
        let is_interim = |status| response(&list(&[(":status", status), ("a", "b")])).map(|meaning| meaning.is_interim);
        assert_eq!(
            ["200", "103", "101", "20", "2000", "2x0"].map(is_interim),
            [Some(false), Some(true), None, None, None, None]
        );
        assert_eq!(response(&list(&[("a", "b")])), None);
        assert_eq!(response(&list(&[(":status", "200"), (":status", "200")])), None);
        assert!(trailers(&list(&[("a", "b")])).is_some());
        assert!(trailers(&list(&[(":status", "200")])).is_none());
    }
}
