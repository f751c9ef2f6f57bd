//! Processes and signals: whatever a suite starts is a descendant of this process and ends with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// A child that has ended, and whether it succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub pid: u32,
    pub is_success: bool,
}

/// Adopts the orphans of descendants, and holds back signals for [`wait`].
///
/// # Errors
/// Those of the system.
pub fn prepare() -> io::Result<()> {
    // SAFETY: both only change this process; the set is a valid one.
    unsafe {
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1))?;
        check(libc::sigprocmask(libc::SIG_BLOCK, &awaited(), std::ptr::null_mut()))?;
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn awaited() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set, the others are given a valid one.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Waits for a signal, at most this long.
pub fn wait(longest: Duration) -> Event {
    let time = libc::timespec {
        tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: set and time are valid, and nobody asks who sent the signal.
    match unsafe { libc::sigtimedwait(&awaited(), std::ptr::null_mut(), &time) } {
        libc::SIGCHLD => Event::Ended,
        signal if signal > 0 => Event::Interrupted,
        _ => Event::Nothing,
    }
}

/// Children that have ended, including adopted ones.
pub fn ended() -> Vec<Ended> {
    let mut all = Vec::new();
    loop {
        let mut status = 0;
        // SAFETY: the status is this function's own.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        let Ok(pid @ 1..) = u32::try_from(pid) else { return all };
        all.push(Ended { pid, is_success: status == 0 });
    }
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
    // SAFETY: both calls are safe between fork and exec, and the set is made without allocating.
    unsafe {
        command.pre_exec(|| {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()))?;
            // For when this process is killed and cannot end anything itself.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))
        });
    }
    // `ended` reaps it, like all others.
    Ok(command.spawn()?.id())
}

/// Sends a signal to a process group.
pub fn signal_group(leader: u32, signal: libc::c_int) {
    if let Ok(group) = i32::try_from(leader) {
        // SAFETY: it has no preconditions; a group that is gone is no loss.
        unsafe { libc::kill(-group, signal) };
    }
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
            if let Ok(pid) = i32::try_from(pid) {
                // SAFETY: it has no preconditions; one that is gone is no loss.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        wait(Duration::from_millis(50));
        ended();
    }
}
