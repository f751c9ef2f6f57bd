//! Values with their intervals.

use pushlab_store::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval; equals `value` when there is only one run.
    pub low: f64,
    /// Upper end of the 95 % interval; equals `value` when there is only one run.
    pub high: f64,
    /// Runs behind it. With 1 there is no interval, and a reader must say so.
    pub runs: u32,
    /// How exact it is, where less than a number is known: of what a study printed, and `min` of a measured rate that was
    /// the load's limit, so that the subject may do better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

impl Estimate {
    /// Whether the quantity is at least this, and may be more.
    pub fn is_lower_bound(&self) -> bool {
        self.bound == Some(Bound::Min)
    }
}
