//! Where what is periodic begins: nowhere twice, and over the repeats everywhere.
//!
//! Two things that happen at whole multiples of one another's period meet always or never, and what is measured then is
//! that. So every period of a run begins at an instant of its own. The instants are drawn, but not freely: over the `R`
//! repeats of a measurement each of the `R` equal parts of the period has one, in an order that is drawn too (a Latin
//! hypercube; McKay, Beckman and Conover 1979). So no run is in a phase that the next ones are in as well, and the mean
//! over the repeats varies less than that of free draws.

use crate::shuffle::Shuffle;
use serde::{Deserialize, Serialize};

/// Which repetition of a measurement a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// From 1.
    pub number: u32,
    /// How many there are; at least 1.
    pub of: u32,
    /// The same for all of them.
    pub seed: u64,
}

/// What has a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Periodic {
    /// Polls of clients that ask at an interval.
    Polls,
    /// Publications on a schedule: of clients, the back end or the feeder.
    Publications,
    /// Readings of what the subject uses.
    SubjectSamples,
    /// Readings of what the generator uses.
    GeneratorSamples,
    /// Readings of the server's own counters.
    Counters,
}

impl Periodic {
    /// Everything that has one.
    pub const ALL: [Self; 5] =
        [Self::Polls, Self::Publications, Self::SubjectSamples, Self::GeneratorSamples, Self::Counters];

    /// What makes its draws others than those of the rest.
    fn salt(self) -> u64 {
        // 2⁶⁴ divided by the golden ratio, as in SplitMix64.
        (self as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl Repetition {
    /// How long after the beginning of its period something begins in a run of this seed, ns; less than the period.
    pub fn phase_ns(&self, what: Periodic, run_seed: u64, period_ns: u64) -> u64 {
        let of = self.of.max(1);
        let number = self.number.saturating_sub(1);
        // Whoever repeats more often than was planned goes round once more, in another order.
        let (round, place) = (u64::from(number / of), number % of);
        let part = u64::from(Shuffle::new(of, self.seed ^ what.salt()).at(round, place));
        let border = |part: u64| (u128::from(period_ns) * u128::from(part) / u128::from(of)) as u64;
        let (from_ns, to_ns) = (border(part), border(part + 1));
        from_ns + fastrand::Rng::with_seed(run_seed ^ what.salt()).u64(0..(to_ns - from_ns).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn over_the_repeats_every_part_of_the_period_is_used_once(of in 1u32..60, seed: u64, period_ns in 1_000u64..1 << 40) {
            for what in Periodic::ALL {
                let mut parts: Vec<u32> = (1..=of).map(|number| {
                    let phase_ns = Repetition { number, of, seed }.phase_ns(what, seed ^ u64::from(number), period_ns);
                    assert!(phase_ns < period_ns);
                    // The last whose border is at or before it.
                    (0..of).rev().find(|part| u128::from(period_ns) * u128::from(*part) / u128::from(of) <= u128::from(phase_ns)).unwrap()
                }).collect();
                parts.sort_unstable();
                prop_assert_eq!(parts, (0..of).collect::<Vec<_>>(), "{:?}", what);
            }
        }

        #[test]
        fn a_period_of_nothing_has_a_phase_too(number: u32, of: u32, seed: u64, period_ns in 0u64..4) {
            let phase_ns = Repetition { number, of, seed }.phase_ns(Periodic::Polls, 1, period_ns);
            prop_assert!(phase_ns <= period_ns);
        }
    }

    #[test]
    fn each_has_an_order_of_its_own_and_a_place_within_that_the_run_gives() {
        let phases = |what, run_seed| -> Vec<u64> {
            (1..=10).map(|number| Repetition { number, of: 10, seed: 7 }.phase_ns(what, run_seed, 10_000)).collect()
        };
        let parts = |phases: Vec<u64>| phases.into_iter().map(|phase| phase / 1_000).collect::<Vec<_>>();
        let orders: std::collections::HashSet<Vec<u64>> = Periodic::ALL.map(|what| parts(phases(what, 1))).into();
        assert_eq!(orders.len(), Periodic::ALL.len());
        assert_eq!(parts(phases(Periodic::Polls, 1)), parts(phases(Periodic::Polls, 2)), "the part is the repeat's");
        assert_ne!(phases(Periodic::Polls, 1), phases(Periodic::Polls, 2), "the place within is the run's");
        let beyond = Repetition { number: 14, of: 10, seed: 7 }.phase_ns(Periodic::Polls, 1, 10_000);
        assert!(beyond < 10_000, "a repeat more than was planned");
    }
}
