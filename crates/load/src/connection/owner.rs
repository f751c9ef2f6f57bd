//! Whose a stream is, and which.

/// Which of a client's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that receives.
    Down,
    /// The one that posts.
    Up,
}

/// Whose a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    client: u32,
    /// Which of the client's streams it is.
    pub side: Side,
}

impl Owner {
    /// A side of the loop's client of this index.
    pub fn new(client: usize, side: Side) -> Self {
        Self { client: client as u32, side }
    }

    /// The client's index in its loop.
    #[inline]
    pub fn client(self) -> usize {
        self.client as usize
    }
}

/// A stream, by the number of its connection in the loop and its own on that connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// See [`super::Connections`].
    pub connection: u32,
    /// See [`super::Protocol::open`].
    pub number: u32,
}
