//! Processes that the lab starts: pinned, with a life no longer than its own, and always ended.

use crate::leftovers;
use pushlab_os::child::Prepare as _;
use pushlab_os::control_group::ControlGroup;
use pushlab_os::process::{self, Signal};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a process is looked at while it is awaited.
const WATCH: Duration = Duration::from_millis(5);
/// What passes at most between the end of a process's output and its own.
const ENDED_WITHIN: Duration = Duration::from_secs(2);
/// Time for what was killed to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A child that is killed when dropped, and whatever it has started.
pub struct Process {
    child: Child,
    /// How it ended, once it was waited for: its number may be another's then.
    status: Option<ExitStatus>,
    /// What its environment, and that of whatever it starts, says of it alone.
    mark: String,
    /// What it starts stays in there; `None` where this process may make no control group.
    group: Option<ControlGroup>,
    /// Whether it was seen in there.
    is_in_group: bool,
}

impl Process {
    /// Starts a command on these cores, on any if none is named. The child leads a process group of its own, so that
    /// Ctrl-C reaches the lab alone, and is killed by the kernel if the thread that starts it ends first.
    pub fn start(command: &mut Command, cores: &[usize]) -> io::Result<Self> {
        let mark = leftovers::mark_of_a_child();
        let group = leftovers::make_group(&mark);
        Self::start_in(group, mark, command, cores)
    }

    fn start_in(group: Option<ControlGroup>, mark: String, command: &mut Command, cores: &[usize]) -> io::Result<Self> {
        if !cores.is_empty() {
            command.pin_to(cores);
        }
        // The lab waits for signals instead of being struck, and children would inherit that.
        command.let_signals_through().end_with_parent(Signal::KILL);
        if let Some(entrance) = group.as_ref().and_then(|group| group.entrance().ok()) {
            command.enter_control_group(entrance);
        }
        command.process_group(0).env(leftovers::MARK, leftovers::mark_of_this_process());
        command.env(leftovers::CHILD_MARK, &mark);
        match command.spawn() {
            Ok(child) => {
                let is_in_group = group.as_ref().is_some_and(|group| group.processes().contains(&child.id()));
                Ok(Self { child, status: None, mark, group, is_in_group })
            }
            Err(error) => {
                group.map(|group| group.remove(GONE_WITHIN));
                Err(error)
            }
        }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether a lab started a process that is neither this one nor one that this one has started.
    pub fn is_anothers(&self, pid: u32) -> bool {
        leftovers::is_of_another_child(pid, &self.mark)
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
        self.await_end(patience)
    }

    /// How it ended, if it does within `patience`.
    pub fn await_end(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if self.ended().is_some() || Instant::now() >= deadline {
                return self.status;
            }
            std::thread::sleep(WATCH);
        }
    }

    /// How one ended that has closed its output, as the end of a sentence about it; `errors` is what it wrote to its
    /// standard error.
    pub fn end_too_early(&mut self, errors: &str) -> String {
        let status = self.await_end(ENDED_WITHIN);
        let how = status.map_or("closed its output".to_owned(), |status| format!("ended with {}", describe(status)));
        let errors = if errors.is_empty() { String::new() } else { format!("; its last output: {errors}") };
        format!("{how} before it was done{errors}")
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
        let is_group_killed = self.group.as_ref().is_some_and(|group| group.kill().is_ok());
        if !(is_group_killed && self.is_in_group) {
            leftovers::kill_marked(&self.mark);
        }
        // A process that the kernel cannot end now keeps its group, which another lab removes later.
        self.group.take().map(|group| group.remove(GONE_WITHIN));
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
    format!("; its last output: {}", lines.join(" / "))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    #[test]
    fn one_that_closes_its_output_first_is_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec >&-; sleep 0.1; exit 7"]).stdout(Stdio::piped());
        let mut process = Process::start(&mut command, &[]).unwrap();
        let mut output = process.child().stdout.take().unwrap();
        std::io::Read::read_to_end(&mut output, &mut Vec::new()).unwrap();
        assert_eq!(
            process.end_too_early("no room"),
            "ended with exit code 7 before it was done; its last output: no room"
        );
    }

    /// A child that leaves a process with another parent, session and process group, and tells its number.
    fn start(daemon: &str, group: Option<ControlGroup>, mark: String) -> (Process, u32) {
        let script = format!("({daemon} sh -c 'setsid sleep 60 & echo $!' &); exec sleep 60");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdout(Stdio::piped());
        let mut process = Process::start_in(group, mark, &mut command, &[]).unwrap();
        let mut line = String::new();
        BufReader::new(process.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        let daemon = line.trim().parse().unwrap();
        // While its program is being loaded it has no environment.
        let is_loaded =
            || std::fs::read(format!("/proc/{daemon}/cmdline")).is_ok_and(|words| words == b"sleep\x0060\0");
        wait_until(&format!("process {daemon} sleeps"), is_loaded);
        (process, daemon)
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < deadline, "not within 10 s: {what}");
            std::thread::sleep(WATCH);
        }
    }

    fn await_end(pid: u32) {
        wait_until(&format!("process {pid} ends"), || leftovers::started(pid).is_none());
    }

    /// Where this process may make no control group, there is nothing to test.
    #[test]
    fn a_daemon_ends_with_its_group_even_without_its_environment() {
        let mark = leftovers::mark_of_a_child();
        let Some(group) = leftovers::make_group(&mark) else { return };
        let name = group.name().to_owned();
        let (process, daemon) = start("setsid env -i", Some(group), mark);
        assert!(process.is_in_group && leftovers::started(daemon).is_some());
        drop(process);
        await_end(daemon);
        assert!(ControlGroup::named(&name).is_empty());
    }

    #[test]
    fn a_daemon_ends_by_its_mark_where_there_is_no_group() {
        let (process, daemon) = start("setsid", None, leftovers::mark_of_a_child());
        assert!(!process.is_in_group && leftovers::started(daemon).is_some());
        let (_other, stranger) = start("setsid", None, leftovers::mark_of_a_child());
        assert!(process.is_anothers(stranger) && !process.is_anothers(daemon));
        assert!(!process.is_anothers(std::process::id()), "no lab has started it");
        drop(process);
        await_end(daemon);
    }

    #[test]
    fn a_command_that_cannot_start_leaves_no_group() {
        let mark = leftovers::mark_of_a_child();
        let group = leftovers::make_group(&mark);
        let name = group.as_ref().map(|group| group.name().to_owned());
        assert!(Process::start_in(group, mark, &mut Command::new("/no/such/program"), &[]).is_err());
        assert!(name.is_none_or(|name| ControlGroup::named(&name).is_empty()));
    }
}
