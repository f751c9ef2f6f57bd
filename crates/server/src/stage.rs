//! What a server is doing.

use std::sync::atomic::{AtomicU8, Ordering};

/// What a server is doing; each event loop follows in its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// It takes connections.
    Serving,
    /// It takes none, and its listeners stay open: they wait for it, or for the process that takes over.
    Paused,
    /// The connections that it has are moved, one after the other, to the process that took over.
    Leaving,
    /// That process has died: it takes connections again, and those that it had begin anew.
    Returned,
    /// It ends.
    Stopping,
}

/// The stage that all event loops follow.
pub struct SharedStage(AtomicU8);

const ALL: [Stage; 5] = [Stage::Serving, Stage::Paused, Stage::Leaving, Stage::Returned, Stage::Stopping];

impl SharedStage {
    /// At the beginning.
    pub fn new() -> Self {
        Self(AtomicU8::new(Stage::Serving as u8))
    }

    /// The present one.
    pub fn current(&self) -> Stage {
        ALL[usize::from(self.0.load(Ordering::Acquire))]
    }

    /// Goes on to another one; says whether it did. What has begun to stop goes on nowhere.
    pub fn advance(&self, to: Stage) -> bool {
        let step = |from| (from != Stage::Stopping as u8).then_some(to as u8);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_to_stop_goes_on_nowhere() {
        let stage = SharedStage::new();
        for to in ALL {
            assert!(stage.advance(to));
            assert_eq!(stage.current(), to);
        }
        assert!(ALL.into_iter().all(|to| !stage.advance(to)));
        assert_eq!(stage.current(), Stage::Stopping);
    }
}
