//! The normal and Student t distributions, as far as intervals need them.
//!
//! Both come from the incomplete gamma and beta functions by series and continued fractions (Press et al.,
//! *Numerical Recipes*, 3rd ed., sections 6.1, 6.2, 6.4), good to about 1e-13. They are evaluated a few times for
//! each figure, so accuracy matters and speed does not.

/// Iterations after which a series or continued fraction counts as converged; both need fewer than 200 for the
/// arguments that intervals produce.
const ITERATIONS_MAX: u32 = 10_000;
/// Keeps a continued fraction's denominators away from zero (modified Lentz method).
const TINY: f64 = 1e-300;

/// Lanczos coefficients for g = 7, n = 9 (Godfrey 2001): relative error below 1e-14 for positive arguments.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// Natural logarithm of Γ(x) for x > 0.
fn ln_gamma(x: f64) -> f64 {
    if x < 0.5 {
        // Reflection; the Lanczos sum is accurate only right of 0.5.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let shifted = x + 7.5;
    let sum: f64 = LANCZOS.iter().enumerate().skip(1).map(|(i, c)| c / (x + i as f64)).sum::<f64>() + LANCZOS[0];
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * shifted.ln() - shifted + sum.ln()
}

/// Continued fraction of the incomplete beta function; converges quickly for x < (a + 1) / (a + b + 2).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in 1..ITERATIONS_MAX {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let step = d * c;
        result *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// Regularized incomplete beta function I_x(a, b) for a, b > 0 and x in 0..=1. `rest` is 1 − x, given by the caller
/// because computing it here would lose the digits of a small tail.
fn incomplete_beta(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * rest.ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, rest) / b
    }
}

/// Probability that Student's t with `freedom` degrees of freedom (> 0, fractions allowed) is above `t`, t ≥ 0.
pub fn student_t_tail(t: f64, freedom: f64) -> f64 {
    let square = t * t;
    // For small t the ratio freedom / (freedom + t²) is near 1 and its complement carries the information.
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + square), square / (freedom + square))
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
    // Bisection in the value: the tail is monotone, 200 halvings exhaust a double, and nothing can diverge.
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

/// Regularized upper incomplete gamma function Q(½, x), x ≥ 0, which is erfc(√x).
fn erfc_of_root(x: f64) -> f64 {
    let a = 0.5;
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        for n in 1..ITERATIONS_MAX {
            term *= x / (a + f64::from(n));
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return 1.0 - front * sum;
    }
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut result = d;
    for n in 1..ITERATIONS_MAX {
        let n = f64::from(n);
        let factor = -n * (n - a);
        b += 2.0;
        d = factor * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + factor / c;
        c = if c.abs() < TINY { TINY } else { c };
        let step = d * c;
        result *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * result
}

/// Probability that a standard normal value is below `z`; accurate relative to itself in the lower tail.
pub fn normal_cdf(z: f64) -> f64 {
    let tail = 0.5 * erfc_of_root(0.5 * z * z);
    if z < 0.0 { tail } else { 1.0 - tail }
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
