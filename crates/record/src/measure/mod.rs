//! Figures of one run, from its record: a function for each metric.

mod bytes;
mod clients;
mod counters;
mod expected;
mod link;
mod runtime;
mod times;
mod usage;
mod withheld;

pub use counters::counter_rate;
pub use expected::{Times, own_quantile_ms, quantile_of, times_of};
pub use times::{SHARE_COUNT_MIN, clock_error, generator_share, latency_median, prober_share};
pub use usage::{busiest_second, compressed, cpu_percent, memory, memory_growth};
pub use withheld::is_withheld;

use crate::RunRecord;
// A metric whose function is in none of them does not compile.
use {bytes::*, clients::*, counters::*, link::*, runtime::*, times::*, usage::*};

/// A figure that a run may have; `None` when it was not measured.
pub type Measure = fn(&RunRecord) -> Option<f64>;

macro_rules! measures {
    ($($name:ident $title:literal, $unit:literal, $better:ident, $description:literal;)*) => {
        /// Every metric's name, and what takes it from a run.
        pub const MEASURES: &[(&str, Measure)] = &[$((stringify!($name), $name)),*];
    };
}

pushlab_experiment::for_each_metric!(measures);
