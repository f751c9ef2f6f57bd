//! When those who are sent away come back: not all at once.

use std::time::Duration;

/// Connections a second that every server is taken to be able to accept, though nobody may have asked it to.
const MIN_RATE: u64 = 500;
/// Shortest and longest window that is chosen.
const MIN_WINDOW: Duration = Duration::from_millis(100);
const MAX_WINDOW: Duration = Duration::from_secs(60);
/// The fraction of the golden ratio, of 2⁶⁴: the fractions of its multiples lie evenly in a window however many there are
/// (Knuth, The Art of Computer Programming, volume 3, section 6.4, theorem S).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The window over which so many clients come back, where the most connections that were accepted in any second were
/// `best_second`: twice as long as it would take at that rate, since who is back has to be served as well.
pub fn window(clients: usize, best_second: u64) -> Duration {
    let rate = best_second.max(MIN_RATE) as f64 / 2.0;
    Duration::from_secs_f64(clients as f64 / rate).clamp(MIN_WINDOW, MAX_WINDOW)
}

/// Instants of a window, one for each client. Any number of them in a row is spread as evenly as it can be, where random
/// ones would come in clusters.
#[derive(Debug, Clone)]
pub struct Spread {
    window: Duration,
    place: u64,
}

impl Spread {
    /// Over this window. Several of them, each with a number of its own, together are spread evenly as well.
    pub fn new(window: Duration, number: usize) -> Self {
        Self { window, place: (number as u64).wrapping_mul(GOLDEN.rotate_left(32)) }
    }

    /// The next one, in milliseconds after the window's beginning.
    pub fn next_ms(&mut self) -> u64 {
        self.place = self.place.wrapping_add(GOLDEN);
        // Below the window, which has fewer than 2⁶⁴ of them.
        ((u128::from(self.place) * self.window.as_millis()) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_follows_from_what_was_accepted_within_bounds() {
        for (clients, best_second, milliseconds) in
            [(0, 0, 100), (10, 7, 100), (5_000, 0, 20_000), (5_000, 5_000, 2_000), (1_000_000, 5_000, 60_000)]
        {
            assert_eq!(window(clients, best_second), Duration::from_millis(milliseconds), "{clients} {best_second}");
        }
    }

    /// However many clients there are, and on however many event loops, each part of the window gets its share.
    #[test]
    fn every_part_of_the_window_gets_its_share() {
        for (loops, clients) in [(1, 10), (1, 1000), (1, 5000), (3, 500), (8, 1000)] {
            let mut parts = [0; 10];
            for number in 0..loops {
                let mut spread = Spread::new(Duration::from_secs(2), number);
                for _ in 0..clients {
                    let after_ms = spread.next_ms();
                    assert!(after_ms < 2000);
                    parts[after_ms as usize / 200] += 1;
                }
            }
            let share = loops * clients / 10;
            let allowed = 2 * loops + share / 50;
            assert!(parts.iter().all(|&n| share.abs_diff(n) <= allowed), "{loops} loops, {clients} each: {parts:?}");
        }
        assert_eq!(Spread::new(Duration::ZERO, 0).next_ms(), 0);
    }
}
