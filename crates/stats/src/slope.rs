//! Straight lines: what one more costs, and whether a series drifts.

use crate::distribution::student_t_quantile;
use crate::summary::mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Blocks that [`trend`] averages a series over. Batch means stay nearly independent and t quantiles reasonable with
/// 10 to 30 of them (Schmeiser, "Batch size effects in the analysis of simulation output", *Operations Research* 30,
/// 1982); the fewest are the least alike.
pub const TREND_BLOCKS: usize = 10;
/// Points below which [`trend`] says nothing: two for each block.
pub const TREND_POINTS_MIN: usize = 2 * TREND_BLOCKS;

/// Why no line could be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum SlopeError {
    /// Too few points for a line with an interval.
    #[error("{found} points are too few for a slope with an interval: {wanted} or more are needed")]
    TooFew {
        /// Points there were.
        found: usize,
        /// Points that are needed.
        wanted: usize,
    },
    /// All points share one x.
    #[error("all points are at {0}: a slope needs at least two different places")]
    OneX(f64),
    /// A coordinate is infinite or not a number.
    #[error("point {index} is ({x}, {y}), which is not finite")]
    NotFinite {
        /// Position in the slice.
        index: usize,
        /// Its x.
        x: f64,
        /// Its y.
        y: f64,
    },
    /// The confidence is not between 0 and 1.
    #[error("confidence {0} is not between 0 and 1, e.g. 0.95")]
    Confidence(f64),
}

/// A line through points, with the interval of its slope.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slope {
    /// Increase of y for one more of x, in units of y per unit of x.
    pub per_unit: f64,
    /// Lower end of the slope's interval.
    pub low: f64,
    /// Upper end of the slope's interval.
    pub high: f64,
    /// y at x = 0, in units of y.
    pub intercept: f64,
    /// Points behind it.
    pub points: u32,
    /// Share of y's variance that the line explains, 0 to 1; 0 when y does not vary.
    pub r2: f64,
}

/// Ordinary least squares of y over x, for points (x, y) in any order.
///
/// slope = Σ(x−x̄)(y−ȳ) / Σ(x−x̄)², ± t·√(Σ residual² / (n−2) / Σ(x−x̄)²) with n − 2 degrees of freedom (Draper and
/// Smith, *Applied Regression Analysis*, 3rd ed., section 1.4). The interval is exact when residuals are independent,
/// normal and equally wide everywhere. Several counts of clients, each in a run of its own, are; successive readings
/// of one process are not: use [`trend`].
///
/// # Errors
/// [`SlopeError`]: fewer than 3 points, one place only, a coordinate that is not finite, a confidence outside 0..1.
pub fn slope(points: &[(f64, f64)], confidence: f64) -> Result<Slope, SlopeError> {
    check(points, confidence, 3)?;
    let wanted = SlopeError::TooFew { found: points.len(), wanted: 3 };
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x_mean, y_mean) = (mean(&xs).ok_or(wanted)?, mean(&ys).ok_or(wanted)?);
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 { points.iter().map(|(x, y)| of(x - x_mean, y - y_mean)).sum() };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx == 0.0 {
        return Err(SlopeError::OneX(x_mean));
    }
    let per_unit = xy / xx;
    let residual = sum(&|x, y| (y - per_unit * x).powi(2));
    let freedom = points.len() as f64 - 2.0;
    let half = student_t_quantile((1.0 - confidence) / 2.0, freedom) * (residual / freedom / xx).sqrt();
    Ok(Slope {
        per_unit,
        low: per_unit - half,
        high: per_unit + half,
        intercept: y_mean - per_unit * x_mean,
        points: u32::try_from(points.len()).unwrap_or(u32::MAX),
        r2: if yy > 0.0 { (1.0 - residual / yy).clamp(0.0, 1.0) } else { 0.0 },
    })
}

/// How fast a series drifted over its window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Drift, in units of y per unit of x, e.g. MiB per hour.
    pub per_unit: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Whether the interval leaves out 0. Whether the drift matters is for the caller to say.
    pub is_significant: bool,
    /// Points behind it, before they were averaged.
    pub points: u32,
}

/// Drift of a time series (x is time in any unit, y what was read), for soaks: memory in MiB over hours.
///
/// Neighbouring readings are alike, so least squares over all of them claims far more than it knows. The series is
/// cut into [`TREND_BLOCKS`] blocks of equally many points, and [`slope`] runs over their means, which are nearly
/// independent as long as a disturbance fades within a block. With first-order autocorrelation 0.9 and 600 points,
/// 5 to 8 % of driftless series seem to drift at 95 %; plain least squares says so of 65 %. A wander slower than a
/// block, a tenth of the window, is taken for drift, as by eye; a longer soak is the remedy. A step, such as a table
/// that doubles, is a drift too: the window does not show that it will not come again.
///
/// # Errors
/// As [`slope`], with [`TREND_POINTS_MIN`] points needed.
pub fn trend(points: &[(f64, f64)], confidence: f64) -> Result<Trend, SlopeError> {
    check(points, confidence, TREND_POINTS_MIN)?;
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let blocks: Vec<(f64, f64)> = (0..TREND_BLOCKS)
        .map(|i| {
            let block = &sorted[i * sorted.len() / TREND_BLOCKS..(i + 1) * sorted.len() / TREND_BLOCKS];
            let (x, y) = block.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (x / block.len() as f64, y / block.len() as f64)
        })
        .collect();
    let Slope { per_unit, low, high, .. } = slope(&blocks, confidence)?;
    let is_significant = low > 0.0 || high < 0.0;
    let points = u32::try_from(points.len()).unwrap_or(u32::MAX);
    Ok(Trend { per_unit, low, high, is_significant, points })
}

fn check(points: &[(f64, f64)], confidence: f64, wanted: usize) -> Result<(), SlopeError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(SlopeError::Confidence(confidence));
    }
    if let Some(index) = points.iter().position(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return Err(SlopeError::NotFinite { index, x: points[index].0, y: points[index].1 });
    }
    if points.len() < wanted {
        return Err(SlopeError::TooFew { found: points.len(), wanted });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (2.0 * std::f64::consts::PI * rng.f64()).cos()
    }

    #[test]
    fn a_line_has_its_slope() {
        let found = slope(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)], 0.95).unwrap();
        assert_eq!((found.per_unit, found.intercept, found.r2, found.points), (2.0, 3.0, 1.0, 3));
        // Residuals -0.1, 0.8, -1.3, 0.6: the error is √(2.7 / 2 / 5), and t with 2 degrees of freedom is 4.303.
        let found = slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0)], 0.95).unwrap();
        assert!((found.per_unit - 1.1).abs() < 1e-12 && (found.high - 1.1 - 2.235_74).abs() < 1e-4, "{found:?}");
        assert!((found.r2 - (1.0 - 2.7 / 8.75)).abs() < 1e-12, "{found:?}");
        let flat = slope(&[(1.0, 0.1), (2.0, 0.1), (3.0, 0.1)], 0.95).unwrap();
        assert_eq!((flat.per_unit, flat.low, flat.high, flat.r2), (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(slope(&[(1.0, 1.0), (2.0, 2.0)], 0.95), Err(SlopeError::TooFew { found: 2, wanted: 3 }));
        assert_eq!(slope(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)], 0.95), Err(SlopeError::OneX(0.1)));
        assert_eq!(slope(&[(1.0, 1.0); 3], 1.0), Err(SlopeError::Confidence(1.0)));
        let refused = slope(&[(1.0, 1.0), (2.0, f64::INFINITY), (3.0, 1.0)], 0.95);
        assert_eq!(refused, Err(SlopeError::NotFinite { index: 1, x: 2.0, y: f64::INFINITY }));
        assert_eq!(trend(&[(1.0, 1.0); 19], 0.95), Err(SlopeError::TooFew { found: 19, wanted: 20 }));
    }

    #[test]
    fn slopes_are_covered_as_promised() {
        let mut rng = fastrand::Rng::with_seed(1);
        let counts = [100.0, 500.0, 1_000.0, 2_000.0, 5_000.0];
        let hits = (0..4_000)
            .filter(|_| {
                let points = counts.map(|x| (x, 900.0 + 0.5 * x + 30.0 * normal(&mut rng)));
                let found = slope(&points, 0.95).unwrap();
                found.low <= 0.5 && 0.5 <= found.high
            })
            .count();
        assert!((3_720..=3_880).contains(&hits), "{hits} of 4000");
    }

    /// Shares of driftless series and of drifting ones that seem to drift, and of the former by plain least squares.
    /// 600 readings over an hour, of standard deviation 3; the drift is 6 per hour.
    fn alarms(carry: f64) -> (f64, f64, f64) {
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut still, mut drifting, mut plain) = (0, 0, 0);
        let trials = 1_000;
        for _ in 0..trials {
            let mut state = normal(&mut rng);
            let fresh = (1.0 - carry * carry).sqrt();
            let points: Vec<(f64, f64)> = (0..600)
                .map(|i| {
                    state = carry * state + fresh * normal(&mut rng);
                    (f64::from(i) / 600.0, 100.0 + 3.0 * state)
                })
                .collect();
            let moved: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, y + 6.0 * x)).collect();
            still += u32::from(trend(&points, 0.95).unwrap().is_significant);
            drifting += u32::from(trend(&moved, 0.95).unwrap().is_significant);
            let line = slope(&points, 0.95).unwrap();
            plain += u32::from(line.low > 0.0 || line.high < 0.0);
        }
        let share = |count: u32| f64::from(count) / f64::from(trials);
        (share(still), share(drifting), share(plain))
    }

    #[test]
    fn autocorrelated_readings_seldom_seem_to_drift() {
        for (carry, false_max, power_min) in [(0.0, 0.07, 0.99), (0.5, 0.07, 0.99), (0.9, 0.1, 0.8)] {
            let (still, drifting, plain) = alarms(carry);
            assert!(still <= false_max && drifting >= power_min, "{carry}: {still} {drifting} {plain}");
            assert!(carry < 0.9 || plain > 0.5, "{plain}: blocks would not be needed");
        }
    }

    #[test]
    fn a_trend_does_not_depend_on_the_order_of_its_points() {
        let mut points: Vec<(f64, f64)> =
            (0..47).map(|i| (f64::from(i), 3.0 * f64::from(i % 5) + f64::from(i))).collect();
        let found = trend(&points, 0.95).unwrap();
        points.reverse();
        assert_eq!(trend(&points, 0.95).unwrap(), found);
        assert!(found.is_significant && found.points == 47, "{found:?}");
    }
}
