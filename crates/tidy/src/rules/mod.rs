//! The house rules, one file each: a [`Tree`] in, findings out.

mod changelog;
mod circles;
mod decoders;
mod finding;
mod layers;
mod leftovers;
mod named_paths;
mod readme;
mod sans_io;
mod shape;
mod unsafety;

pub use finding::{Finding, Severity};

use crate::codes::TABLE;
use crate::generate::Output;
use crate::tree::Tree;

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
}
