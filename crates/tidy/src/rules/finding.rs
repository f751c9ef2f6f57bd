//! What a rule finds.

use std::fmt;

/// Whether a finding fails the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Fails.
    Violation,
    /// Is only printed.
    Warning,
}

/// One thing to repair: where, what is wrong, what to do.
#[derive(Debug)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub what: String,
    pub fix: String,
    pub severity: Severity,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), fix: fix.into(), severity: Severity::Violation }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, fix, severity } = self;
        let warning = if *severity == Severity::Warning { "warning: " } else { "" };
        write!(f, "{warning}{path}:{line}: {what}; {fix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding::new("a/b.rs", 7, "is wrong", "correct it");
        assert_eq!(finding.to_string(), "a/b.rs:7: is wrong; correct it");
    }
}
