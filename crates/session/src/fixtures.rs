//! What the tests of several modules need.

use pushlab_log::{Limits, MemoryLog, Publication};
use pushlab_wire::cursor::Epoch;
use std::sync::Arc;

/// So many publications, each longer than the one before.
pub fn publications(count: u64) -> Vec<Arc<Publication>> {
    let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
    (0..count).map(|i| log.append("a", &"1".repeat(1 + i as usize), None, 0).unwrap()).collect()
}
