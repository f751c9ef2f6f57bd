//! What is printed. Titles, notes and what servers say are other people's text: on a terminal it must not move the
//! cursor, hide anything or turn anything around.
//!
//! Where it cannot be printed, the command goes on, a server above all: what it does counts for more than what it says.

use pushlab_os::poll::{self, PollFd, PollFlags};
use pushlab_wire::codes::ExitCode;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Why nothing more can be written to standard output.
static FAILURE: OnceLock<io::ErrorKind> = OnceLock::new();

/// Standard output, whose first failure is told and kept.
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        kept(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        kept(|| io::stdout().flush())
    }
}

/// Attempts to print, until it is done or cannot be; the first failure is told and kept.
pub fn kept<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            // Whoever shares the pipe may have made it so (Node.js does).
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll::wait(&mut [PollFd::new(&io::stdout(), PollFlags::OUT)], None)?;
            }
            Err(error) => {
                // Who reads no further has had enough.
                if FAILURE.set(error.kind()).is_ok() && error.kind() != io::ErrorKind::BrokenPipe {
                    note(&format!("error: cannot write to standard output: {error}"));
                }
                return Err(error);
            }
            done => return done,
        }
    }
}

/// Whether standard output has failed, or whoever read it has gone.
pub fn has_failed() -> bool {
    FAILURE.get().is_some()
}

/// The exit code of a command that did all else: what was to be printed may be what it was for.
pub fn exit_code() -> ExitCode {
    // What is left of a line that no line break ends.
    let _ = Output.flush();
    match FAILURE.get() {
        None | Some(io::ErrorKind::BrokenPipe) => ExitCode::Ok,
        Some(_) => ExitCode::ResultsUnwritable,
    }
}

/// Prints a text to standard output.
pub fn put(text: &str) {
    if !has_failed() {
        // It is told and kept.
        let _ = Output.write_all(plain(text).as_bytes()).and_then(|()| Output.flush());
    }
}

/// Prints a line to standard error. If that fails, there is nobody left to tell.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", plain(line));
}

/// The text with a replacement character for each control character but line breaks and tabs, and for each character that
/// changes the direction of others.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_active = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control() && !matches!(c, '\n' | '\t')
    };
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.replace("\r\n", "\n")
            .chars()
            .map(|c| if is_active(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect(),
    )
}

macro_rules! print {
    ($($words:tt)*) => { $crate::output::put(&format!($($words)*)) };
}

macro_rules! println {
    ($($words:tt)*) => { $crate::output::put(&(format!($($words)*) + "\n")) };
}

macro_rules! eprintln {
    ($($words:tt)*) => { $crate::output::note(&format!($($words)*)) };
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        for (text, printed) in [
            ("a plain · text\n\twith lines", "a plain · text\n\twith lines"),
            ("\u{1b}[2Jgone", "\u{fffd}[2Jgone"),
            ("a\rb\r\nc", "a\u{fffd}b\nc"),
            ("\u{9b}31m\u{7f}\0\u{8}", "\u{fffd}31m\u{fffd}\u{fffd}\u{fffd}"),
            ("abc\u{202e}fed\u{2066}", "abc\u{fffd}fed\u{fffd}"),
            ("ساعة عربية", "ساعة عربية"),
        ] {
            assert_eq!(plain(text), printed, "{text:?}");
        }
    }
}
