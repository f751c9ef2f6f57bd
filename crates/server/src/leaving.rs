//! The connections that move to the process that took over: which, and when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often some leave: a few of thousands at a time.
pub const LEAVING_INTERVAL: Duration = Duration::from_millis(5);

/// The connections that are to leave, evenly over a window.
#[derive(Default)]
pub struct Leaving {
    /// Places and generations.
    those: VecDeque<(usize, u32)>,
    count: usize,
    over: Option<(Instant, Duration)>,
}

impl Leaving {
    /// These leave from now on, over a window.
    pub fn begin(those: VecDeque<(usize, u32)>, now: Instant, window: Duration) -> Self {
        Self { count: those.len(), those, over: Some((now, window)) }
    }

    /// The next one, if more than so many are left.
    pub fn next(&mut self, staying: usize) -> Option<(usize, u32)> {
        if self.those.len() > staying { self.those.pop_front() } else { None }
    }

    /// Whether all have left.
    pub fn is_empty(&self) -> bool {
        self.those.is_empty()
    }

    /// How many stay for now.
    pub fn staying(&self, now: Instant) -> usize {
        let Some((begin, window)) = self.over else { return 0 };
        let left = window.saturating_sub(now.saturating_duration_since(begin));
        (self.count as f64 * left.as_secs_f64() / window.as_secs_f64()).ceil() as usize
    }
}
