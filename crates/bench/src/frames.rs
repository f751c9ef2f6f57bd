//! What goes over the wire: requests and the payload.

use crate::connect::{open_blocking, read_until};
use anyhow::Context as _;
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::handshake;
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Stands in each payload once and nowhere else, so that deliveries are counted without being parsed.
pub const MARKER: u8 = b'|';

/// The channel of everything.
pub const CHANNEL: &str = "a";

/// A payload of 45 bytes, as in the published studies: a JSON string.
pub const PAYLOAD: &str = "\"|abcdefghijklmnopqrstuvwxyz0123456789ABCDEF\"";

/// Digits of a stamp.
const STAMP_DIGITS: usize = 19;

/// Publications before any measurement: offsets then have four digits on both sides of a comparison.
pub const FIRST_PUBLICATIONS: u64 = 1000;

/// How many deliveries some bytes hold.
pub fn deliveries_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(MARKER, bytes).count() as u64
}

/// A payload of the same size that says when it should have left.
pub fn stamped(instant_ns: u64) -> String {
    let payload = format!("\"|{instant_ns:0width$}abcdefghijklmnopqrstuvw\"", width = STAMP_DIGITS);
    debug_assert_eq!(payload.len(), PAYLOAD.len());
    payload
}

/// The stamps that are whole in some bytes. One that two reads have cut is left out: at most one of either.
pub fn stamps_in(bytes: &[u8]) -> impl Iterator<Item = u64> {
    memchr::memchr_iter(MARKER, bytes).filter_map(|at| {
        let digits = bytes.get(at + 1..at + 1 + STAMP_DIGITS)?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0'))))
    })
}

/// The request that subscribes, or that is held as a poll.
pub fn subscription(transport: Transport) -> Vec<u8> {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").into_bytes();
    match transport {
        Transport::WebSocket | Transport::WebSocketPolling => {
            let mut request = Vec::new();
            handshake::encode_request(&mut request, "bench", "/ws?channel=a", *b"0123456789abcdef");
            request
        }
        Transport::Sse => get("/sse?channel=a"),
        Transport::HttpStreaming => get("/stream?channel=a"),
        Transport::LongPolling | Transport::Polling => get("/poll?channel=a&wait=60"),
    }
}

/// A counter of the server's own, by its JSON pointer: `/open`.
pub fn server_counter(address: SocketAddr, name: &str) -> anyhow::Result<u64> {
    server_counter_over(&mut open_blocking(address)?, name)
}

/// The same over a connection that stands.
pub fn server_counter_over(socket: &mut (impl Read + Write), name: &str) -> anyhow::Result<u64> {
    socket.write_all(b"GET /stats HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let answer = read_until(socket, |found| found.ends_with(b"}"))?;
    let body = answer.iter().position(|&b| b == b'{').map(|at| &answer[at..]).context("the counters are not there")?;
    let stats: serde_json::Value = serde_json::from_slice(body).context("the counters are not JSON")?;
    stats.pointer(name).and_then(serde_json::Value::as_u64).with_context(|| format!("there is no counter {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_as_the_studies_have_it() {
        assert_eq!(PAYLOAD.len(), 45);
        assert_eq!(deliveries_in(PAYLOAD.as_bytes()), 1);
        assert!(pushlab_wire::native::is_json(PAYLOAD));
        let stamped = stamped(1_234_567_890_123);
        assert_eq!((stamped.len(), deliveries_in(stamped.as_bytes())), (PAYLOAD.len(), 1));
        assert!(pushlab_wire::native::is_json(&stamped));
        assert_eq!(stamps_in(stamped.as_bytes()).collect::<Vec<_>>(), [1_234_567_890_123]);
        assert_eq!(stamps_in(&stamped.as_bytes()[..20]).count(), 0);
    }
}
