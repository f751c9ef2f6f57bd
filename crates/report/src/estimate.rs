//! Values with their intervals.

use pushlab_store::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// A value with its interval. A quantile is that of all runs together, and the spread of their own makes its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval; equals `value` when there is only one run.
    pub low: f64,
    /// Upper end of the 95 % interval; equals `value` when there is only one run.
    pub high: f64,
    /// Runs behind it, of a quantile those that have a value of their own. With 1 there is no interval, and a reader must say so.
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

/// Why there is no figure of something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lacking {
    /// The kind of reason.
    pub why: WhyLacking,
    /// In numbers, for people; of what failed, why its first run did.
    pub detail: String,
}

/// Kinds of reasons why there is no figure, in the order in which they follow those that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhyLacking {
    /// The quantile falls among what never came: it is longer than anybody waited, and worse than every value.
    NotReached,
    /// Too little that is independent was measured.
    TooFew,
    /// The generator itself may have made it: a warning takes it away.
    Withheld,
    /// All of its runs failed: it comes last.
    Failed,
}

impl WhyLacking {
    /// What stands in the figure's place.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotReached => "not reached",
            Self::TooFew => "too few",
            Self::Withheld => "withheld",
            Self::Failed => "failed",
        }
    }

    /// Whether it is known to come after all that have a figure; of the others nothing is known.
    pub fn is_behind(self) -> bool {
        matches!(self, Self::NotReached | Self::Failed)
    }
}

impl Display for Lacking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why.words(), self.detail)
    }
}
