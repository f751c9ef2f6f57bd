//! The heads of HTTP answers: of transports, of errors, and of applications; for each version of HTTP.

use crate::framing::Framing;
use crate::gate::{Audience, ReadableBy};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::fields::FieldList;
use pushlab_wire::native::json_string;

/// Fields of an application's answer that say what is said here.
const OWN_FIELDS: [&str; 5] =
    ["connection", "content-length", "content-type", "transfer-encoding", "x-content-type-options"];
/// Fields that its answer has if it gives no others.
const USUAL_FIELDS: [(&str, &str); 4] = [
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    // No page of another site gets hold of a window of ours, or shows or runs what we answer.
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

/// Fields that say how a connection of HTTP/1 is used, and that HTTP/2 forbids (RFC 9113, section 8.2.2).
const CONNECTION_FIELDS: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Where a head is written, and so for which version of HTTP.
#[derive(Debug)]
pub enum HeadOut<'o> {
    /// Text of HTTP/1.1, behind what is there.
    Text(&'o mut Vec<u8>),
    /// Fields of HTTP/2, where none are yet.
    Fields(&'o mut FieldList),
}

/// The head of an answer while it is written.
#[derive(Debug)]
pub struct Head<'o> {
    out: HeadOut<'o>,
}

impl<'o> Head<'o> {
    /// Begins one.
    #[inline]
    pub fn new(mut out: HeadOut<'o>, status: u16) -> Self {
        let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        match &mut out {
            HeadOut::Text(out) => {
                out.extend_from_slice(b"HTTP/1.1 ");
                out.extend_from_slice(&digits);
                out.push(b' ');
                out.extend_from_slice(reason(status).as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            HeadOut::Fields(out) => {
                debug_assert!(out.is_empty(), "the head before this one was taken");
                out.push(b":status", &digits);
            }
        }
        Self { out }
    }

    /// Begins that of an error, with the fields that belong to its code; `after_ms` is when to ask again, if that is known.
    pub fn of_error(out: HeadOut<'o>, code: ErrorCode, after_ms: Option<u64>, readers: ReadableBy<'_>) -> Self {
        let head = Self::new(out, code.http_status());
        match code {
            ErrorCode::UpgradeRequired => head.field("Upgrade", "websocket").field("Sec-WebSocket-Version", "13"),
            ErrorCode::Unauthorized | ErrorCode::TokenExpired => head.field("WWW-Authenticate", "Bearer"),
            _ if matches!(code.http_status(), 429 | 503) => {
                let head = head.field("Retry-After", &retry_after(after_ms));
                // Pages of other sites see no other fields than a few usual ones.
                let is_shared = !matches!(readers, ReadableBy::OwnPages);
                if is_shared { head.field("Access-Control-Expose-Headers", "Retry-After") } else { head }
            }
            _ => head,
        }
    }

    /// Adds a field, if this version of HTTP has it. Name and value must be what they are called, without line breaks.
    #[inline]
    pub fn field(self, name: &str, value: &str) -> Self {
        self.raw_field(name, value.as_bytes())
    }

    #[inline]
    fn raw_field(mut self, name: &str, value: &[u8]) -> Self {
        match &mut self.out {
            HeadOut::Text(out) => {
                for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
            HeadOut::Fields(out) => {
                if !CONNECTION_FIELDS.iter().any(|other| name.eq_ignore_ascii_case(other)) {
                    out.push_in_lower_case(name.as_bytes(), value);
                }
            }
        }
        self
    }

    /// Tells the coding of the content, if it has one.
    #[inline]
    pub fn coded(self, coding: Option<&str>) -> Self {
        match coding {
            Some(coding) => self.field("Content-Encoding", coding),
            None => self,
        }
    }

    /// Lets pages of other sites read the answer. Named ones may send cookies with their requests, too.
    pub fn readable_by(self, pages: ReadableBy<'_>) -> Self {
        match pages {
            ReadableBy::OwnPages => self,
            ReadableBy::AllPages => self.field("Access-Control-Allow-Origin", "*"),
            ReadableBy::PagesOf(origin) => self
                .field("Access-Control-Allow-Origin", origin)
                .field("Access-Control-Allow-Credentials", "true")
                .field("Vary", "Origin"),
        }
    }

    /// Ends a head whose answer ends with the connection or in its own way.
    #[inline]
    pub fn end(self) {
        match self.out {
            HeadOut::Text(out) => out.extend_from_slice(b"\r\n"),
            HeadOut::Fields(_) => {}
        }
    }

    /// Ends a head behind which a body of `size` bytes follows, `None` where there may be none.
    #[inline]
    pub fn end_before(self, size: Option<usize>, keeps_alive: bool) {
        let mut head = if keeps_alive { self } else { self.field("Connection", "close") };
        if let Some(size) = size {
            let (digits, start) = decimal(size);
            head = head.raw_field("Content-Length", &digits[start..]);
        }
        head.end();
    }

    /// Adds the fields that all answers of transports carry: a browser takes the content for no other type, and unless
    /// pages of all sites are admitted, those of other sites get it neither as an image nor as a script.
    #[inline]
    fn of_transport(self, content_type: &str, audience: Audience<'_>) -> Self {
        let policy = if audience.is_for_all { "cross-origin" } else { "same-origin" };
        let head = self.field("Content-Type", content_type).field("Cache-Control", "no-store");
        head.field("X-Content-Type-Options", "nosniff").field("Cross-Origin-Resource-Policy", policy)
    }

    /// Ends the head of a transport's answer with a body of `size` bytes.
    #[inline]
    pub fn end_before_body(self, content_type: &str, size: usize, audience: Audience<'_>, keeps_alive: bool) {
        let head = self.of_transport(content_type, audience).readable_by(audience.readers);
        head.end_before(Some(size), keeps_alive);
    }
}

/// The value of `Retry-After`: whole seconds, never none.
pub fn retry_after(after_ms: Option<u64>) -> String {
    after_ms.unwrap_or(0).div_ceil(1000).max(1).to_string()
}

/// Decimal digits, and where they begin.
fn decimal(mut number: usize) -> ([u8; 20], usize) {
    let (mut digits, mut start) = ([b'0'; 20], 20);
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (digits, start);
        }
    }
}

/// Appends the answer to many held polls, over HTTP/1.1 on connections that go on.
pub fn encode_common_reply(out: &mut Vec<u8>, coding: Option<&str>, body: &[u8], audience: Audience<'_>) {
    let head = Head::new(HeadOut::Text(out), 200).coded(coding);
    head.end_before_body("application/json", body.len(), audience, true);
    out.extend_from_slice(body);
}

/// Writes the head of a stream.
pub fn encode_stream(out: HeadOut<'_>, framing: Framing, audience: Audience<'_>) {
    let (kind, is_chunked) = match framing {
        Framing::Events { is_chunked, .. } => ("text/event-stream", is_chunked),
        Framing::Script { is_chunked } => ("text/html; charset=utf-8", is_chunked),
        Framing::Lines { is_chunked, .. } => ("application/x-ndjson", is_chunked),
        Framing::WebSocket { .. } | Framing::Reply => unreachable!("these have no stream over HTTP"),
    };
    let head = Head::new(out, 200).of_transport(kind, audience);
    // Asks nginx not to buffer.
    let head = head.field("X-Accel-Buffering", "no").coded(framing.is_gzip().then_some("gzip"));
    let head = if is_chunked { head.field("Transfer-Encoding", "chunked") } else { head };
    // A stream ends together with its connection: who took the end of the chunks for that of the answer alone would lose its
    // next request.
    head.field("Connection", "close").readable_by(audience.readers).end();
}

/// Writes the answer to a browser that asks what pages of other sites may do.
pub fn encode_preflight(out: HeadOut<'_>, readers: ReadableBy<'_>) {
    Head::new(out, 204)
        .readable_by(readers)
        .field("Access-Control-Allow-Methods", "GET, POST")
        .field("Access-Control-Allow-Headers", "authorization, cache-control, content-type, last-event-id")
        .field("Access-Control-Max-Age", "86400")
        .end();
}

/// Writes the answer that lets a client send the body that it holds back (RFC 9110, section 15.2.1). Another follows.
pub fn encode_continue(out: HeadOut<'_>) {
    Head::new(out, 100).end();
}

/// Writes the answer that makes a WebSocket of its connection: with `accept`, the value of `Sec-WebSocket-Accept`, over
/// HTTP/1 (RFC 6455, section 4.2.2), without it over HTTP/2 (RFC 8441, section 5).
pub fn encode_websocket(out: HeadOut<'_>, accept: Option<&str>, extension: Option<&str>, subprotocol: Option<&str>) {
    let head = match accept {
        None => Head::new(out, 200),
        Some(accept) => {
            let head = Head::new(out, 101).field("Upgrade", "websocket").field("Connection", "Upgrade");
            head.field("Sec-WebSocket-Accept", accept)
        }
    };
    let head = match extension {
        None => head,
        Some(extension) => head.field("Sec-WebSocket-Extensions", extension),
    };
    let head = match subprotocol {
        None => head,
        Some(subprotocol) => head.field("Sec-WebSocket-Protocol", subprotocol),
    };
    head.end();
}

/// The whole answer to a connection that is closed before anything was read from it.
pub fn refusal(code: ErrorCode, text: &str, audience: Audience<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let body = error_body(code, text, None);
    Head::of_error(HeadOut::Text(&mut out), code, None, audience.readers).end_before_body(
        "application/json",
        body.len(),
        audience,
        false,
    );
    out.extend_from_slice(&body);
    out
}

/// The body of every error over HTTP; `after_ms` is when to ask again, if that is known.
pub fn error_body(code: ErrorCode, text: &str, after_ms: Option<u64>) -> Vec<u8> {
    let after = after_ms.map(|after_ms| format!(",\"after_ms\":{after_ms}")).unwrap_or_default();
    format!("{{\"error\":\"{}\",\"message\":{}{after}}}\n", code.name(), json_string(text)).into_bytes()
}

/// Writes everything of an application's answer before its body, of which `size` is the length if there may be one.
/// Fields that say what is said here, or could not be sent as they are, are left out.
pub fn application_head<'a>(
    out: HeadOut<'_>,
    status: u16,
    content_type: &'a str,
    fields: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    size: Option<usize>,
    keeps_alive: bool,
) {
    let mut head = Head::new(out, status);
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let kind = Some(("Content-Type", content_type)).filter(|(_, kind)| !kind.is_empty());
    let usual = USUAL_FIELDS.into_iter().filter(|(usual, _)| !fields.clone().any(|(name, _)| is(name, usual)));
    let own = fields.clone().filter(|(name, _)| !OWN_FIELDS.iter().any(|own| is(name, own)));
    for (name, value) in kind.into_iter().chain([("X-Content-Type-Options", "nosniff")]).chain(usual).chain(own) {
        if is_token(name) && !value.contains(['\r', '\n', '\0']) {
            // White space around a value is none of it (RFC 9110, section 5.5), and malformed in HTTP/2.
            head = head.field(name, value.trim_matches([' ', '\t']));
        }
    }
    head.end_before(size, keeps_alive);
}

/// Whether a text may be the name of a field (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// What a status means (RFC 9110, section 15); nothing for one that is rare.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN_PAGES: Audience<'_> = Audience { readers: ReadableBy::OwnPages, is_for_all: false };
    const ALL_PAGES: Audience<'_> = Audience { readers: ReadableBy::AllPages, is_for_all: true };

    #[test]
    fn answers_are_as_documented() {
        let mut out = Vec::new();
        Head::new(HeadOut::Text(&mut out), 200).end_before_body("text/plain", 2, ALL_PAGES, false);
        out.extend_from_slice(b"ok");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Cross-Origin-Resource-Policy: cross-origin\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
        );
        let text = String::from_utf8(refusal(ErrorCode::Overloaded, "\"later\"", OWN_PAGES)).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"), "{text}");
        assert!(!text.contains("Access-Control"), "{text}");
        let text = String::from_utf8(refusal(ErrorCode::Overloaded, "\"later\"", ALL_PAGES)).unwrap();
        assert!(text.contains("\r\nAccess-Control-Expose-Headers: Retry-After\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n{\"error\":\"overloaded\",\"message\":\"\\\"later\\\"\"}\n"), "{text}");
    }

    #[test]
    fn a_head_may_go_without_a_length() {
        let mut out = Vec::new();
        Head::new(HeadOut::Text(&mut out), 204).field("A", "b").end_before(None, true);
        assert_eq!(out, b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n");
    }

    #[test]
    fn the_head_of_an_application_is_ours_where_it_must_be() {
        let fields = [
            ("Set-Cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("X-Broken", "a\r\nSet-Cookie: c=3"),
            ("X Broken", "a"),
            ("", "a"),
            ("content-LENGTH", "7"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "upgrade"),
            ("cache-control", "max-age=60"),
        ];
        let mut out = Vec::new();
        application_head(HeadOut::Text(&mut out), 200, "text/html", fields.into_iter(), Some(3), false);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\ncache-control: max-age=60\r\n\
             Connection: close\r\nContent-Length: 3\r\n\r\n"
        );
        let mut bare = Vec::new();
        application_head(HeadOut::Text(&mut bare), 299, "", [("Referrer-Policy", "origin")].into_iter(), None, true);
        let expected = "HTTP/1.1 299 \r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\
                        Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n\
                        Referrer-Policy: origin\r\n\r\n";
        assert_eq!(String::from_utf8(bare).unwrap(), expected);
    }

    fn listed(write: impl FnOnce(HeadOut<'_>)) -> Vec<(String, String)> {
        let mut fields = FieldList::default();
        write(HeadOut::Fields(&mut fields));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn over_http2_a_head_is_fields_without_those_of_a_connection() {
        let stream =
            listed(|out| encode_stream(out, Framing::Events { is_chunked: false, is_compressed: false }, ALL_PAGES));
        let expected = [
            (":status", "200"),
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "cross-origin"),
            ("x-accel-buffering", "no"),
            ("access-control-allow-origin", "*"),
        ];
        assert_eq!(stream, owned(&expected));
        let refused = listed(|out| {
            Head::of_error(out, ErrorCode::UpgradeRequired, None, ReadableBy::OwnPages)
                .end_before_body("a/b", 7, OWN_PAGES, false)
        });
        let expected = [
            (":status", "426"),
            ("sec-websocket-version", "13"),
            ("content-type", "a/b"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
            ("content-length", "7"),
        ];
        assert_eq!(refused, owned(&expected));
        assert_eq!(listed(|out| encode_websocket(out, None, None, None)), owned(&[(":status", "200")]));
        assert_eq!(listed(encode_continue), owned(&[(":status", "100")]));
        let fields = [
            ("Set-Cookie", " a=B\t"),
            ("Keep-Alive", "5"),
            ("Upgrade", "x"),
            ("Proxy-Connection", "y"),
            (":status", "7"),
        ];
        let own = listed(|out| application_head(out, 304, "", fields.into_iter(), None, false));
        let expected = [
            (":status", "304"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("set-cookie", "a=B"),
        ];
        assert_eq!(own, owned(&expected));
    }

    #[test]
    fn a_stream_is_the_last_on_its_connection() {
        for (is_chunked, coding) in [(true, "Transfer-Encoding: chunked\r\n"), (false, "")] {
            let mut out = Vec::new();
            let framing = Framing::Lines { is_chunked, is_compressed: false };
            encode_stream(HeadOut::Text(&mut out), framing, OWN_PAGES);
            let expected = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\n\
                 X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\nX-Accel-Buffering: no\r\n{coding}Connection: close\r\n\r\n"
            );
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn the_handshake_is_the_one_that_clients_expect() {
        use pushlab_wire::websocket::handshake;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        encode_websocket(HeadOut::Text(&mut ours), Some("abc="), None, None);
        handshake::encode_response(&mut theirs, "abc=");
        assert_eq!(ours, theirs);
        let mut interim = Vec::new();
        encode_continue(HeadOut::Text(&mut interim));
        assert_eq!(interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    #[test]
    fn lengths_are_written_in_full() {
        for size in [0, 7, 10, 999, 65_536, usize::MAX] {
            let (digits, start) = decimal(size);
            assert_eq!(digits[start..], *size.to_string().as_bytes());
        }
    }
}
