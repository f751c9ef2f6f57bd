//! Steering a clock after another one: when to ask, how fast to run, and how far off it may have been.

use super::{Estimator, PPM, RoundTrip, S, Uneven, WANDER_MAX, difference};
use crate::result::WorkerClock;

const MS: u64 = 1_000_000;
/// Round trips after which the clock is set: a second of them.
const OPENING: u32 = 50;
/// Mean time between two questions of the opening, ns, and after it.
const OPENING_INTERVAL_NS: u64 = 20 * MS;
const INTERVAL_NS: u64 = 100 * MS;
/// How soon the clock is to be where it should, ns.
const CATCH_UP_NS: u64 = 1_000 * MS;
/// Fastest that a steered clock gains or loses, as a share: twice the largest drift.
const RATE_MAX: f64 = 1e-3;
/// Largest error, ns, with which a worker may begin: the phases of a run begin 20 ms after everybody was told.
pub const ERROR_READY_MAX_NS: u64 = 5 * MS;

/// Steers one clock: told of round trips, it says what to do with the clock, which it never sets twice.
#[derive(Debug)]
pub struct Steering {
    estimator: Estimator,
    random: fastrand::Rng,
    heard: u32,
    set: Option<Set>,
    error_max_ns: u64,
}

/// A clock that was set.
#[derive(Debug, Clone, Copy)]
struct Set {
    /// When, on the raw clock, ns, and how far the coordinator's was ahead then.
    raw_ns: u64,
    offset_ns: i64,
    /// When it was looked at last, on the raw clock, ns; how far the coordinator's was ahead, and how far off the steered
    /// one may have been.
    seen_ns: u64,
    seen_offset_ns: i64,
    error_ns: u64,
}

/// What to do with the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Adjustment {
    /// The opening is over: set it.
    Set {
        /// When the raw clock shows this, ns,
        raw_ns: u64,
        /// the steered one is to show this, ns,
        ns: u64,
        /// and to gain so many ns on each of the raw one's.
        rate: f64,
    },
    /// From now on it is to gain so many ns on each of the raw one's.
    Slew {
        /// So many.
        rate: f64,
    },
}

impl Steering {
    /// Of a clock that is not set yet. The seed is that of the intervals between questions.
    pub fn new(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { estimator: Estimator::default(), random, heard: 0, set: None, error_max_ns: 0 }
    }

    /// How long to wait before the next question, ns: between half of the mean and one and a half of it, so that
    /// questions are in phase with nothing.
    pub fn wait_ns(&mut self) -> u64 {
        let mean_ns = if self.set.is_none() { OPENING_INTERVAL_NS } else { INTERVAL_NS };
        mean_ns / 2 + self.random.u64(..mean_ns)
    }

    /// Takes a round trip on the raw clock. `shown_ns` is what the steered one showed when the answer came.
    ///
    /// # Errors
    /// When the clocks did not run evenly. What was measured since the clock was set is void.
    pub fn heard(&mut self, trip: RoundTrip, shown_ns: u64) -> Result<Option<Adjustment>, Uneven> {
        self.estimator.heard(trip)?;
        let raw_ns = trip.came_ns;
        let Some(now) = self.estimator.difference_at(raw_ns) else { return Ok(None) };
        let Some(set) = &mut self.set else {
            self.heard += 1;
            if self.heard < OPENING {
                return Ok(None);
            }
            let (offset_ns, error_ns) = (now.offset_ns, now.error_ns);
            self.set = Some(Set { raw_ns, offset_ns, seen_ns: raw_ns, seen_offset_ns: offset_ns, error_ns });
            let ns = raw_ns.saturating_add_signed(offset_ns);
            return Ok(Some(Adjustment::Set { raw_ns, ns, rate: now.drift_ppm * PPM / S }));
        };
        let shown_ahead_ns = difference(shown_ns, raw_ns);
        let error_ns = now.error_ns.saturating_add(now.offset_ns.abs_diff(shown_ahead_ns));
        // Between two looks both clocks follow lines, but for what they wander off: a chord's height.
        let apart = raw_ns.saturating_sub(set.seen_ns) as f64 / S;
        let wandered_ns = (WANDER_MAX * apart * apart / 8.0).ceil() as u64;
        self.error_max_ns = self.error_max_ns.max(set.error_ns.max(error_ns).saturating_add(wandered_ns));
        (set.seen_ns, set.seen_offset_ns, set.error_ns) = (raw_ns, now.offset_ns, error_ns);
        let soon = self.estimator.difference_at(raw_ns.saturating_add(CATCH_UP_NS)).unwrap_or(now);
        let rate = soon.offset_ns.saturating_sub(shown_ahead_ns) as f64 / CATCH_UP_NS as f64;
        Ok(Some(Adjustment::Slew { rate: rate.clamp(-RATE_MAX, RATE_MAX) }))
    }

    /// How far off the clock was at the most when it was looked at last, ns; `None` before it is set.
    pub fn error_ns(&self) -> Option<u64> {
        self.set.map(|set| set.error_ns)
    }

    /// From now on the largest error counts: what is measured begins.
    pub fn begin(&mut self) {
        self.error_max_ns = self.error_ns().unwrap_or(u64::MAX);
    }

    /// How a worker's clock did since then, up to now. `shown_ns` is what it shows when the raw one shows `raw_ns`.
    pub fn of_worker(&self, worker: u32, raw_ns: u64, shown_ns: u64) -> WorkerClock {
        let Some((set, now)) = self.set.zip(self.estimator.difference_at(raw_ns)) else {
            return WorkerClock { worker, offset_ns: 0, drift_ppm: 0.0, error_ns: u64::MAX };
        };
        // Since the clock was set, the difference is known over a longer time than to the estimator.
        let since = set.seen_ns.saturating_sub(set.raw_ns) as f64 / S;
        let grown_ns = set.seen_offset_ns.saturating_sub(set.offset_ns) as f64;
        let drift_ppm = if since > 0.0 { grown_ns / since / PPM } else { now.drift_ppm };
        let error_ns = now.error_ns.saturating_add(now.offset_ns.abs_diff(difference(shown_ns, raw_ns)));
        WorkerClock { worker, offset_ns: set.offset_ns, drift_ppm, error_ns: error_ns.max(self.error_max_ns) }
    }
}
