//! What is tried again.

use crate::connection::Side;
use std::cmp::{Ordering, Reverse};

/// A connection to be opened again; the earliest is the greatest, for a heap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub due_ns: u64,
    pub client: usize,
    pub side: Side,
}

impl Ord for Retry {
    fn cmp(&self, other: &Self) -> Ordering {
        Reverse((self.due_ns, self.client)).cmp(&Reverse((other.due_ns, other.client)))
    }
}

impl PartialOrd for Retry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
