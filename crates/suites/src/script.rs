//! Shell scripts that run Rust tests.

/// Tests of one executable, and the shell command that runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Names the executable in the output.
    pub title: String,
    pub command: String,
}

/// A test that may be tried again, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    pub test: String,
    pub run: Run,
}

/// A script that runs them one after the other, goes on if one fails, and fails then.
pub fn script<'a>(runs: impl IntoIterator<Item = &'a Run>) -> String {
    let mut lines = vec!["status=0".to_owned()];
    for Run { title, command } in runs {
        lines.push(format!("echo '== {title}'"));
        lines.push(format!("({command}) || {{ status=1; echo '== {title} FAILED'; }}"));
    }
    lines.push("exit $status".to_owned());
    lines.join("\n")
}

/// A word that the shell leaves as it is.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
