//! The house rules, one file each: a [`Tree`] in, findings out.

mod changelog;
mod circles;
mod decoders;
mod layers;
mod leftovers;
mod named_paths;
mod readme;
mod sans_io;
mod shape;
mod unsafety;

use std::fmt;

use crate::codes::TABLE;
use crate::generate::Output;
use crate::tree::Tree;

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

/// Runs every rule.
pub fn check(tree: &Tree, outputs: &[Output]) -> Vec<Finding> {
    let rules = [
        layers::check,
        circles::check,
        sans_io::check,
        named_paths::check,
        readme::check,
        shape::check,
        unsafety::check,
        leftovers::check,
        decoders::check,
        changelog::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.extend(out_of_date(tree, outputs));
    findings
}

fn out_of_date(tree: &Tree, outputs: &[Output]) -> Vec<Finding> {
    let stale = |output: &&Output| tree.text(output.path) != Some(&output.text);
    let finding = |output: &Output| {
        let what = format!("is not what {TABLE} generates");
        Finding::new(output.path, 1, what, "run `make generate`, and change the table rather than this file")
    };
    outputs.iter().filter(stale).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_file_must_be_current() {
        let outputs = [Output { path: "docs/codes.md", text: "new".to_owned() }];
        assert_eq!(out_of_date(&Tree::of(&[("docs/codes.md", "old")]), &outputs).len(), 1);
        assert_eq!(out_of_date(&Tree::of(&[]), &outputs).len(), 1);
        assert_eq!(out_of_date(&Tree::of(&[("docs/codes.md", "new")]), &outputs).len(), 0);
    }

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding::new("a/b.rs", 7, "is wrong", "correct it");
        assert_eq!(finding.to_string(), "a/b.rs:7: is wrong; correct it");
    }
}
