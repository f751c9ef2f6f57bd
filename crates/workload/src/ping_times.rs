//! When pings are due.

use crate::turns::Turns;
use fastrand::Rng;

/// Longest time between two pings, as a multiple of the mean: one in 150 would be longer.
const LONGEST: f64 = 5.0;

/// Instants with exponentially distributed times in between (a Poisson process), so that pings meet whatever state the
/// subject is in as often as it is in it, and are in phase with nothing (Wolff 1982, "Poisson arrivals see time averages").
#[derive(Debug)]
pub struct PingTimes {
    rng: Rng,
    mean_ns: f64,
    next_ns: u64,
    end_ns: u64,
    /// When turns begin, where the run takes some.
    turns: Option<(u64, Turns)>,
    /// Each waits for the answer to the last.
    in_closed_loop: bool,
}

impl PingTimes {
    /// From one instant to another; what is drawn the seed says.
    pub fn between(start_ns: u64, end_ns: u64, mean_ns: u64, turns: Option<(u64, Turns)>, seed: u64) -> Self {
        let mean_ns = mean_ns.max(1) as f64;
        let rng = Rng::with_seed(seed);
        let mut this = Self { rng, mean_ns, next_ns: start_ns, end_ns, turns, in_closed_loop: false };
        this.go_on();
        this
    }

    /// From the same first one on, with the mean time between the answer to one and the next.
    pub fn in_closed_loop(self) -> Self {
        Self { in_closed_loop: true, ..self }
    }

    /// The last was answered, or never will be.
    pub fn answered(&mut self, now_ns: u64) {
        if self.in_closed_loop {
            self.next_ns = now_ns.saturating_add(self.mean_ns as u64);
        }
    }

    /// When the next is due, ns; `None` after the last, and in a closed loop while that is unanswered.
    pub fn next_ns(&self) -> Option<u64> {
        Some(self.next_ns).filter(|next_ns| *next_ns < self.end_ns)
    }

    /// The next, if it is due.
    pub fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.go_on();
        Some(due_ns)
    }

    fn go_on(&mut self) {
        if self.in_closed_loop {
            self.next_ns = u64::MAX;
            return;
        }
        loop {
            // 1 − u is never 0.
            let multiple = (-(1.0 - self.rng.f64()).ln()).min(LONGEST);
            self.next_ns = self.next_ns.saturating_add((multiple * self.mean_ns) as u64 + 1);
            if self.next_ns >= self.end_ns || self.is_own_turn() {
                break;
            }
        }
    }

    /// Whether the next is due while others of the run's block are silent. What is left of a Poisson process by windows
    /// that were fixed beforehand is one in each of them.
    fn is_own_turn(&self) -> bool {
        self.turns.is_none_or(|(from_ns, turns)| {
            self.next_ns.checked_sub(from_ns).is_none_or(|offset_ns| turns.is_own(offset_ns))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_NS: u64 = 50_000_000;

    fn times(seed: u64, pings: u64) -> Vec<u64> {
        let mut times = PingTimes::between(1_000, 1_000 + pings * MEAN_NS, MEAN_NS, None, seed);
        std::iter::from_fn(|| times.take_due(u64::MAX)).collect()
    }

    #[test]
    fn times_in_between_are_exponential_up_to_the_cut() {
        let times = times(1, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / MEAN_NS as f64).collect();
        // The cut takes e⁻⁵ off the mean.
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((0.98..1.01).contains(&mean), "{mean}");
        for longer_than in [0.1_f64, 0.5, 1.0, 2.0, 4.0] {
            let share = gaps.iter().filter(|gap| **gap > longer_than).count() as f64 / gaps.len() as f64;
            assert!((share - (-longer_than).exp()).abs() < 0.01, "{share} longer than {longer_than}");
        }
        assert!(gaps.iter().all(|gap| *gap <= LONGEST + 1e-6));
    }

    #[test]
    fn they_are_in_phase_with_no_period() {
        let times = times(2, 100_000);
        for period_ns in [5_000_000, 10_000_000, MEAN_NS, 100_000_000] {
            let mut parts = [0u32; 10];
            times.iter().for_each(|due| parts[(due % period_ns * 10 / period_ns) as usize] += 1);
            assert!(parts.iter().all(|count| (9_500..10_500).contains(count)), "{period_ns}: {parts:?}");
        }
    }

    #[test]
    fn the_seed_says_when_and_nothing_is_due_before_or_after() {
        assert_eq!(times(3, 100), times(3, 100));
        assert_ne!(times(3, 100), times(4, 100));
        let mut times = PingTimes::between(1_000, 1_000 + 100 * MEAN_NS, MEAN_NS, None, 3);
        let first = times.next_ns().unwrap();
        assert!(first > 1_000 && times.take_due(first - 1).is_none() && times.take_due(first) == Some(first));
        while times.take_due(u64::MAX).is_some_and(|due| due < 1_000 + 100 * MEAN_NS) {}
        assert_eq!(times.next_ns(), None);
    }

    #[test]
    fn in_a_closed_loop_a_ping_waits_for_the_answer_to_the_last() {
        let mut times = PingTimes::between(1_000, 1_000 + 4 * MEAN_NS, MEAN_NS, None, 3).in_closed_loop();
        let first = times.take_due(u64::MAX).unwrap();
        assert!(first > 1_000 && times.next_ns().is_none() && times.take_due(u64::MAX).is_none());
        times.answered(first + 9);
        assert_eq!(times.next_ns(), Some(first + 9 + MEAN_NS));
        assert_eq!(times.take_due(first + 9 + MEAN_NS), Some(first + 9 + MEAN_NS));
        times.answered(1_000 + 3 * MEAN_NS);
        assert_eq!(times.next_ns(), None, "the end comes first");
    }

    #[test]
    fn a_run_pings_in_its_turns_alone_and_before_they_begin() {
        let turns = Turns { own: 1, of: 3, length_ms: 100 };
        let (begin_ns, end_ns) = (1_000_000_000, 31_000_000_000);
        let mut times = PingTimes::between(0, end_ns, 5_000_000, Some((begin_ns, turns)), 4);
        let times: Vec<u64> = std::iter::from_fn(|| times.take_due(u64::MAX)).collect();
        let (before, after): (Vec<u64>, Vec<u64>) = times.into_iter().partition(|due_ns| *due_ns < begin_ns);
        assert!((120..280).contains(&before.len()), "{}", before.len());
        assert!(after.iter().all(|due_ns| turns.is_own(due_ns - begin_ns)));
        // 90 of each 300 ms, a ping every 5 ms.
        assert!((1_600..2_000).contains(&after.len()), "{}", after.len());
    }
}
