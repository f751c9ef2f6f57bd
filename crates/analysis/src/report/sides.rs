//! One side of an assertion: its figure at each place on the axis, or of the whole axis, repeat by repeat.

use super::samples::{CONFIDENCE, PointSamples};
use pushlab_experiment::assertion::{Figure, Term};
use pushlab_report::Estimate;
use pushlab_stats::{Interval, Regime, interval_of_mean, mean, regime, slope, stress_limit, variance};
use std::collections::BTreeMap;

/// Runs below which nothing is known of a spread's own uncertainty.
const SPREAD_RUNS_MIN: usize = 3;
/// Places below which every line is straight.
pub const LINE_PLACES_MIN: usize = 3;

/// The places of the one series that bears a term's words, or why there is none.
pub type Find<'a> = &'a dyn Fn(&Term) -> Result<Vec<PointSamples>, String>;

/// A side at one place. The samples and what is shown leave out the term's factor.
#[derive(Debug, Clone, PartialEq)]
pub struct SidePoint {
    /// Place on the axis; `None` for a figure of the whole axis.
    pub x: Option<f64>,
    /// By repeat; logarithms where [`Term::is_ratio`]. Infinite where it was not reached; none where it cannot be told.
    pub samples: Vec<(u32, f64)>,
    /// What is shown of it; `None` where it was not reached.
    pub shown: Option<Estimate>,
}

/// The places that an assertion is about.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The only one.
    pub at: Option<f64>,
    /// Those of one regime.
    pub under: Option<Regime>,
}

impl Wanted {
    /// A side that has a place of its own is taken there, whatever the rest of the assertion says of places.
    fn includes(&self, own: Option<f64>, point: &PointSamples) -> bool {
        match own {
            Some(at) => at == point.x,
            None => self.at.is_none_or(|at| at == point.x) && self.under.is_none_or(|r| Some(r) == point.regime),
        }
    }
}

/// All places of a side.
///
/// # Errors
/// Why there is none.
pub fn side(term: &Term, wanted: Wanted, find: Find<'_>, seed: u64) -> Result<Vec<SidePoint>, String> {
    let points = wanted_points(term, wanted, find)?;
    let Some(over) = &term.over else {
        return match term.figure {
            Figure::Value => Ok(points.into_iter().map(SidePoint::from).collect()),
            Figure::Spread => Ok(points.iter().filter_map(|point| spread(point, seed)).collect()),
            Figure::Slope => of_axis(&points, slope_of, seed),
            Figure::Full => of_axis(&points, |block| Ok(full_at(block)), seed),
        };
    };
    let below = wanted_points(over, wanted, find)?;
    let at_place = |point: &PointSamples| {
        let place = over.at.unwrap_or(point.x);
        below.iter().find(|other| other.x == place).map(|other| quotient(point, other, seed))
    };
    Ok(points.iter().filter_map(at_place).collect())
}

/// The places that a term is taken at, for what follows them along the axis.
///
/// # Errors
/// Why there is none.
pub fn wanted_points(term: &Term, wanted: Wanted, find: Find<'_>) -> Result<Vec<PointSamples>, String> {
    Ok(find(term)?.into_iter().filter(|point| wanted.includes(term.at, point)).collect())
}

impl From<PointSamples> for SidePoint {
    fn from(point: PointSamples) -> Self {
        Self { x: Some(point.x), samples: point.samples, shown: point.shown }
    }
}

/// One repeat over the axis: places and values.
type Block = Vec<(f64, f64)>;

/// The repeats that have a value at every place.
pub fn blocks(points: &[PointSamples]) -> Vec<(u32, Block)> {
    let mut all: BTreeMap<u32, Block> = BTreeMap::new();
    for point in points {
        point.samples.iter().for_each(|(repeat, value)| all.entry(*repeat).or_default().push((point.x, *value)));
    }
    all.into_iter().filter(|(_, block)| block.len() == points.len()).collect()
}

/// One figure of each repeat over the whole axis.
fn of_axis(
    points: &[PointSamples],
    figure: impl Fn(&[(f64, f64)]) -> Result<f64, String>,
    seed: u64,
) -> Result<Vec<SidePoint>, String> {
    let of = |(repeat, block): (u32, Block)| figure(&block).map(|value| (repeat, value));
    let samples: Vec<(u32, f64)> = blocks(points).into_iter().map(of).collect::<Result<_, String>>()?;
    let shown = shown(&samples, seed);
    Ok((!samples.is_empty()).then_some(SidePoint { x: None, samples, shown }).into_iter().collect())
}

fn slope_of(block: &[(f64, f64)]) -> Result<f64, String> {
    slope(block, CONFIDENCE).map(|line| line.per_unit).map_err(|error| error.to_string())
}

/// The first place where the CPU is at its maximum; infinite where it never is.
fn full_at(block: &[(f64, f64)]) -> f64 {
    let limit = stress_limit(&block.iter().map(|(_, cpu)| *cpu).collect::<Vec<_>>());
    let is_full = |(_, cpu): &&(f64, f64)| regime(*cpu, limit) == Regime::Stress;
    block.iter().find(is_full).map_or(f64::INFINITY, |(x, _)| *x)
}

/// The interval of the samples' mean, where all of them are finite.
fn shown(samples: &[(u32, f64)], seed: u64) -> Option<Estimate> {
    let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
    let Interval { value, low, high, runs, .. } = interval_of_mean(&values, CONFIDENCE, seed).ok()?;
    Some(Estimate { value, low, high, runs, bound: None })
}

fn exponential(figure: Estimate) -> Estimate {
    Estimate { value: figure.value.exp(), low: figure.low.exp(), high: figure.high.exp(), ..figure }
}

/// Logarithms of the quotients of each repeat, so that what disturbs a whole repeat cancels.
fn quotient(above: &PointSamples, below: &PointSamples, seed: u64) -> SidePoint {
    let of = |(repeat, value): &(u32, f64)| {
        let (_, other) = below.samples.iter().find(|(own, _)| own == repeat)?;
        let log = (value / other).ln();
        (!log.is_nan()).then_some((*repeat, log))
    };
    let samples: Vec<(u32, f64)> = above.samples.iter().filter_map(of).collect();
    let shown = shown(&samples, seed).map(exponential);
    SidePoint { x: Some(above.x), samples, shown }
}

/// The coefficient of variation, per cent; `None` with too few runs. Its samples are the jackknife's pseudo-values of its
/// logarithm, one for each run left out: their mean and spread hold for figures of many shapes, where the chi-square
/// interval of a variance holds for normal ones alone (Miller, "Jackknifing variances", *Annals of Mathematical Statistics*
/// 39, 1968). Without any spread they are minus infinity; where one run alone makes the spread, there are none.
fn spread(point: &PointSamples, seed: u64) -> Option<SidePoint> {
    let values: Vec<f64> = point.samples.iter().map(|(_, value)| *value).collect();
    if values.len() < SPREAD_RUNS_MIN {
        return None;
    }
    let x = Some(point.x);
    let Some(whole) = percent_of_mean(&values) else { return Some(SidePoint { x, samples: Vec::new(), shown: None }) };
    let n = values.len() as f64;
    let without = |left_out: usize| {
        let others = values.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, value)| *value);
        percent_of_mean(&others.collect::<Vec<_>>())
    };
    let pseudo = |(at, (repeat, _)): (usize, &(u32, f64))| match without(at) {
        _ if whole == 0.0 => Some((*repeat, f64::NEG_INFINITY)),
        Some(part) if part > 0.0 => Some((*repeat, n * whole.ln() - (n - 1.0) * part.ln())),
        _ => None,
    };
    let samples: Option<Vec<(u32, f64)>> = point.samples.iter().enumerate().map(pseudo).collect();
    let samples = samples.unwrap_or_default();
    let (runs, single) =
        (values.len() as u32, Estimate { value: whole, low: whole, high: whole, runs: 1, bound: None });
    let shown = shown(&samples, seed).map(exponential);
    let shown = shown.map_or(single, |own| Estimate {
        value: whole,
        low: own.low.min(whole),
        high: own.high.max(whole),
        runs,
        bound: None,
    });
    Some(SidePoint { x, samples, shown: Some(shown) })
}

/// Standard deviation over mean, per cent; `None` where a mean is 0, or a value not finite.
fn percent_of_mean(values: &[f64]) -> Option<f64> {
    let share = 100.0 * variance(values)?.sqrt() / mean(values)?.abs();
    share.is_finite().then_some(share)
}
