//! Heads of requests of any version of HTTP, those of HTTP/1.1 through `httparse`; heads of answers, and bodies, of
//! HTTP/1.1.

mod body;
mod listed;
mod target;

pub use body::{BodyDecoder, BodyStep, CHUNK_END, LAST_CHUNK, MAX_TRAILER_BYTES, encode_chunk_head};
pub use target::{RESERVED, decode_path, split_target};

use crate::fields::{FieldList, number, trimmed_bytes};
use std::mem::MaybeUninit;

/// Most header fields in one head.
pub const MAX_HEADERS: usize = 64;

const COOKIE: &str = "cookie";

/// Space for the fields of one head, which is not filled in beforehand.
pub struct Headers<'b> {
    /// For what `httparse` reads.
    slots: [MaybeUninit<httparse::Header<'b>>; MAX_HEADERS],
    /// For what came as a list, which is rarer; it costs no memory until then.
    listed: Vec<httparse::Header<'b>>,
}

impl Default for Headers<'_> {
    fn default() -> Self {
        Self { slots: [const { MaybeUninit::uninit() }; MAX_HEADERS], listed: Vec::new() }
    }
}

/// The version of HTTP in which a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, and what calls itself a later HTTP/1.
    Http11,
    /// HTTP/2, where each request has a stream of its own.
    Http2,
}

impl Version {
    fn of_minor(minor: u8) -> Self {
        if minor == 0 { Self::Http10 } else { Self::Http11 }
    }

    /// Its number: `1.1`.
    pub fn number(self) -> &'static str {
        match self {
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
            Self::Http2 => "2",
        }
    }

    /// Reads its number.
    pub fn parse(number: &str) -> Option<Self> {
        [Self::Http10, Self::Http11, Self::Http2].into_iter().find(|version| version.number() == number)
    }
}

/// A request's head.
#[derive(Debug)]
pub struct RequestHead<'h, 'b> {
    /// As sent: `GET`.
    pub method: &'b str,
    /// Path and query, `/ws?channel=a`, or the `*` of OPTIONS. If a host stood before them in the request, the field
    /// `Host` is that host, and the path may be missing.
    pub target: &'b str,
    /// The version in which it came.
    pub version: Version,
    /// What a CONNECT over HTTP/2 asks to go on with (`:protocol`; RFC 8441, section 4): `websocket`.
    pub protocol: Option<&'b str>,
    /// How the body is delimited.
    pub body: BodyKind,
    fields: &'h [httparse::Header<'b>],
    /// What it was read from over HTTP/2: there its cookies are.
    list: Option<&'b FieldList>,
}

/// A response's head.
#[derive(Debug)]
pub struct ResponseHead<'h, 'b> {
    /// Status code.
    pub status: u16,
    /// The version in which it came.
    pub version: Version,
    /// How the body is delimited, if there is one.
    pub body: BodyKind,
    fields: &'h [httparse::Header<'b>],
}

/// How a body ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// When the connection closes (responses only), or the peer's side of a stream of HTTP/2.
    UntilClose,
}

/// What is no head or body of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Not HTTP/1.x.
    #[error("not an HTTP/1 head: {0}")]
    BadHead(httparse::Error),
    /// More than [`MAX_HEADERS`].
    #[error("a head has at most {MAX_HEADERS} fields")]
    TooManyFields,
    /// RFC 9113, sections 8.2 and 8.3.1.
    #[error("{0} is missing or not UTF-8")]
    BadField(&'static str),
    /// RFC 9112, section 3.2.
    #[error("the target of a request must be /PATH or http://HOST/PATH, without #")]
    BadTarget,
    /// RFC 9112, section 3.2: what one server takes for the host and another does not is how caches are poisoned.
    #[error("a request must name exactly one host: send HOST or HOST:PORT in Host, or over HTTP/2 in :authority")]
    BadHost,
    /// RFC 9113, section 8.5: what is asked for is a proxy.
    #[error("CONNECT without :protocol is not supported: this server is not a proxy")]
    PlainConnect,
    /// RFC 9112, section 6.3: ambiguous or unreadable length, a smuggling risk.
    #[error("Content-Length is not one number, or comes with Transfer-Encoding")]
    BadLength,
    /// RFC 9112, section 6.1: whoever speaks HTTP/1.0 on the way does not know where the body ends.
    #[error("Transfer-Encoding in HTTP/1.0; send Content-Length, or use HTTP/1.1")]
    CodingTooOld,
    /// Only `chunked` is understood.
    #[error("Transfer-Encoding other than chunked")]
    UnknownCoding,
    /// RFC 9112, section 7.1.
    #[error("a chunk is malformed")]
    BadChunk,
}

macro_rules! fields {
    ($head:ident) => {
        impl<'b> $head<'_, 'b> {
            /// The first field of that name (any case), if its value is text.
            pub fn header(&self, name: &str) -> Option<&'b str> {
                self.headers(name).next()
            }

            /// Every field of that name (any case) whose value is text.
            pub fn headers(&self, name: &str) -> impl Iterator<Item = &'b str> {
                let fields = self.fields.iter().filter(move |f| f.name.eq_ignore_ascii_case(name));
                fields.filter_map(|f| std::str::from_utf8(f.value).ok())
            }

            /// Whether a field that is a list holds a token (any case); the list may be spread over several fields.
            pub fn has_token(&self, name: &str, token: &str) -> bool {
                let fields = self.fields.iter().filter(|f| f.name.eq_ignore_ascii_case(name));
                let mut tokens = fields.flat_map(|f| f.value.split(|&byte| byte == b','));
                tokens.any(|one| trimmed_bytes(one).eq_ignore_ascii_case(token.as_bytes()))
            }

            /// Whether the connection stays open after this message (RFC 9112, section 9.3).
            pub fn keeps_alive(&self) -> bool {
                let has = |token| self.has_token("connection", token);
                match self.version {
                    Version::Http10 => has("keep-alive"),
                    Version::Http11 => !has("close"),
                    // Its stream ends.
                    Version::Http2 => false,
                }
            }
        }
    };
}

fields!(RequestHead);
fields!(ResponseHead);

impl<'b> RequestHead<'_, 'b> {
    /// Every field whose value is text, as it was sent, but those that hold cookies: name and value.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b str)> + Clone {
        let fields = self.fields.iter().filter(|f| !f.name.eq_ignore_ascii_case(COOKIE));
        fields.filter_map(|f| Some((f.name, std::str::from_utf8(f.value).ok()?)))
    }

    /// Every cookie that is text, `NAME=VALUE`; others on the same host may set what is none.
    pub fn cookies(&self) -> impl Iterator<Item = &'b str> + Clone {
        // Over HTTP/2 each may have a field of its own (RFC 9113, section 8.2.3), and browsers send them so.
        let listed = self.list.into_iter().flat_map(FieldList::iter).filter(|(name, _)| *name == COOKIE.as_bytes());
        let fields = self.fields.iter().filter(|f| f.name.eq_ignore_ascii_case(COOKIE)).map(|f| f.value);
        let cookies = fields.chain(listed.map(|(_, value)| value)).flat_map(|value| value.split(|&byte| byte == b';'));
        cookies.map(trimmed_bytes).filter_map(|cookie| std::str::from_utf8(cookie).ok()).filter(|text| !text.is_empty())
    }

    /// The bytes of every field of that name (any case), as they were sent.
    pub fn raw_headers(&self, name: &str) -> impl DoubleEndedIterator<Item = &'b [u8]> {
        self.fields.iter().filter(move |f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value)
    }

    /// The first of these names (in lower case) whose field's value is not text, if any.
    pub fn unreadable(&self, names: &[&'static str]) -> Option<&'static str> {
        let mut odd = self.fields.iter().filter(|f| !f.value.is_ascii() && std::str::from_utf8(f.value).is_err());
        odd.find_map(|f| names.iter().copied().find(|name| f.name.eq_ignore_ascii_case(name)))
    }
}

/// What `httparse` finds wrong.
fn bad_head(error: httparse::Error) -> HttpError {
    match error {
        httparse::Error::TooManyHeaders => HttpError::TooManyFields,
        error => HttpError::BadHead(error),
    }
}

/// Reads a request's head and its size in bytes; `None` when it is not all there.
pub fn parse_request<'h, 'b>(
    input: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Result<Option<(RequestHead<'h, 'b>, usize)>, HttpError> {
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(input, &mut headers.slots);
    let size = match parsed.map_err(bad_head)? {
        httparse::Status::Complete(size) => size,
        httparse::Status::Partial => return Ok(None),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(HttpError::BadHead(httparse::Error::Status));
    };
    let version = Version::of_minor(minor);
    check_host(request.headers)?;
    if method == "CONNECT" {
        return Err(HttpError::PlainConnect);
    }
    let (host, target) = target::read_target(method, target).ok_or(HttpError::BadTarget)?;
    let fields = match host {
        Some(host) => with_host(host, version, request.headers, &mut headers.listed),
        None => request.headers,
    };
    let body = body_kind(fields, version)?.unwrap_or(BodyKind::Length(0));
    Ok(Some((RequestHead { method, target, version, protocol: None, body, fields, list: None }, size)))
}

/// Reads a response's head and its size in bytes, with the heads of interim answers before it; `None` when it is not all
/// there.
pub fn parse_response<'h, 'b>(
    input: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Result<Option<(ResponseHead<'h, 'b>, usize)>, HttpError> {
    let mut interim_bytes = 0;
    while begins_interim(&input[interim_bytes..]) {
        let Some((_, size)) = parse_one_response(&input[interim_bytes..], &mut Headers::default())? else {
            return Ok(None);
        };
        interim_bytes += size;
    }
    let parsed = parse_one_response(&input[interim_bytes..], headers)?;
    Ok(parsed.map(|(head, size)| (head, interim_bytes + size)))
}

/// Whether an answer begins that another one follows (RFC 9110, section 15.2): a client may get one though it did not ask
/// for any. 101 is the last of its request.
fn begins_interim(input: &[u8]) -> bool {
    let ends = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    input.get(ends + 9..ends + 12).is_some_and(|status| status[0] == b'1' && status != b"101")
}

fn parse_one_response<'h, 'b>(
    input: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Result<Option<(ResponseHead<'h, 'b>, usize)>, HttpError> {
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, input, &mut headers.slots);
    let size = match parsed.map_err(bad_head)? {
        httparse::Status::Complete(size) => size,
        httparse::Status::Partial => return Ok(None),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(HttpError::BadHead(httparse::Error::Status));
    };
    let fields: &'h [httparse::Header<'b>] = response.headers;
    let version = Version::of_minor(minor);
    let body = match status {
        100..=199 | 204 | 304 => BodyKind::Length(0),
        _ => body_kind(fields, version)?.unwrap_or(BodyKind::UntilClose),
    };
    Ok(Some((ResponseHead { status, version, body, fields }, size)))
}

fn is_host(field: &httparse::Header<'_>) -> bool {
    field.name.eq_ignore_ascii_case("host")
}

/// That there may be none, in HTTP/1.0, is for whoever knows the version to say.
fn check_host(fields: &[httparse::Header<'_>]) -> Result<(), HttpError> {
    let mut hosts = fields.iter().filter(|field| is_host(field));
    let is_right = hosts.next().is_none_or(|host| target::is_host_field(host.value)) && hosts.next().is_none();
    if is_right { Ok(()) } else { Err(HttpError::BadHost) }
}

/// Puts the host of a target in the place of the field's (RFC 9112, section 3.2.2), which only HTTP/1.0 may leave out.
fn with_host<'h, 'b>(
    host: &'b str,
    version: Version,
    fields: &'h mut [httparse::Header<'b>],
    listed: &'h mut Vec<httparse::Header<'b>>,
) -> &'h [httparse::Header<'b>] {
    let value = host.as_bytes();
    if let Some(field) = fields.iter_mut().find(|field| is_host(field)) {
        field.value = value;
    } else if version == Version::Http10 {
        listed.clear();
        listed.extend_from_slice(fields);
        listed.push(httparse::Header { name: "host", value });
        return listed;
    }
    fields
}

fn body_kind(fields: &[httparse::Header<'_>], version: Version) -> Result<Option<BodyKind>, HttpError> {
    let mut length = None;
    let mut is_chunked = false;
    for field in fields {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = number(field.value).ok_or(HttpError::BadLength)?;
            if length.is_some_and(|known| known != value) {
                return Err(HttpError::BadLength);
            }
            length = Some(value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if version == Version::Http10 {
                return Err(HttpError::CodingTooOld);
            }
            if is_chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(HttpError::UnknownCoding);
            }
            is_chunked = true;
        }
    }
    match (is_chunked, length) {
        (true, Some(_)) => Err(HttpError::BadLength),
        (true, None) => Ok(Some(BodyKind::Chunked)),
        (false, length) => Ok(length.map(BodyKind::Length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A client may get interim answers though it did not ask for any (RFC 9110, section 15.2).
        #[test]
        fn interim_answers_are_no_answers(interim in prop::collection::vec(prop::sample::select(vec![
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
            "\r\nHTTP/1.1 102 Processing\r\n\r\n",
        ]), 0..4), is_upgrade: bool) {
            let head = if is_upgrade { "101 Switching Protocols\r\n" } else { "200 OK\r\nContent-Length: 3\r\n" };
            let all = format!("{}HTTP/1.1 {head}\r\n", interim.concat());
            for size in 0..all.len() {
                let mut headers = Headers::default();
                prop_assert!(parse_response(&all.as_bytes()[..size], &mut headers).unwrap().is_none(), "{}", size);
            }
            let mut headers = Headers::default();
            let with_body = format!("{all}abc");
            let (answer, size) = parse_response(with_body.as_bytes(), &mut headers).unwrap().unwrap();
            let meant = if is_upgrade { (101, BodyKind::Length(0)) } else { (200, BodyKind::Length(3)) };
            prop_assert_eq!(((answer.status, answer.body), size), (meant, all.len()));
        }
    }

    fn request(text: &str) -> Result<Option<BodyKind>, HttpError> {
        let mut headers = Headers::default();
        Ok(parse_request(text.as_bytes(), &mut headers)?.map(|(head, _)| head.body))
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        let with = |fields: &str| request(&format!("POST / HTTP/1.1\r\n{fields}\r\n"));
        assert_eq!(with("Content-Length: 5\r\n"), Ok(Some(BodyKind::Length(5))));
        assert_eq!(with("Content-Length: 5\r\nContent-Length: 5\r\n"), Ok(Some(BodyKind::Length(5))));
        assert_eq!(with("Content-Length: 5\r\nContent-Length: 6\r\n"), Err(HttpError::BadLength));
        assert_eq!(with("Content-Length: \t5 \t\r\n"), Ok(Some(BodyKind::Length(5))));
        for bad in ["+5", "-5", "5,5", "0x5", "5 5", "", "\u{a0}5", "5\u{a0}", "\u{2003}5", "\u{665}"] {
            assert_eq!(with(&format!("Content-Length: {bad}\r\n")), Err(HttpError::BadLength), "{bad:?}");
        }
        for bad in ["\u{a0}chunked", "chunked\u{a0}", "\"chunked\"", "chunked,", "chunked, chunked", "identity", ""] {
            assert_eq!(with(&format!("Transfer-Encoding: {bad}\r\n")), Err(HttpError::UnknownCoding), "{bad:?}");
        }
        // Not fields at all.
        for bad in
            ["Content-Length : 5\r\n", " Content-Length: 5\r\n", "A: b\r\n c\r\n", "A\u{a0}: b\r\n", "A: b\rc\r\n"]
        {
            assert!(matches!(with(bad), Err(HttpError::BadHead(_))), "{bad:?}");
        }
        assert_eq!(with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), Err(HttpError::BadLength));
        assert_eq!(with("Transfer-Encoding: gzip, chunked\r\n"), Err(HttpError::UnknownCoding));
        assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Some(BodyKind::Chunked)));
    }

    #[test]
    fn a_coding_in_http_1_0_is_faulty() {
        for fields in ["Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\ntransfer-encoding: chunked\r\n"] {
            let error = Err(HttpError::CodingTooOld);
            assert_eq!(request(&format!("POST / HTTP/1.0\r\n{fields}\r\n")), error, "{fields}");
            let text = format!("HTTP/1.0 200 OK\r\n{fields}\r\n");
            let mut headers = Headers::default();
            assert_eq!(
                parse_response(text.as_bytes(), &mut headers).map(|_| ()),
                Err(HttpError::CodingTooOld),
                "{fields}"
            );
        }
    }

    /// A field that is no text in places is still a field, and only SP and HTAB stand around what it lists.
    #[test]
    fn tokens_are_bytes() {
        let keeps = |value: &[u8]| {
            let text = [b"GET / HTTP/1.1\r\nConnection: ", value, b"\r\n\r\n"].concat();
            let mut headers = Headers::default();
            parse_request(&text, &mut headers).unwrap().unwrap().0.keeps_alive()
        };
        for value in [&b"close"[..], b"\tCLOSE \t", b"a,\tclose ,b", b"close, \xff", b"\xff,close"] {
            assert!(!keeps(value), "{}", value.escape_ascii());
        }
        for value in [&b"\xc2\xa0close"[..], b"close\xc2\xa0", b"a,\xe2\x80\x83close", b"closed", b"close;"] {
            assert!(keeps(value), "{}", value.escape_ascii());
        }
    }

    /// Another application on the host may have set cookies in some other encoding.
    #[test]
    fn cookies_beside_one_that_is_no_text_are_read() {
        let text = b"GET / HTTP/1.1\r\nCookie: a=1; l=\xe9;\tb=2;; c=\xc2\xa03 \r\nCookie: d=4\r\n\r\n";
        let mut headers = Headers::default();
        let (head, _) = parse_request(text, &mut headers).unwrap().unwrap();
        assert_eq!(head.cookies().collect::<Vec<_>>(), ["a=1", "b=2", "c=\u{a0}3", "d=4"]);
        assert_eq!(head.joined_cookies().as_deref(), Some("a=1; b=2; c=\u{a0}3; d=4"));
        assert_eq!(head.fields().count(), 0);
    }
}
