//! The kernel's clocks: monotonic time, and the CPU time of processes and threads.

use std::mem::MaybeUninit;

/// Nanoseconds of `CLOCK_MONOTONIC`: the clock of [`std::time::Instant`] on Linux, common to all processes of a host.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).expect("every Linux kernel has CLOCK_MONOTONIC")
}

/// CPU time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).expect("every Linux kernel has CLOCK_THREAD_CPUTIME_ID")
}

/// The CPU clock of another process, read with one system call and nanosecond resolution.
///
/// It counts every thread the process ever had, so it never goes backwards. The alternatives do worse:
/// `/proc/PID/stat` counts in ticks of 10 ms; `/proc/PID/schedstat` is the main thread alone; the sum over
/// `/proc/PID/task/*/schedstat` drops by a whole thread when one ends. For a thread that is running right now the
/// kernel's books are up to one scheduler tick old (4 ms at 250 Hz) in all of them, with no accumulation.
/// Any user may read it (kernel/time/posix-cpu-timers.c, `pid_for_clock`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// `None` when there is no such process, or its number is 0 or too large.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0)?;
        let mut id = MaybeUninit::<libc::clockid_t>::uninit();
        // SAFETY: `id` is valid for writes; on success (0) the call has initialized it.
        let id = unsafe {
            if libc::clock_getcpuclockid(pid, id.as_mut_ptr()) != 0 {
                return None;
            }
            id.assume_init()
        };
        Some(Self(id))
    }

    /// CPU time of the process, ns; `None` once it has been reaped.
    pub(crate) fn ns(self) -> Option<u64> {
        read(self.0)
    }
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is valid for writes; on success (0) the call has initialized it.
    let time = unsafe {
        if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
            return None;
        }
        time.assume_init()
    };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u64::try_from(time.tv_nsec).ok()?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_clocks_advance() {
        let begun = monotonic_ns();
        let own = ProcessClock::of(std::process::id()).unwrap();
        let (first, thread) = (own.ns().unwrap(), thread_cpu_ns());
        while own.ns().unwrap() < first + 1_000_000 {
            assert!(thread_cpu_ns() < thread + 10_000_000_000, "the process's clock stands still");
        }
        assert!(monotonic_ns() > begun);
    }

    #[test]
    fn no_process_no_clock() {
        assert!(ProcessClock::of(0).is_none());
        assert!(ProcessClock::of(u32::MAX).is_none());
        assert!(ProcessClock::of(0x7fff_fff0).is_none());
    }
}
