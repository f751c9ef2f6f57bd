//! Heads of requests of any version of HTTP, those of HTTP/1.1 through `httparse`; heads of answers, and bodies, of
//! HTTP/1.1.

mod listed;

use crate::fields::FieldList;
use memchr::memchr2;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// Most header fields in one head.
pub const MAX_HEADERS: usize = 64;

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
    /// As sent: `/ws?channel=a`.
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
    /// RFC 9113, section 8.5: what is asked for is a proxy.
    #[error("CONNECT without :protocol is not supported: this server is not a proxy")]
    PlainConnect,
    /// RFC 9112, section 6.3: ambiguous or unreadable length, a smuggling risk.
    #[error("Content-Length is not one number, or comes with Transfer-Encoding")]
    BadLength,
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
                self.headers(name).flat_map(|v| v.split(',')).any(|t| t.trim().eq_ignore_ascii_case(token))
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
    /// Every field whose value is text, as it was sent: name and value. Over HTTP/2 those that hold cookies are not among
    /// them: see [`Self::joined_cookies`].
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b str)> + Clone {
        self.fields.iter().filter_map(|f| Some((f.name, std::str::from_utf8(f.value).ok()?)))
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
    let fields: &'h [httparse::Header<'b>] = request.headers;
    let body = body_kind(fields)?.unwrap_or(BodyKind::Length(0));
    let version = Version::of_minor(minor);
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
    let body = match status {
        100..=199 | 204 | 304 => BodyKind::Length(0),
        _ => body_kind(fields)?.unwrap_or(BodyKind::UntilClose),
    };
    Ok(Some((ResponseHead { status, version: Version::of_minor(minor), body, fields }, size)))
}

fn body_kind(fields: &[httparse::Header<'_>]) -> Result<Option<BodyKind>, HttpError> {
    let mut length = None;
    let mut is_chunked = false;
    for field in fields {
        if field.name.eq_ignore_ascii_case("content-length") {
            let digits = std::str::from_utf8(field.value).map_err(|_| HttpError::BadLength)?.trim();
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(HttpError::BadLength);
            }
            let value: u64 = digits.parse().map_err(|_| HttpError::BadLength)?;
            if length.is_some_and(|known| known != value) {
                return Err(HttpError::BadLength);
            }
            length = Some(value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if is_chunked || !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
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

/// Reads a body piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyDecoder(Body);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    Length(u64),
    UntilClose,
    /// In the digits of a chunk's size.
    Size {
        value: u64,
        digits: u8,
    },
    /// Behind the digits: white space, then perhaps an extension, of which so many bytes were read.
    Extension {
        value: u64,
        is_named: bool,
        read: u32,
    },
    /// At the line feed of a size line.
    SizeEnd {
        value: u64,
    },
    Data {
        rest: u64,
    },
    /// Behind a chunk's data.
    DataEnd {
        is_past_cr: bool,
    },
    /// In the trailers, of which so many bytes were read.
    Trailer {
        is_line_empty: bool,
        is_past_cr: bool,
        read: u32,
    },
    Done,
}

/// One step of a [`BodyDecoder`].
#[derive(Debug, PartialEq, Eq)]
pub struct BodyStep<'a> {
    /// Bytes to drop from the front of the input.
    pub consumed: usize,
    /// Bytes of the body; may be empty.
    pub data: &'a [u8],
    /// Whether the body has ended.
    pub is_done: bool,
}

/// Longest extension of a chunk and longest trailer section, in bytes.
pub const MAX_TRAILER_BYTES: u32 = 4096;

impl BodyDecoder {
    /// A decoder for one body.
    pub fn new(kind: BodyKind) -> Self {
        Self(match kind {
            BodyKind::Length(0) => Body::Done,
            BodyKind::Length(n) => Body::Length(n),
            BodyKind::UntilClose => Body::UntilClose,
            BodyKind::Chunked => CHUNK_START,
        })
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.0 == Body::Done
    }

    /// Reads at most one run of body bytes. Call again while it consumes something and is not done.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, HttpError> {
        let mut at = 0;
        loop {
            match &mut self.0 {
                Body::Done => return Ok(BodyStep { consumed: at, data: &[], is_done: true }),
                Body::UntilClose => {
                    return Ok(BodyStep { consumed: input.len(), data: &input[at..], is_done: false });
                }
                Body::Length(rest) | Body::Data { rest } => {
                    let take = usize::try_from(*rest).unwrap_or(usize::MAX).min(input.len() - at);
                    *rest -= take as u64;
                    let data = &input[at..at + take];
                    let mut consumed = at + take;
                    if *rest == 0 {
                        self.0 = match self.0 {
                            Body::Length(_) => Body::Done,
                            _ if input[consumed..].starts_with(CHUNK_END) => {
                                consumed += CHUNK_END.len();
                                CHUNK_START
                            }
                            _ => Body::DataEnd { is_past_cr: false },
                        };
                    }
                    return Ok(BodyStep { consumed, data, is_done: self.is_done() });
                }
                framing => {
                    if let (Body::Size { digits: 0, .. }, Some((rest, line))) = (&*framing, plain_size(&input[at..])) {
                        self.0 = Body::Data { rest };
                        at += line;
                        continue;
                    }
                    let Some(&byte) = input.get(at) else {
                        return Ok(BodyStep { consumed: at, data: &[], is_done: false });
                    };
                    at += 1;
                    let next = chunk_framing(framing, byte)?;
                    self.0 = next;
                }
            }
        }
    }
}

const CHUNK_START: Body = Body::Size { value: 0, digits: 0 };

/// The size of a chunk that is not the last, and the length of its line, where all of that line lies in the input and is
/// as most servers write it: digits alone.
fn plain_size(input: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, &byte) in input.iter().take(9).enumerate() {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return (value > 0 && input[place..].starts_with(CHUNK_END)).then_some((value, place + CHUNK_END.len()));
        };
        value = value << 4 | u64::from(digit);
    }
    None
}

/// Moves on by one byte outside of chunk data. Lines end in CR LF and nothing else: what one parser takes for the end
/// of a line and another does not is how requests are smuggled.
fn chunk_framing(state: &Body, byte: u8) -> Result<Body, HttpError> {
    Ok(match (state, byte) {
        (&Body::Size { value, digits }, _) => match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) if digits < 15 => Body::Size { value: value << 4 | u64::from(digit), digits: digits + 1 },
            (None, b'\r') if digits > 0 => Body::SizeEnd { value },
            (None, b' ' | b'\t' | b';') if digits > 0 => Body::Extension { value, is_named: byte == b';', read: 1 },
            _ => return Err(HttpError::BadChunk),
        },
        (&Body::Extension { value, .. }, b'\r') => Body::SizeEnd { value },
        (&Body::Extension { value, is_named, read }, _) => {
            let is_allowed = byte != b'\n' && (is_named || matches!(byte, b' ' | b'\t' | b';'));
            if !is_allowed || read >= MAX_TRAILER_BYTES {
                return Err(HttpError::BadChunk);
            }
            Body::Extension { value, is_named: is_named || byte == b';', read: read + 1 }
        }
        (Body::SizeEnd { value: 0 }, b'\n') => Body::Trailer { is_line_empty: true, is_past_cr: false, read: 0 },
        (&Body::SizeEnd { value }, b'\n') => Body::Data { rest: value },
        (Body::DataEnd { is_past_cr: false }, b'\r') => Body::DataEnd { is_past_cr: true },
        (Body::DataEnd { is_past_cr: true }, b'\n') => CHUNK_START,
        (Body::Trailer { is_line_empty: true, is_past_cr: true, .. }, b'\n') => Body::Done,
        (&Body::Trailer { is_past_cr: true, read, .. }, b'\n') => {
            Body::Trailer { is_line_empty: true, is_past_cr: false, read }
        }
        (&Body::Trailer { is_line_empty, is_past_cr: false, read }, b'\r') => {
            Body::Trailer { is_line_empty, is_past_cr: true, read }
        }
        (&Body::Trailer { is_past_cr: false, read, .. }, _) if byte != b'\n' && read < MAX_TRAILER_BYTES => {
            Body::Trailer { is_line_empty: false, is_past_cr: false, read: read + 1 }
        }
        _ => return Err(HttpError::BadChunk),
    })
}

/// The chunk that ends a body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the size line of a chunk; the caller appends `size` bytes and [`CHUNK_END`].
pub fn encode_chunk_head(out: &mut Vec<u8>, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for shift in (0..digits).rev() {
        out.push(DIGITS[size >> (shift * 4) & 15]);
    }
    out.extend_from_slice(CHUNK_END);
}

/// Ends a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// What is escaped in a query or a form: all but letters, digits and `-._~` (RFC 3986, section 2.3).
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Splits a request target into its path and an iterator over decoded query parameters.
///
/// Percent escapes and `+` are decoded; a broken escape stays as it is, since names and values are checked
/// by their own types afterwards. What has neither is borrowed.
pub fn split_target(target: &str) -> (&str, impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
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
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    // The decoder would leave a broken one as it is.
    if !path.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(with("Content-Length: +5\r\n"), Err(HttpError::BadLength));
        assert_eq!(with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), Err(HttpError::BadLength));
        assert_eq!(with("Transfer-Encoding: gzip, chunked\r\n"), Err(HttpError::UnknownCoding));
        assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Some(BodyKind::Chunked)));
    }

    /// Decodes a body fed in pieces of the given sizes (the last repeats).
    fn decode(kind: BodyKind, input: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, bool, usize), HttpError> {
        let mut decoder = BodyDecoder::new(kind);
        let (mut body, mut start, mut cut) = (Vec::new(), 0, 0);
        while start < input.len() && !decoder.is_done() {
            let size = cuts.get(cut).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
            cut += 1;
            let end = (start + size).min(input.len());
            while start < end && !decoder.is_done() {
                let step = decoder.decode(&input[start..end])?;
                body.extend_from_slice(step.data);
                start += step.consumed;
            }
        }
        Ok((body, decoder.is_done(), start))
    }

    proptest! {
        #[test]
        fn chunks_come_back_however_they_are_cut(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8), cuts in prop::collection::vec(1usize..20, 1..6)) {
            let mut wire = Vec::new();
            for piece in &pieces {
                encode_chunk_head(&mut wire, piece.len());
                wire.extend_from_slice(piece);
                wire.extend_from_slice(CHUNK_END);
            }
            wire.extend_from_slice(LAST_CHUNK);
            let size = wire.len();
            wire.extend_from_slice(b"next");
            prop_assert_eq!(decode(BodyKind::Chunked, &wire, &cuts), Ok((pieces.concat(), true, size)));
        }

        #[test]
        fn any_bytes_give_the_same_result_however_they_are_cut(input in prop::collection::vec(prop_oneof![Just(b'0'), Just(b'3'), Just(b'\r'), Just(b'\n'), Just(b';'), any::<u8>()], 0..60), cuts in prop::collection::vec(1usize..9, 1..6)) {
            prop_assert_eq!(decode(BodyKind::Chunked, &input, &cuts), decode(BodyKind::Chunked, &input, &[1]));
        }
    }

    #[test]
    fn extensions_and_trailers_are_skipped() {
        let wire = b"3;name=value\r\nabc\r\n0\r\nTrailer: x\r\n\r\n";
        assert_eq!(decode(BodyKind::Chunked, wire, &[]), Ok((b"abc".to_vec(), true, wire.len())));
        assert_eq!(decode(BodyKind::Chunked, b"\r\n", &[]), Err(HttpError::BadChunk));
        assert_eq!(decode(BodyKind::Chunked, b"ffffffffffffffff\r\n", &[]), Err(HttpError::BadChunk));
        assert_eq!(decode(BodyKind::Chunked, b"1\r\nab", &[]), Err(HttpError::BadChunk));
        for smuggled in ["3 5\r\n", "3\r5\n", "3\nabc", "1\r\na\n", "0\r\n\n", "1;x\n", "\r\n", ";\r\n"] {
            assert_eq!(decode(BodyKind::Chunked, smuggled.as_bytes(), &[]), Err(HttpError::BadChunk), "{smuggled:?}");
        }
        for endless in [format!("1;{}", "x".repeat(5000)), format!("0\r\n{}", "x".repeat(5000))] {
            assert_eq!(decode(BodyKind::Chunked, endless.as_bytes(), &[]), Err(HttpError::BadChunk));
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
}
