//! What a failed suite's output says of its failures.

/// Lines shown of each failed test, and of an output in which none is found.
const LINES_MAX: usize = 80;

/// The lines that name failed tests of Rust's harness, and what these printed; otherwise the last lines, where the other
/// runners tell it. A suite of many executables may have failed long before its end.
pub fn excerpt(output: &str) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().collect();
    let names = lines.iter().copied().filter(|line| is_failed(line));
    let printed = lines.iter().enumerate().filter(|(_, line)| is_heading(line)).flat_map(|(at, _)| {
        let block = &lines[at..];
        let length = 1 + block[1..].iter().take_while(|line| !is_heading(line) && **line != "failures:").count();
        block[..length.min(LINES_MAX)].iter().copied()
    });
    let found: Vec<&str> = names.chain(printed).collect();
    if found.is_empty() { lines[lines.len().saturating_sub(LINES_MAX)..].to_vec() } else { found }
}

/// `test NAME ... FAILED`, or what a suite's script says of an executable.
fn is_failed(line: &str) -> bool {
    (line.starts_with("test ") || line.starts_with("== ")) && line.ends_with(" FAILED")
}

/// `---- NAME stdout ----`, above what a failed test printed.
fn is_heading(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_the_middle_are_found() {
        let passed = "test fine ... ok\n".repeat(200);
        let output = format!(
            "== lab it\ntest a::b ... FAILED\ntest fine ... ok\n\nfailures:\n\n---- a::b stdout ----\npanicked\n\n\
             failures:\n    a::b\n\n== lab it FAILED\n{passed}"
        );
        let wanted = ["test a::b ... FAILED", "== lab it FAILED", "---- a::b stdout ----", "panicked", ""];
        assert_eq!(excerpt(&output), wanted);
    }

    #[test]
    fn of_what_one_test_printed_not_too_much_is_shown() {
        let output = format!("---- a stdout ----\n{}---- b stdout ----\nthere\n", "here\n".repeat(200));
        let lines = excerpt(&output);
        assert_eq!((lines.len(), lines.last()), (LINES_MAX + 2, Some(&"there")));
    }

    #[test]
    fn other_runners_tell_it_at_the_end() {
        let output = format!("{}✖ failing tests:\n✖ one\n", "✔ fine\n".repeat(200));
        let lines = excerpt(&output);
        assert_eq!((lines.len(), lines.last()), (LINES_MAX, Some(&"✖ one")));
    }
}
