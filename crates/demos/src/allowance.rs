//! How often somebody may do something.

use std::time::{Duration, Instant};

/// So many at once, and then one for each interval that passes (a token bucket). Takes 24 bytes.
#[derive(Debug, Clone)]
pub struct Allowance {
    interval: Duration,
    burst: u32,
    /// When everything that was taken will have come back.
    whole_at: Instant,
}

impl Allowance {
    /// An allowance that is whole. `burst` is at least 1.
    pub fn new(burst: u32, interval: Duration, now: Instant) -> Self {
        Self { interval, burst: burst.max(1), whole_at: now }
    }

    /// Takes one, or says after which time there will be one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let whole_at = self.whole_at.max(now) + self.interval;
        let missing = whole_at - now;
        let most = self.interval * self.burst;
        if missing > most {
            return Err(missing - most);
        }
        self.whole_at = whole_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_a_burst_and_then_one_for_each_interval() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = Allowance::new(3, second, start);
        for _ in 0..3 {
            assert_eq!(allowance.take(start), Ok(()));
        }
        assert_eq!(allowance.take(start), Err(second));
        assert_eq!(allowance.take(start + second / 4), Err(second * 3 / 4), "refused requests cost nothing");
        assert_eq!(allowance.take(start + second), Ok(()));
        assert_eq!(allowance.take(start + second), Err(second));
        let later = start + second * 100;
        let taken = (0..10).filter(|_| allowance.take(later).is_ok()).count();
        assert_eq!(taken, 3, "no more than the burst is saved up");
    }
}
