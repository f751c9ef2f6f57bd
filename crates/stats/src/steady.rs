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
/// Points from which the test allows for autocorrelation. An estimate from fewer takes steps and warm-ups for it and
/// hides them: of 20-point series that fall to half within the window, it would miss two thirds.
pub const AUTOCORRELATION_POINTS_MIN: usize = 60;
/// Largest autocorrelation allowed for. Near 1 it cannot be told from a trend, and allowing for it would hide both.
const AUTOCORRELATION_MAX: f64 = 0.8;
/// Share of differences, the smallest, that the autocorrelation is estimated from: a step or a spike is none of them.
const DIFFERENCES_KEPT: f64 = 0.9;

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
/// Neighbouring values of a server's series are alike (autocorrelated), which makes chance trends look significant.
/// From [`AUTOCORRELATION_POINTS_MIN`] points on, the statistic is therefore divided by √((1 + φ)/(1 − φ)), the
/// effective number of points of first-order autoregression (Yue and Wang, *Water Resources Management* 18, 2004);
/// φ is estimated from the differences to the next value and to the one after it, whose mean squares are as 1 to
/// 1 + φ, so that a step, which is one difference among many, does not count as autocorrelation.
///
/// How often a series without a trend is reported, found by simulation with noise of 10 % of the level or more: at 60
/// points in 2 to 10 % of cases with φ from 0.5 to 0.9. Below 60 points nothing is allowed for, and it is 3 to 11 %
/// with φ = 0.5, 6 to 25 % with 0.7, 15 to 50 % with 0.9; noise of 4 % keeps all of that below 10 %. That is the
/// cheaper mistake: a warning too many costs a longer load phase, a warm-up taken for steady costs the result. What the
/// allowance costs: with φ = 0.5 and noise of 5 %, a step by 30 % is reported in half of the series of 60 points, and
/// in all of 300.
///
/// A slow oscillation with a period longer than the window is taken for a trend, as it is by eye. A series that rises
/// and falls back is steady to this test.
pub fn steady_state(series: &[f64]) -> Steady {
    let finite: Vec<f64> = series.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.len() < POINTS_MIN {
        return Steady::TooShort;
    }
    let block = finite.len().div_ceil(POINTS_MAX);
    // An incomplete last block would weigh as much as a full one.
    let points: Vec<f64> = finite.chunks_exact(block).filter_map(mean).collect();
    let slope = theil_sen(&points);
    let p = mann_kendall(&points, inflation(&points));
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

/// How many times larger autocorrelation makes the variance of Mann and Kendall's statistic; 1 for short series.
fn inflation(points: &[f64]) -> f64 {
    if points.len() < AUTOCORRELATION_POINTS_MIN {
        return 1.0;
    }
    let steps: Vec<f64> = points.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The median: beside a step the slope over the whole window is that of neither side.
    let slope = median(&steps).unwrap_or(0.0);
    let mean_square = |lag: usize| {
        let off = |pair: &[f64]| (pair[lag] - pair[0] - lag as f64 * slope).powi(2);
        let mut squares: Vec<f64> = points.windows(lag + 1).map(off).collect();
        squares.sort_by(f64::total_cmp);
        squares.truncate((DIFFERENCES_KEPT * squares.len() as f64) as usize);
        mean(&squares).unwrap_or(0.0)
    };
    let (next, after) = (mean_square(1), mean_square(2));
    let carry = if next > 0.0 { (after / next - 1.0).clamp(0.0, AUTOCORRELATION_MAX) } else { 0.0 };
    (1.0 + carry) / (1.0 - carry)
}

/// Two-sided p value of Mann–Kendall's test, variance corrected for ties and multiplied by `inflation`.
fn mann_kendall(points: &[f64], inflation: f64) -> f64 {
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
    let z = (s.abs() - 1) as f64 / (variance * inflation).sqrt();
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
    // Selection instead of a sort: there may be 125,000.
    let is_even = slopes.len().is_multiple_of(2);
    let (below, upper, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => 0.5 * (lower + *upper),
        _ => *upper,
    }
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
        let p = mann_kendall(&rising, 1.0);
        assert!((p - 2.0 * normal_cdf(-44.0 / 125f64.sqrt())).abs() < 1e-15);
        assert!((8.3e-5 - p).abs() < 1e-6, "{p}");
    }
}
