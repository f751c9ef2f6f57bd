//! What a failed suite's output says of its failures.

use crate::counts::Counts;
use crate::outcome::End;

/// Lines shown of what one failed test or executable printed, and of the end of an output.
const LINES_EACH: usize = 60;
/// Lines shown of all of them.
const LINES_MAX: usize = 400;

/// The names of failed Rust tests and the end of what each printed; of an executable that failed without telling that,
/// the end of its output. A suite of many executables may have failed long before its end. Otherwise the end of the whole
/// output: other runners report failures there, and a stopped suite shows where it stopped.
pub fn excerpt(output: &str, end: End) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().collect();
    let (mut found, mut begin, mut has_told) = (Vec::new(), 0, false);
    for (at, &line) in lines.iter().enumerate() {
        if is_failed(line) {
            found.push(line);
        } else if is_heading(line) {
            has_told = true;
            let block = lines[at + 1..].split(|line| is_heading(line) || *line == "failures:").next();
            found.push(line);
            found.extend(last(block.unwrap_or_default()));
        } else if line.starts_with(TITLE) && line.ends_with(FAILED) {
            found.extend(last(&lines[begin..=at]).iter().filter(|_| !has_told));
        } else if line.starts_with(TITLE) {
            (begin, has_told) = (at, false);
        }
    }
    found.truncate(LINES_MAX);
    if found.is_empty() || end != End::Failed {
        found.extend(last(&lines));
    }
    found
}

/// The tests that failed, each with the title of its executable, if all that failed is tests: none if an executable
/// crashed, or if its output was not understood.
pub fn of_rust(output: &str) -> Option<Vec<(&str, &str)>> {
    let lines: Vec<&str> = output.lines().collect();
    let (mut found, mut begin) = (Vec::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        let Some(title) = line.strip_prefix(TITLE) else { continue };
        match title.strip_suffix(FAILED) {
            Some(title) => found.extend(names(&lines[begin..at])?.into_iter().map(|name| (title, name))),
            None => begin = at,
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The names at the end of what an executable printed, if they are as many as it says have failed.
fn names<'a>(lines: &[&'a str]) -> Option<Vec<&'a str>> {
    let result = lines.iter().rposition(|line| line.starts_with("test result: FAILED"))?;
    let list = lines[..result].rsplit(|line| *line == "failures:").next()?;
    let names: Vec<&str> = list.iter().filter_map(|line| line.strip_prefix("    ")).collect();
    (names.len() as u64 == Counts::read(lines[result]).failed).then_some(names)
}

/// What a suite's script puts before the name of an executable, and after it once it has failed.
const TITLE: &str = "== ";
const FAILED: &str = " FAILED";

fn is_failed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... FAILED")
}

/// Above what a failed test printed.
fn is_heading(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" stdout ----")
}

fn last<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    &lines[lines.len().saturating_sub(LINES_EACH)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = "test fine ... ok\n";

    #[test]
    fn failures_in_the_middle_are_found() {
        let output = format!(
            "== lab it\ntest a::b ... FAILED\ntest fine ... ok\n\nfailures:\n\n---- a::b stdout ----\npanicked\n\n\
             failures:\n    a::b\n\n== lab it FAILED\n== wire it\n{}",
            PASSED.repeat(200)
        );
        assert_eq!(excerpt(&output, End::Failed), ["test a::b ... FAILED", "---- a::b stdout ----", "panicked", ""]);
        let stopped = excerpt(&output, End::TimedOut);
        assert_eq!(
            (stopped.len(), stopped.last()),
            (4 + LINES_EACH, Some(&"test fine ... ok")),
            "where it hung is shown"
        );
    }

    #[test]
    fn an_executable_that_fails_without_telling_why_shows_its_end() {
        let output = format!(
            "== a it\n{0}(signal: 6)\n== a it FAILED\n== b it\nlate\ntest x ... FAILED\n== b it FAILED\n== c it\n{0}",
            PASSED.repeat(200)
        );
        let lines = excerpt(&output, End::Failed);
        assert_eq!(lines[LINES_EACH - 2..LINES_EACH], ["(signal: 6)", "== a it FAILED"]);
        let second = ["test x ... FAILED", "== b it", "late", "test x ... FAILED", "== b it FAILED"];
        assert_eq!(lines[LINES_EACH..], second);
    }

    #[test]
    fn of_what_a_test_printed_the_end_is_shown() {
        let noise = "here\n".repeat(200);
        let output = format!("---- a stdout ----\n{noise}panicked\n---- b stdout ----\nthere\n");
        let lines = excerpt(&output, End::Failed);
        assert_eq!((lines.len(), lines[LINES_EACH], lines.last()), (LINES_EACH + 3, "panicked", Some(&"there")));
        assert_eq!(excerpt(&output.repeat(20), End::Failed).len(), LINES_MAX);
    }

    #[test]
    fn other_runners_tell_it_at_the_end() {
        let output = format!("{}✖ failing tests:\n✖ one\n", "✔ fine\n".repeat(200));
        let lines = excerpt(&output, End::Failed);
        assert_eq!((lines.len(), lines.last()), (LINES_EACH, Some(&"✖ one")));
    }
}
