//! Whether several estimates of one quantity, such as a ratio that was measured on several machines, are of one value.

use statrs::function::beta::checked_beta_reg;

/// An estimate of a quantity in one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its standard error; 0 where it does not vary.
    pub error: f64,
    /// Degrees of freedom with which the error is known.
    pub freedom: f64,
}

/// Errors below this are taken for it: no two places measure anything to more digits.
const ERROR_MIN: f64 = 1e-9;

/// The chance of estimates so far from one another if all were of one value; 1 with fewer than two.
///
/// Cochran's Q ("The combination of estimates from different experiments", *Biometrics* 10, 1954) is the sum of their
/// squared distances from the mean, all weighted by their precision. χ² of Q takes the errors for known; as they come from
/// a few blocks each, Q is divided and compared with F as Welch does ("On the comparison of several mean values: an
/// alternative approach", *Biometrika* 38, 1951). Of two estimates that is Welch's t.
pub fn heterogeneity_p(all: &[Measured]) -> f64 {
    if all.len() < 2 {
        return 1.0;
    }
    let weights: Vec<f64> = all.iter().map(|one| one.error.max(ERROR_MIN).powi(-2)).collect();
    let total: f64 = weights.iter().sum();
    let mean = all.iter().zip(&weights).map(|(one, weight)| one.value * weight).sum::<f64>() / total;
    let q: f64 = all.iter().zip(&weights).map(|(one, weight)| weight * (one.value - mean).powi(2)).sum();
    let k = all.len() as f64;
    let unknown: f64 = all.iter().zip(&weights).map(|(one, weight)| (1.0 - weight / total).powi(2) / one.freedom).sum();
    let f = q / (k - 1.0) / (1.0 + 2.0 * (k - 2.0) / (k * k - 1.0) * unknown);
    // With errors that are as good as known F is χ² over its degrees of freedom.
    let freedom = ((k * k - 1.0) / (3.0 * unknown)).min(1e7);
    f_tail(f, k - 1.0, freedom)
}

/// Probability that F with these degrees of freedom is above `f`.
fn f_tail(f: f64, first: f64, second: f64) -> f64 {
    checked_beta_reg(second / 2.0, first / 2.0, second / (second + first * f)).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::student_t_tail;

    fn measured(value: f64, error: f64, freedom: f64) -> Measured {
        Measured { value, error, freedom }
    }

    #[test]
    fn of_two_estimates_it_is_welchs_t() {
        let (a, b) = (measured(1.0, 0.2, 5.0), measured(1.9, 0.3, 3.0));
        let variance = 0.2f64.powi(2) + 0.3f64.powi(2);
        let freedom = variance.powi(2) / (0.2f64.powi(4) / 5.0 + 0.3f64.powi(4) / 3.0);
        let expected = 2.0 * student_t_tail(0.9 / variance.sqrt(), freedom);
        assert!((heterogeneity_p(&[a, b]) - expected).abs() < 1e-9, "{} {expected}", heterogeneity_p(&[a, b]));
        assert!((heterogeneity_p(&[b, a]) - expected).abs() < 1e-9);
    }

    #[test]
    fn of_errors_that_are_known_it_is_chi_squared_of_cochrans_q() {
        // Three estimates whose Q is 5.991: the 95th percentile of χ² with two degrees of freedom.
        let apart = (5.991_464_547f64 / 2.0).sqrt();
        let all = [-apart, 0.0, apart].map(|value| measured(value, 1.0, 1e9));
        assert!((heterogeneity_p(&all) - 0.05).abs() < 1e-6, "{}", heterogeneity_p(&all));
    }

    #[test]
    fn errors_that_are_hardly_known_make_it_harder_to_show() {
        let of = |freedom| heterogeneity_p(&[0.0, 1.0, 3.0].map(|value| measured(value, 1.0, freedom)));
        assert!(of(2.0) > of(6.0) && of(6.0) > of(1e6), "{} {} {}", of(2.0), of(6.0), of(1e6));
    }

    #[test]
    fn one_estimate_or_equal_ones_differ_in_nothing_and_exact_ones_in_anything() {
        assert_eq!(heterogeneity_p(&[measured(3.0, 0.1, 4.0)]), 1.0);
        assert!(heterogeneity_p(&[measured(3.0, 0.1, 4.0), measured(3.0, 0.4, 2.0)]) > 0.999);
        assert!(heterogeneity_p(&[measured(3.0, 0.0, f64::INFINITY), measured(3.1, 0.0, f64::INFINITY)]) < 1e-6);
    }
}
