//! The Rust test executables: built once, all together, and shared out among the suites.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::script::{Run, Timed, quoted};
use crate::suite::{Selection, Suite};

/// One executable and the names of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The crate's folder in `crates`.
    package: String,
    target: String,
    path: PathBuf,
    tests: Vec<String>,
}

/// A line of `cargo test --no-run --message-format=json`.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds every test of the workspace. Cargo's messages go to standard error.
///
/// # Errors
/// If the build fails.
pub fn build(root: &Path, cargo: &[&str]) -> Result<Vec<Executable>, String> {
    let mut command = Command::new("cargo");
    command.args(cargo).arg("--message-format=json-render-diagnostics").current_dir(root);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests could not be built: see above".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages.filter_map(executable).map(|found| found.and_then(list)).collect()
}

fn executable(message: Message) -> Option<Result<Executable, String>> {
    let Message { manifest_path, executable, target, profile } = message;
    if !profile?.test {
        return None;
    }
    let (path, target) = (executable?, target?.name);
    let folder = manifest_path.as_deref().and_then(Path::parent).and_then(Path::file_name);
    let Some(package) = folder.and_then(|name| name.to_str()) else {
        return Some(Err(format!("cargo does not say which crate {} belongs to", path.display())));
    };
    Some(Ok(Executable { package: package.to_owned(), target, path, tests: Vec::new() }))
}

/// Asks an executable for the names of its tests.
fn list(executable: Executable) -> Result<Executable, String> {
    let path = &executable.path;
    let output = Command::new(path).args(["--list", "--format", "terse"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tests = text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
    Ok(Executable { tests, ..executable })
}

/// How the suites share out the tests of the executables.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    pub executables: &'a [Executable],
    /// All of them, also those that do not run now.
    pub suites: &'a [Suite],
}

impl<'a> Shares<'a> {
    /// The tests of an executable that a suite takes by one of its selections. A selection that asks for no names leaves
    /// out what other suites ask for by name; suites that repeat another's tests neither leave out nor count.
    fn taken(&self, executable: &'a Executable, suite: &Suite, selection: &Selection) -> Vec<&'a str> {
        let is_rest = selection.only.is_empty() && suite.seam.is_none();
        let others = self.suites.iter().filter(|other| is_rest && other.seam.is_none() && other.name != suite.name);
        let by_name = others.flat_map(|other| &other.rust).filter(|one| !one.only.is_empty() && executable.is_of(one));
        let by_name: Vec<&Selection> = by_name.collect();
        let is_taken = |test: &&str| selection.takes(test) && !by_name.iter().any(|one| one.takes(test));
        let tests = executable.tests.iter().map(String::as_str);
        tests.filter(|test| executable.is_of(selection) && is_taken(test)).collect()
    }

    /// Whether a suite runs this test of an executable.
    fn has(&self, suite: &Suite, executable: &'a Executable, test: &str) -> bool {
        suite.rust.iter().any(|selection| self.taken(executable, suite, selection).contains(&test))
    }

    /// Checks that each test belongs to exactly one suite, not counting suites that repeat another's tests, and that a
    /// suite has the tests that its `timing` names.
    ///
    /// # Errors
    /// Names those that belong to none or to several, or do not exist.
    pub fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        for executable in self.executables {
            let mut takers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for suite in self.suites.iter().filter(|suite| suite.seam.is_none()) {
                for test in suite.rust.iter().flat_map(|selection| self.taken(executable, suite, selection)) {
                    takers.entry(test).or_default().push(&suite.name);
                }
            }
            for test in &executable.tests {
                let names = takers.get(test.as_str()).map_or(&[][..], Vec::as_slice);
                if names.len() != 1 {
                    let of = if names.is_empty() { "no suite".to_owned() } else { names.join(" and ") };
                    wrong.push(format!("{}:{} {test} is in {of}", executable.package, executable.target));
                }
            }
        }
        for suite in self.suites {
            let has = |test: &str| self.executables.iter().any(|executable| self.has(suite, executable, test));
            let strange = suite.timing.iter().filter(|test| !has(test));
            wrong.extend(strange.map(|test| format!("{} has no test {test}, which its `timing` names", suite.name)));
        }
        match wrong.len() {
            0 => Ok(()),
            1..10 => Err(wrong.join("\n")),
            more => Err(format!("{}\nand {} more", wrong[..9].join("\n"), more - 9)),
        }
    }

    /// What a suite of Rust tests runs.
    pub fn runs(&self, root: &Path, suite: &Suite) -> Vec<Run> {
        let mut runs = Vec::new();
        for selection in &suite.rust {
            for executable in self.executables {
                let taken = self.taken(executable, suite, selection);
                if taken.is_empty() {
                    continue;
                }
                let mut arguments = arguments(executable, selection, &taken);
                arguments.extend(suite.threads.map(|threads| format!("--test-threads {threads}")));
                runs.push(executable.run(root, suite, &arguments));
            }
        }
        runs
    }

    /// Those of a suite's tests that may be tried again.
    pub fn timed(&self, root: &Path, suite: &Suite) -> Vec<Timed> {
        let of = |test: &String| {
            let having = self.executables.iter().filter(|executable| self.has(suite, executable, test));
            let timed = having.map(|executable| {
                let run = executable.run(root, suite, &["--exact".to_owned(), quoted(test)]);
                Timed { test: test.clone(), run }
            });
            timed.collect::<Vec<_>>()
        };
        suite.timing.iter().flat_map(of).collect()
    }
}

/// What has an executable run what a selection takes: the selection's own words, or all others left out by name.
fn arguments(executable: &Executable, selection: &Selection, taken: &[&str]) -> Vec<String> {
    let skip = |test: &str| format!("--skip {}", quoted(test));
    if executable.tests.iter().filter(|test| selection.takes(test)).count() == taken.len() {
        let only = selection.only.iter().map(|part| quoted(part));
        return only.chain(selection.skip.iter().map(|part| skip(part))).collect();
    }
    let others = executable.tests.iter().filter(|test| !taken.contains(&test.as_str()));
    ["--exact".to_owned()].into_iter().chain(others.map(|test| skip(test))).collect()
}

impl Executable {
    fn is_of(&self, selection: &Selection) -> bool {
        self.package == selection.package && selection.target.as_ref().is_none_or(|target| *target == self.target)
    }

    /// Some of its tests, in the folder of its crate, as cargo does it.
    fn run(&self, root: &Path, suite: &Suite, arguments: &[String]) -> Run {
        let Self { package, target, path, .. } = self;
        let folder = root.join("crates").join(package);
        let seam = suite.seam.as_ref().map(|seam| format!("PUSHLAB_TEST_SEAM={} ", quoted(seam)));
        let (folder, path) = (quoted(&folder.to_string_lossy()), quoted(&path.to_string_lossy()));
        let command = format!("cd {folder} && {}{path} {}", seam.unwrap_or_default(), arguments.join(" "));
        Run { title: format!("{package} {target}"), command }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(target: &str, tests: &[&str]) -> Executable {
        let tests = tests.iter().map(|test| (*test).to_owned()).collect();
        let path = PathBuf::from(format!("/target/{target}"));
        Executable { package: "lab".to_owned(), target: target.to_owned(), path, tests }
    }

    fn selection(only: &[&str], skip: &[&str]) -> Selection {
        let owned = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        Selection { package: "lab".to_owned(), target: Some("it".to_owned()), only: owned(only), skip: owned(skip) }
    }

    fn suite(name: &str, rust: Vec<Selection>) -> Suite {
        Suite { name: name.to_owned(), rust, ..Suite::default() }
    }

    fn check(executables: &[Executable], suites: &[Suite]) -> Result<(), String> {
        Shares { executables, suites }.check()
    }

    #[test]
    fn each_test_is_in_one_suite() {
        let executables = [executable("it", &["kills::a", "results::b"])];
        let kills = suite("kills", vec![selection(&["kills::"], &[])]);
        let rest = suite("rest", vec![selection(&[], &[])]);
        let again = Suite { seam: Some("lanes".to_owned()), ..suite("again", vec![selection(&["results::"], &[])]) };
        assert_eq!(check(&executables, &[kills.clone(), rest.clone(), again.clone()]), Ok(()));
        for (suites, wrong) in [
            (vec![kills.clone()], "lab:it results::b is in no suite"),
            (vec![kills.clone(), kills.clone(), rest.clone()], "lab:it kills::a is in kills and kills"),
            (vec![kills, rest.clone(), suite("too", rest.rust)], "lab:it results::b is in rest and too"),
        ] {
            assert_eq!(check(&executables, &suites), Err(wrong.to_owned()));
        }
    }

    #[test]
    fn a_script_runs_what_a_selection_takes() {
        let executables = [executable("it", &["kills::a", "results::b"]), executable("other", &["c"])];
        let script = |suites: &[Suite]| {
            let shares = Shares { executables: &executables, suites };
            crate::script::script(&shares.runs(Path::new("/it's"), &suites[0]))
        };
        let own = Suite { threads: Some(6), ..suite("own", vec![selection(&["results::"], &["kills::"])]) };
        let text = script(std::slice::from_ref(&own));
        let lines: Vec<&str> = text.lines().collect();
        let command = r"(cd '/it'\''s/crates/lab' && '/target/it' 'results::' --skip 'kills::' --test-threads 6) || { status=1; echo '== lab it FAILED'; }";
        assert_eq!(lines, ["status=0", "echo '== lab it'", command, "exit $status"]);
        let again = Suite { seam: Some("lanes".to_owned()), ..own.clone() };
        assert_eq!(script(&[again]), text.replace("'/target/it'", "PUSHLAB_TEST_SEAM='lanes' '/target/it'"));
        assert_eq!(script(&[suite("none", vec![selection(&["d"], &[])])]), "status=0\nexit $status");

        let rest = suite("rest", vec![selection(&[], &[])]);
        let text = script(&[rest.clone(), own.clone()]);
        assert!(text.contains("'/target/it' --exact --skip 'results::b')"), "{text}");
        let again = Suite { seam: Some("lanes".to_owned()), ..rest };
        let text = script(&[again, own]);
        assert!(text.contains("'/target/it' )"), "a suite that repeats takes all that it asks for: {text}");
    }

    #[test]
    fn a_timed_test_is_run_alone() {
        let executables = [executable("it", &["pace::a", "pace::ab"]), executable("other", &["pace::a"])];
        let timing = vec!["pace::a".to_owned()];
        let own = Suite { timing, threads: Some(6), ..suite("pace", vec![selection(&[], &[])]) };
        let shares = Shares { executables: &executables[..1], suites: std::slice::from_ref(&own) };
        let command = "cd '/p/crates/lab' && '/target/it' --exact 'pace::a'".to_owned();
        let run = Run { title: "lab it".to_owned(), command };
        assert_eq!(shares.timed(Path::new("/p"), &own), [Timed { test: "pace::a".to_owned(), run }]);
        assert_eq!(shares.check(), Ok(()));
        let typo = Suite { timing: vec!["pace::b".to_owned()], ..own };
        let wrong = "pace has no test pace::b, which its `timing` names";
        assert_eq!(check(&executables[..1], &[typo]), Err(wrong.to_owned()));
    }

    #[test]
    fn a_line_of_cargo_names_an_executable() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/lab/Cargo.toml","target":{"name":"it"},
            "profile":{"test":true},"executable":"/p/target/debug/deps/it-1"}"#;
        let message = serde_json::from_str(line).expect("it is cargo's form");
        let found = super::executable(message).expect("a test").expect("its crate is told");
        assert_eq!((found.package.as_str(), found.target.as_str()), ("lab", "it"));
        let bin = line.replace("true", "false");
        assert!(super::executable(serde_json::from_str(&bin).expect("it is cargo's form")).is_none());
    }
}
