//! Whether a series stood still while it was measured.

use crate::distribution::normal_cdf;
use crate::summary::{mean, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Points below which nothing is said: the normal approximation of the Mann–Kendall statistic needs about ten
/// (Kendall, *Rank Correlation Methods*, 1975).
pub const POINTS_MIN: usize = 10;
/// Points that are compared pairwise. A longer series is averaged over equal blocks down to this many, so the cost
/// stays below 125,000 comparisons.
pub const POINTS_MAX: usize = 500;
/// Change over the window, relative to its median, that matters in practice.
pub const RELATIVE_CHANGE_MAX: f64 = 0.10;
/// Two-sided p value below which a trend counts as real.
pub const P_MAX: f64 = 0.01;

/// What a series did over its window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Steady {
    /// No trend, or one too small to matter.
    Steady,
    /// It rose or fell by more than [`RELATIVE_CHANGE_MAX`], and not by chance.
    Trend {
        /// Median slope, in the series' unit for each sample.
        slope_per_sample: f64,
        /// Change over the whole window relative to the series' median; negative when falling.
        relative_change: f64,
        /// Two-sided p value of the Mann–Kendall test.
        p: f64,
    },
    /// Fewer than [`POINTS_MIN`] finite points.
    TooShort,
}

/// Tests a series of equally spaced values (CPU, latency, queue length, …) for a trend.
///
/// Mann–Kendall's test, with ties and continuity corrected, decides whether there is one; Theil and Sen's median
/// of pairwise slopes says how steep it is. Both look at order and medians, so spikes do not matter. A trend is
/// reported only when it is significant *and* changes the level by more than 10 % over the window: thousands of
/// points make any drift significant. Values that are not finite are left out.
///
/// Caveat: neighbouring values of a server's series are alike (autocorrelated), which makes chance trends look
/// significant. Averaging into blocks and the strict p value take most of that away, the 10 % the rest; a slow
/// oscillation with a period longer than the window is still taken for a trend, as it is by eye. A series that rises
/// and falls back is steady to this test.
pub fn steady_state(series: &[f64]) -> Steady {
    let finite: Vec<f64> = series.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.len() < POINTS_MIN {
        return Steady::TooShort;
    }
    let block = finite.len().div_ceil(POINTS_MAX);
    // An incomplete last block would weigh as much as a full one.
    let points: Vec<f64> = finite.chunks_exact(block).filter_map(mean).collect();
    let (p, slope) = (mann_kendall(&points), theil_sen(&points));
    let span = slope * (points.len() - 1) as f64;
    let relative_change = match median(&points) {
        _ if span == 0.0 => 0.0,
        // A rise from nothing is more than 10 % of nothing.
        Some(0.0) | None => f64::MAX.copysign(span),
        Some(level) => span / level.abs(),
    };
    if p < P_MAX && relative_change.abs() > RELATIVE_CHANGE_MAX {
        Steady::Trend { slope_per_sample: slope / block as f64, relative_change, p }
    } else {
        Steady::Steady
    }
}

/// Two-sided p value of Mann–Kendall's test, variance corrected for ties.
fn mann_kendall(points: &[f64]) -> f64 {
    let mut s = 0i64;
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            s += i64::from(b > a) - i64::from(b < a);
        }
    }
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted = points.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|group| term(group.len() as f64)).sum();
    let variance = (term(points.len() as f64) - ties) / 18.0;
    if s == 0 || variance <= 0.0 {
        return 1.0;
    }
    let z = (s.abs() - 1) as f64 / variance.sqrt();
    2.0 * normal_cdf(-z)
}

/// Median of the slopes between all pairs of points, for each step.
fn theil_sen(points: &[f64]) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (i, a) in points.iter().enumerate() {
        for (step, b) in points[i + 1..].iter().enumerate() {
            slopes.push((b - a) / (step + 1) as f64);
        }
    }
    let middle = slopes.len() / 2;
    if slopes.is_empty() {
        return 0.0;
    }
    // Selection instead of a sort; with an even count this is the upper of the two middle slopes, near enough.
    *slopes.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(seed: u64, n: usize, level: impl Fn(f64) -> f64, noise: f64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..n).map(|i| level(i as f64 / n as f64) + noise * (rng.f64() - 0.5)).collect()
    }

    #[test]
    fn flat_noise_is_steady() {
        for seed in 0..50 {
            for n in [10, 60, 700, 4_000] {
                assert_eq!(steady_state(&noisy(seed, n, |_| 50.0, 20.0)), Steady::Steady, "seed {seed} n {n}");
            }
        }
    }

    #[test]
    fn a_rise_is_found_with_its_slope() {
        for seed in 0..50 {
            for n in [60, 700, 4_000] {
                let Steady::Trend { slope_per_sample, relative_change, p } =
                    steady_state(&noisy(seed, n, |x| 50.0 + 20.0 * x, 10.0))
                else {
                    panic!("seed {seed} n {n}: no trend");
                };
                let slope = slope_per_sample * n as f64;
                assert!((14.0..=26.0).contains(&slope), "seed {seed} n {n}: {slope}");
                assert!(relative_change > 0.1 && p < P_MAX, "seed {seed} n {n}");
            }
        }
    }

    #[test]
    fn a_fall_has_a_negative_change() {
        let found = steady_state(&noisy(1, 100, |x| 100.0 - 50.0 * x, 5.0));
        assert!(matches!(found, Steady::Trend { relative_change, .. } if relative_change < -0.5), "{found:?}");
    }

    #[test]
    fn a_significant_drift_of_little_consequence_is_steady() {
        assert_eq!(steady_state(&noisy(3, 4_000, |x| 100.0 + 5.0 * x, 1.0)), Steady::Steady);
    }

    #[test]
    fn spikes_do_not_make_a_trend() {
        let mut series = noisy(4, 200, |_| 10.0, 1.0);
        for at in [150, 170, 190, 199] {
            series[at] = 10_000.0;
        }
        assert_eq!(steady_state(&series), Steady::Steady);
    }

    #[test]
    fn autocorrelated_noise_seldom_looks_like_a_trend() {
        // First-order autoregression, coefficient 0.7, standard deviation about 4 % of the level.
        let alarms = (0..200)
            .filter(|seed| {
                let mut rng = fastrand::Rng::with_seed(*seed);
                let mut state = 0.0;
                let series: Vec<f64> = (0..600)
                    .map(|_| {
                        state = 0.7 * state + 10.0 * (rng.f64() - 0.5);
                        100.0 + state
                    })
                    .collect();
                steady_state(&series) != Steady::Steady
            })
            .count();
        assert!(alarms <= 4, "{alarms} of 200");
    }

    #[test]
    fn edges() {
        assert_eq!(steady_state(&[]), Steady::TooShort);
        assert_eq!(steady_state(&[f64::NAN; 100]), Steady::TooShort);
        assert_eq!(steady_state(&[0.0; 100]), Steady::Steady);
        let ramp: Vec<f64> = (0..100).map(|i| f64::from(i - 50)).collect();
        assert!(matches!(steady_state(&ramp), Steady::Trend { slope_per_sample: 1.0, .. }));
    }

    #[test]
    fn p_matches_a_worked_example() {
        // Ten rising values: S = 45, Var = 125, z = 44/√125.
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        let p = mann_kendall(&rising);
        assert!((p - 2.0 * normal_cdf(-44.0 / 125f64.sqrt())).abs() < 1e-15);
        assert!((8.3e-5 - p).abs() < 1e-6, "{p}");
    }
}
