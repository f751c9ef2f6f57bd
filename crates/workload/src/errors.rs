//! Distinct errors, counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most distinct errors that are told apart; further ones are counted together.
pub const MAX_DISTINCT_ERRORS: usize = 32;

/// An error and how often it came.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// What happened.
    pub error: String,
    /// How often.
    pub count: u64,
}

/// Errors with their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    counts: Vec<(String, u64)>,
    others: u64,
}

impl ErrorTally {
    /// Counts an error.
    pub fn add(&mut self, error: &impl ToString) {
        self.add_n(error.to_string(), 1);
    }

    fn add_n(&mut self, error: String, count: u64) {
        if let Some((_, known)) = self.counts.iter_mut().find(|(known, _)| *known == error) {
            *known += count;
        } else if self.counts.len() < MAX_DISTINCT_ERRORS {
            self.counts.push((error, count));
        } else {
            self.others += count;
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Self) {
        self.others += other.others;
        other.counts.into_iter().for_each(|(error, count)| self.add_n(error, count));
    }

    /// Errors and their counts, the most frequent first.
    pub fn into_sorted(mut self) -> Vec<ErrorCount> {
        self.counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        if self.others > 0 {
            self.counts.push(("other errors".into(), self.others));
        }
        self.counts.into_iter().map(|(error, count)| ErrorCount { error, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_errors_are_bounded_and_none_is_dropped() {
        let mut tally = ErrorTally::default();
        (0..40).for_each(|i| tally.add(&format!("error {i}")));
        tally.add(&"error 3");
        let mut both = ErrorTally::default();
        both.merge(tally.clone());
        both.merge(tally);
        let sorted = both.into_sorted();
        assert_eq!(sorted.len(), MAX_DISTINCT_ERRORS + 1);
        assert_eq!((sorted[0].error.as_str(), sorted[0].count), ("error 3", 4));
        let last = sorted.last().unwrap();
        assert_eq!((last.error.as_str(), last.count), ("other errors", 16));
        assert_eq!(sorted.iter().map(|error| error.count).sum::<u64>(), 82);
    }
}
