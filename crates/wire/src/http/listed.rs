//! Heads of requests that came as lists of fields, over HTTP/2.

use super::target::read_target;
use super::{BodyKind, COOKIE, Headers, HttpError, MAX_HEADERS, RequestHead, Version, check_host};
use crate::fields::FieldList;

impl<'h, 'b> RequestHead<'h, 'b> {
    /// What would be the one field `cookie`, if there are any cookies.
    pub fn joined_cookies(&self) -> Option<String> {
        let cookies: Vec<&str> = self.cookies().collect();
        (!cookies.is_empty()).then(|| cookies.join("; "))
    }

    /// The head of a request over HTTP/2, whose fields were checked (RFC 9113, section 8): `has_ended` says whether the
    /// peer's side of the stream ended with it, so that there is no body. `:authority` becomes a field `host`, unless there
    /// is one that says the same. Cookies do not count among [`MAX_HEADERS`].
    ///
    /// # Errors
    /// [`HttpError::TooManyFields`], [`HttpError::PlainConnect`], [`HttpError::BadHost`] where two are named or one is none,
    /// [`HttpError::BadTarget`], and [`HttpError::BadField`] where `:method` or `:path`
    /// is missing, or one of them, `:protocol` or a name is not UTF-8.
    pub fn of_http2(fields: &'b FieldList, headers: &'h mut Headers<'b>, has_ended: bool) -> Result<Self, HttpError> {
        let (mut method, mut target, mut protocol, mut authority) = (None, None, None, None);
        let listed = &mut headers.listed;
        listed.clear();
        for (name, value) in fields.iter().filter(|(name, _)| *name != COOKIE.as_bytes()) {
            let pseudo = match name {
                b":method" => &mut method,
                b":path" => &mut target,
                b":protocol" => &mut protocol,
                b":authority" => &mut authority,
                [b':', ..] => continue,
                _ => {
                    let name = std::str::from_utf8(name).map_err(|_| HttpError::BadField("a field name"))?;
                    listed.push(httparse::Header { name, value });
                    continue;
                }
            };
            *pseudo = Some(value);
        }
        let is_known = |host: &[u8]| {
            let mut fields = listed.iter().filter(|field| field.name == "host");
            fields.any(|field| field.value.eq_ignore_ascii_case(host))
        };
        if let Some(value) = authority.filter(|&host| !is_known(host)) {
            listed.push(httparse::Header { name: "host", value });
        }
        if listed.len() > MAX_HEADERS {
            return Err(HttpError::TooManyFields);
        }
        check_host(listed)?;
        let text = |value: Option<&'b [u8]>, name| {
            value.and_then(|value| std::str::from_utf8(value).ok()).ok_or(HttpError::BadField(name))
        };
        let method = text(method, ":method")?;
        if method == "CONNECT" && protocol.is_none() {
            return Err(HttpError::PlainConnect);
        }
        let target = read_target(method, text(target, ":path")?);
        let Some((None, target)) = target else { return Err(HttpError::BadTarget) };
        let protocol = protocol.map(|value| text(Some(value), ":protocol")).transpose()?;
        let body = if has_ended { BodyKind::Length(0) } else { BodyKind::UntilClose };
        Ok(Self { method, target, version: Version::Http2, protocol, body, fields: listed, list: Some(fields) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whoever checked the list, or did not.
        #[test]
        fn any_list_is_a_request_or_an_error(
            fields in prop::collection::vec((name(), prop::collection::vec(any::<u8>(), 0..4)), 0..80),
            has_ended: bool,
        ) {
            let mut list = FieldList::default();
            fields.iter().for_each(|(name, value)| list.push(name, value));
            let mut headers = Headers::default();
            if let Ok(head) = RequestHead::of_http2(&list, &mut headers, has_ended) {
                prop_assert!(head.fields().count() <= MAX_HEADERS);
                prop_assert!(head.fields().all(|(name, _)| name != "cookie" && !name.starts_with(':')));
                prop_assert!(head.joined_cookies().is_none() || list.get("cookie").is_some());
            }
        }
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let known = [":method", ":path", ":protocol", ":authority", ":other", "host", "cookie", "a"];
        prop_oneof![
            8 => prop::sample::select(known.to_vec()).prop_map(|name| name.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..3),
        ]
    }

    fn list(fields: &[(&str, &str)]) -> FieldList {
        let mut list = FieldList::default();
        fields.iter().for_each(|(name, value)| list.push(name.as_bytes(), value.as_bytes()));
        list
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/sse?channel=a")];

    fn with(more: &[(&str, &str)]) -> FieldList {
        list(&[&GET, more].concat())
    }

    #[test]
    fn a_list_is_read_like_a_head_of_text() {
        let fields = with(&[("origin", "https://a.example"), ("accept", "a"), ("accept", "b"), ("x", "\u{e9}")]);
        let mut headers = Headers::default();
        let head = RequestHead::of_http2(&fields, &mut headers, true).unwrap();
        assert_eq!((head.method, head.target, head.protocol), ("GET", "/sse?channel=a", None));
        assert_eq!((head.version, head.body, head.keeps_alive()), (Version::Http2, BodyKind::Length(0), false));
        let all: Vec<_> = head.fields().collect();
        let host = ("host", "a.example");
        assert_eq!(all, [("origin", "https://a.example"), ("accept", "a"), ("accept", "b"), ("x", "\u{e9}"), host]);
        assert!(head.has_token("Accept", "b"));
        let head = RequestHead::of_http2(&fields, &mut headers, false).unwrap();
        assert_eq!((head.body, head.headers("host").count()), (BodyKind::UntilClose, 1));
    }

    #[test]
    fn hosts_that_differ_are_two() {
        let read = |list: &FieldList| {
            let mut headers = Headers::default();
            RequestHead::of_http2(list, &mut headers, true).map(|head| head.headers("host").count())
        };
        for (host, result) in
            [("A.example", Ok(1)), ("b.example", Err(HttpError::BadHost)), ("", Err(HttpError::BadHost))]
        {
            assert_eq!(read(&with(&[("host", host)])), result, "{host}");
        }
        let mut other = with(&[]);
        other.push(b"host", b"\xff");
        assert_eq!(read(&other), Err(HttpError::BadHost));
        for bad in ["user@a.example", "a.example/b", "a, b"] {
            let fields = list(&[(":method", "GET"), (":scheme", "https"), (":authority", bad), (":path", "/")]);
            assert_eq!(read(&fields), Err(HttpError::BadHost), "{bad}");
        }
    }

    /// Browsers part them, so many of them are no reason for a refusal.
    #[test]
    fn cookies_are_joined_and_not_counted() {
        let names: Vec<String> = (0..100).map(|n| format!("c{n}=1")).collect();
        let crumbs: Vec<_> = names.iter().map(|name| ("cookie", &**name)).collect();
        let fields = with(&crumbs);
        let mut headers = Headers::default();
        let head = RequestHead::of_http2(&fields, &mut headers, true).unwrap();
        assert_eq!(head.joined_cookies(), Some(names.join("; ")));
        assert_eq!(head.header("cookie"), None);
        let fields = with(&[]);
        assert_eq!(RequestHead::of_http2(&fields, &mut headers, true).unwrap().joined_cookies(), None);
        let text = b"GET / HTTP/1.1\r\nCookie: a=1\r\n\r\n";
        let (head, _) = crate::http::parse_request(text, &mut headers).unwrap().unwrap();
        assert_eq!((head.fields().count(), head.joined_cookies()), (0, Some("a=1".to_owned())));
    }

    #[test]
    fn as_many_fields_as_over_http1_and_no_more() {
        for (more, is_read) in [(MAX_HEADERS - 1, true), (MAX_HEADERS, false)] {
            // One more is the host.
            let fields = with(&vec![("a", "b"); more]);
            let mut headers = Headers::default();
            let result = RequestHead::of_http2(&fields, &mut headers, true);
            assert_eq!(result.map(|head| head.fields().count()).ok(), is_read.then_some(MAX_HEADERS));
            let text = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(more + 1));
            let mut headers = Headers::default();
            let result = crate::http::parse_request(text.as_bytes(), &mut headers);
            assert_eq!(result.err(), (!is_read).then_some(HttpError::TooManyFields));
        }
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        let path = (":path", "/");
        for (fields, error) in [
            (&[][..], HttpError::BadField(":method")),
            (&[(":method", "GET")], HttpError::BadField(":path")),
            (&[(":method", "CONNECT"), (":authority", "a:1")], HttpError::PlainConnect),
            (&[(":method", "GET"), (":path", "http://a/b")], HttpError::BadTarget),
            (&[(":method", "GET"), (":path", "/b#c")], HttpError::BadTarget),
        ] {
            let mut headers = Headers::default();
            assert_eq!(RequestHead::of_http2(&list(fields), &mut headers, true).err(), Some(error));
        }
        let mut fields = list(&[(":method", "GET"), path]);
        fields.push(b"\xff", b"");
        let mut headers = Headers::default();
        assert!(matches!(RequestHead::of_http2(&fields, &mut headers, true), Err(HttpError::BadField(_))));
        let mut fields = list(&[(":method", "CONNECT"), path]);
        fields.push(b":protocol", b"\xff");
        let mut headers = Headers::default();
        let result = RequestHead::of_http2(&fields, &mut headers, true);
        assert_eq!(result.err(), Some(HttpError::BadField(":protocol")));
    }
}
