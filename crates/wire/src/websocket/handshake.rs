//! The opening handshake (RFC 6455, section 4; over HTTP/2 RFC 8441, section 5).

use crate::fields::trimmed;
use crate::http::{BodyKind, RequestHead, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request that cannot become a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// No `Upgrade: websocket` with `Connection: Upgrade`.
    #[error("this path is a WebSocket: send Upgrade: websocket and Connection: Upgrade")]
    NotAnUpgrade,
    /// Over HTTP/2 it is no CONNECT with `:protocol` `websocket`, or its stream has ended with it.
    #[error(
        "this path is a WebSocket: over HTTP/2 send CONNECT with :protocol websocket (RFC 8441), and leave the stream \
         open; or use HTTP/1.1"
    )]
    NotAConnect,
    /// Only version 13 exists in practice.
    #[error("Sec-WebSocket-Version must be 13")]
    BadVersion,
    /// Section 4.1: 16 bytes in base 64.
    #[error("Sec-WebSocket-Key must be 16 bytes in base 64")]
    BadKey,
    /// The server's answer does not fit our key.
    #[error("the server did not accept the WebSocket: {0}")]
    Refused(&'static str),
}

/// Checks a request over HTTP/1 and gives the `Sec-WebSocket-Accept` value.
pub fn accept(request: &RequestHead<'_, '_>) -> Result<String, HandshakeError> {
    let upgrade = request.has_token("upgrade", "websocket");
    let connection = request.has_token("connection", "upgrade");
    if request.method != "GET" || request.version != Version::Http11 || !upgrade || !connection {
        return Err(HandshakeError::NotAnUpgrade);
    }
    check_version(request)?;
    let key = request.header("sec-websocket-key").map(trimmed).ok_or(HandshakeError::BadKey)?;
    if !STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16) {
        return Err(HandshakeError::BadKey);
    }
    Ok(accept_value(key))
}

/// Checks a request over HTTP/2, which needs no key: the answer is a status of 200 (RFC 8441, section 5).
///
/// # Errors
/// [`HandshakeError::NotAConnect`] and [`HandshakeError::BadVersion`].
pub fn check_connect(request: &RequestHead<'_, '_>) -> Result<(), HandshakeError> {
    let is_connect = request.method == "CONNECT" && request.protocol.is_some_and(is_websocket);
    if !is_connect || request.body == BodyKind::Length(0) {
        return Err(HandshakeError::NotAConnect);
    }
    check_version(request)
}

/// Whether a protocol is ours; names of protocols have no case (RFC 9110, section 7.8).
pub fn is_websocket(protocol: &str) -> bool {
    protocol.eq_ignore_ascii_case("websocket")
}

fn check_version(request: &RequestHead<'_, '_>) -> Result<(), HandshakeError> {
    match request.header("sec-websocket-version").map(trimmed) {
        Some("13") => Ok(()),
        _ => Err(HandshakeError::BadVersion),
    }
}

/// Appends a client's request; the caller brings 16 random bytes as the key.
pub fn encode_request(out: &mut Vec<u8>, host: &str, target: &str, key: [u8; 16]) {
    encode_request_with(out, host, target, key, "");
}

/// [`encode_request`] with further header lines, each with its end.
pub fn encode_request_with(out: &mut Vec<u8>, host: &str, target: &str, key: [u8; 16], lines: &str) {
    let key = STANDARD.encode(key);
    out.extend_from_slice(
        format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{lines}\r\n"
        )
        .as_bytes(),
    );
}

/// Appends the server's answer to an accepted request.
pub fn encode_response(out: &mut Vec<u8>, accept: &str) {
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ",
    );
    out.extend_from_slice(accept.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
}

/// Checks the server's answer to the request that carried `key`.
pub fn check_response(head: &crate::http::ResponseHead<'_, '_>, key: [u8; 16]) -> Result<(), HandshakeError> {
    if head.status != 101 {
        return Err(HandshakeError::Refused("its status is not 101"));
    }
    if !head.has_token("upgrade", "websocket") || !head.has_token("connection", "upgrade") {
        return Err(HandshakeError::Refused("it does not say Upgrade: websocket and Connection: Upgrade"));
    }
    if head.header("sec-websocket-accept").map(trimmed) != Some(accept_value(&STANDARD.encode(key)).as_str()) {
        return Err(HandshakeError::Refused("Sec-WebSocket-Accept does not fit the key"));
    }
    Ok(())
}

fn accept_value(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID);
    STANDARD.encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Headers, parse_request, parse_response};

    #[test]
    fn the_example_of_section_1_3() {
        assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn both_ends_agree() {
        let key = [7; 16];
        let mut request = Vec::new();
        encode_request(&mut request, "localhost:1", "/ws?channel=a", key);
        let mut headers = Headers::default();
        let (head, _) = parse_request(&request, &mut headers).unwrap().unwrap();
        let mut response = Vec::new();
        encode_response(&mut response, &accept(&head).unwrap());
        let mut headers = Headers::default();
        let (head, _) = parse_response(&response, &mut headers).unwrap().unwrap();
        assert_eq!(check_response(&head, key), Ok(()));
        assert!(check_response(&head, [8; 16]).is_err());
    }

    #[test]
    fn says_what_is_missing() {
        let base = "GET /ws HTTP/1.1\r\nHost: h\r\n";
        for (rest, error) in [
            ("\r\n", HandshakeError::NotAnUpgrade),
            ("Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n", HandshakeError::BadVersion),
            (
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n\r\n",
                HandshakeError::BadKey,
            ),
        ] {
            let text = format!("{base}{rest}");
            let mut headers = Headers::default();
            let (head, _) = parse_request(text.as_bytes(), &mut headers).unwrap().unwrap();
            assert_eq!(accept(&head), Err(error));
        }
    }
}
