//! Processes that the lab starts: pinned, with a life no longer than its own, and always ended.

use crate::leftovers;
use pushlab_os::child::Prepare as _;
use pushlab_os::process::{self, Signal};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a process is looked at while it is awaited.
const WATCH: Duration = Duration::from_millis(5);

/// A child that is killed when dropped, and whatever it has started.
pub struct Process {
    child: Child,
    /// How it ended, once it was waited for: its number may be another's then.
    status: Option<ExitStatus>,
    /// What its environment, and that of whatever it starts, says of it alone.
    mark: String,
}

impl Process {
    /// Starts a command on these cores, on any if none is named. The child leads a process group of its own, so that
    /// Ctrl-C reaches the lab alone, and is killed by the kernel if the thread that starts it ends first.
    pub fn start(command: &mut Command, cores: &[usize]) -> io::Result<Self> {
        if !cores.is_empty() {
            command.pin_to(cores);
        }
        // The lab waits for signals instead of being struck, and children would inherit that.
        command.let_signals_through().end_with_parent(Signal::KILL);
        let mark = leftovers::mark_of_a_child();
        command.process_group(0).env(leftovers::MARK, leftovers::mark_of_this_process());
        command.env(leftovers::CHILD_MARK, &mark);
        Ok(Self { child: command.spawn()?, status: None, mark })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it has. What it leaves in its process group ends with it.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && self.has_ended() {
            self.signal(Signal::KILL);
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Whether it has ended; it is not waited for, so that its number stays its own.
    fn has_ended(&self) -> bool {
        process::has_ended(self.child.id())
    }

    /// Asks it to end, and kills it if it has not within `patience`.
    pub fn stop(mut self, patience: Duration) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(WATCH);
        }
        None
    }

    /// To the child and all of its process group.
    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // The child has not been waited for, so its number, which is its group's, is nobody else's.
            let _ = process::send_to_group(self.child.id(), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        self.signal(Signal::KILL);
        if self.status.is_none() {
            let _ = self.child.wait();
        }
        leftovers::kill_marked(&self.mark);
    }
}

/// The end of what a process wrote to its log, to stand behind a sentence; empty if it wrote nothing.
pub fn end_of_log(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let tail: Vec<&str> = text.lines().rev().take(5).collect();
    if tail.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = tail.into_iter().rev().collect();
    format!("; its last words: {}", lines.join(" / "))
}

/// `signal 9 (killed)`, `exit code 1`.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(signal), _) if signal == Signal::KILL.as_raw() => {
            format!("signal {signal} (killed: by a person, or by the kernel for want of memory)")
        }
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    }
}
