//! How many runs hold something to report.

use super::run_values::RunValues;
use std::collections::BTreeMap;

/// Whether a campaign's records hold anything to report, and what went wrong with the rest.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Runs whose figures count.
    pub valid: usize,
    /// Those of them that were tried more than once.
    pub valid_later: usize,
    /// Why runs were tried again, whether they count in the end or not, and how often each.
    pub tried_again: BTreeMap<String, usize>,
    /// Runs that a warning voids.
    pub void: usize,
    /// Runs that failed.
    pub failed: usize,
}

impl Tally {
    /// Of these records.
    pub fn of(runs: &[&RunValues]) -> Self {
        let failed = runs.iter().filter(|run| run.failure.is_some()).count();
        let void = runs.iter().filter(|run| run.is_void()).count();
        let valid_later = runs.iter().filter(|run| run.counts() && run.attempts > 1).count();
        let mut tried_again = BTreeMap::new();
        for reason in runs.iter().flat_map(|run| &run.tried_again) {
            *tried_again.entry(reason.clone()).or_default() += 1;
        }
        Self { valid: runs.len() - failed - void, valid_later, tried_again, void, failed }
    }
}
