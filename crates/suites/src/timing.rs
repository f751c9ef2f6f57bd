//! Tests whose outcome may depend on the machine's pace: `timing` in `tests/suites.toml`. If only such tests of a suite
//! failed, they are tried once more; what is wrong fails again, and so does what a stall of the machine does not explain.

use crate::counts::Counts;
use crate::failures;
use crate::outcome::End;
use crate::script::{Timed, script};

/// The first try of a suite some of whose tests are tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    counts: Counts,
    /// Those that failed.
    tests: Vec<String>,
    /// How much of the log is about it, in bytes.
    log_bytes: usize,
}

/// What came of a suite, after one try or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub end: End,
    pub counts: Counts,
    /// Tests that failed once, and passed when tried again.
    pub unstable: Vec<String>,
}

/// For a suite that failed with this output: the script that tries again what failed; none if it may not be.
pub fn second(output: &str, timed: &[Timed]) -> Option<(String, First)> {
    let failed = failures::of_rust(output)?;
    let find = |(title, test): &(&str, &str)| timed.iter().find(|one| one.run.title == *title && one.test == *test);
    let again: Vec<&Timed> = failed.iter().map(find).collect::<Option<_>>()?;
    let first = First {
        counts: Counts::read(output),
        tests: again.iter().map(|one| one.test.clone()).collect(),
        log_bytes: output.len(),
    };
    Some((script(again.iter().map(|one| &one.run)), first))
}

/// What came of a suite, by how its last try ended and all that it wrote.
pub fn judge(end: End, output: &str, first: Option<First>) -> Judgement {
    let begin = first.as_ref().map_or(0, |first| first.log_bytes);
    let counts = Counts::read(output.get(begin..).unwrap_or_default());
    let end = match (end, &first) {
        (End::Passed, _) if counts.failed > 0 => End::Failed,
        (End::Passed, None) if counts == Counts::default() => End::Empty,
        // Each of them ran.
        (End::Passed, Some(first)) if counts.passed != first.tests.len() as u64 => End::Failed,
        (end, _) => end,
    };
    let Some(first) = first else { return Judgement { end, counts, unstable: Vec::new() } };
    let counts = Counts { passed: first.counts.passed + counts.passed, failed: counts.failed };
    let unstable = if end == End::Passed { first.tests } else { Vec::new() };
    Judgement { end, counts, unstable }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Run;

    fn timed(test: &str) -> Timed {
        let run = Run { title: "load it".to_owned(), command: format!("run {test}") };
        Timed { test: test.to_owned(), run }
    }

    /// What an executable prints of which these tests failed.
    fn failing(title: &str, tests: &[&str]) -> String {
        let names: String = tests.iter().map(|test| format!("    {test}\n")).collect();
        let each: String = tests.iter().map(|test| format!("---- {test} stdout ----\npanicked\n\n")).collect();
        let result = format!("test result: FAILED. 7 passed; {} failed; 0 ignored", tests.len());
        format!("== {title}\nfailures:\n\n{each}\nfailures:\n{names}\n{result}\n\n== {title} FAILED\n")
    }

    fn passing(title: &str, passed: u64) -> String {
        format!("== {title}\ntest result: ok. {passed} passed; 0 failed; 0 ignored\n")
    }

    #[test]
    fn only_tests_of_timing_are_tried_again() {
        let may = [timed("late"), timed("pace")];
        for (output, expected) in [
            (failing("load it", &["late"]), Some(vec!["late"])),
            (passing("wire it", 3) + &failing("load it", &["pace", "late"]), Some(vec!["pace", "late"])),
            // Another test, another executable, one that crashed, one whose list is torn, and no executable at all.
            (failing("load it", &["late", "count"]), None),
            (failing("load it", &["late"]) + &failing("wire it", &["late"]), None),
            (failing("load it", &["late"]) + "== wire it\n(signal: 6)\n== wire it FAILED\n", None),
            (failing("load it", &["late", "pace"]).replace("    pace\n", "noise    pace\n"), None),
            (passing("load it", 3), None),
        ] {
            let tests = second(&output, &may).map(|(_, first)| first.tests);
            assert_eq!(tests, expected.map(|tests| tests.into_iter().map(str::to_owned).collect()), "{output}");
        }
        let (script, first) = second(&failing("load it", &["late"]), &may).expect("it may");
        assert!(script.contains("run late") && !script.contains("run pace"), "{script}");
        assert_eq!(first.counts, Counts { passed: 7, failed: 1 });
    }

    #[test]
    fn the_second_try_decides() {
        let one = failing("load it", &["late"]);
        let first = second(&one, &[timed("late")]).map(|(_, first)| first);
        for (end, more, first, expected, passed, failed) in [
            (End::Passed, passing("load it", 3), None, End::Passed, 3, 0),
            (End::Passed, String::new(), None, End::Empty, 0, 0),
            (End::Passed, "3 passed, 1 failed\n".to_owned(), None, End::Failed, 3, 1),
            (End::Failed, failing("load it", &["late"]), None, End::Failed, 7, 1),
            (End::Passed, passing("load it", 1), first.clone(), End::Passed, 8, 0),
            (End::Passed, passing("load it", 0), first.clone(), End::Failed, 7, 0),
            (End::Failed, "test result: FAILED. 0 passed; 1 failed\n".to_owned(), first.clone(), End::Failed, 7, 1),
            (End::TimedOut, String::new(), first, End::TimedOut, 7, 0),
        ] {
            let is_second = first.is_some();
            let output = if is_second { format!("{one}{more}") } else { more };
            let judgement = judge(end, &output, first);
            assert_eq!((judgement.end, judgement.counts), (expected, Counts { passed, failed }), "{output}");
            let unstable: &[&str] = if is_second && expected == End::Passed { &["late"] } else { &[] };
            assert_eq!(judgement.unstable, unstable);
        }
    }
}
