//! When the phases begin and end, as an event loop looks at it.

use crate::timeline::Timeline;

const NEVER: u64 = u64::MAX;

/// Instants that a loop compares with again and again; far in the future until they are known.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    /// Idle phase.
    pub idle_ns: u64,
    /// Warm-up.
    pub warm_up_ns: u64,
    /// Load.
    pub load_ns: u64,
    /// Load ends, drain begins.
    pub load_end_ns: u64,
    /// Drain ends.
    pub after_ns: u64,
    /// The run ends.
    pub end_ns: u64,
}

impl Marks {
    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { idle_ns: NEVER, warm_up_ns: NEVER, load_ns: NEVER, load_end_ns: NEVER, after_ns: NEVER, end_ns: NEVER };

    /// The phases are fixed, but for the end of the drain.
    pub fn begin(&mut self, timeline: &Timeline) {
        let Timeline { idle_ns, warm_up_ns, load_ns, load_end_ns, .. } = *timeline;
        *self = Self { idle_ns, warm_up_ns, load_ns, load_end_ns, ..*self };
    }

    /// Whether an instant is of the load phase.
    pub fn is_load(&self, now: u64) -> bool {
        (self.load_ns..self.load_end_ns).contains(&now)
    }
}
