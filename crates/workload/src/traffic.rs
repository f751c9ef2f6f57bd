//! What clients send, and how many connections they share.

use pushlab_dialects::Sending;

/// Most publishers, each with one publication under way.
pub const MAX_PUBLISHERS: u32 = 1024;

/// What the clients of a loop send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing.
    Silent,
    /// On the run's schedule.
    Paced(Sending),
    /// Publications on a schedule of their own, beside a feed.
    Upstream,
    /// An echo as soon as the last answer has come.
    ClosedLoop,
    /// A publication as soon as the last one has reached everybody: see the crate load's `broadcasts`. Of the feeder.
    Broadcasts,
}

impl Traffic {
    /// What clients send, if anything.
    pub fn sending(self) -> Option<Sending> {
        match self {
            Self::Silent => None,
            Self::Paced(sending) => Some(sending),
            Self::Upstream | Self::Broadcasts => Some(Sending::Publish),
            Self::ClosedLoop => Some(Sending::Echo),
        }
    }
}

/// How many connections the clients of one host share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimit {
    /// Most connections that are open together.
    pub connections_max: u32,
    /// Clients on one host, consecutive ones; all of one event loop.
    pub clients: u32,
}
