//! Quantiles over what was expected, of which some may never have come.
//!
//! A quantile of what came makes whoever loses the slowest messages look fast. Here what did not come is beyond every
//! time that was measured, so a quantile that falls among it is not reached: it is longer than anybody waited.

use crate::histogram::{Histogram, ms};
use std::fmt;
use std::sync::Arc;

/// A quantile that figures are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// Below 1,000.
    per_mille: u64,
}

impl Quantile {
    /// Half of what was expected takes no longer.
    pub const MEDIAN: Self = Self { per_mille: 500 };
    /// Of a hundred that were expected, one takes longer.
    pub const P99: Self = Self { per_mille: 990 };
    /// Of a thousand that were expected, one takes longer.
    pub const P999: Self = Self { per_mille: 999 };

    /// Independent measurements that the figure needs, 10/(1−q): then ten of them lie beyond it on average, and their
    /// number varies by a third.
    pub fn independent_min(self) -> u64 {
        10_000 / (1_000 - self.per_mille)
    }

    /// Independent measurements that one block's own value needs, 1/(1−q). It is one of several from whose spread an
    /// interval is made: one lies beyond it, so it is not just the block's largest.
    pub fn independent_min_of_block(self) -> u64 {
        1_000 / (1_000 - self.per_mille)
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MEDIAN { f.write_str("median") } else { write!(f, "p{}", self.per_mille as f64 / 10.0) }
    }
}

/// Why there is no such quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// It falls among what never came.
    NotReached {
        /// Which.
        quantile: Quantile,
        /// What never came.
        missing: u64,
        /// Out of how much.
        expected: u64,
    },
    /// Too little that is independent was measured.
    TooFew {
        /// Which.
        quantile: Quantile,
        /// How much it was.
        independent: u64,
        /// How much it takes.
        needed: u64,
    },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached { quantile, missing, expected } => {
                let (share, allowed) =
                    (*missing as f64 * 100.0 / *expected as f64, (1_000 - quantile.per_mille) as f64 / 10.0);
                write!(
                    f,
                    "{missing} of {expected} never came, {share:.1} %; a {quantile} is there where it is below {allowed} %"
                )
            }
            Self::TooFew { quantile, independent, needed } => {
                write!(f, "a {quantile} needs {needed} independent measurements, and there were {independent}")
            }
        }
    }
}

/// Times of what came, out of what was expected. 16 bytes for each bucket that is used, 10 to 100 KiB for a run; clones
/// share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrivals {
    /// Upper end in ns and count, ascending.
    buckets: Arc<[(u64, u64)]>,
    came: u64,
    expected: u64,
    independent: u64,
}

impl Arrivals {
    /// What came, how much was expected, and how much of that is independent: the deliveries of one publication are
    /// one measurement. More than was expected cannot come; if it does, it was expected.
    pub fn new(came: &Histogram, expected: u64, independent: u64) -> Self {
        let buckets: Arc<[(u64, u64)]> = came.buckets().collect();
        Self { buckets, came: came.count(), expected: expected.max(came.count()), independent }
    }

    /// All of these as if they were one, of the same buckets: the quantiles are those of all values together.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self> + Clone) -> Self {
        let mut buckets: Vec<(u64, u64)> =
            parts.clone().into_iter().flat_map(|part| part.buckets.iter().copied()).collect();
        buckets.sort_unstable();
        buckets.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            kept.1 += if is_same { later.1 } else { 0 };
            is_same
        });
        Self { buckets: buckets.into(), ..Self::counts_of(parts) }
    }

    /// The same without the times: enough to tell whether there is a quantile.
    pub fn counts_of<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut whole = Self { buckets: Arc::new([]), came: 0, expected: 0, independent: 0 };
        for part in parts {
            whole.came += part.came;
            whole.expected += part.expected;
            whole.independent += part.independent;
        }
        whole
    }

    /// Why there is no such quantile where so many independent measurements are needed, if there is none. What was
    /// not reached is told first: it would not be with more of the same.
    pub fn lack(&self, quantile: Quantile, needed: u64) -> Option<Lack> {
        let missing = self.expected - self.came;
        // In whole numbers: 1 − 0.99 is a little more than 0.01.
        let is_reached =
            u128::from(missing) * 1_000 < u128::from(1_000 - quantile.per_mille) * u128::from(self.expected);
        if missing > 0 && !is_reached {
            return Some(Lack::NotReached { quantile, missing, expected: self.expected });
        }
        let independent = self.independent;
        (independent < needed).then_some(Lack::TooFew { quantile, independent, needed })
    }

    /// The time within which this share of what was expected came, ms; `None` where that much did not come.
    pub fn quantile_ms(&self, quantile: Quantile) -> Option<f64> {
        let rank = (u128::from(self.expected) * u128::from(quantile.per_mille)).div_ceil(1_000).max(1);
        let mut below = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            below += u128::from(*count);
            below >= rank
        });
        found.map(|(upper_ns, _)| ms(*upper_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ms: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        ms.into_iter().for_each(|ms| histogram.record(ms * 1_000_000));
        histogram
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 0.002)
    }

    #[test]
    fn what_never_came_is_beyond_every_time() {
        let came = times(1..=980);
        let all = Arrivals::new(&came, 1_000, 1_000);
        assert!(near(all.quantile_ms(Quantile::MEDIAN), 500.0), "of a thousand, not of 980");
        assert_eq!(all.lack(Quantile::MEDIAN, 20), None);
        let lack = all.lack(Quantile::P99, 1_000).unwrap();
        assert_eq!(lack, Lack::NotReached { quantile: Quantile::P99, missing: 20, expected: 1_000 });
        assert_eq!(lack.to_string(), "20 of 1000 never came, 2.0 %; a p99 is there where it is below 1 %");
        assert_eq!(all.quantile_ms(Quantile::P99), None);
    }

    #[test]
    fn the_missing_share_has_to_be_below_the_rest() {
        let lack = |missing: u64| Arrivals::new(&times(1..=1_000 - missing), 1_000, 1_000).lack(Quantile::P99, 1_000);
        assert_eq!([lack(0), lack(9)], [None, None]);
        assert!(matches!(lack(10), Some(Lack::NotReached { missing: 10, .. })), "a hundredth is not below a hundredth");
        let none = Arrivals::new(&Histogram::new(), 5, 5);
        assert!(matches!(none.lack(Quantile::MEDIAN, 20), Some(Lack::NotReached { missing: 5, .. })), "nor too few");
    }

    #[test]
    fn one_of_a_thousand_may_be_missing_and_is_not_below_that() {
        let lack =
            |missing: u64| Arrivals::new(&times(1..=10_000 - missing), 10_000, 10_000).lack(Quantile::P999, 10_000);
        assert_eq!([lack(0), lack(9)], [None, None]);
        assert_eq!(
            lack(10).unwrap().to_string(),
            "10 of 10000 never came, 0.1 %; a p99.9 is there where it is below 0.1 %"
        );
        assert!(near(Arrivals::new(&times(1..=10_000), 10_000, 10_000).quantile_ms(Quantile::P999), 9_990.0));
        assert_eq!((Quantile::P999.independent_min(), Quantile::P999.independent_min_of_block()), (10_000, 1_000));
    }

    #[test]
    fn a_fan_out_is_one_measurement() {
        let came = times((0..5_000).map(|at| at % 100 + 1));
        let few = Arrivals::new(&came, 5_000, 999);
        assert_eq!([Quantile::MEDIAN, Quantile::P99].map(Quantile::independent_min), [20, 1_000]);
        assert_eq!([Quantile::MEDIAN, Quantile::P99].map(Quantile::independent_min_of_block), [2, 100]);
        let lack = few.lack(Quantile::P99, 1_000).unwrap();
        assert_eq!(lack, Lack::TooFew { quantile: Quantile::P99, independent: 999, needed: 1_000 });
        assert_eq!(lack.to_string(), "a p99 needs 1000 independent measurements, and there were 999");
        assert_eq!(Arrivals::new(&came, 5_000, 1_000).lack(Quantile::P99, 1_000), None);
    }

    #[test]
    fn the_quantile_of_merged_parts_is_that_of_all_values() {
        let mut rng = fastrand::Rng::with_seed(8);
        let mut whole = Histogram::new();
        let parts: Vec<Arrivals> = (1..=7)
            .map(|scale| {
                let own = times((0..rng.u64(100..900)).map(|_| scale * rng.u64(1..3_000)));
                whole.merge(&own);
                Arrivals::new(&own, own.count(), own.count())
            })
            .collect();
        let merged = Arrivals::merged(&parts);
        assert_eq!(merged, Arrivals::new(&whole, whole.count(), whole.count()));
        for (quantile, q) in [(Quantile::MEDIAN, 0.5), (Quantile::P99, 0.99)] {
            assert_eq!(merged.quantile_ms(quantile), whole.quantile_ms(q), "{quantile}");
        }
    }

    #[test]
    fn more_than_was_expected_was_expected() {
        let all = Arrivals::new(&times([1, 2, 3, 4]), 2, 4);
        assert_eq!(all.lack(Quantile::MEDIAN, 4), None);
        assert!(near(all.quantile_ms(Quantile::MEDIAN), 2.0));
    }
}
