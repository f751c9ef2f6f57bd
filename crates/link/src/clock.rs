//! The clock that packets are timed by, the CPU clock of the link's thread, and its place on the cores.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Now on `CLOCK_MONOTONIC`, ns: the clock of every process of the host.
#[inline]
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC always exists on Linux")
}

/// What is to be added to [`now_ns`] for nanoseconds since 1970.
pub fn since_1970_ns() -> u64 {
    let unix_ns = read_ns(libc::CLOCK_REALTIME).expect("CLOCK_REALTIME always exists on Linux");
    unix_ns.saturating_sub(now_ns())
}

/// Asks the kernel to end this thread's waits without the usual slack of 50 µs.
pub fn set_precise_wakeups() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Lets the calling thread run on these cores only.
pub fn pin_to(cores: &[usize]) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set, and CPU_SET only sets bits inside it: it checks the index.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU time of one thread, readable from any thread of the process while that one lives.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpu(libc::clockid_t);

impl ThreadCpu {
    /// The calling thread's.
    pub fn of_this_thread() -> Self {
        let mut clock = 0;
        // SAFETY: pthread_self() is valid, and `clock` outlives the call that writes it.
        let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        assert_eq!(code, 0, "the calling thread exists, so it has a CPU clock");
        Self(clock)
    }

    /// User and system time so far, ns; `None` when the thread has ended.
    pub fn read_ns(self) -> Option<u64> {
        read_ns(self.0)
    }
}

/// How long a thread had to wait for a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreWait {
    /// Time in which it had work and another thread had the core, ns.
    pub waited_ns: u64,
    /// How often it was given a core.
    pub turns: u64,
}

/// Where the kernel tells a thread's [`CoreWait`].
#[derive(Debug)]
pub struct CoreWaits(Option<File>);

impl CoreWaits {
    /// The calling thread's.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// So far; `None` when the thread has ended, and on a kernel without scheduler statistics.
    pub fn read(&self) -> Option<CoreWait> {
        let mut text = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Three numbers: time on a core, time waited for one, times given one (sched-stats.rst of the kernel).
fn parse(schedstat: &str) -> Option<CoreWait> {
    let mut numbers = schedstat.split_ascii_whitespace().skip(1).map(str::parse);
    Some(CoreWait { waited_ns: numbers.next()?.ok()?, turns: numbers.next()?.ok()? })
}

fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call that writes it; an unknown clock is an error, not undefined.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        assert_eq!(parse("12 34 5\n"), Some(CoreWait { waited_ns: 34, turns: 5 }));
        assert_eq!(parse("12 34"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_thread_that_runs_has_had_turns() {
        let waits = CoreWaits::of_this_thread();
        let before = waits.read();
        std::thread::yield_now();
        assert!(waits.read().is_none_or(|after| before.is_some_and(|before| after.turns >= before.turns)));
    }
}
