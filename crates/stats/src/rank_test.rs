//! Exact rank tests with ties: Mann and Whitney's for two samples, Wilcoxon's signed ranks for pairs.
//!
//! Each ranks what was observed, ties sharing their mean rank, and asks how many of all equally likely ways to deal
//! the ranks out stray as far from the middle (Lehmann, *Nonparametrics*, 1975, sections 1.4 and 3.2). Counting by
//! rank sum instead of listing them makes that cheap. Ranks are doubled, so that shared ones stay whole.

use crate::distribution::normal_cdf;

/// Values up to which the count is exact, at most some 4 million additions; above, the normal approximation with
/// corrections for ties and continuity is good to a per cent of p.
const EXACT_VALUES_MAX: usize = 60;

/// Twice the rank of each value, from 2; equal values share the mean of their ranks.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0; values.len()];
    let mut below = 0;
    for group in order.chunk_by(|i, j| values[*i] == values[*j]) {
        // Ranks below + 1 to below + len.
        group.iter().for_each(|i| ranks[*i] = 2 * below + group.len() + 1);
        below += group.len();
    }
    ranks
}

/// Two-sided p value for `a` and `b` having one distribution: how often a rank sum as far from its mean comes about.
/// 1 when a side is empty. Finite values only.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (fewer, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let all: Vec<f64> = fewer.iter().chain(more).copied().collect();
    let (n, total) = (fewer.len(), all.len());
    let ranks = doubled_ranks(&all);
    let middle = n * (total + 1);
    let off = ranks[..n].iter().sum::<usize>().abs_diff(middle);
    if off == 0 || n == 0 {
        return 1.0;
    }
    if total > EXACT_VALUES_MAX {
        // Σ(rank − mean)² of what was observed is the variance without ties less what ties take from it.
        let spread: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0 - (total + 1) as f64 / 2.0).powi(2)).sum();
        let (n, total) = (n as f64, total as f64);
        return normal_tails(off, n * (total - n) * spread / (total * (total - 1.0)));
    }
    let width = total * (total + 1) + 1;
    let mut ways = vec![vec![0.0; width]; n + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for size in (1..=n).rev() {
            let (smaller, larger) = ways.split_at_mut(size);
            let (from, to) = (&smaller[size - 1], &mut larger[0]);
            to[rank..].iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }
    share(&ways[n], |sum| sum.abs_diff(middle) >= off)
}

/// Two-sided p value for `differences` being as likely positive as negative, size for size. Zeros say nothing and are
/// left out; 1 when nothing else is there. Finite values only.
pub fn signed_rank(differences: &[f64]) -> f64 {
    let moved: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    let sizes: Vec<f64> = moved.iter().map(|value| value.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let all: usize = ranks.iter().sum();
    let positive: usize = ranks.iter().zip(&moved).filter(|(_, value)| **value > 0.0).map(|(rank, _)| rank).sum();
    // Half of `all` need not be whole, hence twice the sums.
    let off = (2 * positive).abs_diff(all);
    if off == 0 {
        return 1.0;
    }
    if moved.len() > EXACT_VALUES_MAX {
        // Each rank counts or not, as by a coin.
        let variance: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0).powi(2) / 4.0).sum();
        return normal_tails(off.div_ceil(2), variance);
    }
    let mut ways = vec![0.0; all + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (rank..=all).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    share(&ways, |sum| (2 * sum).abs_diff(all) >= off)
}

/// Share of all ways whose sum is `far`.
fn share(ways: &[f64], far: impl Fn(usize) -> bool) -> f64 {
    let outside: f64 = ways.iter().enumerate().filter(|(sum, _)| far(*sum)).map(|(_, ways)| ways).sum();
    (outside / ways.iter().sum::<f64>()).min(1.0)
}

/// Both tails beyond a doubled rank sum that is `off` its mean, with continuity corrected.
fn normal_tails(off: usize, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (off as f64 / 2.0 - 0.5).max(0.0) / variance.sqrt();
    2.0 * normal_cdf(-z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(doubled_ranks(&[5.0, 1.0, 5.0, 2.0, 5.0]), [8, 2, 8, 4, 8]);
        assert_eq!(doubled_ranks(&[0.0, -0.0, 1.0]), [3, 3, 6]);
    }

    #[test]
    fn separated_samples_have_the_smallest_p() {
        // 2 of C(n + m, n) ways.
        assert!((mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 2.0 / 20.0).abs() < 1e-15);
        let (a, b): (Vec<f64>, Vec<f64>) = ((0..5).map(f64::from).collect(), (9..16).map(f64::from).collect());
        assert!((mann_whitney(&a, &b) - 2.0 / 792.0).abs() < 1e-15);
        assert!((signed_rank(&[1.0, 3.0, 2.0, 5.0, 4.0, 0.0]) - 2.0 / 32.0).abs() < 1e-15);
    }

    #[test]
    fn equal_values_say_nothing() {
        assert_eq!(mann_whitney(&[7.0; 5], &[7.0; 9]), 1.0);
        assert_eq!(mann_whitney(&[7.0; 50], &[7.0; 90]), 1.0);
        assert_eq!(mann_whitney(&[], &[7.0]), 1.0);
        assert_eq!(signed_rank(&[0.0; 9]), 1.0);
        assert_eq!(signed_rank(&[1.0, -1.0]), 1.0);
    }

    #[test]
    fn counting_agrees_with_listing_every_way() {
        let mut rng = fastrand::Rng::with_seed(5);
        for trial in 0..50 {
            let (n, m) = (rng.usize(1..6), rng.usize(1..7));
            let all: Vec<f64> = (0..n + m).map(|_| f64::from(rng.u32(0..6))).collect();
            let ranks = doubled_ranks(&all);
            let middle = n * (n + m + 1);
            let off = |set: u32| {
                let sum: usize = (0..n + m).filter(|i| set >> i & 1 == 1).map(|i| ranks[i]).sum();
                sum.abs_diff(middle)
            };
            let sets: Vec<u32> = (0..1u32 << (n + m)).filter(|set| set.count_ones() as usize == n).collect();
            let far = sets.iter().filter(|set| off(**set) >= off((1 << n) - 1)).count();
            let found = mann_whitney(&all[..n], &all[n..]);
            assert!((found - far as f64 / sets.len() as f64).abs() < 1e-12, "trial {trial}: {found}");
        }
    }

    #[test]
    fn the_approximation_continues_the_count() {
        let mut rng = fastrand::Rng::with_seed(6);
        for _ in 0..20 {
            // One value more or less changes p little, but switches the method.
            let a: Vec<f64> = (0..30).map(|_| f64::from(rng.u32(0..40))).collect();
            let b: Vec<f64> = (0..31).map(|_| f64::from(rng.u32(0..40)) + 8.5).collect();
            let (exact, normal) = (mann_whitney(&a, &b[..30]), mann_whitney(&a, &b));
            assert!((exact - normal).abs() < 0.12, "{exact} {normal}");
            let differences: Vec<f64> = (0..61).map(|_| f64::from(rng.i32(-20..20)) + 3.25).collect();
            let (exact, normal) = (signed_rank(&differences[..60]), signed_rank(&differences));
            assert!((exact - normal).abs() < 0.12, "{exact} {normal}");
        }
    }
}
