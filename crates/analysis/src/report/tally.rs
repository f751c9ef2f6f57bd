//! How many runs hold something to report.

use super::samples::RunValues;

/// Whether a campaign's records hold anything to report, and what went wrong with the rest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Runs whose figures count.
    pub valid: usize,
    /// Those of them that were tried more than once.
    pub valid_later: usize,
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
        Self { valid: runs.len() - failed - void, valid_later, void, failed }
    }
}
