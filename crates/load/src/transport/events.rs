//! What it means that a server said something.

use crate::connection::Outgoing;
use fastrand::Rng;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::deflate::InflateDecoder;
use pushlab_wire::native::ServerFrame;

/// Largest message, line, event or reply, in bytes: the most that one connection can make the load hold.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What a server's bytes meant.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The first answer: whatever is published from now on is for us.
    Subscribed,
    /// A delivery's data.
    Message(&'a [u8]),
    /// The same, where the server says that it has it from another server of its cluster.
    Relayed(&'a [u8]),
    /// An answer to an echo.
    Echo(&'a [u8]),
    /// What follows was compressed: `inflated` bytes came as `sent`.
    Compressed {
        /// What its bytes were on the wire.
        sent: usize,
        /// What they are now.
        inflated: usize,
    },
    /// What follows was not.
    Uncompressed,
    /// A gap frame: messages are gone.
    Gap,
    /// The connection ends, and the client is to come back after so long.
    ComeBack {
        /// How long.
        after_ms: u64,
    },
    /// An error frame.
    Error {
        /// A name from the table of codes.
        code: &'a str,
        /// For people.
        text: &'a str,
    },
    /// A further request was put among the bytes to send.
    Asked,
    /// A request has been answered; the connection is free for the next.
    Answered {
        /// Whether the server leaves the connection open.
        keeps_alive: bool,
    },
}

/// What a receiver needs while it hears something.
#[derive(Debug)]
pub struct Hearing<'a, S> {
    /// Chance for masks.
    pub rng: &'a mut Rng,
    /// Inflates messages that refer to no earlier one.
    pub inflater: &'a mut InflateDecoder,
    /// Answers owed at once: pongs, further requests.
    pub out: &'a mut Outgoing,
    /// The count of bytes that the transport carries: texts, lines, data of events, bodies; of a compressed WebSocket
    /// message as they were sent. All bytes and the data of events are the caller's to count.
    pub texts: &'a mut u64,
    /// Who is told what it meant.
    pub sink: &'a mut S,
}

/// Passes a server frame on as an event and remembers its cursor. Cursors alone make no event.
#[inline]
pub(super) fn forward(frame: &ServerFrame<'_>, last: &mut CursorText, sink: &mut impl FnMut(Event<'_>)) {
    match frame {
        ServerFrame::Message { cursor, data, .. } => {
            if let Some(cursor) = cursor {
                last.set(cursor);
            }
            sink(Event::Message(data.as_bytes()));
        }
        ServerFrame::Cursor(cursor) => last.set(cursor),
        ServerFrame::Echo(data) => sink(Event::Echo(data.as_bytes())),
        ServerFrame::Gap { to, .. } => {
            last.set(to);
            sink(Event::Gap);
        }
        ServerFrame::Error { code, text, .. } => sink(Event::Error { code, text }),
        ServerFrame::Reconnect(after_ms) => sink(Event::ComeBack { after_ms: *after_ms }),
        ServerFrame::Pong(_) | ServerFrame::Server(_) | ServerFrame::Auth(_) | ServerFrame::TokenExpires(_) => {}
    }
}
