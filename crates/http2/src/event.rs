//! What comes over a connection, and what may be wrong with it.

use crate::frame::Code;
use pushlab_wire::fields::FieldList;

/// What has happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing that concerns a stream.
    Nothing,
    /// A request opens a stream. A caller that does not answer it resets the stream.
    Request {
        /// Its number.
        stream: u32,
        /// The head: pseudo-header fields first, checked against RFC 9113, section 8.3.
        head: &'a FieldList,
        /// The head was larger than it may be, and is not all here.
        is_cut: bool,
        /// The peer sends nothing more on it.
        is_end: bool,
    },
    /// The head of an answer; one of status 1xx is not the last.
    Response {
        /// Whose stream.
        owner: u32,
        /// The head, `:status` first.
        head: &'a FieldList,
        /// The peer sends nothing more on it.
        is_end: bool,
    },
    /// Bytes of a body. The caller says when it has used them: [`crate::connection::Connection::used`].
    Data {
        /// Whose stream.
        owner: u32,
        /// Perhaps none.
        bytes: &'a mut [u8],
        /// The peer sends nothing more on it.
        is_end: bool,
    },
    /// A stream has ended that was not complete: nothing more comes or goes on it.
    Reset {
        /// Whose stream.
        owner: u32,
        /// Why.
        code: Code,
        /// The peer has reset it; otherwise the peer broke the protocol on it, and we have.
        is_by_peer: bool,
    },
    /// The peer has sent GOAWAY: it opens no more streams and takes none. Our streams up to and including `last` go on;
    /// the peer has not processed those above it.
    GoingAway {
        /// Our last stream that the peer has processed, or may process.
        last: u32,
        /// Why.
        code: Code,
    },
    /// A ping was answered that we sent.
    Pong([u8; 8]),
}

/// Why a connection cannot go on. The peer is told by a GOAWAY in the output, behind which nothing follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({})", code.name())]
pub struct ConnectionError {
    /// As the peer is told.
    pub code: Code,
    /// What was wrong.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(crate) fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }
}
