//! Runs that go side by side and take turns at the load: what one of them may send, and when.
//!
//! A machine whose speed changes within seconds does so for all of them alike, because each has its turn several times a
//! second. Whose turn it is not is silent, connected and ready.

use serde::{Deserialize, Serialize};

const MS: u64 = 1_000_000;
/// Of how many parts of a turn the last one is silent: what was sent before is delivered within the turn.
const PARTS: u64 = 10;
/// Shortest and longest turn, ms.
pub const LENGTH_MS: [u64; 2] = [20, 10_000];
/// Turns that each run has in its load phase at least.
pub const TURNS_MIN: u64 = 5;

/// A run's turns, counted from the beginning of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// Which of the runs this is, from 0.
    pub own: u32,
    /// How many there are.
    pub of: u32,
    /// How long a turn is, ms.
    pub length_ms: u64,
}

impl Turns {
    /// Whether something may be sent so long after the beginning of the warm-up.
    pub fn is_own(&self, offset_ns: u64) -> bool {
        let length_ns = self.length_ms * MS;
        offset_ns / length_ns % u64::from(self.of) == u64::from(self.own) && offset_ns % length_ns < self.sending_ns()
    }

    /// When something may be sent next, so long after the beginning of the warm-up: at once in its own turn.
    pub fn next_own_ns(&self, offset_ns: u64) -> u64 {
        if self.is_own(offset_ns) {
            return offset_ns;
        }
        let (length_ns, of) = (self.length_ms * MS, u64::from(self.of));
        let turn = offset_ns / length_ns + 1;
        (turn + (u64::from(self.own) + of - turn % of) % of) * length_ns
    }

    /// The share of the time in which something may be sent.
    pub fn share(&self) -> f64 {
        self.sending_ns() as f64 / (self.length_ms * MS * u64::from(self.of)) as f64
    }

    /// How the intensity changes over a time: lengths in ns, with the factor of each.
    pub fn parts(&self, total_ns: u64) -> Vec<(u64, f64)> {
        let length_ns = self.length_ms * MS;
        let round_ns = length_ns * u64::from(self.of);
        let before_ns = length_ns * u64::from(self.own);
        let mut parts = Vec::new();
        let mut left_ns = total_ns;
        let mut add = |length_ns: u64, factor: f64| {
            let length_ns = length_ns.min(left_ns);
            left_ns -= length_ns;
            parts.push((length_ns, factor));
            left_ns > 0
        };
        add(before_ns, 0.0);
        while add(self.sending_ns(), 1.0) && add(round_ns - self.sending_ns(), 0.0) {}
        parts.retain(|(length_ns, _)| *length_ns > 0);
        parts
    }

    /// For how much of its turn a run sends, ns.
    fn sending_ns(&self) -> u64 {
        self.length_ms * MS / PARTS * (PARTS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(own: u32) -> Turns {
        Turns { own, of: 3, length_ms: 100 }
    }

    #[test]
    fn one_sends_at_a_time_and_all_equally_long() {
        let mut counts = [0; 3];
        for offset_ms in 0..3_000 {
            let whose: Vec<u32> = (0..3).filter(|own| turns(*own).is_own(offset_ms * MS)).collect();
            assert!(whose.len() <= 1, "{offset_ms}: {whose:?}");
            whose.iter().for_each(|own| counts[*own as usize] += 1);
        }
        assert_eq!(counts, [900; 3]);
        assert_eq!(turns(2).share(), 0.3);
        assert!(turns(1).is_own(100 * MS) && turns(1).is_own(189 * MS) && !turns(1).is_own(190 * MS));
    }

    #[test]
    fn the_next_turn_is_the_first_instant_that_is_its_own() {
        for own in 0..3 {
            for offset_ms in 0..700 {
                let next = turns(own).next_own_ns(offset_ms * MS);
                let first = (offset_ms..).find(|ms| turns(own).is_own(ms * MS)).unwrap();
                assert_eq!(next, first * MS, "{own} at {offset_ms} ms");
            }
        }
    }

    #[test]
    fn parts_say_the_same_and_are_as_long_as_they_are_to_be() {
        for total_ms in [1, 50, 250, 1_000, 6_400] {
            for own in 0..3 {
                let parts = turns(own).parts(total_ms * MS);
                assert_eq!(parts.iter().map(|(length_ns, _)| length_ns).sum::<u64>(), total_ms * MS);
                let mut from_ns = 0;
                for (length_ns, factor) in parts {
                    for at_ns in [from_ns, from_ns + length_ns - 1] {
                        assert_eq!(turns(own).is_own(at_ns), factor > 0.0, "{own} of {total_ms} ms at {at_ns}");
                    }
                    from_ns += length_ns;
                }
            }
        }
    }
}
