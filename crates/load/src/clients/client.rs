//! One virtual client, and how its sockets are told apart.

use crate::socket::Connection;
use crate::transport::posts::Posts;
use mio::Token;

/// The loop's timer.
pub(super) const TIMER: Token = Token(usize::MAX);
/// What wakes a feeder that waits for deliveries.
pub(super) const WAKEUP: Token = Token(usize::MAX - 1);

/// Which of a client's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that receives.
    Down,
    /// The one that posts.
    Up,
}

/// The token of a client's connection. A late event for an earlier connection of the same client is harmless:
/// it finds nothing to read.
pub(super) fn token(client: usize, side: Side) -> Token {
    Token(client << 1 | usize::from(side == Side::Up))
}

/// The inverse of [`token`].
pub(super) fn client_of(token: Token) -> (usize, Side) {
    (token.0 >> 1, if token.0 & 1 == 1 { Side::Up } else { Side::Down })
}

/// One virtual client: 176 bytes over `websocket`, 304 over `sse`, and hardly any heap memory while it is idle.
#[derive(Debug)]
pub(super) struct Client<R> {
    pub receiver: R,
    pub down: Option<Connection>,
    /// Opened with the first POST.
    pub up: Option<Box<Up>>,
    /// When the connection was begun, ns.
    pub opened_ns: u64,
    /// Since when it could take a frame: since it was subscribed, or since the socket took what had waited, ns.
    pub free_ns: u64,
    /// Publications due so far: those not sent yet wait as a number, not as a queue.
    pub due: u32,
    /// Publications sent so far.
    pub sent: u32,
    /// Failed attempts to connect since the last success.
    pub attempts: u8,
    pub is_subscribed: bool,
    pub was_opened: bool,
    pub was_up: bool,
    /// Whether the second connection waits to be opened again.
    pub is_up_resting: bool,
    /// Closed loop: whether the answer to the last echo is outstanding.
    pub is_waiting: bool,
    /// Closed loop: whether `sent` counts within the load phase.
    pub is_counting: bool,
}

/// The connection that posts.
#[derive(Debug)]
pub(super) struct Up {
    pub connection: Connection,
    pub posts: Posts,
    pub is_connected: bool,
    /// Since when it could take a POST: since it stands, or since the last was answered, ns.
    pub free_ns: u64,
}

impl<R: crate::transport::Receiver> Client<R> {
    pub fn new() -> Self {
        Self {
            receiver: R::new(),
            down: None,
            up: None,
            opened_ns: 0,
            free_ns: 0,
            due: 0,
            sent: 0,
            attempts: 0,
            is_subscribed: false,
            was_opened: false,
            was_up: false,
            is_up_resting: false,
            is_waiting: false,
            is_counting: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::websocket::WebSocket;

    #[test]
    fn tokens_come_back() {
        for client in [0, 1, 199_999] {
            for side in [Side::Down, Side::Up] {
                assert_eq!(client_of(token(client, side)), (client, side));
            }
        }
    }

    #[test]
    fn a_client_is_as_small_as_documented() {
        assert!(size_of::<Client<WebSocket>>() <= 208, "{}", size_of::<Client<WebSocket>>());
    }
}
