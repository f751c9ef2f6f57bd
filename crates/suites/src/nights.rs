//! When the suites of a night last passed: `tests/nights.toml`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::date::Date;
use crate::suite::{Length, Suite};

/// Where it is written.
pub const FILE: &str = "tests/nights.toml";
/// A suite of a night has to have passed since.
const AGE_MAX_DAYS: i64 = 31;

/// That a suite passed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Night {
    /// The suite's.
    pub name: String,
    pub date: Date,
    /// What was checked out, by its short hash.
    pub commit: String,
    pub seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    night: Vec<Night>,
}

fn parse(text: &str) -> Result<Vec<Night>, String> {
    toml::from_str::<File>(text).map(|file| file.night).map_err(|error| format!("{FILE}: {error}"))
}

fn read(root: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("cannot read {FILE}: {error}"))
}

/// What is wrong with the nights, a line each with the command that mends it.
///
/// # Errors
/// What is wrong with the file.
pub fn check(root: &Path, suites: &[Suite], today: Date) -> Result<Vec<String>, String> {
    Ok(faults(&parse(&read(root)?)?, suites, today))
}

fn faults(nights: &[Night], suites: &[Suite], today: Date) -> Vec<String> {
    let of_night = || suites.iter().filter(|suite| suite.length == Length::Night).map(|suite| &suite.name);
    let wrong = of_night().filter_map(|name| {
        let what = match nights.iter().find(|night| night.name == *name) {
            None => "has not passed yet".to_owned(),
            Some(Night { date, .. }) => match today.days_since(*date) {
                0..=AGE_MAX_DAYS => return None,
                // The clocks of two machines may be on two sides of midnight.
                -1 => return None,
                ..-1 => format!("passed on {date}, which is yet to come"),
                days => format!("last passed on {date}, {days} days ago"),
            },
        };
        Some(format!("{name} {what}: make test-night SUITES=\"{name}\""))
    });
    let unknown = nights.iter().filter(|night| of_night().all(|name| *name != night.name));
    let unknown = unknown.map(|Night { name, .. }| format!("{name} is not a night suite: remove it from {FILE}"));
    wrong.chain(unknown).collect()
}

/// The commit that is checked out, by its short hash.
///
/// # Errors
/// If files differ from it, other than the list of nights itself.
pub fn commit(root: &Path) -> Result<String, String> {
    let changed = git(root, &["status", "--porcelain", "--", ".", &format!(":!{FILE}")])?;
    match changed.lines().next() {
        Some(first) => {
            Err(format!("files differ from the commit, such as {}: commit or stash them", first.trim_start()))
        }
        None => Ok(git(root, &["rev-parse", "--short", "HEAD"])?.trim().to_owned()),
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes down suites that passed, with how long each took; `before` is what [`commit`] said before they ran.
///
/// # Errors
/// If it is not certain what they ran with, or the file is wrong or cannot be written.
pub fn record(root: &Path, passed: &[(&str, Duration)], before: Result<String, String>) -> Result<(), String> {
    let commit_before = before?;
    if commit(root)? != commit_before {
        return Err("another commit was checked out meanwhile".to_owned());
    }
    let date = Date::today();
    let night = |&(name, took): &(&str, Duration)| {
        let (name, commit) = (name.to_owned(), commit_before.clone());
        Night { name, date, commit, seconds: took.as_secs() }
    };
    let text = with(&read(root)?, passed.iter().map(night).collect())?;
    std::fs::write(root.join(FILE), text).map_err(|error| format!("cannot write it: {error}"))
}

/// The text of the file with these nights instead of others of the same names, sorted; its comment stays.
fn with(text: &str, new: Vec<Night>) -> Result<String, String> {
    let mut nights = parse(text)?;
    nights.retain(|old| new.iter().all(|night| night.name != old.name));
    nights.extend(new);
    nights.sort_by(|a, b| a.name.cmp(&b.name));
    let comment = text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
    let tables = nights.iter().map(|Night { name, date, commit, seconds }| {
        format!("\n[[night]]\nname = \"{name}\"\ndate = \"{date}\"\ncommit = \"{commit}\"\nseconds = {seconds}\n")
    });
    Ok(comment.chain(tables).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_os::folder::TemporaryFolder;

    fn night(name: &str, date: &str) -> Night {
        Night {
            name: name.to_owned(),
            date: date.parse().expect("a date"),
            commit: "0123abc".to_owned(),
            seconds: 5400,
        }
    }

    #[test]
    fn each_suite_of_a_night_has_passed_of_late() {
        let suite = |name: &str, length| Suite { name: name.to_owned(), length, ..Suite::default() };
        let suites = [suite("rust", Length::Everyday), suite("kills", Length::Night)];
        let today = "2026-11-29".parse().expect("a date");
        let mend = "make test-night SUITES=\"kills\"";
        for (nights, expected) in [
            (vec![], vec![format!("kills has not passed yet: {mend}")]),
            (vec![night("kills", "2026-11-30")], vec![]),
            (vec![night("kills", "2026-10-29")], vec![]),
            (vec![night("kills", "2026-10-28")], vec![format!("kills last passed on 2026-10-28, 32 days ago: {mend}")]),
            (
                vec![night("kills", "2026-12-01")],
                vec![format!("kills passed on 2026-12-01, which is yet to come: {mend}")],
            ),
            (
                vec![night("kills", "2026-11-29"), night("rust", "2026-11-29")],
                vec!["rust is not a night suite: remove it from tests/nights.toml".to_owned()],
            ),
        ] {
            assert_eq!(faults(&nights, &suites, today), expected);
        }
    }

    #[test]
    fn a_new_night_takes_the_place_of_an_old_one() {
        let comment = "# Why.\n# How.\n";
        let text = with(comment, vec![night("b", "2026-11-01"), night("c", "2026-11-02")]).expect("it is right");
        let text = with(&text, vec![night("c", "2026-11-03"), night("a", "2026-11-03")]).expect("it is right");
        let nights = [night("a", "2026-11-03"), night("b", "2026-11-01"), night("c", "2026-11-03")];
        assert_eq!(parse(&text), Ok(nights.to_vec()));
        assert!(text.starts_with(&format!("{comment}\n[[night]]\nname = \"a\"\n")), "{text}");
        assert!(parse("[[night]]\nname = \"a\"\n").is_err_and(|why| why.starts_with(FILE)));
    }

    #[test]
    fn nothing_is_written_of_what_is_not_committed() {
        let folder = TemporaryFolder::make("nights").expect("there is room");
        let root = folder.path();
        let git = |arguments: &[&str]| git(root, arguments).expect("git does it");
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).expect("there is room");
        std::fs::create_dir(root.join("tests")).expect("there is room");
        write(FILE, "# Why.\n");
        git(&["init", "--quiet"]);
        git(&["add", "."]);
        let commit_all =
            ["-c", "user.name=a", "-c", "user.email=a", "-c", "commit.gpgsign=false", "commit", "-qam", "x"];
        git(&commit_all);
        let took = Duration::from_secs(60);

        let before = commit(root);
        record(root, &[("kills", took)], before.clone()).expect("all is committed");
        let written = read(root).expect("it is there");
        assert!(written.contains("name = \"kills\"\n") && written.ends_with("seconds = 60\n"), "{written}");
        record(root, &[("cuts", took)], before.clone()).expect("the list itself may differ");

        write("strange", "");
        let refused = record(root, &[("clocks", took)], before.clone()).expect_err("a file is not committed");
        assert_eq!(refused, "files differ from the commit, such as ?? strange: commit or stash them");
        git(&["add", "."]);
        git(&commit_all);
        let refused = record(root, &[("clocks", took)], before).expect_err("the commit is another");
        assert_eq!(refused, "another commit was checked out meanwhile");
        assert!(!read(root).expect("it is there").contains("clocks"));
    }
}
