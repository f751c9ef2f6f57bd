//! The suites in `tests/suites.toml`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

/// Where the suites are listed.
pub const FILE: &str = "tests/suites.toml";

/// How often a suite is run, and how long it may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// By `make test`; a suite that says nothing.
    #[default]
    #[serde(skip)]
    Everyday,
    /// By `make test-long`.
    Long,
    /// By `make test-night`: at least once a month.
    Night,
}

impl Length {
    /// How long such a suite may take before it counts as hung and is killed.
    pub fn longest(self) -> Duration {
        let minutes = match self {
            Self::Everyday | Self::Long => 40,
            Self::Night => 180,
        };
        Duration::from_secs(minutes * 60)
    }
}

/// Tests that run together and make one row of the final table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// Tools that it cannot run without, as named in `tests/tools`; [`NAMESPACES`] and [`URING`] count as such.
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub length: Length,
    /// It measures: nothing else runs meanwhile.
    #[serde(default)]
    pub alone: bool,
    /// A shell command, run from the top of the repository; a suite has either this or `rust`.
    pub run: Option<String>,
    /// Tests of crates.
    #[serde(default)]
    pub rust: Vec<Selection>,
    /// Of these, tests whose outcome may depend on the machine's pace: [`crate::timing`].
    #[serde(default)]
    pub timing: Vec<String>,
    /// How many of these run at a time in one executable; by default one per core.
    pub threads: Option<u32>,
    /// It repeats another suite's tests with `PUSHLAB_TEST_SEAM` set to this.
    pub seam: Option<String>,
}

/// Some tests of a crate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The crate's folder in `crates`.
    pub package: String,
    /// A single target: `it`, or the crate's own name; by default all of them.
    pub target: Option<String>,
    /// Only tests whose names contain one of these.
    #[serde(default)]
    pub only: Vec<String>,
    /// No tests whose names contain one of these.
    #[serde(default)]
    pub skip: Vec<String>,
}

impl Selection {
    /// Whether a test of that name is among them, by the harness's own rule.
    pub fn takes(&self, test: &str) -> bool {
        let holds = |parts: &[String]| parts.iter().any(|part| test.contains(part.as_str()));
        (self.only.is_empty() || holds(&self.only)) && !holds(&self.skip)
    }
}

/// Stands for what network namespaces need, which no package provides.
pub const NAMESPACES: &str = "namespaces";
/// Stands for io_uring, which the kernel or a sandbox may refuse.
pub const URING: &str = "io-uring";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    suite: Vec<Suite>,
}

/// Reads the suites.
///
/// # Errors
/// What is wrong with the file.
pub fn read(root: &Path) -> Result<Vec<Suite>, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("cannot read {FILE}: {error}"))?;
    parse(&text).map_err(|why| format!("{FILE}: {why}"))
}

fn parse(text: &str) -> Result<Vec<Suite>, String> {
    let File { suite: suites } = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut names = BTreeSet::new();
    if let Some(twice) = suites.iter().find(|suite| !names.insert(&suite.name)) {
        return Err(format!("two suites are named {}", twice.name));
    }
    if let Some(Suite { name, .. }) = suites.iter().find(|suite| suite.run.is_some() != suite.rust.is_empty()) {
        return Err(format!("{name} needs either `run` or `rust`"));
    }
    match suites.iter().find(|suite| suite.run.is_some() && !suite.timing.is_empty()) {
        Some(Suite { name, .. }) => Err(format!("{name} has no tests in Rust, so none for `timing`")),
        None => Ok(suites),
    }
}

/// The suites of a length, or those named.
///
/// # Errors
/// A name that no suite has.
pub fn choose(suites: Vec<Suite>, length: Length, names: &[String]) -> Result<Vec<Suite>, String> {
    if let Some(unknown) = names.iter().find(|name| suites.iter().all(|suite| suite.name != **name)) {
        let known: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        return Err(format!("there is no suite {unknown}; the suites are {}", known.join(", ")));
    }
    let is_chosen = |suite: &Suite| match names {
        [] => suite.length == length,
        names => names.contains(&suite.name),
    };
    Ok(suites.into_iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = r#"
        [[suite]]
        name = "quick"
        rust = [{ package = "wire", skip = ["slow::"] }]
        threads = 4

        [[suite]]
        name = "slow"
        needs = ["nginx"]
        length = "long"
        run = "tests/slow"

        [[suite]]
        name = "killed-all-night"
        length = "night"
        run = "tests/kill"
    "#;

    #[test]
    fn a_file_is_read_and_chosen_from() {
        let suites = parse(THREE).expect("it is right");
        let names = |length, names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let chosen = choose(suites.clone(), length, &names).expect("they are known");
            chosen.into_iter().map(|suite| suite.name).collect()
        };
        assert_eq!(names(Length::Everyday, &[]), ["quick"]);
        assert_eq!(names(Length::Long, &[]), ["slow"]);
        assert_eq!(names(Length::Night, &[]), ["killed-all-night"]);
        assert_eq!(names(Length::Everyday, &["slow", "quick"]), ["quick", "slow"]);
        let error = choose(suites, Length::Everyday, &["fast".to_owned()]).expect_err("nobody has that name");
        assert_eq!(error, "there is no suite fast; the suites are quick, slow, killed-all-night");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let twice = format!("{THREE}{THREE}");
        assert!(parse(&twice).expect_err("a name twice").contains("two suites are named quick"));
        let idle = "[[suite]]\nname = \"idle\"\n";
        assert_eq!(parse(idle).expect_err("a suite without work"), "idle needs either `run` or `rust`");
        let timing = format!("{idle}run = \"true\"\ntiming = [\"a\"]\n");
        assert_eq!(parse(&timing).expect_err("a name too many"), "idle has no tests in Rust, so none for `timing`");
        assert!(parse(&format!("{idle}runs = \"x\"\n")).expect_err("a wrong key").contains("unknown field `runs`"));
    }

    #[test]
    fn a_selection_takes_what_the_harness_takes() {
        let selection = |only: &[&str], skip: &[&str]| Selection {
            package: "wire".to_owned(),
            target: None,
            only: only.iter().map(|part| (*part).to_owned()).collect(),
            skip: skip.iter().map(|part| (*part).to_owned()).collect(),
        };
        assert!(selection(&[], &[]).takes("a::b"));
        assert!(selection(&["a::"], &[]).takes("a::b"));
        assert!(!selection(&["c::"], &[]).takes("a::b"));
        assert!(!selection(&["a::"], &["b"]).takes("a::b"));
    }
}
