//! Processes: who they are, how they end, and who is told.

pub use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use std::io;

/// A child that has ended and was taken from the kernel's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its process id, which may be another's from now on.
    pub pid: u32,
    /// Whether it ended by itself with exit code 0.
    pub is_success: bool,
}

/// Whether this process acts as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// User and group as which this process acts, by number.
pub fn effective_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Sends a signal to a process.
///
/// # Errors
/// `ESRCH` when there is none, `EPERM` when it is another user's.
pub fn send(pid: u32, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(number(pid)?, signal)?)
}

/// Sends a signal to all processes of a group.
///
/// # Errors
/// `ESRCH` when there is none, `EPERM` when all are another user's.
pub fn send_to_group(leader: u32, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process_group(group(leader)?, signal)?)
}

/// Whether any process is left in a group.
pub fn has_group(leader: u32) -> bool {
    group(leader).is_ok_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}

/// The group that a process is in, by its leader; 0 for those of the kernel, and for groups of another namespace.
///
/// # Errors
/// When there is no such process.
pub fn group_of(pid: u32) -> io::Result<u32> {
    let pid = number(pid)?.as_raw_nonzero().get();
    // rustix takes 0 for impossible.
    // SAFETY: takes a number and touches no memory.
    u32::try_from(unsafe { libc::getpgid(pid) }).map_err(|_| io::Error::last_os_error())
}

/// Has the kernel send this process a signal when the thread that started it ends, however that happens.
///
/// # Errors
/// What the kernel answers; it has no reason to.
pub fn end_with_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

/// Makes this process the parent of descendants whose own parent has ended.
///
/// # Errors
/// What the kernel answers; it has no reason to.
pub fn adopt_orphans() -> io::Result<()> {
    // Whatever is not 0 switches it on.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The next child that has ended, adopted ones included; `None` when there is none now. Never waits.
pub fn reap() -> Option<Ended> {
    let (pid, status) = rustix::process::wait(WaitOptions::NOHANG).ok().flatten()?;
    Some(Ended { pid: pid.as_raw_nonzero().get() as u32, is_success: is_success(status) })
}

/// Whether a child has ended. It stays in the kernel's list, so that its number stays its own.
pub fn has_ended(child: u32) -> bool {
    let Ok(child) = number(child) else { return false };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(child), options).is_ok_and(|status| status.is_some())
}

/// Waits for a child's end and takes it from the kernel's list; whether it ended by itself with exit code 0.
///
/// # Errors
/// `ECHILD` when it is no child of this process.
pub fn wait_for(child: u32) -> io::Result<bool> {
    let child = number(child)?;
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(is_success(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How far this process stands back for others, -20 to 19 (setpriority(2)).
///
/// # Errors
/// What the kernel answers; it has no reason to.
pub fn own_niceness() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

/// How far a thread of any process stands back for others, -20 to 19.
///
/// # Errors
/// `ESRCH` when it has ended.
pub fn niceness(thread: u32) -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(Some(number(thread)?))?)
}

/// Has a thread of any process stand back for others, and what it starts from now on.
///
/// # Errors
/// `ESRCH` when it has ended, `EACCES` when it is to stand back less than now.
pub fn set_niceness(thread: u32, niceness: i32) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(Some(number(thread)?), niceness)?)
}

fn is_success(status: WaitStatus) -> bool {
    status.exit_status() == Some(0)
}

/// 0 would be the calling process or its group.
fn number(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// To the group of process 1 a signal cannot be sent: its number stands for all processes (kill(2)).
fn group(leader: u32) -> io::Result<Pid> {
    number(leader)
        .and_then(|leader| if leader.is_init() { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(leader) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn nobody_is_meant_by_0_nor_everybody_by_1() {
        assert!(send(0, Signal::CONT).is_err() && send(u32::MAX, Signal::CONT).is_err());
        assert!(send_to_group(0, Signal::CONT).is_err() && send_to_group(1, Signal::CONT).is_err());
        assert!(!has_group(0) && !has_group(1) && !has_ended(0));
    }

    #[test]
    fn a_group_is_signalled_as_one_and_a_child_keeps_its_number_until_it_is_waited_for() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).process_group(0).spawn().unwrap();
        assert!(group_of(child.id()).unwrap() == child.id() && has_group(child.id()));
        assert!(!has_ended(child.id()));
        let own = own_niceness().unwrap();
        assert_eq!(niceness(child.id()).unwrap(), own);
        set_niceness(child.id(), (own + 3).min(19)).unwrap();
        assert_eq!((niceness(child.id()).unwrap(), own_niceness().unwrap()), ((own + 3).min(19), own));
        send_to_group(child.id(), Signal::KILL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !has_ended(child.id()) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!child.wait().unwrap().success());
        assert!(send(child.id(), Signal::KILL).is_err() && !has_ended(child.id()));
    }

    #[test]
    fn every_process_may_be_asked_for_its_group() {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let groups = all.filter_map(|entry| group_of(entry.file_name().to_str()?.parse().ok()?).ok());
        assert!(groups.count() >= 1);
        assert!(group_of(0).is_err() && group_of(0x7fff_fff0).is_err());
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "it is waited for by another name")]
    fn a_child_is_waited_for_once() {
        for (program, is_success) in [("true", true), ("false", false)] {
            let child = Command::new(program).spawn().unwrap();
            assert_eq!(wait_for(child.id()).unwrap(), is_success);
            assert!(wait_for(child.id()).is_err());
        }
    }
}
