//! A clock that one thread steers while all others read it.

use std::hint;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Readings that are tried before a reader lets the thread go on that it waits for, which may have lost its core.
const SPINS_MAX: u32 = 64;

/// What a clock shows, as an affine function of what another one shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// At this instant of the other clock, ns,
    pub(crate) from_ns: u64,
    /// it shows this, ns,
    pub(crate) to_ns: u64,
    /// and gains so many ns on each ns of the other.
    pub(crate) rate: f64,
}

impl Line {
    pub(crate) const IDENTITY: Self = Self { from_ns: 0, to_ns: 0, rate: 0.0 };

    /// What it shows when the other clock shows this. Never decreases while the rate is above −1.
    pub(crate) fn at(self, other_ns: u64) -> u64 {
        let since_ns = other_ns.wrapping_sub(self.from_ns).cast_signed();
        let gained_ns = (since_ns as f64 * self.rate) as i64;
        self.to_ns.saturating_add_signed(since_ns.saturating_add(gained_ns))
    }

    /// What the other clock shows when this one shows `ns`, give or take the rounding of [`Self::at`]. An instant that
    /// never comes stays one.
    pub(crate) fn inverse(self, ns: u64) -> u64 {
        let since_ns = i64::try_from(i128::from(ns) - i128::from(self.to_ns)).unwrap_or(i64::MAX);
        let lost_ns = (since_ns as f64 * self.rate / (1.0 + self.rate)) as i64;
        self.from_ns.saturating_add_signed(since_ns.saturating_sub(lost_ns))
    }
}

/// A [`Line`] that is changed as a whole while others read it: a sequence lock, of atomics alone.
///
/// The clock below is read while the lock is seen to be free, and a change begins where the one before it ends. So no
/// reading on any thread is less than one that came before it, until somebody sets the clock.
#[derive(Debug)]
pub(crate) struct Steered {
    /// Odd during a change, 0 before the first.
    version: AtomicU32,
    from_ns: AtomicU64,
    to_ns: AtomicU64,
    /// The rate's bits.
    rate: AtomicU64,
    changing: Mutex<()>,
}

impl Steered {
    /// Shows what the clock below shows.
    pub(crate) const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            from_ns: AtomicU64::new(0),
            to_ns: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Whether it was ever changed: all that a reader pays where it was not.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.version.load(Ordering::Relaxed) != 0
    }

    /// What `read` makes of the line; it may be called more than once, and its last call was during no change.
    pub(crate) fn read<T>(&self, read: impl Fn(Line) -> T) -> T {
        let mut tries = 0;
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                let found = read(self.line());
                // What was read above was not written after the version that is read below.
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == version {
                    return found;
                }
            }
            tries += 1;
            if tries >= SPINS_MAX { thread::yield_now() } else { hint::spin_loop() }
        }
    }

    /// Puts another line in place of the one that is there. `next` reads the clock below, if it needs to, while all
    /// readers wait.
    pub(crate) fn change(&self, next: impl FnOnce(Line) -> Line) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Nobody reads the clock below by the old line after `next` has.
        fence(Ordering::SeqCst);
        let line = next(self.line());
        self.from_ns.store(line.from_ns, Ordering::Relaxed);
        self.to_ns.store(line.to_ns, Ordering::Relaxed);
        self.rate.store(line.rate.to_bits(), Ordering::Relaxed);
        // After four thousand million changes it is 2 again, not 0.
        self.version.store(version.wrapping_add(2).max(2), Ordering::Release);
    }

    fn line(&self) -> Line {
        Line {
            from_ns: self.from_ns.load(Ordering::Relaxed),
            to_ns: self.to_ns.load(Ordering::Relaxed),
            rate: f64::from_bits(self.rate.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_line_and_its_inverse_undo_each_other_and_never_go_back() {
        for rate in [-1e-3, -5e-5, 0.0, 3e-7, 1e-3] {
            let line = Line { from_ns: 9_000_000_000_000, to_ns: 4_000_000, rate };
            for since_ns in [-1_000_000, 0, 1, 999, 1_000_000_000, 86_400_000_000_000_i64] {
                let other_ns = line.from_ns.saturating_add_signed(since_ns);
                assert!(line.inverse(line.at(other_ns)).abs_diff(other_ns) <= 2, "{rate} {since_ns}");
                assert!(line.at(other_ns) <= line.at(other_ns + 1), "{rate} {since_ns}");
            }
        }
        let line = Line { from_ns: 10, to_ns: 5, rate: 0.0 };
        assert_eq!((line.at(0), line.inverse(0)), (0, 5));
        assert!(line.inverse(u64::MAX) >= i64::MAX.cast_unsigned(), "what never comes came");
    }

    /// A line that is torn, or by which the clock below is read after it was replaced, shows something earlier or later.
    #[test]
    fn no_thread_sees_the_clock_go_back_while_its_rate_changes() {
        let (steered, begun, latest) = (Steered::new(), Instant::now(), AtomicU64::new(0));
        let below = || begun.elapsed().as_nanos() as u64;
        std::thread::scope(|scope| {
            let reader = || {
                for _ in 0..300_000 {
                    let before = latest.load(Ordering::SeqCst);
                    let now = steered.read(|line| line.at(below()));
                    assert!(now >= before, "{now} after {before}");
                    latest.fetch_max(now, Ordering::SeqCst);
                }
                assert!(latest.load(Ordering::SeqCst) <= 2 * below(), "it ran ahead");
            };
            let readers = [scope.spawn(reader), scope.spawn(reader)];
            let mut rate = 0.5;
            while !readers.iter().all(|reader| reader.is_finished()) {
                rate = -rate;
                steered.change(|line| {
                    let from_ns = below();
                    Line { from_ns, to_ns: line.at(from_ns), rate }
                });
            }
        });
    }
}
