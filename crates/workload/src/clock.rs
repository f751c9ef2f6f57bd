//! What another machine's clock shows, from round trips alone: by how much it differs, how fast that changes, and how far
//! off both may be.
//!
//! A question cannot be read before it was sent, nor an answer come before it was written: each round trip bounds the
//! difference of the clocks from both sides, at two instants, whatever the network did (Cristian, 1989). The difference
//! follows a line as long as neither clock changes its rate, and only lines that pass between all bounds are possible
//! (Duda et al., 1987, and the convex hulls of Zhang, Liu and Xia, 2002). docs/decisions/0053-clocks.md says how much
//! less than that is relied on here, and what others do.

mod region;
mod steering;

pub use steering::{Adjustment, ERROR_READY_MAX_NS, Steering};

use region::Region;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const S: f64 = 1e9;
/// A millionth, as ns a second.
const PPM: f64 = 1e3;
/// Round trips that bound the difference now: 25 s of them at ten a second. 8 KiB, and 20 µs for each new one.
const MAX_ROUND_TRIPS: usize = 256;
/// Most that one clock gains on the other, ns a second. Quartz is within 100 ppm, and NTP corrects by up to 500 ppm, but
/// for less long than a run takes.
const DRIFT_MAX: f64 = 500.0 * PPM;
/// By how much the drift may change in a second, ns a second each second: more than a processor does to its quartz when it
/// gets warm, and as much as NTP does to the kernel's rate. A tenth of it would make the error smaller by a tenth.
const WANDER_MAX: f64 = 10.0 * PPM;
/// How far the difference may be from what wanders no faster, ns: for a rate that is corrected by 28 ppm at once, and for
/// reading the clock.
const UNEVENNESS_MAX: f64 = 5_000.0;
/// A contradiction larger than this, ns, and than any rate makes since the last round trip, is a step: a rate that changes is
/// found sooner.
const STEP_MIN: f64 = 500_000.0;
/// Largest difference that a line may have from the newest round trip, ns.
const DIFFERENCE_MAX: f64 = 1e12;

/// A question about the time and its answer. Nobody sends an answer before the question has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// When the question was sent, on one's own clock, ns.
    pub sent_ns: u64,
    /// What the other clock showed when it was read, ns,
    pub read: Reading,
    /// When the answer came, on one's own clock, ns.
    pub came_ns: u64,
}

/// What is answered to a question about the time: two instants of the clock that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When the question had come, ns.
    pub received_ns: u64,
    /// When the answer was sent, ns.
    pub answered_ns: u64,
}

impl RoundTrip {
    /// Whether causes come before effects on either clock.
    fn is_possible(&self) -> bool {
        self.sent_ns <= self.came_ns && self.read.received_ns <= self.read.answered_ns
    }

    /// The least and the largest difference that it allows, ns.
    fn bounds(&self) -> (i64, i64) {
        (difference(self.read.answered_ns, self.came_ns), difference(self.read.received_ns, self.sent_ns))
    }

    /// What halves both ways, ns.
    fn middle(&self) -> i64 {
        let (low, high) = self.bounds();
        low.midpoint(high)
    }
}

/// What is known of another clock at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// How far the other clock is ahead, ns: the middle of what is possible.
    pub offset_ns: i64,
    /// How far off that may be, ns.
    pub error_ns: u64,
    /// By how much the other clock gains, millionths: the middle of what is possible.
    pub drift_ppm: f64,
}

/// Two clocks of which one did not run evenly: nothing that was measured across them stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uneven {
    /// One of them jumped.
    #[error(
        "this machine's clock jumped by about {ms} ms against the coordinator's; was one of them suspended, or a virtual \
         machine paused or moved? Run again once that is over",
        ms = .by_ns / 1_000_000
    )]
    Stepped {
        /// How far at the least, ns.
        by_ns: u64,
    },
    /// One of them changed its rate.
    #[error(
        "this machine's clock changed its rate against the coordinator's, or jumped a little; let NTP settle on both \
         (`chronyc tracking`, `timedatectl timesync-status`), or stop it for the run, and run again"
    )]
    Drifting,
}

/// Finds the difference between one's own clock and another.
#[derive(Debug)]
pub struct Estimator {
    /// The newest last.
    trips: VecDeque<RoundTrip>,
    /// Lines that pass between the bounds of all of them, from the newest one's coming and middle.
    region: Region,
}

impl Default for Estimator {
    fn default() -> Self {
        Self { trips: VecDeque::with_capacity(MAX_ROUND_TRIPS), region: Region::up_to(DIFFERENCE_MAX, DRIFT_MAX) }
    }
}

impl Estimator {
    /// Takes a round trip; one that cannot have been, or that is older than the newest, tells nothing.
    ///
    /// # Errors
    /// When no even running of the clocks explains it together with the others. The next is the first of a new estimate.
    pub fn heard(&mut self, trip: RoundTrip) -> Result<(), Uneven> {
        let newest = self.trips.back().copied();
        if !trip.is_possible() || newest.is_some_and(|newest| trip.sent_ns < newest.came_ns) {
            return Ok(());
        }
        let expected = self.difference_at(trip.came_ns);
        if self.trips.len() == MAX_ROUND_TRIPS {
            self.trips.pop_front();
        }
        self.trips.push_back(trip);
        self.region = lines(&self.trips, trip);
        if self.region.drifts().is_some() {
            return Ok(());
        }
        *self = Self::default();
        let (Some(expected), Some(newest)) = (expected, newest) else { return Err(Uneven::Drifting) };
        let (low, high) = trip.bounds();
        let error_ns = i64::try_from(expected.error_ns).unwrap_or(i64::MAX);
        let above_ns = low.saturating_sub(expected.offset_ns.saturating_add(error_ns));
        let below_ns = expected.offset_ns.saturating_sub(error_ns).saturating_sub(high);
        let by_ns = above_ns.max(below_ns).max(0).cast_unsigned();
        let since_s = (trip.came_ns - newest.came_ns) as f64 / S;
        let is_step = by_ns as f64 > STEP_MIN + DRIFT_MAX * since_s;
        Err(if is_step { Uneven::Stepped { by_ns } } else { Uneven::Drifting })
    }

    /// Round trips that tell of now.
    pub fn round_trips(&self) -> usize {
        self.trips.len()
    }

    /// The difference at an instant of one's own clock, the newest round trip's coming or later; `None` before the first.
    pub fn difference_at(&self, own_ns: u64) -> Option<Difference> {
        let newest = self.trips.back()?;
        let after = difference(own_ns, newest.came_ns) as f64 / S;
        let (low, high) = self.region.differences(after)?;
        let (slowest, fastest) = self.region.drifts()?;
        let wandered = UNEVENNESS_MAX + WANDER_MAX * after * after / 2.0;
        Some(Difference {
            offset_ns: newest.middle().saturating_add(low.midpoint(high).round() as i64),
            error_ns: ((high - low) / 2.0 + wandered).ceil() as u64,
            drift_ppm: slowest.midpoint(fastest) / PPM,
        })
    }
}

/// The lines that pass between the bounds of all round trips, from the coming of the newest and from its middle. Each bound
/// is wider by what the clocks may have wandered since, so that it holds for a line from then to now.
fn lines(trips: &VecDeque<RoundTrip>, newest: RoundTrip) -> Region {
    let mut region = Region::up_to(DIFFERENCE_MAX, DRIFT_MAX);
    let middle = newest.middle();
    let ago = |ns: u64| (newest.came_ns - ns) as f64 / S;
    let slack = |ago: f64| UNEVENNESS_MAX + WANDER_MAX * ago * ago / 2.0;
    // The newest first: few corners are left for the others.
    for trip in trips.iter().rev() {
        let (low, high) = trip.bounds();
        let (sent, came) = (ago(trip.sent_ns), ago(trip.came_ns));
        region.was_at_most(high.saturating_sub(middle) as f64 + slack(sent), sent);
        region.was_at_least(low.saturating_sub(middle) as f64 - slack(came), came);
    }
    region
}

/// By how much one instant is later than another, ns, of whatever clocks.
fn difference(later_ns: u64, ns: u64) -> i64 {
    i64::try_from(i128::from(later_ns) - i128::from(ns)).unwrap_or(if later_ns > ns { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests;
