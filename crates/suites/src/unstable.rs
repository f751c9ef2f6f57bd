//! Tests that passed only when tried again: those known for it (`tests/unstable.toml`), and those of this CI run.
//!
//! A busy machine explains one of them now and then. Two in one run are a sign that something is wrong, unless they are
//! known.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::date::Date;
use crate::outcome::Outcome;
use crate::suite::Suite;

/// Where those known are listed.
pub const FILE: &str = "tests/unstable.toml";
/// So many that are not known fail a CI run.
const TOO_MANY: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    unstable: Vec<Known>,
}

/// A test that is known for it, and being looked into.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    test: String,
    /// When it was seen first.
    #[serde(rename = "date")]
    _date: Date,
    /// What may be the reason.
    #[serde(rename = "suspicion")]
    _suspicion: String,
}

/// Reads the tests that are known.
///
/// # Errors
/// What is wrong with the file: no suite's `timing` has a test, for one.
pub fn known(root: &Path, suites: &[Suite]) -> Result<BTreeSet<String>, String> {
    let text = fs::read_to_string(root.join(FILE)).map_err(|error| format!("cannot read {FILE}: {error}"))?;
    parse(&text, suites).map_err(|why| format!("{FILE}: {why}"))
}

fn parse(text: &str, suites: &[Suite]) -> Result<BTreeSet<String>, String> {
    let File { unstable } = toml::from_str(text).map_err(|error| error.to_string())?;
    let known: BTreeSet<String> = unstable.into_iter().map(|known| known.test).collect();
    match known.iter().find(|test| !suites.iter().any(|suite| suite.timing.contains(test))) {
        Some(test) => Err(format!("no suite has {test} in its `timing`")),
        None => Ok(known),
    }
}

/// The unstable tests of a CI run, which calls this program more than once: a file that it removes at its start, with a
/// line for each, suite and test.
#[derive(Debug)]
pub struct OfRun(PathBuf);

impl OfRun {
    /// In the folder of the logs.
    pub fn new(logs: &Path) -> Self {
        Self(logs.join("unstable"))
    }

    /// Adds those of these suites. Returns all that are not known, if they are too many.
    ///
    /// # Errors
    /// If the file cannot be written or read.
    pub fn add(&self, outcomes: &[Outcome], known: &BTreeSet<String>) -> Result<Vec<String>, String> {
        let lines = |outcome: &Outcome| -> Vec<String> {
            outcome.unstable.iter().map(|test| format!("{} {test}\n", outcome.name)).collect()
        };
        let new: String = outcomes.iter().flat_map(lines).collect();
        let write = || {
            let mut file = fs::File::options().create(true).append(true).open(&self.0)?;
            file.write_all(new.as_bytes())?;
            fs::read_to_string(&self.0)
        };
        let all = write().map_err(|error| format!("cannot write {}: {error}", self.0.display()))?;
        let is_known = |line: &str| line.split_once(' ').is_some_and(|(_, test)| known.contains(test));
        let strange: Vec<String> = all.lines().filter(|line| !is_known(line)).map(str::to_owned).collect();
        Ok(if strange.len() >= TOO_MANY { strange } else { Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::outcome::End;
    use pushlab_os::folder::TemporaryFolder;
    use std::time::Duration;

    #[test]
    fn those_known_are_tests_of_timing() {
        let suites = [Suite { timing: vec!["pace::a".to_owned()], ..Suite::default() }];
        let entry = "[[unstable]]\ntest = \"pace::a\"\ndate = \"2026-11-29\"\nsuspicion = \"a slow disk\"\n";
        assert_eq!(parse("", &suites), Ok(BTreeSet::new()));
        assert_eq!(parse(entry, &suites), Ok(BTreeSet::from(["pace::a".to_owned()])));
        assert_eq!(parse(entry, &[]), Err("no suite has pace::a in its `timing`".to_owned()));
        assert!(parse("[[unstable]]\ntest = \"pace::a\"\n", &suites).is_err(), "a date and a suspicion are needed");
    }

    #[test]
    fn two_that_are_not_known_are_too_many() {
        let folder = TemporaryFolder::make("unstable").expect("there is room");
        let of_run = OfRun::new(folder.path());
        let known = BTreeSet::from(["known".to_owned()]);
        let outcome = |name: &str, tests: &[&str]| Outcome {
            name: name.to_owned(),
            end: End::Passed,
            counts: Counts::default(),
            unstable: tests.iter().map(|test| (*test).to_owned()).collect(),
            took: Duration::ZERO,
            log: PathBuf::new(),
        };
        let add = |outcomes: &[Outcome]| of_run.add(outcomes, &known).expect("there is room");
        assert!(add(&[]).is_empty());
        assert!(add(&[outcome("lab", &["known", "a"]), outcome("load", &["known"])]).is_empty());
        assert_eq!(add(&[outcome("link", &["b"])]), ["lab a", "link b"], "in two calls of the program");
    }
}
