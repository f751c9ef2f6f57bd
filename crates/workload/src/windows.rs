//! Counts of the whole run and of its phases: one count that only grows, and what it was when each phase began.

use crate::marks::Marks;
use crate::plan::Plan;
use crate::result::{ByteUses, ClientBytes, Part};
use crate::scenario::Scenario;
use crate::tally::{Tally, TlsBytes};

impl Plan {
    /// Whether the drain's costs count as the load's. Clients that poll at an interval go on polling in the drain, and as
    /// much arrives in the load from before it as is left for the drain. So for them only the load's costs count, over what
    /// arrived in it; except in a storm, whose deliveries all come in the drain.
    pub fn counts_drain(&self) -> bool {
        !self.transport.is_interval_driven() || matches!(self.scenario, Scenario::Storm { .. })
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    tally: Tally,
    tls: TlsBytes,
    requests: u64,
    deliveries: u64,
}

impl Count {
    fn since(&self, earlier: &Self) -> ClientBytes {
        // Below zero only where the window's border cut through what TLS had to add.
        let tls = |now: i64, then: i64| u64::try_from(now - then).unwrap_or(0);
        ClientBytes {
            deliveries: self.deliveries - earlier.deliveries,
            requests: self.requests - earlier.requests,
            down: ByteUses {
                tls: tls(self.tls.read, earlier.tls.read),
                ..self.tally.down.uses_since(&earlier.tally.down)
            },
            up: ByteUses {
                tls: tls(self.tls.written, earlier.tls.written),
                ..self.tally.up.uses_since(&earlier.tally.up)
            },
        }
    }
}

/// Borders at which counts are taken down.
const BORDERS: usize = 5;

/// Counts, and what they were at the borders of idle phase, load and drain.
#[derive(Debug, Default)]
pub struct Windows {
    /// Bytes, from the first connection on.
    pub tally: Tally,
    /// What TLS added to them.
    pub tls: TlsBytes,
    /// HTTP requests, likewise.
    pub requests: u64,
    /// When the idle phase began and the warm-up did, when the load began and ended, when the drain ended.
    at_marks: [Count; BORDERS],
    passed: usize,
    /// Whether `bytes_load` includes the drain.
    counts_drain: bool,
}

impl Windows {
    /// Nothing counted yet.
    pub fn new(counts_drain: bool) -> Self {
        Self { counts_drain, ..Self::default() }
    }

    /// To be called before something is counted: takes down the counts of borders that now lie behind.
    #[inline]
    pub fn pass_time(&mut self, now: u64, marks: &Marks, deliveries: u64) {
        let borders: [u64; BORDERS] =
            [marks.idle_ns, marks.warm_up_ns, marks.load_ns, marks.load_end_ns, marks.after_ns];
        while self.passed < BORDERS && now >= borders[self.passed] {
            self.close_window(deliveries);
        }
    }

    /// Whether what is counted now is of the load phase.
    pub fn is_load(&self) -> bool {
        self.passed == 3
    }

    #[cold]
    fn close_window(&mut self, deliveries: u64) {
        self.at_marks[self.passed] = self.count(deliveries);
        self.passed += 1;
    }

    fn count(&self, deliveries: u64) -> Count {
        Count { tally: self.tally, tls: self.tls, requests: self.requests, deliveries }
    }

    /// Adds what was counted. Windows that have not begun are empty.
    pub fn finish(mut self, deliveries: u64, result: &mut Part) {
        while self.passed < BORDERS {
            self.close_window(deliveries);
        }
        let whole = self.count(deliveries);
        let [idle, warm_up, load, load_end, after] = self.at_marks;
        let opening = idle.since(&Count::default());
        result.bytes_opening += opening.down.total() + opening.up.total();
        result.requests_idle += warm_up.requests - idle.requests;
        result.bytes_whole += whole.since(&Count::default());
        result.bytes_load += if self.counts_drain { after } else { load_end }.since(&load);
        result.requests += load_end.requests - load.requests;
        result.bytes_received += after.tally.down.all - load.tally.down.all;
        result.bytes_received_in_load += load_end.tally.down.all - load.tally.down.all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks =
        Marks { idle_ns: 20, warm_up_ns: 50, load_ns: 100, load_end_ns: 200, after_ns: u64::MAX, end_ns: u64::MAX };

    fn counted(counts_drain: bool) -> Part {
        let mut windows = Windows::new(counts_drain);
        for (deliveries, now) in [10, 30, 99, 100, 199, 200, 300, 301].into_iter().enumerate() {
            // The end of the drain is learned when it has passed.
            let after_ns = if now > 300 { 280 } else { u64::MAX };
            windows.pass_time(now, &Marks { after_ns, ..MARKS }, deliveries as u64);
            windows.requests += 1;
            windows.tally.down.all += now;
            windows.tally.up.all += 1;
            windows.tls.written += if now < 100 { -100 } else { 70 };
        }
        let mut result = Part::default();
        windows.finish(8, &mut result);
        result
    }

    #[test]
    fn each_window_has_what_was_counted_in_it() {
        let result = counted(true);
        assert_eq!((result.requests, result.bytes_received_in_load, result.bytes_received), (2, 299, 799));
        assert_eq!((result.requests_idle, result.bytes_opening), (1, 11));
        let (whole, load) = (result.bytes_whole, result.bytes_load);
        assert_eq!((whole.deliveries, whole.requests, whole.down.total(), whole.up.total()), (8, 8, 1239, 58));
        assert_eq!((whole.up.tls, load.up.tls, whole.down.tls), (50, 280, 0), "what was owed is paid");
        assert_eq!((load.deliveries, load.requests, load.down.total(), load.up.total()), (4, 4, 799, 284));
        let load = counted(false).bytes_load;
        assert_eq!((load.deliveries, load.requests, load.down.total(), load.up.total()), (2, 2, 299, 142), "no drain");
    }

    #[test]
    fn a_run_without_load_has_none() {
        let mut windows = Windows::default();
        windows.pass_time(10, &Marks::UNKNOWN, 0);
        windows.tally.down.all += 5;
        let mut result = Part::default();
        windows.finish(0, &mut result);
        assert_eq!((result.bytes_whole.down.framing, result.bytes_load), (5, ClientBytes::default()));
    }
}
