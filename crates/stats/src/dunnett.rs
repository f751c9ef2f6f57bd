//! Dunnett's distribution: the largest of several t values that share one comparison.

use crate::distribution::{normal_cdf, student_t_quantile};
use std::f64::consts::{PI, SQRT_2};

/// Step of the trapezoidal rule over a standard normal deviate. The integrand is smooth and vanishes at both ends, where
/// the rule converges faster than any power of the step: a half leaves an error below 1e-12.
const STEP: f64 = 0.5;
/// Steps to either side: deviates beyond 8 weigh less than 1e-15.
const STEPS: i32 = 16;
/// Points of the rule over the logarithm of the estimated standard deviation.
const SPREAD_POINTS: i32 = 64;
/// What a point of that rule may weigh at least: e^-32, against the heaviest.
const NEGLIGIBLE_EXPONENT: f64 = 32.0;

/// Which deviations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sides {
    /// Those in one direction.
    One,
    /// Those in either: the largest absolute value.
    Two,
}

/// Chance that the largest of `k` t values with `freedom` degrees of freedom is above `t`, when each compares another mean
/// with the same one and all means are known equally well, so that any two correlate by 1/2 (Dunnett, "A multiple
/// comparison procedure for comparing several treatments with a control", *Journal of the American Statistical Association*
/// 50, 1955).
pub fn dunnett_tail(t: f64, k: usize, freedom: f64, sides: Sides) -> f64 {
    let (mut total, mut beyond) = (0.0, 0.0);
    // ln s of the estimated standard deviation s has the density s^ν·exp(−ν·s²/2), but for a constant; its peak is 0.
    let exponent = |x: f64| freedom * (x - 0.5 * (2.0 * x).exp() + 0.5);
    let low = -(NEGLIGIBLE_EXPONENT / freedom + 0.5)
        .min((NEGLIGIBLE_EXPONENT / freedom).sqrt() + NEGLIGIBLE_EXPONENT / (3.0 * freedom));
    let high = (NEGLIGIBLE_EXPONENT / freedom).sqrt();
    let step = (high - low) / f64::from(SPREAD_POINTS);
    for point in 0..=SPREAD_POINTS {
        let x = low + step * f64::from(point);
        let weight = exponent(x).exp();
        total += weight;
        beyond += weight * normal_tail(t * x.exp(), k, sides);
    }
    (beyond / total).clamp(0.0, 1.0)
}

/// The same with a known standard deviation: 1 − ∫ P(|x₁ − z| ≤ √2·t)^k φ(z) dz, where z is the shared deviate; of one
/// side without the bars.
fn normal_tail(t: f64, k: usize, sides: Sides) -> f64 {
    let at = |step: i32| {
        let z = STEP * f64::from(step);
        let other = if sides == Sides::Two { normal_cdf(-z - SQRT_2 * t) } else { 0.0 };
        let one = normal_cdf(z - SQRT_2 * t) + other;
        // 1 − (1 − one)^k without loss of digits where `one` is small.
        let any = -(k as f64 * (-one.min(1.0)).ln_1p()).exp_m1();
        any * (-0.5 * z * z).exp()
    };
    (-STEPS..=STEPS).map(at).sum::<f64>() * STEP / (2.0 * PI).sqrt()
}

/// The t that [`dunnett_tail`] exceeds with probability `tail`; infinite for a tail of 0, and 0 for one of 1.
pub fn dunnett_quantile(tail: f64, k: usize, freedom: f64, sides: Sides) -> f64 {
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    if tail >= 1.0 {
        return 0.0;
    }
    // One comparison alone needs less, as many independent ones need more.
    let share = if sides == Sides::Two { tail / 2.0 } else { tail };
    let mut low = student_t_quantile(share, freedom);
    let mut high = student_t_quantile(share / k.max(1) as f64, freedom);
    if k < 2 {
        return high;
    }
    // A secant between ends that enclose the quantile, in logarithms, where the tail is nearly straight. An end that
    // stays twice counts half, which keeps the other from creeping (the Illinois rule).
    let off = |t: f64| dunnett_tail(t, k, freedom, sides).ln() - tail.ln();
    let (mut off_low, mut off_high) = (off(low), off(high));
    for _ in 0..50 {
        let middle = low + (high - low) * off_low / (off_low - off_high);
        let found = off(middle);
        if found.abs() < 1e-9 || !found.is_finite() {
            return middle;
        }
        if found > 0.0 {
            (low, off_low, off_high) = (middle, found, 0.5 * off_high);
        } else {
            (high, off_high, off_low) = (middle, found, 0.5 * off_low);
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::Sides::{One, Two};
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        // To two places as Dunnett printed them ("New tables for multiple comparisons with a control", *Biometrics* 20,
        // 1964), and further by SciPy's adaptive integration.
        let table = [
            (0.05, 2, 5.0, Two, 3.030_236),
            (0.05, 5, 15.0, Two, 2.816_098),
            (0.05, 9, 60.0, Two, 2.768_936),
            (0.01, 2, 5.0, Two, 4.627_462),
            (0.01, 5, 10.0, Two, 3.994_236),
            (0.005, 8, 6.5, Two, 5.685_241),
            (0.001, 5, 20.0, Two, 4.490_538),
            (0.05, 2, 5.0, One, 2.440_379),
            (0.05, 5, 15.0, One, 2.444_439),
            (0.005, 8, 6.5, One, 4.995_749),
        ];
        for (tail, k, freedom, sides, expected) in table {
            let found = dunnett_quantile(tail, k, freedom, sides);
            assert!((found - expected).abs() < 3e-6, "tail {tail}, {k} comparisons, df {freedom}: {found}");
        }
    }

    #[test]
    fn one_comparison_is_students() {
        for (tail, freedom) in [(0.05, 3.0), (0.001, 4.5), (0.2, 2.0), (1e-5, 30.0), (0.01, 300.0)] {
            for (sides, share) in [(Two, tail / 2.0), (One, tail)] {
                let found = dunnett_tail(student_t_quantile(share, freedom), 1, freedom, sides);
                assert!((found / tail - 1.0).abs() < 1e-6, "{sides:?}, tail {tail}, df {freedom}: {found}");
            }
        }
    }
}
