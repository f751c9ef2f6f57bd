//! The normal and Student t distributions, as far as intervals need them.
//!
//! They agree with SciPy to 1e-10 of their value (up to 3,000 degrees of freedom; 1e-7 up to ten million). They are
//! evaluated a few times for each figure, so accuracy matters and speed does not.

use libm::erfc;
use statrs::function::beta::checked_beta_reg;

/// Probability that Student's t with `freedom` degrees of freedom (> 0, fractions allowed) is above `t`, t ≥ 0.
pub fn student_t_tail(t: f64, freedom: f64) -> f64 {
    let square = t * t;
    // Outside its domain, which only numbers that are not finite leave, the function has no value.
    let beta = |a, b, x| checked_beta_reg(a, b, x).unwrap_or(f64::NAN);
    if square < 1.0 {
        // The ratio below is near 1 here, and its complement carries the information.
        0.5 * (1.0 - beta(0.5, freedom / 2.0, square / (freedom + square)))
    } else {
        0.5 * beta(freedom / 2.0, 0.5, freedom / (freedom + square))
    }
}

/// The t that Student's t with `freedom` degrees of freedom exceeds with probability `tail`.
///
/// `freedom` > 0, fractions allowed (Welch); `tail` in 0 to 0.5, both excluded from meaning: 0 gives infinity and
/// 0.5 gives 0. For a two-sided 95 % interval ask for a tail of 0.025.
pub fn student_t_quantile(tail: f64, freedom: f64) -> f64 {
    if tail >= 0.5 {
        return 0.0;
    }
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    let mut high = 1.0;
    while student_t_tail(high, freedom) > tail && high < 1e300 {
        high *= 2.0;
    }
    // Bisection in the value: the tail is monotone, 200 halvings exhaust a double, and nothing can diverge. The
    // quantile of statrs does (docs/decisions/0029-libraries.md).
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if student_t_tail(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Probability that a standard normal value is below `z`; accurate relative to itself in the lower tail.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_match_published_tables() {
        // Two-sided 95 % (tail 0.025) and 99 % (0.005), 90 % (0.05): NIST/SEMATECH e-Handbook, 1.3.6.7.2.
        let table = [
            (0.025, 1.0, 12.706),
            (0.025, 2.0, 4.303),
            (0.025, 3.0, 3.182),
            (0.025, 4.0, 2.776),
            (0.025, 5.0, 2.571),
            (0.025, 6.0, 2.447),
            (0.025, 9.0, 2.262),
            (0.025, 30.0, 2.042),
            (0.025, 100.0, 1.984),
            (0.005, 1.0, 63.657),
            (0.005, 4.0, 4.604),
            (0.005, 10.0, 3.169),
            (0.05, 2.0, 2.920),
            (0.05, 20.0, 1.725),
            (0.001, 5.0, 5.893),
        ];
        for (tail, freedom, expected) in table {
            let found = student_t_quantile(tail, freedom);
            assert!((found - expected).abs() < 6e-4, "tail {tail} df {freedom}: {found} != {expected}");
        }
    }

    #[test]
    fn t_quantile_agrees_with_closed_forms() {
        for tail in [1e-6, 1e-3, 0.01, 0.025, 0.2, 0.4, 0.499] {
            // One degree of freedom is the Cauchy distribution; two have t = u·√(2 / (1 − u²)), u = 1 − 2·tail.
            let cauchy = 1.0 / (std::f64::consts::PI * tail).tan();
            let found = student_t_quantile(tail, 1.0);
            assert!((found / cauchy - 1.0).abs() < 1e-10, "df 1 tail {tail}: {found} != {cauchy}");
            let two = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            let found = student_t_quantile(tail, 2.0);
            assert!((found / two - 1.0).abs() < 1e-10, "df 2 tail {tail}: {found} != {two}");
        }
        assert_eq!(student_t_quantile(0.5, 3.0), 0.0);
        assert_eq!(student_t_quantile(0.0, 3.0), f64::INFINITY);
    }

    #[test]
    fn t_becomes_normal_with_many_degrees() {
        assert!((student_t_quantile(0.025, 1e7) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn normal_cdf_matches_tables() {
        let table = [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.959_963_984_540_054, 0.025),
            (-3.0, 1.349_898_031_630_094_6e-3),
            (-6.0, 9.865_876_450_376_946e-10),
            (2.5, 0.993_790_334_674_223_8),
        ];
        for (z, expected) in table {
            let found = normal_cdf(z);
            assert!((found / expected - 1.0).abs() < 1e-12, "z {z}: {found} != {expected}");
        }
    }
}
