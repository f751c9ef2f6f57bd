//! The heads of HTTP answers: of transports, of errors, and of applications.

use crate::framing::Framing;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::native::json_string;

/// Fields of an application's answer that say what is said here.
const OWN_FIELDS: [&str; 5] =
    ["connection", "content-length", "content-type", "transfer-encoding", "x-content-type-options"];
/// Fields that its answer has if it gives no others.
const USUAL_FIELDS: [(&str, &str); 2] = [("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")];

/// The head of an answer while it is written.
pub struct Head<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Head<'o> {
    /// Begins one behind what `out` holds.
    pub fn new(out: &'o mut Vec<u8>, status: u16) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend([status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8));
        out.push(b' ');
        out.extend_from_slice(reason(status).as_bytes());
        out.extend_from_slice(b"\r\n");
        Self { out }
    }

    /// Begins that of an error, with the fields that belong to its code.
    pub fn of_error(out: &'o mut Vec<u8>, code: ErrorCode) -> Self {
        let head = Self::new(out, code.http_status());
        match code {
            ErrorCode::UpgradeRequired => head.field("Upgrade", "websocket").field("Sec-WebSocket-Version", "13"),
            _ if code.http_status() == 503 => head.field("Retry-After", "1"),
            _ => head,
        }
    }

    /// Adds a field. Name and value must be what they are called, without line breaks.
    pub fn field(self, name: &str, value: &str) -> Self {
        for part in [name, ": ", value, "\r\n"] {
            self.out.extend_from_slice(part.as_bytes());
        }
        self
    }

    /// Lets pages of other sites read the answer, if the request names the page that asked.
    pub fn open_to_all(self, has_origin: bool) -> Self {
        if has_origin { self.field("Access-Control-Allow-Origin", "*") } else { self }
    }

    /// Ends a head whose answer ends with the connection or in its own way.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Ends a head behind which a body of `size` bytes follows, `None` where there may be none; gives what it was written
    /// to.
    pub fn end_before(self, size: Option<usize>, keeps_alive: bool) -> &'o mut Vec<u8> {
        let mut head = if keeps_alive { self } else { self.field("Connection", "close") };
        if let Some(size) = size {
            head = head.field("Content-Length", &size.to_string());
        }
        head.out.extend_from_slice(b"\r\n");
        head.out
    }
}

/// Appends a whole answer of a transport: `head` was begun, its type, `body` and what all answers have follow.
pub fn encode_body(head: Head<'_>, content_type: &str, body: &[u8], has_origin: bool, keeps_alive: bool) {
    let head = head.field("Content-Type", content_type).field("Cache-Control", "no-store").open_to_all(has_origin);
    head.end_before(Some(body.len()), keeps_alive).extend_from_slice(body);
}

/// Appends a whole answer of status 200.
pub fn encode_ok(out: &mut Vec<u8>, content_type: &str, body: &[u8], has_origin: bool, keeps_alive: bool) {
    encode_body(Head::new(out, 200), content_type, body, has_origin, keeps_alive);
}

/// Appends the head of a stream.
pub fn encode_stream(out: &mut Vec<u8>, framing: Framing, has_origin: bool) {
    let (kind, is_chunked) = match framing {
        Framing::Events { is_chunked } => ("text/event-stream", is_chunked),
        Framing::Script { is_chunked } => ("text/html; charset=utf-8", is_chunked),
        Framing::Lines { is_chunked } => ("application/x-ndjson", is_chunked),
        Framing::WebSocket | Framing::Reply => unreachable!("these have no stream over HTTP"),
    };
    let head = Head::new(out, 200).field("Content-Type", kind).field("Cache-Control", "no-store");
    // Asks nginx not to buffer.
    let head = head.field("X-Accel-Buffering", "no");
    let head = if is_chunked { head.field("Transfer-Encoding", "chunked") } else { head.field("Connection", "close") };
    head.open_to_all(has_origin).end();
}

/// Appends the answer to a browser that asks what pages of other sites may do.
pub fn encode_preflight(out: &mut Vec<u8>) {
    Head::new(out, 204)
        .open_to_all(true)
        .field("Access-Control-Allow-Methods", "GET, POST")
        .field("Access-Control-Allow-Headers", "content-type, last-event-id")
        .field("Access-Control-Max-Age", "86400")
        .end();
}

/// The whole answer to a connection that is closed before anything was read from it.
pub fn refusal(code: ErrorCode, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_body(Head::of_error(&mut out, code), "application/json", &error_body(code, text), false, false);
    out
}

/// The body of every error over HTTP.
pub fn error_body(code: ErrorCode, text: &str) -> Vec<u8> {
    format!("{{\"error\":\"{}\",\"message\":{}}}\n", code.name(), json_string(text)).into_bytes()
}

/// Appends everything of an application's answer before its body, of which `size` is the length if there may be one.
/// Fields that say what is said here, or could not be sent as they are, are left out.
pub fn application_head<'a>(
    out: &mut Vec<u8>,
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
            head = head.field(name, value);
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

    #[test]
    fn answers_are_as_documented() {
        let mut out = Vec::new();
        encode_ok(&mut out, "text/plain", b"ok", true, false);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n\
             Access-Control-Allow-Origin: *\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
        );
        let text = String::from_utf8(refusal(ErrorCode::Overloaded, "\"later\"")).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n{\"error\":\"overloaded\",\"message\":\"\\\"later\\\"\"}\n"), "{text}");
    }

    #[test]
    fn a_head_may_go_without_a_length() {
        let mut out = Vec::new();
        Head::new(&mut out, 204).field("A", "b").end_before(None, true);
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
        application_head(&mut out, 200, "text/html", fields.into_iter(), Some(3), false);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\ncache-control: max-age=60\r\n\
             Connection: close\r\nContent-Length: 3\r\n\r\n"
        );
        let mut bare = Vec::new();
        application_head(&mut bare, 299, "", [("Referrer-Policy", "origin")].into_iter(), None, true);
        let expected = "HTTP/1.1 299 \r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\
                        Referrer-Policy: origin\r\n\r\n";
        assert_eq!(String::from_utf8(bare).unwrap(), expected);
    }
}
