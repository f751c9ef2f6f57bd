//! What waits for sockets to take it.

use crate::config::Limits;
use crate::stats::{Counters, shift};

/// Bytes that wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// All.
    pub bytes: usize,
    /// What of that nobody else holds in memory, as history and other queues hold publications.
    pub own: usize,
}

/// What all connections of an event loop have queued, of their own, and its limit.
pub struct QueuedTotal {
    own: usize,
    max: usize,
}

impl QueuedTotal {
    /// The part of a server's limit that one of `loops` has.
    pub fn new(limits: &Limits, loops: usize) -> Self {
        Self { own: 0, max: limits.max_queued_total_bytes / loops.max(1) }
    }

    /// Whether a queue that was of one size may be of another. What does not fit must never count: the limit is one on
    /// memory, and those who watch it see each change.
    pub fn has_room(&self, before: Queued, after: Queued) -> bool {
        after.own <= before.own || self.own + after.own - before.own <= self.max
    }

    /// Accounts for a queue that was of one size and is of another.
    pub fn change(&mut self, before: Queued, after: Queued, counters: &Counters) {
        self.own = self.own + after.own - before.own;
        shift(&counters.queued_bytes, after.bytes as i64 - before.bytes as i64);
    }
}
