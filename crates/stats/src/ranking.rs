//! Rankings that admit what they cannot tell apart.

use crate::contrast::difference;
use crate::interval::{Interval, IntervalError, interval_of_mean};
use crate::summary::mean;
use serde::{Deserialize, Serialize};

/// A place in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked<K> {
    /// What is ranked.
    pub key: K,
    /// 1 is best; tied entries share a rank, and the rank after a tie of three is four on (1, 1, 1, 4).
    pub rank: u32,
    /// Whether the rank is shared.
    pub tied: bool,
    /// The mean over the entry's runs.
    pub interval: Interval,
    /// How far the mean is above that of the best entry of all; `None` for that entry.
    pub behind_best: Option<Interval>,
}

/// Ranks entries by the mean of their per-run figures, lower first.
///
/// Entries are sorted by mean. Walking down, an entry shares the rank of the current group's best entry when the
/// interval of their difference contains 0; otherwise it opens the next group. So a tie means "not separated from
/// the best of its group". "Not separated" is not transitive: with A < B < C, B may be inseparable from A, and C
/// from B, while A and C are apart; then A and B tie at 1 and C is 3. Comparing with the group's best, not with the
/// neighbour, keeps a chain of small steps from becoming one tie between the first and the last.
///
/// One run has no known spread, so it is separated from nothing: with single runs everywhere all tie at 1.
/// Each comparison is made at `confidence`; there is no correction for making several, so of four equal entries some
/// are set apart in one ranking of five at 95 %. With equal means the given order stays.
///
/// # Errors
/// As [`interval_of_mean`]: an entry without runs or with a figure that is not finite, or a wrong confidence.
pub fn rank<K: Clone>(entries: &[(K, Vec<f64>)], confidence: f64, seed: u64) -> Result<Vec<Ranked<K>>, IntervalError> {
    let mut sorted = Vec::with_capacity(entries.len());
    for (key, runs) in entries {
        let centre = mean(runs).ok_or(IntervalError::Empty)?;
        sorted.push((centre, key, runs, interval_of_mean(runs, confidence, seed)?));
    }
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));

    let mut places: Vec<Ranked<K>> = Vec::with_capacity(sorted.len());
    let mut group_best = 0;
    for (index, (_, key, runs, interval)) in sorted.iter().enumerate() {
        if index > 0 && difference(runs, sorted[group_best].2, confidence, seed)?.excludes_zero() {
            group_best = index;
        }
        let behind_best = match index {
            0 => None,
            _ => Some(difference(runs, sorted[0].2, confidence, seed)?),
        };
        let rank = u32::try_from(group_best + 1).unwrap_or(u32::MAX);
        let tied = index > group_best;
        places.push(Ranked { key: (*key).clone(), rank, tied, interval: *interval, behind_best });
        if tied {
            places[group_best].tied = true;
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(entries: &[(&'static str, Vec<f64>)]) -> Vec<(&'static str, u32, bool)> {
        rank(entries, 0.95, 42).unwrap().into_iter().map(|place| (place.key, place.rank, place.tied)).collect()
    }

    #[test]
    fn separable_entries_are_ordered() {
        let found = ranks(&[
            ("slow", vec![30.0, 31.0, 29.5]),
            ("fast", vec![1.0, 1.1, 0.9]),
            ("middle", vec![10.0, 10.5, 9.8]),
        ]);
        assert_eq!(found, [("fast", 1, false), ("middle", 2, false), ("slow", 3, false)]);
    }

    #[test]
    fn inseparable_entries_tie_and_the_next_rank_skips() {
        let found = ranks(&[("a", vec![10.0, 10.4, 9.7]), ("b", vec![10.1, 10.5, 9.9]), ("c", vec![50.0, 50.2, 49.9])]);
        assert_eq!(found, [("a", 1, true), ("b", 1, true), ("c", 3, false)]);
    }

    #[test]
    fn a_chain_of_small_steps_is_not_one_tie() {
        let around = |centre: f64| vec![centre - 0.4, centre - 0.1, centre + 0.1, centre + 0.4];
        let found = ranks(&[("a", around(10.0)), ("b", around(10.45)), ("c", around(10.9))]);
        // b is inseparable from both neighbours; c is apart from a.
        assert_eq!(found, [("a", 1, true), ("b", 1, true), ("c", 3, false)]);
    }

    #[test]
    fn single_runs_separate_nothing() {
        let found = ranks(&[("a", vec![1.0]), ("b", vec![1_000.0]), ("c", vec![5.0])]);
        assert_eq!(found, [("a", 1, true), ("c", 1, true), ("b", 1, true)]);
    }

    #[test]
    fn ten_runs_use_the_bootstrap() {
        let runs = |centre: f64| (0..10).map(|i| centre + f64::from(i) * 0.1).collect::<Vec<_>>();
        let places = rank(&[("a", runs(1.0)), ("b", runs(3.0))], 0.95, 1).unwrap();
        assert_eq!(places[1].rank, 2);
        let behind = places[1].behind_best.unwrap();
        assert!((behind.value - 2.0).abs() < 1e-9 && behind.excludes_zero());
        assert!(places[0].behind_best.is_none());
    }

    #[test]
    fn no_entries_and_empty_entries() {
        assert!(rank::<u8>(&[], 0.95, 0).unwrap().is_empty());
        assert_eq!(rank(&[(1, vec![])], 0.95, 0), Err(IntervalError::Empty));
    }
}
