//! The run second by second, put together from all loops without averaging quantiles.

use crate::run_state::RunState;
use pushlab_stats::histogram::Histogram;
use pushlab_workload::result::Second;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// Most seconds of a series, about 19 hours; later ones are not kept.
pub const MAX_SECONDS: usize = 1 << 16;

/// Collects the seconds of all loops. Only seconds that some loop has not handed in yet hold a histogram
/// (216 KiB each), and loops hand in at least ten times a second.
#[derive(Debug)]
pub(crate) struct SecondTable {
    loops: u32,
    done: Vec<Second>,
    open: VecDeque<OpenSecond>,
}

#[derive(Debug)]
struct OpenSecond {
    second: Second,
    latency: Option<Box<Histogram>>,
    latency_own: Option<Box<Histogram>>,
    loops_left: u32,
}

impl SecondTable {
    pub fn new(loops: u32) -> Self {
        Self { loops, done: Vec::new(), open: VecDeque::new() }
    }

    /// Takes one loop's part of the second `index`; every loop hands in every second once, in order.
    fn hand_in(&mut self, index: usize, part: &LoopSeconds) {
        let LoopSeconds { published, latency, latency_own, .. } = part;
        if index >= MAX_SECONDS {
            return;
        }
        let place = index.checked_sub(self.done.len()).expect("a second is closed only when all loops handed it in");
        while self.open.len() <= place {
            let second =
                OpenSecond { second: Second::default(), latency: None, latency_own: None, loops_left: self.loops };
            self.open.push_back(second);
        }
        let open = &mut self.open[place];
        open.second.published += published;
        if !latency.is_empty() {
            open.second.delivered += latency.count();
            open.latency.get_or_insert_default().merge(latency);
        }
        if let Some(own) = latency_own.as_deref().filter(|own| !own.is_empty()) {
            open.latency_own.get_or_insert_default().merge(own);
        }
        open.loops_left -= 1;
        while self.open.front().is_some_and(|open| open.loops_left == 0) {
            self.close_front();
        }
    }

    fn close_front(&mut self) {
        let Some(OpenSecond { mut second, latency, latency_own, .. }) = self.open.pop_front() else { return };
        if let Some(latency) = latency {
            second.latency_median_ns = latency.quantile(0.5);
            second.latency_p99_ns = latency.quantile(0.99);
        }
        second.latency_own_median_ns = latency_own.and_then(|own| own.quantile(0.5));
        self.done.push(second);
    }

    /// Median and 99th percentile of the latest closed second, ns. No second is the latest once the series is full.
    pub fn latest_latency(&self) -> (Option<u64>, Option<u64>) {
        let latest = self.done.last().filter(|_| self.done.len() < MAX_SECONDS);
        latest.map_or((None, None), |second| (second.latency_median_ns, second.latency_p99_ns))
    }

    /// All seconds, when no more are to come.
    pub fn finish(&mut self) -> Vec<Second> {
        while !self.open.is_empty() {
            self.close_front();
        }
        std::mem::take(&mut self.done)
    }
}

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
        state.with_seconds(|table| table.hand_in(self.index, self));
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
        let (median, p99) = state.with_seconds(|table| table.latest_latency());
        assert!(median.unwrap() < 1_002_000 && p99.unwrap() >= 9_000_000, "of the first second: {median:?}, {p99:?}");
        loops[0].pass_time(1_000 + 2 * SECOND_NS, &state);
        assert_eq!(state.with_seconds(|table| table.latest_latency()), (None, None), "nothing was delivered in it");
        for part in &mut loops {
            part.finish(&state);
        }
        let seconds = state.with_seconds(SecondTable::finish);
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
