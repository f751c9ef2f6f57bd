//! Mean, variance and quantiles of a handful of per-run figures.
//!
//! For latencies of single deliveries use [`Histogram`](crate::Histogram): these functions keep every value.

/// Quantile of an ascending slice by linear interpolation between order statistics: type 7 of Hyndman and Fan
/// ("Sample quantiles in statistical packages", 1996), the default of R, NumPy and spreadsheets.
///
/// `None` when `sorted` is empty or `q` is outside `0..=1` (NaN included). An unsorted slice gives a meaningless
/// number, not an error.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let fraction = position - below as f64;
    Some(sorted[below] + fraction * (sorted[above] - sorted[below]))
}

/// Arithmetic mean; `None` for an empty slice.
///
/// A second pass adds the mean of what the first left over. Without it the mean of 20 times 0.1 is not 0.1, and two
/// sets of equal figures of different length would seem to differ.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    if !rough.is_finite() {
        return Some(rough);
    }
    Some(rough + values.iter().map(|value| value - rough).sum::<f64>() / n)
}

/// Median of values in any order; `None` for an empty slice. Sorts a copy: O(n log n).
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Unbiased sample variance (divisor n − 1), in the square of the values' unit; `None` below two values.
///
/// Two passes, so that a large mean with a small spread does not cancel.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_r_type_7() {
        // R: quantile(c(1, 2, 4, 8, 16), c(0, .1, .25, .5, .9, 1))
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        for (q, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (1.0, 16.0)] {
            let found = quantile(&values, q).unwrap();
            assert!((found - expected).abs() < 1e-12, "q={q}: {found} != {expected}");
        }
    }

    #[test]
    fn quantile_refuses_nonsense() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.1), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn moments() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[0.1; 20]), Some(0.1));
        assert_eq!(mean(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median(&[9.0, 1.0, 4.0, 3.0]), Some(3.5));
        assert_eq!(variance(&[5.0]), None);
        assert_eq!(variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(32.0 / 7.0));
        let offset = 1e9;
        assert_eq!(variance(&[offset + 1.0, offset + 2.0, offset + 3.0]), Some(1.0));
    }
}
