//! The clock of a browser's page put onto that of the worker's machine, from round trips alone.

/// What is known of how far the machine's clock is ahead of a page's `performance.now()`.
///
/// A question cannot be read before it was sent, nor an answer come before it was written: each round trip bounds the
/// difference from both sides, and all bounds hold together. Both are `CLOCK_MONOTONIC` on Linux, so that the difference
/// stays what it is, unlike that of two machines ([`pushlab_workload::clock`]): the oldest round trip says as much as the
/// newest. Bounds that contradict each other show that it did not stay, and count as error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageClock {
    /// The difference is at least this, ns.
    low_ns: i64,
    /// And at most this.
    high_ns: i64,
    /// Round trips so far.
    pub round_trips: u32,
}

impl Default for PageClock {
    fn default() -> Self {
        Self { low_ns: i64::MIN, high_ns: i64::MAX, round_trips: 0 }
    }
}

impl PageClock {
    /// A question that the page sent then was read now.
    pub fn has_asked(&mut self, sent_ms: f64, read_ns: u64) {
        self.high_ns = self.high_ns.min(signed(read_ns).saturating_sub(page_ns(sent_ms)));
    }

    /// An answer that was written then came to the page.
    pub fn was_answered(&mut self, written_ns: u64, came_ms: f64) {
        self.low_ns = self.low_ns.max(signed(written_ns).saturating_sub(page_ns(came_ms)));
        self.round_trips += 1;
    }

    /// How far off an instant may be, ns; the greatest number before the first round trip.
    pub fn error_ns(&self) -> u64 {
        if self.round_trips == 0 { u64::MAX } else { self.high_ns.abs_diff(self.low_ns) / 2 }
    }

    /// An instant of the page on the worker's clock, ns.
    pub fn to_worker(self, page_ms: f64) -> u64 {
        u64::try_from(self.ahead_ns().saturating_add(page_ns(page_ms))).unwrap_or(0)
    }

    /// An instant of the worker on the page's clock, ms.
    pub fn to_page(self, worker_ns: u64) -> f64 {
        signed(worker_ns).saturating_sub(self.ahead_ns()) as f64 / 1e6
    }

    fn ahead_ns(&self) -> i64 {
        match self.round_trips {
            // What was asked and not answered yet bounds it from above alone.
            0 => self.high_ns,
            _ => self.low_ns.midpoint(self.high_ns),
        }
    }
}

/// Milliseconds in ns; what no clock shows becomes the nearest that one does.
fn page_ns(ms: f64) -> i64 {
    const MOST: f64 = 4e18;
    (ms * 1e6).clamp(-MOST, MOST) as i64
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_error_holds_whatever_the_delays(
            ahead_ns in 0u64..1 << 60,
            trips in prop::collection::vec((1u64..5_000_000, 1u64..5_000_000, 0u64..2_000_000), 1..40),
        ) {
            let mut clock = PageClock::default();
            prop_assert_eq!(clock.error_ns(), u64::MAX);
            let mut page_ns = 1_000_000u64;
            let mut least = (u64::MAX, u64::MAX);
            for (there, back, pause) in trips {
                let (read, sent_ms) = (page_ns + ahead_ns + there, page_ns as f64 / 1e6);
                clock.has_asked(sent_ms, read);
                page_ns += there + back;
                clock.was_answered(read, page_ns as f64 / 1e6);
                page_ns += pause;
                least = (least.0.min(there), least.1.min(back));
            }
            // A nanosecond of a double, and half of one of the middle.
            prop_assert!(clock.error_ns() <= (least.0 + least.1) / 2 + 2);
            let found = clock.to_worker(page_ns as f64 / 1e6);
            prop_assert!(found.abs_diff(page_ns + ahead_ns) <= clock.error_ns() + 4);
            prop_assert!((clock.to_page(found) * 1e6 - page_ns as f64).abs() <= 300.0);
        }
    }

    #[test]
    fn clocks_that_drift_apart_show_as_error() {
        let mut clock = PageClock::default();
        clock.has_asked(1.0, 5_000_000);
        clock.was_answered(5_000_000, 1.2);
        assert!(clock.error_ns() <= 100_000);
        // The page's clock has lost 3 ms.
        clock.has_asked(97.0, 104_000_000);
        clock.was_answered(104_000_000, 97.2);
        assert!(clock.error_ns() >= 1_400_000, "{}", clock.error_ns());
    }

    #[test]
    fn nonsense_does_no_harm() {
        let mut clock = PageClock::default();
        clock.has_asked(f64::MAX, 5);
        clock.was_answered(u64::MAX, f64::MIN);
        clock.was_answered(0, f64::MAX);
        let _ = (clock.error_ns(), clock.to_worker(f64::MIN), clock.to_worker(f64::NAN), clock.to_page(u64::MAX));
    }
}
