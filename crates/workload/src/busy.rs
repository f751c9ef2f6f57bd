//! How busy the threads of the load were: the one that was busiest, in its busiest second.
//!
//! A thread that is full for a second holds up what comes to it then, however idle the others are and the rest of the
//! run. So each thread looks at its own CPU time over windows of a second that slide through the load phase, and of all
//! threads the busiest window is kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

/// Length of a window, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// Time between two readings at least, ns: a window begins and ends at most so much beside a second that is full.
const STEP_NS: u64 = 20_000_000;

/// What a thread of the load does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadThread {
    /// An event loop of clients.
    Clients,
    /// It receives what clients publish upstream.
    Collector,
    /// It publishes to all clients.
    Feeder,
    /// It pings.
    Prober,
    /// It feeds the subject.
    BackEnd,
}

impl LoadThread {
    /// For people: `the prober`.
    pub fn described(self, number: u32) -> String {
        match self {
            Self::Clients => format!("event loop {number}"),
            Self::Collector => "the collector".to_owned(),
            Self::Feeder => "the feeder".to_owned(),
            Self::Prober => "the prober".to_owned(),
            Self::BackEnd => "the back end".to_owned(),
        }
    }
}

/// The second of the load phase in which a thread of the load was busiest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BusiestSecond {
    /// What the thread does.
    pub thread: LoadThread,
    /// Which of its kind, from 0 over all workers.
    pub number: u32,
    /// When the second began, ns after the load phase did.
    pub from_ns: u64,
    /// How long it was, ns: a second or little more; less where the load phase is shorter.
    pub span_ns: u64,
    /// CPU time of the thread in it, ns.
    pub cpu_ns: u64,
}

impl BusiestSecond {
    /// CPU, per cent of one core.
    pub fn percent(&self) -> f64 {
        self.cpu_ns as f64 * 100.0 / self.span_ns.max(1) as f64
    }

    /// The busier of two.
    pub fn max(self, other: Self) -> Self {
        // Exact, and total: which of two equal ones is kept must not depend on who was merged first.
        let share = |own: &Self, other: &Self| u128::from(own.cpu_ns) * u128::from(other.span_ns);
        let order = share(&self, &other).cmp(&share(&other, &self));
        let place = |one: &Self| (one.thread, one.number, one.from_ns, one.span_ns, one.cpu_ns);
        if order.then_with(|| place(&other).cmp(&place(&self))) == Ordering::Less { other } else { self }
    }

    /// The busier of two, where there are any.
    pub fn busier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        }
    }
}

/// One thread's readings of its own CPU clock.
#[derive(Debug)]
pub struct BusyWatch {
    thread: LoadThread,
    number: u32,
    /// The load phase; empty until it is known.
    load_ns: Range<u64>,
    next_ns: u64,
    /// Instant and CPU time: the last that is a window or more ago, and all since then. At most 52 of 16 bytes.
    readings: VecDeque<(u64, u64)>,
    first: Option<(u64, u64)>,
    busiest: Option<BusiestSecond>,
}

impl BusyWatch {
    /// Of a thread that has not looked yet.
    pub fn new(thread: LoadThread, number: u32) -> Self {
        let (readings, load_ns) = (VecDeque::new(), 0..0);
        Self { thread, number, load_ns, next_ns: u64::MAX, readings, first: None, busiest: None }
    }

    /// Learns when the load phase is.
    pub fn set_load(&mut self, load_ns: Range<u64>) {
        self.next_ns = load_ns.start;
        self.load_ns = load_ns;
    }

    /// Whether the thread is to look at its CPU clock: cheap, to be asked in every turn.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Takes a reading. Those outside of the load phase count for nothing.
    #[cold]
    pub fn note(&mut self, now_ns: u64, cpu_ns: u64) {
        if now_ns >= self.load_ns.end {
            self.next_ns = u64::MAX;
            return;
        }
        self.next_ns = now_ns + STEP_NS;
        self.first.get_or_insert((now_ns, cpu_ns));
        self.readings.push_back((now_ns, cpu_ns));
        while self.readings.get(1).is_some_and(|(t_ns, _)| t_ns + WINDOW_NS <= now_ns) {
            self.readings.pop_front();
        }
        if let Some(&begin) = self.readings.front()
            && begin.0 + WINDOW_NS <= now_ns
        {
            self.close(begin, (now_ns, cpu_ns));
        }
    }

    fn close(&mut self, (from_ns, cpu_from): (u64, u64), (to_ns, cpu_to): (u64, u64)) {
        let window = BusiestSecond {
            thread: self.thread,
            number: self.number,
            from_ns: from_ns - self.load_ns.start,
            span_ns: to_ns - from_ns,
            cpu_ns: cpu_to.saturating_sub(cpu_from),
        };
        self.busiest = BusiestSecond::busier(self.busiest, Some(window));
    }

    /// The busiest window. Of a load phase shorter than a window it is all that was seen, if that is most of it.
    pub fn finish(mut self) -> Option<BusiestSecond> {
        if let (None, Some(first), Some(&last)) = (self.busiest, self.first, self.readings.back())
            && 2 * (last.0 - first.0) > self.load_ns.end - self.load_ns.start
        {
            self.close(first, last);
        }
        self.busiest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// A thread that looks after so many ms each time, and is full in a span of the load phase and idle else.
    fn seen(looks_ms: &[u64], full: Range<u64>, load_ms: u64) -> Option<BusiestSecond> {
        let mut watch = BusyWatch::new(LoadThread::Clients, 3);
        let start = 5_000 * MS;
        watch.set_load(start..start + load_ms * MS);
        let cpu_at = |now: u64| now.clamp(start + full.start, start + full.end) - start - full.start;
        let (mut now, mut looks) = (start - 50 * MS, looks_ms.iter().cycle());
        while now < start + (load_ms + 100) * MS {
            if watch.is_due(now) {
                watch.note(now, cpu_at(now));
            }
            now += looks.next().copied().unwrap_or(1) * MS;
        }
        watch.finish()
    }

    #[test]
    fn one_full_second_among_ten_is_seen() {
        let found = seen(&[1], 4_337 * MS..5_337 * MS, 10_000).unwrap();
        assert!(found.percent() > 96.0, "{found:?}");
        assert!(found.from_ns.abs_diff(4_337 * MS) <= 2 * STEP_NS && found.number == 3, "{found:?}");
        assert!(seen(&[1], 4_337 * MS..4_837 * MS, 10_000).unwrap().percent() < 51.0, "half a second");
        assert_eq!(seen(&[100], 0..0, 10_000).unwrap().cpu_ns, 0);
    }

    #[test]
    fn what_is_outside_of_the_load_phase_does_not_count() {
        assert_eq!(seen(&[1], 10_000 * MS..11_000 * MS, 10_000).unwrap().cpu_ns, 0);
        assert_eq!(BusyWatch::new(LoadThread::Prober, 0).finish(), None, "it never learned the phases");
    }

    #[test]
    fn a_short_load_is_one_window() {
        let found = seen(&[1], 0..300 * MS, 300).unwrap();
        assert!(found.percent() > 99.0 && found.span_ns > 250 * MS, "{found:?}");
        assert_eq!(seen(&[400], 0..300 * MS, 300), None, "a single look tells nothing");
    }

    proptest! {
        #[test]
        fn a_full_second_is_seen_wherever_it_is(from_ms in 0u64..3_900, looks in prop::collection::vec(1u64..8, 1..6)) {
            let found = seen(&looks, from_ms * MS..(from_ms + 1_100) * MS, 5_050).unwrap();
            prop_assert!(found.percent() >= 95.0, "{:?}", found);
        }

        #[test]
        fn the_busier_of_two_is_the_same_in_any_order(spans in prop::collection::vec((1u64..5, 0u64..5, 0u32..3), 2..6)) {
            let all: Vec<BusiestSecond> = spans.iter().map(|&(span_ns, cpu_ns, number)| {
                BusiestSecond { thread: LoadThread::Clients, number, from_ns: 0, span_ns, cpu_ns }
            }).collect();
            let one = all.iter().copied().reduce(BusiestSecond::max);
            let other = all.iter().rev().copied().reduce(BusiestSecond::max);
            prop_assert_eq!(one, other);
        }
    }
}
