//! Processes that the lab starts: pinned, with a life no longer than its own, and always ended.

use crate::leftovers;
use pushlab_os::affinity::pin_to;
use std::io;
use std::os::unix::process::CommandExt as _;
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
        let cores = cores.to_vec();
        let parent = std::process::id();
        // SAFETY: between fork and exec only async-signal-safe calls are made: sched_setaffinity, prctl, getppid,
        // sigprocmask. The closure owns all it reads.
        unsafe {
            command.pre_exec(move || {
                if !cores.is_empty() {
                    pin_to(&cores)?;
                }
                unblock_signals();
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have ended before the line above.
                if libc::getppid() as u32 != parent {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Ok(())
            });
        }
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
            self.signal(libc::SIGKILL);
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Whether it has ended; it is not waited for, so that its number stays its own.
    fn has_ended(&self) -> bool {
        // SAFETY: an all-zero siginfo_t is valid, the call fills it, and leaves the child to be waited for.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.child.id(), &raw mut info, options) == 0 && info.si_pid() != 0
        }
    }

    /// Asks it to end, and kills it if it has not within `patience`.
    pub fn stop(mut self, patience: Duration) -> Option<ExitStatus> {
        self.signal(libc::SIGTERM);
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
    fn signal(&self, signal: i32) {
        if self.status.is_none() {
            // SAFETY: the child has not been waited for, so its number, which is its group's, is nobody else's.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        self.signal(libc::SIGKILL);
        if self.status.is_none() {
            let _ = self.child.wait();
        }
        leftovers::kill_marked(&self.mark);
    }
}

/// The lab waits for signals instead of being struck, and children would inherit that.
fn unblock_signals() {
    // SAFETY: sigemptyset initialises the set that sigprocmask reads; both are async-signal-safe.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// `signal 9 (killed)`, `exit code 1`.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(signal @ libc::SIGKILL), _) => {
            format!("signal {signal} (killed: by a person, or by the kernel for want of memory)")
        }
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    }
}
