//! One loop's seconds, handed in as they end.

use crate::run_state::RunState;
use pushlab_stats::histogram::Histogram;

const SECOND_NS: u64 = 1_000_000_000;

/// One loop's part of the second that runs.
#[derive(Debug)]
pub(crate) struct LoopSeconds {
    index: usize,
    end_ns: u64,
    published: u64,
    latency: Histogram,
    /// Allocated with the first; most scenarios have none.
    latency_own: Option<Box<Histogram>>,
}

impl LoopSeconds {
    pub fn new(origin_ns: u64) -> Self {
        Self { index: 0, end_ns: origin_ns + SECOND_NS, published: 0, latency: Histogram::default(), latency_own: None }
    }

    #[inline]
    pub fn delivered(&mut self, now_ns: u64, latency_ns: u64, is_own: bool, state: &RunState) {
        self.pass_time(now_ns, state);
        self.latency.record(latency_ns);
        if is_own {
            self.latency_own.get_or_insert_default().record(latency_ns);
        }
    }

    pub fn published(&mut self, now_ns: u64, state: &RunState) {
        self.pass_time(now_ns, state);
        self.published += 1;
    }

    #[inline]
    pub fn pass_time(&mut self, now_ns: u64, state: &RunState) {
        while now_ns >= self.end_ns {
            self.finish(state);
            self.index += 1;
            self.end_ns += SECOND_NS;
        }
    }

    #[cold]
    pub fn finish(&mut self, state: &RunState) {
        state.with_seconds(|table| {
            table.hand_in(self.index, self.published, Some(&self.latency), self.latency_own.as_deref());
        });
        self.published = 0;
        if !self.latency.is_empty() {
            self.latency.clear();
        }
        if let Some(own) = self.latency_own.as_deref_mut().filter(|own| !own.is_empty()) {
            own.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::result::Second;

    #[test]
    fn seconds_of_several_loops_are_merged_not_averaged() {
        let state = RunState::new(1_000, 2);
        let mut loops = [LoopSeconds::new(1_000), LoopSeconds::new(1_000)];
        for i in 0..100u64 {
            loops[0].delivered(2_000, 1_000_000, false, &state);
            loops[usize::from(i < 10)].delivered(3_000, 9_000_000, i < 20, &state);
        }
        loops[0].published(1_000 + SECOND_NS, &state);
        loops[1].pass_time(1_000 + 3 * SECOND_NS, &state);
        loops[0].pass_time(1_000 + 2 * SECOND_NS, &state);
        for part in &mut loops {
            part.finish(&state);
        }
        let all = || state.with_seconds(|table| table.take_front());
        let seconds: Vec<Second> = std::iter::from_fn(all).map(|(_, second)| second.summary()).collect();
        assert_eq!(seconds.iter().map(|s| s.delivered).collect::<Vec<_>>(), [200, 0, 0, 0]);
        assert_eq!(seconds.iter().map(|s| s.published).collect::<Vec<_>>(), [0, 1, 0, 0]);
        let median = seconds[0].latency_median_ns.unwrap();
        assert!((1_000_000..1_002_000).contains(&median), "{median}");
        assert!(seconds[0].latency_p99_ns.unwrap() >= 9_000_000);
        let own = seconds[0].latency_own_median_ns.unwrap();
        assert!((9_000_000..9_010_000).contains(&own), "those of both loops, and no others: {own}");
        assert_eq!((seconds[1].latency_median_ns, seconds[1].latency_own_median_ns), (None, None));
    }
}
