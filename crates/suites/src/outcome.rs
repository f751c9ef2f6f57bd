//! What came of a suite.

use std::path::PathBuf;
use std::time::Duration;

use crate::counts::Counts;

/// How a suite ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    /// It succeeded without running a test.
    Empty,
    TimedOut,
    Interrupted,
}

impl End {
    /// Whether something is wrong with the suite or with what it tests.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Passed | Self::Interrupted => false,
            Self::Failed | Self::Empty | Self::TimedOut => true,
        }
    }
}

/// What came of a suite.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub name: String,
    pub end: End,
    pub counts: Counts,
    /// Tests that failed once, and passed when tried again.
    pub unstable: Vec<String>,
    pub took: Duration,
    pub log: PathBuf,
}
