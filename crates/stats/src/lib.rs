//! Histograms, intervals, comparisons, rankings, slopes, steady state and warnings: what Pushlab computes from a run's numbers.
//!
//! Everything here is a pure function of its arguments. There is no clock, thread, file or global state, and
//! whatever draws random numbers takes a seed, so a stored result can be computed again to the last bit.
//!
//! ```
//! use pushlab_stats::{Histogram, rank};
//!
//! let mut latency = Histogram::new();
//! for ns in [1_200_000, 1_500_000, 9_000_000] {
//!     latency.record(ns);
//! }
//! assert_eq!(latency.count(), 3);
//!
//! // Per-run medians in ms, three repeats each; lower is better.
//! let runs = [("sse", vec![1.1, 1.2, 1.15]), ("long-polling", vec![5.0, 5.2, 5.1])];
//! let places = rank(&runs, 0.95, 42)?;
//! assert_eq!((places[1].key, places[1].rank), ("long-polling", 2));
//! # Ok::<(), pushlab_stats::IntervalError>(())
//! ```

pub mod arrivals;
pub mod best;
pub mod bracket;
pub mod comparison;
pub mod contrast;
pub mod distribution;
pub mod dunnett;
pub mod generator;
mod heterogeneity;
pub mod histogram;
pub mod interval;
mod rank_test;
pub mod ranking;
pub mod regime;
pub mod slope;
pub mod steady;
pub mod summary;
pub mod warning;

pub use arrivals::{Arrivals, Lack, Quantile};
pub use bracket::Bracket;
pub use comparison::{
    Comparison, Factor, Family, FamilyError, Pair, Significance, TestKind, Verdict, compare_family, holm,
};
pub use contrast::{contrast, difference, ratio};
pub use generator::{BusySecond, GeneratorLimits, GeneratorLoad, generator_warnings};
pub use histogram::{Histogram, HistogramError, ms};
pub use interval::{
    EffectSize, Interval, IntervalError, Magnitude, Method, effect_size, interval_of_mean, interval_of_whole,
};
pub use ranking::{Ranked, rank};
pub use regime::{Band, Regime, regime, stress_limit};
pub use slope::{Slope, SlopeError, Trend, slope, trend};
pub use steady::{POINTS_MIN, Steady, steady_state};
pub use summary::{mean, median, quantile, variance};
pub use warning::{DeliveryCounts, Figures, Severity, Warning, WarningCode, delivery_warnings};
