//! Where runs that go side by side meet: they begin at one instant, and learn of what the others used.

use crate::planner::Side;
use pushlab_os::clock::monotonic_ns;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time from the instant at which all are ready to the beginning, for each to learn of it.
const LEAD_NS: u64 = 300_000_000;
/// Longest time for which a run that has ended waits for those beside it: they end at the same instant, but for a drain.
const LEAVE_MAX: Duration = Duration::from_secs(60);

/// Where runs meet.
#[derive(Debug, Default)]
pub struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those that have come and not left.
    present: u32,
    ready: u32,
    begin_ns: Option<u64>,
    /// CPU time that those who have left used in their load phases, s.
    used_s: f64,
}

impl Meeting {
    /// Of so many runs.
    pub fn of(runs: u32) -> Self {
        let state = State { present: runs, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No step leaves anything half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's place among those beside it. It leaves when this is dropped.
#[derive(Debug)]
pub struct Beside<'a> {
    meeting: &'a Meeting,
    /// Which place.
    pub side: Side,
    is_ready: bool,
    used_s: f64,
    has_left: bool,
}

impl<'a> Beside<'a> {
    /// One of those who are expected.
    pub fn new(meeting: &'a Meeting, side: Side) -> Self {
        Self { meeting, side, is_ready: false, used_s: 0.0, has_left: false }
    }

    /// All of its clients are connected.
    pub fn is_ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.meeting.state().ready += 1;
        }
    }

    /// When the idle phase begins; `None` while one that may still come is not ready.
    pub fn begin_ns(&self) -> Option<u64> {
        let mut state = self.meeting.state();
        if state.begin_ns.is_none() && state.ready > 0 && state.ready >= state.present {
            state.begin_ns = Some(monotonic_ns() + LEAD_NS);
        }
        state.begin_ns.filter(|_| self.is_ready)
    }

    /// It has ended, and used so much CPU time in its load phase. Gives what the others used, when they have ended too.
    pub fn end(mut self, used_s: f64) -> f64 {
        self.used_s = used_s;
        self.leave();
        let is_waiting = |state: &mut State| state.present > 0;
        let state = self.meeting.state();
        let ended = self.meeting.changed.wait_timeout_while(state, LEAVE_MAX, is_waiting);
        let (state, _) = ended.unwrap_or_else(PoisonError::into_inner);
        state.used_s - used_s
    }

    fn leave(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            let mut state = self.meeting.state();
            state.present -= 1;
            state.ready -= u32::from(self.is_ready);
            state.used_s += self.used_s;
            self.meeting.changed.notify_all();
        }
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn side(own: u32) -> Side {
        Side { group: 1, own, of: 2, turns_ms: Some(100) }
    }

    #[test]
    fn all_begin_at_one_instant_when_the_last_is_ready() {
        let meeting = Meeting::of(2);
        let [mut one, mut other] = [0, 1].map(|own| Beside::new(&meeting, side(own)));
        assert_eq!(one.begin_ns(), None);
        one.is_ready();
        one.is_ready();
        assert_eq!((one.begin_ns(), other.begin_ns()), (None, None));
        other.is_ready();
        let before_ns = monotonic_ns();
        let begin_ns = one.begin_ns().unwrap();
        assert!(begin_ns >= before_ns + LEAD_NS);
        assert_eq!(other.begin_ns(), Some(begin_ns));
    }

    #[test]
    fn nobody_waits_for_one_that_cannot_come() {
        let meeting = Meeting::of(2);
        let [mut one, other] = [0, 1].map(|own| Beside::new(&meeting, side(own)));
        one.is_ready();
        drop(other);
        assert!(one.begin_ns().is_some());
        assert_eq!(one.end(1.5).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn each_learns_what_the_others_used() {
        let meeting = Meeting::of(2);
        let [one, other] = [0, 1].map(|own| Beside::new(&meeting, side(own)));
        let others = thread::scope(|scope| {
            let one = scope.spawn(move || one.end(2.0));
            let other = scope.spawn(move || other.end(0.5));
            [one.join().unwrap(), other.join().unwrap()]
        });
        assert_eq!(others.map(f64::to_bits), [0.5_f64, 2.0].map(f64::to_bits));
    }
}
