//! What the programs of this machine that foreign servers need call themselves: a server is as fast as what it runs on.

use crate::process::Process;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest that a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const WATCH: Duration = Duration::from_millis(10);
/// Most that is read of what it says, bytes.
const MAX_SAID: u64 = 4 << 10;
/// What a virtual machine says before all else where its options are set in the environment.
const AFORE: &str = "Picked up ";

/// The first line that each of these programs says when asked for its version. Those that are not there, fail, or take
/// more than five seconds, are left out.
pub fn versions<'a>(tools: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let version = |tool: &'a str| Some((tool.to_owned(), said(Command::new(tool).arg(question(tool)), PATIENCE)?));
    tools.into_iter().filter_map(version).collect()
}

/// How a program is asked.
fn question(tool: &str) -> &'static str {
    match tool {
        "go" => "version",
        "java" => "-version",
        "nginx" => "-v",
        _ => "--version",
    }
}

/// Whether a command succeeds within `patience`. What it says is not heard.
pub(crate) fn succeeds(command: &[String], patience: Duration) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let mut builder = Command::new(program);
    builder.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(&mut builder, &[]).ok();
    process.and_then(|mut process| status(&mut process, patience)).is_some_and(|status| status.success())
}

/// How a process ends; `None` if it has not within `patience`.
fn status(process: &mut Process, patience: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        match process.ended() {
            Some(status) => return Some(status),
            None if Instant::now() > deadline => return None,
            None => std::thread::sleep(WATCH),
        }
    }
}

/// The first line of what a command says, on standard output or else on standard error.
fn said(command: &mut Command, patience: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start(command, &[]).ok()?;
    let (output, errors) = (process.child().stdout.take()?, process.child().stderr.take()?);
    let status = status(&mut process, patience)?;
    // Whoever else holds the pipes open ends with it, and so does reading.
    drop(process);
    status.success().then(|| first_line(output).or_else(|| first_line(errors)))?
}

fn first_line(pipe: impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    // What was read until an error counts.
    let _ = pipe.take(MAX_SAID).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().map(plain).filter(|line| !line.is_empty() && !line.starts_with(AFORE));
    lines.next()
}

/// Without control characters, such as those that make a terminal write boldly.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => letters.by_ref().take_while(|c| !c.is_ascii_alphabetic()).for_each(drop),
            _ if letter.is_control() => {}
            _ => text.push(letter),
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Option<String> {
        said(Command::new("sh").args(["-c", script]), patience)
    }

    #[test]
    fn the_first_line_is_taken_from_wherever_it_is_said() {
        let of = |script| shell(script, Duration::from_secs(60));
        assert_eq!(of("echo; echo v1.2; echo more; echo else >&2").as_deref(), Some("v1.2"));
        let java = "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"21\"' >&2";
        assert_eq!(of(java).as_deref(), Some("openjdk version \"21\""));
        assert_eq!(of("printf '\\033[1mApache Maven 3.9\\033[m\\r\\n'").as_deref(), Some("Apache Maven 3.9"));
        assert_eq!(of("true"), None);
        assert_eq!(of("echo v1.2; exit 1"), None, "it failed");
        assert_eq!(of("echo v1.2; sleep 600 & exit 0").as_deref(), Some("v1.2"), "who holds the pipe is not awaited");
    }

    #[test]
    fn what_does_not_answer_or_is_not_there_is_left_out() {
        assert_eq!(shell("echo v1.2; exec sleep 600", Duration::from_millis(50)), None);
        let versions = versions(["cargo", "no-such-program-anywhere"]);
        assert_eq!(versions.keys().collect::<Vec<_>>(), ["cargo"]);
        assert!(versions["cargo"].starts_with("cargo 1."), "{versions:?}");
    }

    #[test]
    fn a_command_succeeds_in_its_time_or_not_at_all() {
        let of = |words: &[&str], patience| {
            succeeds(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), patience)
        };
        let minute = Duration::from_secs(60);
        assert!(of(&["sh", "-c", "echo said to nobody"], minute));
        assert!(!of(&["sh", "-c", "exit 1"], minute) && !of(&["no-such-program-anywhere"], minute) && !of(&[], minute));
        assert!(!of(&["sleep", "600"], Duration::from_millis(50)));
    }

    #[test]
    fn programs_are_asked_as_they_understand_it() {
        assert_eq!(["go", "java", "nginx", "node"].map(question), ["version", "-version", "-v", "--version"]);
    }
}
