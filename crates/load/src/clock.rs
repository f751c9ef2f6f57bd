//! The host's monotonic clock, CPU clocks of threads, and sleeping until an instant.

use std::io;

/// Now on `CLOCK_MONOTONIC`, in ns: one clock for every process of the host.
#[inline]
pub fn now_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC always exists on Linux")
}

/// Sleeps until an instant of [`now_ns`]; returns at once when it has passed.
pub fn sleep_until(instant_ns: u64) {
    let until = timespec(instant_ns);
    loop {
        // SAFETY: `until` is a valid timespec for the whole call, and no remainder is asked for.
        let code =
            unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) };
        if code != libc::EINTR {
            return;
        }
    }
}

/// Asks the kernel to wake this thread's sleeps without the usual slack of 50 µs.
pub fn set_precise_wakeups() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Pins the calling thread to one core.
///
/// # Errors
/// What `sched_setaffinity` answers, for instance when there is no such core.
pub fn pin_to_core(core: usize) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid set; CPU_SET ignores cores beyond its size.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the size given is that of the set pointed to; 0 means the calling thread.
    let code = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU time of one thread, readable from any thread of the process while that one lives.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpu(libc::clockid_t);

impl ThreadCpu {
    /// The calling thread's.
    pub fn of_this_thread() -> Self {
        let mut clock = 0;
        // SAFETY: pthread_self() is valid, and `clock` outlives the call that writes it.
        let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        assert_eq!(code, 0, "the calling thread exists, so it has a CPU clock");
        Self(clock)
    }

    /// User and system time so far, in ns; `None` when the thread has ended.
    pub fn read_ns(self) -> Option<u64> {
        read_clock(self.0)
    }
}

fn read_clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call that writes it; an unknown clock is an error, not undefined.
    let code = unsafe { libc::clock_gettime(clock, &mut time) };
    (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Nanoseconds as the kernel wants them.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_after_its_instant() {
        let until = now_ns() + 1_000_000;
        sleep_until(until);
        assert!(now_ns() >= until);
        sleep_until(0);
    }

    #[test]
    fn a_threads_cpu_time_grows_while_it_works() {
        let cpu = ThreadCpu::of_this_thread();
        let start = cpu.read_ns().unwrap();
        while cpu.read_ns().unwrap() == start {
            std::hint::spin_loop();
        }
    }
}
