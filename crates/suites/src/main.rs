//! Runs the test suites in `tests/suites.toml`: sets up what they need, runs them side by side, prints a table, and
//! leaves nothing behind.
//!
//! ```sh
//! pushlab-suites                 # what `make test` runs
//! pushlab-suites --long          # what `make test-long` runs
//! pushlab-suites --night         # what `make test-night` runs
//! pushlab-suites --nights        # says which suites of `make test-night` have not passed of late
//! pushlab-suites browser lab     # these two, `make test SUITES="browser lab"`
//! ```

mod counts;
mod date;
mod executables;
mod failures;
mod nights;
mod outcome;
mod processes;
mod schedule;
mod script;
mod suite;
mod table;
mod timing;
mod tools;
mod turn;
mod unstable;

use pushlab_os::files;
use pushlab_os::folder::TemporaryFolder;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use date::Date;
use executables::Shares;
use outcome::{End, Outcome};
use schedule::{Job, Place, Results};
use suite::{Length, Suite};
use table::Row;
use unstable::OfRun;

const USAGE: &str = "usage: pushlab-suites [--long | --night] [SUITE…]; without names it runs the suites of `make test`, \
                     with --long those of `make test-long`, with --night those of `make test-night`\n       \
                     pushlab-suites --nights; says which suites of `make test-night` have not passed of late";

/// What is built before anything runs: a name and a shell command. The program as it is released takes minutes to build, so
/// everyday suites test the one that is built with the Rust tests.
const PACKAGES: (&str, &str) = ("packages", "make --no-print-directory packages web/console/dist/report.html");
const RELEASE: (&str, &str) = ("release", "make --no-print-directory build");
/// Builds the Rust tests, and the examples that some suites use.
const CARGO: [&str; 5] = ["test", "--no-run", "--quiet", "--workspace", "--locked"];

fn main() -> ExitCode {
    let mut length = Length::Everyday;
    let mut names = Vec::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--nights"] {
        return code(check_nights());
    }
    for argument in arguments {
        match argument.as_str() {
            "--long" => length = Length::Long,
            "--night" => length = Length::Night,
            other if other.starts_with('-') => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
            _ => names.push(argument),
        }
    }
    code(test(length, &names))
}

fn code(verdict: Result<Verdict, String>) -> ExitCode {
    match verdict {
        Ok(Verdict::Passed) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::FAILURE,
        Ok(Verdict::Interrupted) => ExitCode::from(130),
        Err(message) => {
            eprintln!("tests: {message}");
            ExitCode::FAILURE
        }
    }
}

/// With less than this a folder counts as full, bytes: logs and results come in pieces.
const SPACE_BYTES_MIN: u64 = 64 << 10;

enum Verdict {
    Passed,
    Failed,
    Interrupted,
}

/// The repository's root: this crate is always built inside it.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

fn check_nights() -> Result<Verdict, String> {
    let root = root();
    let wrong = nights::check(&root, &suite::read(&root)?, Date::today())?;
    wrong.iter().for_each(|line| println!("{line}"));
    Ok(if wrong.is_empty() { Verdict::Passed } else { Verdict::Failed })
}

fn test(length: Length, names: &[String]) -> Result<Verdict, String> {
    let root = root();
    let all = suite::read(&root)?;
    let chosen = suite::choose(all.clone(), length, names)?;
    let known = unstable::known(&root, &all)?;
    let logs = logs(&root)?;
    let _turn = turn::take(&logs)?;
    let missing = tools::set_up(&root, &chosen)?;
    let (able, left_out) = tools::divide(chosen, &missing);
    let told = tools::tell(&left_out, &missing);
    print!("{told}");
    if !left_out.is_empty() && is_ci() {
        return Err("with CI=true no suite may be left out".to_owned());
    }
    let commit = (length == Length::Night).then(|| nights::commit(&root));
    if let Some(Err(why)) = &commit {
        println!("Passed suites will not be written to {}: {why}", nights::FILE);
    }
    let begun = Instant::now();
    let mut rows = Vec::new();
    let is_everyday = able.iter().all(|suite| suite.length == Length::Everyday);
    for (name, script) in [PACKAGES, RELEASE].into_iter().take(if is_everyday { 1 } else { 2 }) {
        rows.push(build(name, || shell(&root, script))?);
    }
    let mut executables = Vec::new();
    rows.push(build("tests", || {
        executables = executables::build(&root, &CARGO)?;
        Shares { executables: &executables, suites: &all }.check()
    })?);

    // From here on this process ends what it started; until now Ctrl-C did.
    processes::prepare().map_err(|error| format!("cannot manage child processes: {error}"))?;
    let temporary = Temporary::new()?;
    let place = place(&root, logs, &temporary);
    let (count, logs) = (able.len(), place.logs.display());
    println!("running {count} suites, at most {} at once; their logs go to {logs}", place.at_once_max);
    let nights = of_night(&able);
    let shares = Shares { executables: &executables, suites: &all };
    let jobs = able.into_iter().map(|suite| job(&root, suite, &shares)).collect();
    let results = schedule::run(&place, jobs, &mut |outcome| println!("{}", table::line(outcome)))?;
    let full: Vec<PathBuf> =
        [&place.logs, &std::env::temp_dir()].into_iter().filter(|at| is_full(at)).cloned().collect();
    let mut left_behind = schedule::leftovers();
    left_behind.extend(temporary.end());
    rows.extend(results.outcomes.iter().map(Row::of_suite));
    println!("\n{}", table::text(&rows, begun.elapsed()));
    print!("{told}");
    if let Some(commit) = commit.filter(|_| left_behind.is_empty()) {
        record_nights(&root, &nights, &results.outcomes, commit);
    }
    let strange = if is_ci() { OfRun::new(&place.logs).add(&results.outcomes, &known)? } else { Vec::new() };
    let verdict = tell(&results, &left_behind, &strange);
    if !matches!(verdict, Verdict::Passed) {
        full.iter()
            .for_each(|at| println!("No space is left in {}: free some space and run the tests again.", at.display()));
    }
    Ok(verdict)
}

/// Whether a test that writes into this folder may have failed because nothing more fits.
fn is_full(folder: &Path) -> bool {
    files::bytes_left(folder).is_ok_and(|bytes| bytes < SPACE_BYTES_MIN)
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Prints what went wrong. Last, because the end of a long output is what people see, and what is kept of it.
fn tell(results: &Results, left_behind: &[String], strange: &[String]) -> Verdict {
    let outcomes = &results.outcomes;
    outcomes.iter().filter(|outcome| !outcome.unstable.is_empty()).for_each(tell_unstable);
    outcomes.iter().filter(|outcome| outcome.end.is_failure()).for_each(tell_failure);
    if results.is_interrupted {
        println!("Interrupted: all running suites were stopped.");
        return Verdict::Interrupted;
    }
    for line in left_behind {
        println!("FAILED: left behind by a test, now cleaned up: {line}");
    }
    if !strange.is_empty() {
        println!("FAILED: too many tests of this CI run were unstable and are not in {}:", unstable::FILE);
        strange.iter().for_each(|line| println!("    {line}"));
    }
    println!("{}", table::closing(outcomes));
    let has_failed = outcomes.iter().any(|outcome| outcome.end.is_failure());
    let has_passed = !has_failed && left_behind.is_empty() && strange.is_empty();
    if has_passed { Verdict::Passed } else { Verdict::Failed }
}

fn of_night(suites: &[Suite]) -> Vec<String> {
    suites.iter().filter(|suite| suite.length == Length::Night).map(|suite| suite.name.clone()).collect()
}

/// Writes down which of these suites passed, or says why not.
fn record_nights(root: &Path, names: &[String], outcomes: &[Outcome], commit: Result<String, String>) {
    let of_night = outcomes.iter().filter(|outcome| outcome.end == End::Passed && names.contains(&outcome.name));
    let passed: Vec<_> = of_night.map(|outcome| (outcome.name.as_str(), outcome.took)).collect();
    if passed.is_empty() {
        return;
    }
    match nights::record(root, &passed, commit) {
        Ok(()) => println!("Written to {}, to be committed: {}", nights::FILE, names_of(&passed)),
        Err(why) => println!("Not written to {}: {}: {why}", nights::FILE, names_of(&passed)),
    }
}

fn names_of(passed: &[(&str, Duration)]) -> String {
    passed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Times a build.
fn build(name: &str, work: impl FnOnce() -> Result<(), String>) -> Result<Row, String> {
    println!("building: {name}");
    let begun = Instant::now();
    work()?;
    Ok(Row::of_build(name, begun.elapsed()))
}

/// Runs a shell command, whose output is shown only if it fails.
fn shell(root: &Path, script: &str) -> Result<(), String> {
    let output = Command::new("bash").args(["-c", script]).current_dir(root).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start bash: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("`{script}` failed: see above"))
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The folder for the logs, made if it is not there.
fn logs(root: &Path) -> Result<PathBuf, String> {
    let logs = target(root).join("tests");
    std::fs::create_dir_all(&logs).map_err(|error| format!("cannot make {}: {error}", logs.display()))?;
    Ok(logs)
}

fn place(root: &Path, logs: PathBuf, temporary: &Temporary) -> Place {
    let target = target(root);
    let path = std::env::var("PATH").unwrap_or_default();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let variables = [
        // Some servers are in folders that are not in an ordinary user's PATH.
        ("PATH", format!("{path}:/usr/sbin:/sbin")),
        ("TMPDIR", text(temporary.0.path().to_owned())),
        // Foreign servers are installed once, and not into the user's own cache.
        ("PUSHLAB_CACHE", text(target.join("tests/cache"))),
        ("NO_COLOR", "1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Most of them wait more than they work.
    Place { root: root.to_owned(), logs, variables, at_once_max: cores + 1 }
}

fn job(root: &Path, suite: Suite, shares: &Shares<'_>) -> Job {
    let of_crates = || script::script(&shares.runs(root, &suite));
    let script = suite.run.clone().unwrap_or_else(of_crates);
    let timed = shares.timed(root, &suite);
    let profile = if suite.length == Length::Everyday { "debug" } else { "release" };
    let program = target(root).join(profile).join("pushlab");
    Job { name: suite.name, script, program, timed, alone: suite.alone, longest: suite.length.longest() }
}

/// Prints what the log of a failed suite says of its failures.
fn tell_failure(outcome: &Outcome) {
    println!("{}: {}", table::line(outcome), outcome.log.display());
    tell_excerpt(outcome);
}

/// Prints which tests of a suite passed only when tried again, and how they failed first.
fn tell_unstable(outcome: &Outcome) {
    for test in &outcome.unstable {
        println!("unstable: {} {test} (failed once, passed when tried again)", outcome.name);
    }
    tell_excerpt(outcome);
}

fn tell_excerpt(outcome: &Outcome) {
    let output = std::fs::read(&outcome.log).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    // What passed has failed before, if its log is asked for.
    let end = if outcome.end == End::Passed { End::Failed } else { outcome.end };
    for line in failures::excerpt(&text, end) {
        println!("    {line}");
    }
}

/// A folder for the temporary files of all suites.
struct Temporary(TemporaryFolder);

impl Temporary {
    fn new() -> Result<Self, String> {
        // Paths of sockets begin with it, so it is short.
        let folder = TemporaryFolder::make("pl").map_err(|error| error.to_string())?;
        // Databases run as users of their own, and pass through it to folders of theirs.
        let passable = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(folder.path(), passable).map_err(|error| error.to_string())?;
        Ok(Self(folder))
    }

    /// Removes the folder and names what was left in it.
    fn end(self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        entries.map(|entry| format!("{}", entry.path().display())).collect()
    }
}
