//! What the user reads: a line for each suite as it ends, and a table of all of them.

use std::time::Duration;

use crate::counts::Counts;
use crate::outcome::{End, Outcome};

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    name: String,
    tests: String,
    took: Duration,
    remark: &'static str,
}

impl Row {
    /// For something that was built.
    pub fn of_build(name: &str, took: Duration) -> Self {
        Self { name: format!("build: {name}"), tests: String::new(), took, remark: "" }
    }

    /// For a suite that ended.
    pub fn of_suite(outcome: &Outcome) -> Self {
        let Counts { passed, failed } = outcome.counts;
        let tests = (passed + failed).to_string();
        Self { name: outcome.name.clone(), tests, took: outcome.took, remark: remark(outcome) }
    }

    fn text(&self) -> String {
        let Self { name, tests, took, remark } = self;
        let line = format!("{name:<22} {tests:>6} {:>8}  {remark}", took.as_secs());
        line.trim_end().to_owned()
    }
}

fn remark(outcome: &Outcome) -> &'static str {
    match outcome.end {
        End::Passed if outcome.unstable.is_empty() => "",
        End::Passed => "unstable",
        End::Failed => "FAILED",
        End::Empty => "FAILED: no test ran",
        End::TimedOut => "FAILED: took too long and was killed",
        End::Interrupted => "interrupted",
    }
}

/// The table, with the time that it all took.
pub fn text(rows: &[Row], took: Duration) -> String {
    let head = format!("{:<22} {:>6} {:>8}", "suite", "tests", "seconds");
    let tests: u64 = rows.iter().filter_map(|row| row.tests.parse::<u64>().ok()).sum();
    let sum = Row { name: "all".to_owned(), tests: tests.to_string(), took, remark: "" };
    let lines = rows.iter().map(Row::text);
    [head].into_iter().chain(lines).chain([sum.text()]).collect::<Vec<_>>().join("\n") + "\n"
}

/// One line about a suite that ended.
pub fn line(outcome: &Outcome) -> String {
    let verdict = if outcome.end == End::Passed { "passed" } else { remark(outcome) };
    let Counts { passed, failed } = outcome.counts;
    format!("{:<22} {verdict}: {} tests, {} s", outcome.name, passed + failed, outcome.took.as_secs())
}

/// The last line: how many tests passed and failed; a suite that failed without a failed test counts as one.
pub fn closing(outcomes: &[Outcome]) -> String {
    let passed: u64 = outcomes.iter().map(|outcome| outcome.counts.passed).sum();
    let failed = outcomes.iter().map(|outcome| outcome.counts.failed.max(u64::from(outcome.end.is_failure())));
    format!("{passed} passed, {} failed", failed.sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, end: End, passed: u64, failed: u64) -> Outcome {
        let counts = Counts { passed, failed };
        let (name, took) = (name.to_owned(), Duration::from_millis(61_900));
        Outcome { name, end, counts, unstable: Vec::new(), took, log: "log".into() }
    }

    #[test]
    fn the_table_has_a_row_for_each_and_a_sum() {
        let unstable = Outcome { unstable: vec!["pace".to_owned()], ..outcome("load", End::Passed, 6, 0) };
        let outcomes = [outcome("rust", End::Passed, 900, 0), unstable, outcome("browser", End::Failed, 90, 5)];
        let mut rows = vec![Row::of_build("program", Duration::from_secs(120))];
        rows.extend(outcomes.iter().map(Row::of_suite));
        let text = text(&rows, Duration::from_secs(300));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "suite                   tests  seconds",
                "build: program                     120",
                "rust                      900       61",
                "load                        6       61  unstable",
                "browser                    95       61  FAILED",
                "all                      1001      300",
            ]
        );
        assert_eq!(closing(&outcomes), "996 passed, 5 failed");
    }

    #[test]
    fn a_suite_that_fails_without_a_failed_test_is_counted() {
        assert_eq!(
            closing(&[outcome("exports", End::Failed, 3, 0), outcome("docs", End::Empty, 0, 0)]),
            "3 passed, 2 failed"
        );
    }
}
