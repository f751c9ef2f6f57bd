//! Whose publications a client is to receive.

use crate::rooms::Rooms;
use pushlab_wire::stamp::Stamp;
use std::sync::Arc;

/// Whose publications a receiver is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Nobody's.
    Nobodys,
    /// Those of so many publishers.
    Everybodys {
        /// Publishers.
        sources: u32,
        /// Receivers in the whole process, to find the first, median and last of each publication; `None` does
        /// not look for them.
        receivers: Option<u32>,
        /// Whether source i is client i, so that everybody's own publications are among them.
        are_sources_clients: bool,
    },
    /// Its own alone.
    Own,
    /// Those to the rooms that it is in; a stamp's source is the room.
    Rooms(Arc<Rooms>),
}

impl Audience {
    /// Sources that are told apart for each receiver.
    pub fn sources(&self) -> u32 {
        match self {
            Self::Nobodys => 0,
            Self::Everybodys { sources, .. } => *sources,
            Self::Own => 1,
            Self::Rooms(rooms) => rooms.per_client(),
        }
    }

    /// Whether a recognised publication is the receiver's own, so that its delivery ends a round trip.
    #[inline]
    pub fn is_own(&self, stamp: &Stamp, own_source: u32) -> bool {
        match self {
            Self::Nobodys => false,
            Self::Everybodys { are_sources_clients, .. } => *are_sources_clients && stamp.source == own_source,
            Self::Own => true,
            Self::Rooms(rooms) => rooms.publisher(stamp.source, u64::from(stamp.sequence)) == own_source,
        }
    }

    /// Whether the first, median and last subscriber of each publication are looked for.
    pub fn is_ranked(&self) -> bool {
        matches!(self, Self::Everybodys { receivers: Some(_), .. } | Self::Rooms(_))
    }
}
