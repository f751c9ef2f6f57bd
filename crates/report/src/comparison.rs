//! What results differ in.

use super::estimate::Estimate;
use pushlab_stats::Factor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What results differ in: each of the others against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The first: what the others are compared with.
    pub baseline: String,
    /// The others.
    pub candidates: Vec<String>,
    /// In a sentence or two: what changed, what did not, how sure.
    pub summary: String,
    /// Cells that the baseline measured and a candidate ran without one run that counts, and quantiles that it does not
    /// reach any more, and why.
    pub missing: Vec<String>,
    /// One row for each candidate, cell and metric that both sides have, what changed first.
    pub rows: Vec<ComparisonRow>,
}

/// A candidate against the baseline, in one metric at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonRow {
    /// Which candidate.
    pub candidate: String,
    /// Which cell: `tangen-broadcast · websocket · 300 clients`.
    pub cell: String,
    /// The metric's name.
    pub metric: String,
    /// The baseline's figure.
    pub baseline: Estimate,
    /// The candidate's figure.
    pub value: Estimate,
    /// Candidate less baseline, in the metric's unit, with its interval.
    pub difference: Estimate,
    /// The difference as a share of the baseline, per cent; absent where the baseline is 0.
    pub relative_percent: Option<f64>,
    /// How many times the baseline's figure it is, so wide that the intervals of all rows hold together; absent with too
    /// few runs, and where a figure is not above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<Factor>,
    /// Margin within which both are as good as each other, per cent, fixed before the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<f64>,
    /// Cliff's delta, −1 to 1.
    pub effect: f64,
    /// Its size in words: `negligible`, `small`, `medium`, `large`.
    pub magnitude: String,
    /// Chance of such a difference if there were none, corrected for the number of rows; absent with too few runs.
    pub p_value: Option<f64>,
    /// What it comes to.
    pub change: Change,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A change for the worse that chance does not explain.
    Worse,
    /// A change for the better that chance does not explain.
    Better,
    /// A change of something that is neither good nor bad.
    Different,
    /// Neither a change nor equivalence was shown: more runs would decide. Reports before 0.2.0 called it `same`, whether
    /// the two were as good as each other or not.
    #[serde(alias = "same")]
    Undecided,
    /// Too few runs to say.
    Unknown,
    /// As good as each other, within the margin.
    Equivalent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_first_version_can_be_read() {
        let figure = r#"{"value": 1, "low": 0.9, "high": 1.1, "runs": 3}"#;
        let row = format!(
            r#"{{"candidate": "b", "cell": "c", "metric": "cpu", "baseline": {figure}, "value": {figure}, "difference": {figure},
                "relative_percent": 1.0, "effect": 0.1, "magnitude": "small", "p_value": 0.5, "change": "same"}}"#
        );
        let row: ComparisonRow = serde_json::from_str(&row).unwrap();
        assert_eq!((row.change, row.factor, row.margin_percent), (Change::Undecided, None, None));
    }
}
