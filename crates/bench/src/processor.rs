//! Cores and processor time.

use anyhow::{Context as _, bail};
use std::io;

/// The core of the subject and the core of everything that loads it.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    /// Where the limit or the server runs.
    pub subject: usize,
    /// Where subscribers, pollers and the publisher run.
    pub load: usize,
}

impl Cores {
    /// The first two cores on which this process may run.
    pub fn of_this_process() -> anyhow::Result<Self> {
        // SAFETY: a cpu_set_t is a plain array of bits; all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is writable and its true size is given; 0 names the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
        if result != 0 {
            return Err(io::Error::last_os_error()).context("cannot read the affinity");
        }
        // SAFETY: the index stays below the size of the set.
        let mut allowed = (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) });
        match (allowed.next(), allowed.next()) {
            (Some(subject), Some(load)) => Ok(Self { subject, load }),
            _ => bail!("two cores are needed, one for the subject and one for the load"),
        }
    }

    /// Moves the calling thread to the load's core.
    pub fn pin_to_load(self) -> io::Result<()> {
        pin(self.load)
    }
}

/// Moves the calling thread, and the threads it starts from now on, to one core.
pub fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a cpu_set_t is a plain array of bits; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is below the size of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is initialised and its true size is given; 0 names the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends the calling process when its parent ends, however that happens.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: this call takes a signal number and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The clock of another process's processor time: all its threads, user and kernel, in nanoseconds.
///
/// `/proc/PID/schedstat` shows the same, but of one thread and only up to the last tick of a running one.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// The clock of a process that we may look at.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut clock = 0;
        // SAFETY: `clock` is writable.
        match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
            0 => Ok(Self(clock)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Processor time used so far, ns.
    pub fn now_ns(self) -> io::Result<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable.
        match unsafe { libc::clock_gettime(self.0, &raw mut time) } {
            0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
