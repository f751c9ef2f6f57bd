//! Processes and signals: whatever a suite starts is a descendant of this process and ends with it.

use pushlab_os::child::Prepare as _;
use pushlab_os::process::{self, Ended, Signal};
use pushlab_os::signals;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ctrl-C and what means the same, and the end of a child.
const AWAITED: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::CHILD];

/// What [`wait`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Children have ended.
    Ended,
    /// Ctrl-C, or a signal that means the same.
    Interrupted,
    /// Nothing in the time given.
    Nothing,
}

/// Adopts the orphans of descendants, and holds back signals for [`wait`].
///
/// # Errors
/// Those of the system.
pub fn prepare() -> io::Result<()> {
    process::adopt_orphans()?;
    signals::hold_back(&AWAITED)
}

/// Waits for a signal, at most this long.
pub fn wait(longest: Duration) -> Event {
    match signals::wait(&AWAITED, longest) {
        Some(Signal::CHILD) => Event::Ended,
        Some(_) => Event::Interrupted,
        None => Event::Nothing,
    }
}

/// Children that have ended, including adopted ones.
pub fn ended() -> Vec<Ended> {
    std::iter::from_fn(process::reap).collect()
}

/// Starts a shell command in a process group of its own; all its output goes to a file.
///
/// # Errors
/// Those of the system.
pub fn start(script: &str, prepare: impl FnOnce(&mut Command), output: &File) -> io::Result<u32> {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    prepare(&mut command);
    command.process_group(0);
    // The second is for when this process is killed and cannot end anything itself.
    command.let_signals_through().end_with_parent(Signal::TERM);
    // `ended` reaps it, like all others.
    Ok(command.spawn()?.id())
}

/// Sends a signal to a process group.
pub fn signal_group(leader: u32, signal: Signal) {
    // A group that is gone is no loss.
    let _ = process::send_to_group(leader, signal);
}

/// All live descendants of this process: id and command line.
pub fn descendants() -> Vec<(u32, String)> {
    let parents: Vec<(u32, u32)> = processes().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = BTreeSet::from([std::process::id()]);
    loop {
        let before = family.len();
        family.extend(
            parents.iter().filter(|(_, parent)| family.contains(parent)).map(|(pid, _)| *pid).collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    family.remove(&std::process::id());
    family.into_iter().map(|pid| (pid, command_line(pid))).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a live process.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
}

/// Kills all descendants, including those born meanwhile.
pub fn kill_descendants(longest: Duration) {
    let deadline = Instant::now() + longest;
    while Instant::now() < deadline {
        let left = descendants();
        if left.is_empty() {
            break;
        }
        for (pid, _) in left {
            // One that is gone is no loss.
            let _ = process::send(pid, Signal::KILL);
        }
        wait(Duration::from_millis(50));
        ended();
    }
}
