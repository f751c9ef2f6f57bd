//! How long the subject has been silent although load was due: what tells one that hangs from one that loses.
//!
//! The rule: nothing has come since some instant, the load went on for at least a second after that, and deliveries
//! are outstanding. Silence counts from the end of that second. So it is none if
//! - nothing was due: an idle run, a pause of the shape, or the time between two publications of a slow schedule;
//! - a few of the last deliveries are lost: what others get of the same second breaks it;
//! - clients are cut and come back: that they do breaks it.
//!
//! How long is too long depends on the network and on how often clients ask, and is not decided here.

const MS: u64 = 1_000_000;

/// Load that must have been due in the silence, ns: more than one publication that went astray.
const LOAD_NS: u64 = 1_000 * MS;
/// An observer that has not looked for longer, ns, has missed what came: this process had no time, or the machine
/// slept.
const LOOK_NS: u64 = 3_000 * MS;

/// What has come of the subject so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Deliveries in any phase, repeated ones too.
    pub delivered: u64,
    /// Clients subscribed now.
    pub subscribed: u32,
    /// Pings that wait for an answer; `None` where no prober pings at least once a second.
    pub unanswered: Option<usize>,
}

impl Activity {
    fn has_changed_since(self, before: Self) -> bool {
        let is_answered =
            self.unanswered.is_some_and(|now| now == 0 || before.unanswered.is_some_and(|then| now < then));
        is_answered || self.delivered != before.delivered || self.subscribed != before.subscribed
    }
}

/// Observes the subject.
#[derive(Debug)]
pub struct Silence {
    changed_ns: u64,
    observed_ns: u64,
    activity: Activity,
}

impl Silence {
    /// Begins to observe.
    pub fn new(now: u64) -> Self {
        Self { changed_ns: now, observed_ns: now, activity: Activity::default() }
    }

    /// How long it has been silent, ns; 0 if it is not. `due_from` says when load is due from an instant on.
    pub fn observe(
        &mut self,
        now: u64,
        activity: Activity,
        outstanding: u64,
        due_from: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        if activity.has_changed_since(self.activity) || now > self.observed_ns + LOOK_NS {
            self.changed_ns = now;
        }
        (self.observed_ns, self.activity) = (now, activity);
        let went_on_ns = due_from(self.changed_ns).and_then(|first_ns| due_from(first_ns + LOAD_NS));
        went_on_ns.filter(|_| outstanding > 0).map_or(0, |went_on_ns| now.saturating_sub(went_on_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Schedule;
    use crate::pacing::Pacing;
    use crate::timeline::Timeline;

    const S: u64 = 1_000 * MS;

    /// A load of a minute, with a publication every so often.
    fn load(interval_ns: u64) -> Timeline {
        let schedule = Schedule::Open { pacing: Pacing::between(0, 60 * S, interval_ns, 1), load_from: 0 };
        Timeline {
            idle_ns: 0,
            warm_up_ns: 0,
            load_ns: 0,
            load_end_ns: 60 * S,
            schedule: Some(schedule),
            upstream: None,
            polls: None,
        }
    }

    /// The silence at the end of each second; `came` says what had come by then, and how much was outstanding.
    fn silences(timeline: &Timeline, seconds: u64, came: impl Fn(u64) -> (Activity, u64)) -> Vec<u64> {
        let mut silence = Silence::new(0);
        let look = |second: u64| {
            let (activity, outstanding) = came(second);
            silence.observe(second * S, activity, outstanding, |from| timeline.due_from(from)) / S
        };
        (1..=seconds).map(look).collect()
    }

    fn delivered(delivered: u64) -> Activity {
        Activity { delivered, subscribed: 5, unanswered: None }
    }

    #[test]
    fn a_subject_that_hangs_in_the_load_is_silent_from_then_on() {
        let found = silences(&load(S / 100), 32, |second| (delivered(second.min(20)), 500));
        assert!(found[..21].iter().all(|silence| *silence == 0), "{found:?}");
        assert_eq!(found[20..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let closed = Schedule::Closed { load_ns: 0, load_end_ns: 60 * S, share: None };
        let closed = Timeline { schedule: Some(closed), ..load(S) };
        assert_eq!(silences(&closed, 32, |second| (delivered(second.min(20)), 5)).last(), Some(&11));
    }

    #[test]
    fn whatever_comes_ends_the_silence() {
        let load = load(S / 100);
        let back = |second: u64| Activity { subscribed: if second < 30 { 5 } else { 4 }, ..delivered(1) };
        assert_eq!(silences(&load, 31, |second| (back(second), 9))[28..], [27, 0, 0]);
        let answered = |second: u64| Activity { unanswered: Some([0, 3, 2][second as usize % 3]), ..delivered(1) };
        assert!(silences(&load, 50, |second| (answered(second), 9)).iter().all(|silence| *silence == 0));
        let unanswered = |second: u64| Activity { unanswered: Some(second as usize), ..delivered(1) };
        assert_eq!(silences(&load, 50, |second| (unanswered(second), 9)).last(), Some(&48));
    }

    #[test]
    fn a_slow_schedule_is_not_silence() {
        // A publication every 30 s, all of which come half a second later; one delivery was lost long ago.
        let found = silences(&load(30 * S), 100, |second| (delivered(1 + second / 30), 1));
        assert!(found.iter().all(|silence| *silence == 0), "{found:?}");
    }

    #[test]
    fn deliveries_lost_at_the_end_are_not_silence() {
        // All comes until the last second of the load, of which a few deliveries never do.
        let found = silences(&load(S / 100), 100, |second| (delivered(second.min(60)), 3));
        assert!(found.iter().all(|silence| *silence == 0), "{found:?}");
    }

    #[test]
    fn nothing_outstanding_is_not_silence() {
        assert!(silences(&load(S), 100, |_| (delivered(7), 0)).iter().all(|silence| *silence == 0));
        let idle = Timeline { schedule: None, ..load(S) };
        assert!(silences(&idle, 100, |_| (delivered(0), 1)).iter().all(|silence| *silence == 0));
    }

    #[test]
    fn who_did_not_look_has_heard_no_silence() {
        let load = load(S / 100);
        let mut silence = Silence::new(0);
        let mut look = |now: u64| silence.observe(now, delivered(1), 9, |from| load.due_from(from));
        assert_eq!((look(S), look(30 * S), look(32 * S)), (0, 0, S));
    }
}
