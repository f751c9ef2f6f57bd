//! When publications are due: arithmetic only, no clock.

use crate::shape::Warp;
use crate::shuffle::Shuffle;
use std::sync::Arc;

/// A schedule on which publication `k` is due at `start + k · period / per_period`.
///
/// One value serves a feed (`per_period` 1) and N clients that each publish once a period: publication `k`
/// then belongs to client `k mod N`, so client i starts at i/N of the period and the load is even. The division
/// is made once for each `k`, so that rounding never adds up. Cloning shares what is not arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct Pacing {
    /// When publication 0 is due, ns.
    pub start_ns: u64,
    /// Time in which each publisher publishes once, ns; at least 1.
    pub period_ns: u64,
    /// Publishers, and publications per period; at least 1.
    pub per_period: u32,
    /// Publications in all.
    pub count: u64,
    /// In which order publishers publish, where that changes with each period; `None`: by their number.
    pub order: Option<Shuffle>,
    /// Whether all publications of a period are due at its beginning.
    pub in_bursts: bool,
    /// How the pace changes; `None`: not at all.
    pub warp: Option<Arc<Warp>>,
}

impl Pacing {
    /// Everything due from `start_ns` on and before `end_ns`.
    pub fn between(start_ns: u64, end_ns: u64, period_ns: u64, per_period: u32) -> Self {
        Self::endless(start_ns, period_ns, per_period).until(end_ns)
    }

    /// The same, ending before an instant.
    pub fn until(self, end_ns: u64) -> Self {
        Self { count: self.first_at(end_ns), ..self }
    }

    /// A schedule without an end.
    pub fn endless(start_ns: u64, period_ns: u64, per_period: u32) -> Self {
        let (period_ns, per_period) = (period_ns.max(1), per_period.max(1));
        Self { start_ns, period_ns, per_period, count: u64::MAX, order: None, in_bursts: false, warp: None }
    }

    /// The same, begun whole periods earlier where it would begin more than one after an instant: it is in step before, too.
    pub fn begun_by(self, instant_ns: u64) -> Self {
        let before_ns = self.start_ns.saturating_sub(instant_ns) / self.period_ns * self.period_ns;
        Self { start_ns: self.start_ns - before_ns, ..self }
    }

    /// When publication `k` is due, ns.
    #[inline]
    pub fn due_ns(&self, k: u64) -> u64 {
        // In bursts, as if it were the first of its period.
        let k = if self.in_bursts { k - k % u64::from(self.per_period) } else { k };
        let offset = match k.checked_mul(self.period_ns) {
            Some(product) => product / u64::from(self.per_period),
            None => {
                let exact = u128::from(k) * u128::from(self.period_ns) / u128::from(self.per_period);
                u64::try_from(exact).unwrap_or(u64::MAX)
            }
        };
        let offset = match &self.warp {
            None => offset,
            Some(warp) => warp.real_ns(offset),
        };
        self.start_ns.saturating_add(offset)
    }

    /// The first publication due at or after an instant; at most `count`.
    pub fn first_at(&self, instant_ns: u64) -> u64 {
        if self.warp.is_some() {
            return self.first_warped_at(instant_ns);
        }
        let (span, per_period) = (u128::from(instant_ns.saturating_sub(self.start_ns)), u128::from(self.per_period));
        let period = u128::from(self.period_ns);
        let first =
            if self.in_bursts { span.div_ceil(period) * per_period } else { (span * per_period).div_ceil(period) };
        u64::try_from(first).unwrap_or(u64::MAX).min(self.count)
    }

    /// Halves what it may be: exact, whatever [`Self::due_ns`] rounds.
    fn first_warped_at(&self, instant_ns: u64) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.due_ns(middle) < instant_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Which publisher publishes `k`, and its how-many-th publication that is.
    #[inline]
    pub fn publisher_of(&self, k: u64) -> (u32, u64) {
        let publishers = u64::from(self.per_period);
        let (place, round) = ((k % publishers) as u32, k / publishers);
        (self.order.map_or(place, |order| order.at(round, place)), round)
    }

    /// The inverse of [`Self::publisher_of`].
    #[inline]
    pub fn index_of(&self, publisher: u32, sequence: u64) -> u64 {
        sequence * u64::from(self.per_period) + u64::from(self.place_of(publisher, sequence))
    }

    /// Which place of a period is the publisher's.
    #[inline]
    fn place_of(&self, publisher: u32, round: u64) -> u32 {
        self.order.map_or(publisher, |order| order.position_of(round, publisher))
    }

    /// How many of the publications before `k` are this publisher's.
    pub fn sequences_before(&self, k: u64, publisher: u32) -> u64 {
        let (round, place) = (k / u64::from(self.per_period), (k % u64::from(self.per_period)) as u32);
        round + u64::from(self.place_of(publisher, round) < place)
    }
}

/// Goes through the publications of every `lanes`-th place of a period: the share of one event loop. Without an
/// order of its own, the place is the publisher's number.
#[derive(Debug, Clone)]
pub struct Turns {
    pacing: Pacing,
    lanes: u32,
    lane: u32,
    next: Option<u64>,
}

impl Turns {
    /// The turns of places `lane`, `lane + lanes`, `lane + 2 · lanes` …
    pub fn new(pacing: Pacing, lane: u32, lanes: u32) -> Self {
        let next = (lane < pacing.per_period && pacing.count > u64::from(lane)).then_some(u64::from(lane));
        Self { pacing, lanes: lanes.max(1), lane, next }
    }

    /// When the next turn is due, ns; `None` after the last.
    #[inline]
    pub fn due_ns(&self) -> Option<u64> {
        self.next.map(|k| self.pacing.due_ns(k))
    }

    /// The publication whose turn it is, if it is due; goes on to the next.
    #[inline]
    pub fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let k = self.next.filter(|&k| self.pacing.due_ns(k) <= now_ns)?;
        let place = (k % u64::from(self.pacing.per_period)) as u32;
        let step = match place.checked_add(self.lanes) {
            Some(next) if next < self.pacing.per_period => self.lanes,
            _ => self.pacing.per_period - place + self.lane,
        };
        self.next = k.checked_add(u64::from(step)).filter(|&next| next < self.pacing.count);
        Some(k)
    }

    /// Leaves out turns at the front that are not wanted.
    pub fn skip_unless(&mut self, mut is_wanted: impl FnMut(u64) -> bool) {
        while self.next.is_some_and(|k| !is_wanted(k)) {
            self.take_due(u64::MAX);
        }
    }

    /// Leaves out turns that were due before an instant.
    pub fn skip_to(&mut self, instant_ns: u64) {
        let publishers = u64::from(self.pacing.per_period);
        let round = self.pacing.first_at(instant_ns) / publishers;
        let first = round * publishers + u64::from(self.lane);
        self.next = self.next.map(|k| k.max(first)).filter(|&k| k < self.pacing.count);
        while self.due_ns().is_some_and(|due| due < instant_ns) {
            self.take_due(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Phases, Plan, fixtures};
    use crate::scenario::{Outage, Scenario, Shape};
    use crate::shape;
    use proptest::prelude::*;

    #[test]
    fn what_begins_later_is_in_step_before() {
        let begun = Pacing::endless(2_180, 200, 4).begun_by(1_000);
        assert_eq!((begun.due_ns(0), begun.due_ns(1), begun.due_ns(4 * 5)), (1_180, 1_230, 2_180));
        assert_eq!(Pacing::endless(2_030, 200, 4).begun_by(9_000).due_ns(0), 2_030, "it has begun");
    }

    proptest! {
        #[test]
        fn rounding_never_adds_up(start in 0u64..1 << 50, period in 1u64..1 << 42, publishers in 1u32..5000, rounds in 0u64..1 << 20) {
            let pacing = Pacing::endless(start, period, publishers);
            for publisher in [0, publishers / 2, publishers - 1] {
                let due = pacing.due_ns(pacing.index_of(publisher, rounds));
                let offset = period as u128 * publisher as u128 / publishers as u128;
                let exact = start as u128 + rounds as u128 * period as u128 + offset;
                prop_assert_eq!(u128::from(due), exact);
            }
        }

        #[test]
        fn the_count_is_what_is_due_before_the_end(
            start in 0u64..1000, length in 0u64..5000, period in 1u64..400, publishers in 1u32..9, in_bursts: bool,
        ) {
            let pacing = Pacing { in_bursts, ..Pacing::endless(start, period, publishers) }.until(start + length);
            let due = (0..).take_while(|&k| pacing.due_ns(k) < start + length).count() as u64;
            prop_assert_eq!(pacing.count, due);
            for publisher in 0..publishers {
                let own = (0..due).filter(|&k| pacing.publisher_of(k).0 == publisher).count() as u64;
                prop_assert_eq!(pacing.sequences_before(due, publisher), own);
            }
        }

        #[test]
        fn lanes_share_the_publications_out(
            publishers in 1u32..20, lanes in 1u32..6, count in 0u64..200, skip in 0u64..300, in_bursts: bool,
        ) {
            let pacing = Pacing { count, in_bursts, ..Pacing::endless(7, 100, publishers) };
            let mut all: Vec<u64> = Vec::new();
            for lane in 0..lanes {
                let mut turns = Turns::new(pacing.clone(), lane, lanes);
                turns.skip_to(skip);
                let mine: Vec<u64> = std::iter::from_fn(|| turns.take_due(u64::MAX)).collect();
                prop_assert!(mine.is_sorted());
                prop_assert!(mine.iter().all(|&k| pacing.publisher_of(k).0 % lanes == lane));
                all.extend(mine);
            }
            all.sort_unstable();
            let expected: Vec<u64> = (0..count).filter(|&k| pacing.due_ns(k) >= skip).collect();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn in_bursts_all_publish_at_the_beginning_of_each_period() {
        let pacing = Pacing { in_bursts: true, ..Pacing::endless(100, 500, 3) }.until(1_100);
        let due: Vec<(u64, u32)> = (0..pacing.count).map(|k| (pacing.due_ns(k), pacing.publisher_of(k).0)).collect();
        assert_eq!(due, [(100, 0), (100, 1), (100, 2), (600, 0), (600, 1), (600, 2)]);
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let factor = || prop_oneof![Just(0.0), Just(1.0), 0.01..20.0f64];
        prop_oneof![
            (factor(), factor()).prop_map(|(from, to)| Shape::Ramp { from, to }),
            (factor(), 0u64..1_500, 1u64..=500).prop_map(|(factor, at_ms, length_ms)| Shape::Spike {
                factor,
                at_ms,
                length_ms
            }),
            prop::collection::vec(factor(), 1..9).prop_map(|factors| Shape::Step { factors }),
        ]
    }

    fn shaped(shape: &Shape, warm_up_ms: u64, load_ms: u64, period: u64, publishers: u32) -> Option<Pacing> {
        let phases = Phases { connect_ms: 0, warm_up_ms, idle_ms: 0, load_ms, drain_ms: 0, after_ms: 0 };
        let scenario = Scenario::Echo { interval_ms: 1, payload_bytes: 22, streamed: false };
        let warp = Warp::of(shape, &scenario, &phases).ok()?.map(Arc::new);
        let end = 1_000 + (warm_up_ms + load_ms) * 1_000_000;
        Some(Pacing { warp, ..Pacing::endless(1_000, period, publishers) }.until(end))
    }

    #[test]
    fn a_poisson_process_has_its_rate_and_gaps_that_remember_nothing() {
        const SPACING: u64 = 1_000_000;
        let phases = Phases { connect_ms: 0, warm_up_ms: 1_000, idle_ms: 0, load_ms: 99_000, drain_ms: 0, after_ms: 0 };
        let plan = fixtures::plan(10, Scenario::Upstream { interval_ms: 10, payload_bytes: 22 });
        let pacing = |seed| {
            let plan = Plan { phases: phases.clone(), seed, ..plan.clone() };
            let warp = Some(Arc::new(shape::Warp::of_poisson((SPACING * 10, 10), &plan).unwrap()));
            Pacing { warp, ..Pacing::endless(500, SPACING * 10, 10) }.until(500 + 100_000 * SPACING)
        };
        let random = pacing(7);
        let dues: Vec<u64> = (0..random.count).map(|k| random.due_ns(k)).collect();
        assert!(dues[0] == 500 && dues.is_sorted() && random != pacing(8) && random == pacing(7));
        // 100,000 are due on average, with a deviation of 316.
        assert!(random.count.abs_diff(100_000) < 1_500, "{}", random.count);
        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / SPACING as f64).collect();
        for (more_than, share) in [(0.5, 0.607), (1.0, 0.368), (3.0, 0.050)] {
            let found = gaps.iter().filter(|gap| **gap > more_than).count() as f64 / gaps.len() as f64;
            assert!((found - share).abs() < 0.01, "{found} of the gaps are longer than {more_than}");
        }
        let after_long = gaps.windows(2).filter(|pair| pair[0] > 2.0).map(|pair| pair[1]);
        let mean = after_long.clone().sum::<f64>() / after_long.count() as f64;
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        assert!((0..random.count).step_by(97).all(|k| random.first_at(random.due_ns(k)) <= k));
    }

    proptest! {
        #[test]
        fn a_shape_keeps_order_counts_and_inverse(
            shape in shapes(), warm_up_ms in 0u64..300, period in 200_000u64..40_000_000, publishers in 1u32..9,
        ) {
            let load_ms = 2_000;
            let pacing = shaped(&shape, warm_up_ms, load_ms, period, publishers);
            prop_assume!(pacing.is_some());
            let pacing = pacing.unwrap();
            let dues: Vec<u64> = (0..pacing.count).map(|k| pacing.due_ns(k)).collect();
            prop_assert!(dues.is_sorted());
            let end = 1_000 + (warm_up_ms + load_ms) * 1_000_000;
            prop_assert!(dues.last().is_none_or(|&due| due < end));
            for instant in [0, 1_000, 1_000 + warm_up_ms * 1_000_000, end / 2, end].into_iter().chain(dues.iter().copied()) {
                for instant in [instant.saturating_sub(1), instant, instant + 1] {
                    let first = dues.partition_point(|&due| due < instant) as u64;
                    prop_assert_eq!(pacing.first_at(instant), first);
                }
            }
            // A publication falls due for each whole unit of the factor's integral over base periods.
            let warp = pacing.warp.as_ref().unwrap();
            let per_ns = f64::from(publishers) / period as f64;
            for (from_ms, to_ms) in [(0, warm_up_ms), (warm_up_ms, warm_up_ms + load_ms), (warm_up_ms + 500, warm_up_ms + 750)] {
                let middles = (from_ms..to_ms).map(|ms| warp.factor_at(ms * 1_000_000 + 500_000));
                let expected = middles.sum::<f64>() * 1e6 * per_ns;
                let [from, to] = [from_ms, to_ms].map(|ms| pacing.first_at(1_000 + ms * 1_000_000));
                // A step's edge that is no whole millisecond is off by up to half of one times the factor's change.
                let slack = 1.001 + 8.0 * 20.0 * 0.5e6 * per_ns * f64::from(u8::from(matches!(shape, Shape::Step { .. })));
                prop_assert!(((to - from) as f64 - expected).abs() <= slack, "{} {}", to - from, expected);
            }
        }

        #[test]
        fn each_step_has_its_share_exactly(factors in prop::collection::vec(0.0..20.0f64, 1..9), period in 200_000u64..40_000_000) {
            let count = factors.len() as u64;
            let pacing = shaped(&Shape::Step { factors: factors.clone() }, 0, count * 300, period, 1);
            prop_assume!(pacing.is_some());
            let pacing = pacing.unwrap();
            for (i, factor) in (0..).zip(factors) {
                let [from, to] = [i, i + 1].map(|edge| pacing.first_at(1_000 + edge * 300_000_000));
                let expected = factor * 300e6 / period as f64;
                prop_assert!(((to - from) as f64 - expected).abs() <= 1.001, "{} {}", to - from, expected);
            }
        }

        #[test]
        fn the_factor_one_is_the_steady_schedule(period in 1u64..1 << 30, publishers in 1u32..5000, k in 0u64..1 << 20) {
            let steady = Pacing::between(1_000, 2_000_001_000, period, publishers);
            let shaped = shaped(&Shape::Step { factors: vec![1.0; 3] }, 0, 2_000, period, publishers).unwrap();
            prop_assert_eq!(shaped.count, steady.count);
            prop_assert_eq!(shaped.due_ns(k), steady.due_ns(k));
            prop_assert_eq!(shaped.first_at(k << 10), steady.first_at(k << 10));
        }

        #[test]
        fn an_order_changes_who_and_not_when(publishers in 1u32..40, seed: u64, rounds in 0u64..9, extra in 0u32..40) {
            let pacing = Pacing::endless(5, 1_000, publishers);
            let pacing = Pacing { order: Some(Shuffle::new(publishers, seed)), ..pacing };
            let count = rounds * u64::from(publishers) + u64::from(extra % publishers);
            let mut sequences = vec![0; publishers as usize];
            for k in 0..count {
                let (publisher, sequence) = pacing.publisher_of(k);
                prop_assert_eq!(sequence, sequences[publisher as usize]);
                prop_assert_eq!(pacing.sequences_before(k, publisher), sequence);
                prop_assert_eq!(pacing.index_of(publisher, sequence), k);
                sequences[publisher as usize] += 1;
            }
            for (publisher, sequences) in (0..).zip(sequences) {
                prop_assert_eq!(pacing.sequences_before(count, publisher), sequences);
            }
        }
    }

    #[test]
    fn nothing_is_taken_before_it_is_due() {
        let mut turns = Turns::new(Pacing::between(100, 200, 30, 1), 0, 1);
        assert_eq!(turns.due_ns(), Some(100));
        assert_eq!(turns.take_due(99), None);
        assert_eq!(turns.take_due(100), Some(0));
        assert_eq!(turns.take_due(129), None);
        assert_eq!([turns.take_due(500), turns.take_due(500), turns.take_due(500)], [Some(1), Some(2), Some(3)]);
        assert_eq!((turns.take_due(500), turns.due_ns()), (None, None));
    }

    #[test]
    fn far_instants_do_not_overflow() {
        let pacing = Pacing::endless(u64::MAX - 5, u64::MAX, 1);
        assert_eq!(pacing.due_ns(u64::MAX), u64::MAX);
        assert_eq!(
            Pacing::endless(0, 3_000_000_000, 500).due_ns(1 << 40),
            (1u128 << 40).wrapping_mul(6_000_000) as u64
        );
    }

    proptest! {
        #[test]
        fn a_storm_publishes_what_is_missed_while_everybody_is_away(
            missed in 1u32..300, warm_up_ms in 1u64..9_000, load_ms in 4u64..9_000,
        ) {
            const MS: u64 = 1_000_000;
            let scenario = Scenario::Storm { missed, payload_bytes: 50, return_over_ms: 0, outage: Outage::Cut };
            let phases = Phases { warm_up_ms, load_ms, connect_ms: 0, idle_ms: 0, drain_ms: 0, after_ms: 0 };
            let warp = Warp::of(&Shape::Steady, &scenario, &phases).unwrap().map(Arc::new);
            let (load_from, end) = (warm_up_ms * MS, (warm_up_ms + load_ms) * MS);
            let pacing = Pacing { warp, ..Pacing::endless(0, shape::storm_period_ns(missed, &phases), 1) }.until(end);
            let first = pacing.first_at(load_from);
            prop_assert_eq!((first, pacing.count - first), (3, u64::from(missed)));
            let quarter = load_ms * MS / 4;
            prop_assert!(pacing.due_ns(first) >= load_from + quarter);
            prop_assert!(pacing.due_ns(pacing.count - 1) <= end - quarter);
            prop_assert_eq!(pacing.due_ns(0), 0);
        }
    }
}
