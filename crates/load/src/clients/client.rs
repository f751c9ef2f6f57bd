//! One virtual client.

use super::compression::CompressedBody;
use crate::connection::{Side, Stream};
use crate::transport::posts::Posts;

/// One virtual client: 128 bytes over `websocket`, 256 over `sse`, and hardly any heap memory while it is idle. A
/// connection has 128 more.
#[derive(Debug)]
pub(super) struct Client<R> {
    pub receiver: R,
    pub down: Option<Stream>,
    /// Inflates the body under way on that stream, if it is compressed.
    pub body: Option<Box<CompressedBody>>,
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
    /// Whether the receiving stream waits to be opened again.
    pub is_down_resting: bool,
    /// Whether the posting stream waits to be opened again.
    pub is_up_resting: bool,
    /// Closed loop: whether the answer to the last echo is outstanding.
    pub is_waiting: bool,
    /// Closed loop: whether `sent` counts within the load phase.
    pub is_counting: bool,
}

/// The stream that posts.
#[derive(Debug)]
pub(super) struct Up {
    pub stream: Stream,
    pub posts: Posts,
    /// Inflates the body under way, if it is compressed.
    pub body: Option<Box<CompressedBody>>,
    pub is_connected: bool,
    /// Since when it could take a POST: since it stands, or since the last was answered, ns.
    pub free_ns: u64,
}

impl<R: crate::transport::Receiver> Client<R> {
    pub fn new() -> Self {
        Self {
            receiver: R::new(),
            down: None,
            body: None,
            up: None,
            opened_ns: 0,
            free_ns: 0,
            due: 0,
            sent: 0,
            attempts: 0,
            is_subscribed: false,
            was_opened: false,
            was_up: false,
            is_down_resting: false,
            is_up_resting: false,
            is_waiting: false,
            is_counting: false,
        }
    }

    /// The compressed body under way on one side, if there is one.
    pub fn body_of(&mut self, side: Side) -> &mut Option<Box<CompressedBody>> {
        match (side, &mut self.up) {
            (Side::Up, Some(up)) => &mut up.body,
            _ => &mut self.body,
        }
    }

    /// The stream of one side, if there is one, which is no longer the client's.
    pub fn take_stream(&mut self, side: Side) -> Option<Stream> {
        match side {
            Side::Down => self.down.take(),
            Side::Up => self.up.take().map(|up| up.stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, Http1};
    use crate::transport::sse::Sse;
    use crate::transport::websocket::WebSocket;

    #[test]
    fn a_client_is_as_small_as_documented() {
        let sizes = [size_of::<Client<WebSocket>>(), size_of::<Client<Sse>>(), size_of::<Option<Connection<Http1>>>()];
        assert_eq!(sizes, [128, 256, 128]);
    }
}
