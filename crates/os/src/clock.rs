//! The kernel's clocks, all in nanoseconds, and sleeping until an instant.
//!
//! A process that belongs to a fleet on several machines has its monotonic clock *steered* ([`set`], [`slew`]), so that it
//! shows what another machine's does. Then the kernel's own is the *raw* clock, and instants for the kernel are converted
//! where they are given to it.

use crate::steered::{Line, Steered};
use rustix::thread::{clock_nanosleep_absolute, gettid, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use std::num::NonZeroU64;
use std::sync::OnceLock;

/// Largest number of a process or thread: `PID_MAX_LIMIT` of linux/threads.h.
const PID_MAX: u32 = 1 << 22;

/// What [`monotonic_ns`] shows, as a function of the raw clock.
static CLOCK: Steered = Steered::new();
/// What the raw clock shows, as a function of the kernel's, where a test has made it a wrong one.
static FALSE: OnceLock<Line> = OnceLock::new();

/// Now on the process's monotonic clock, ns. Unless it is steered, that is `CLOCK_MONOTONIC`: the clock of
/// [`std::time::Instant`] on Linux, and the same for all processes of a host.
///
/// No system call where the kernel offers the clock to programs (vdso(7)): some 20 ns, and 7 more where it is steered.
#[inline]
pub fn monotonic_ns() -> u64 {
    if CLOCK.is_changed() { steered_ns() } else { kernel_ns() }
}

#[cold]
fn steered_ns() -> u64 {
    CLOCK.read(|line| line.at(raw_ns()))
}

fn kernel_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// Now on the clock from which the process's own is steered, ns.
pub fn raw_ns() -> u64 {
    let kernel_ns = kernel_ns();
    FALSE.get().map_or(kernel_ns, |line| line.at(kernel_ns))
}

/// What the process's clock shows when the raw one shows this, by the present steering.
pub fn from_raw(raw_ns: u64) -> u64 {
    CLOCK.read(|line| line.at(raw_ns))
}

/// What the raw clock shows when the process's shows this, by the present steering.
pub fn to_raw(ns: u64) -> u64 {
    CLOCK.read(|line| line.inverse(ns))
}

/// Has the process's clock show `ns` when the raw one shows `raw_ns`, and gain `rate` ns on each of its ns. It may go
/// back by that, and sleeps under way end when they would have ended.
pub fn set(raw_ns: u64, ns: u64, rate: f64) {
    CLOCK.change(|_| Line { from_ns: raw_ns, to_ns: ns, rate });
}

/// Has the process's clock gain `rate` ns on each ns of the raw one, from what it shows now on: it neither steps nor goes
/// back.
pub fn slew(rate: f64) {
    CLOCK.change(|line| {
        let from_ns = raw_ns();
        Line { from_ns, to_ns: line.at(from_ns), rate }
    });
}

/// Makes the raw clock a wrong one, for tests: so far from the kernel's now, ns, and gaining `rate` ns on each of its ns.
/// Only the first call does anything.
pub fn falsify(offset_ns: i64, rate: f64) {
    let from_ns = kernel_ns();
    let false_clock = Line { from_ns, to_ns: from_ns.saturating_add_signed(offset_ns), rate };
    if FALSE.set(false_clock).is_ok() {
        CLOCK.change(|_| Line::IDENTITY);
    }
}

/// An instant of the process's clock on the kernel's, ns.
pub(crate) fn to_kernel(instant_ns: u64) -> u64 {
    if !CLOCK.is_changed() {
        return instant_ns;
    }
    let raw_ns = to_raw(instant_ns);
    FALSE.get().map_or(raw_ns, |line| line.inverse(raw_ns))
}

/// Now on `CLOCK_REALTIME`, ns since 1970.
pub fn since_1970_ns() -> u64 {
    ns(clock_gettime(ClockId::Realtime))
}

/// Time since the host was booted, sleep included, ns.
pub fn since_boot_ns() -> u64 {
    ns(clock_gettime(ClockId::Boottime))
}

/// CPU time of this process and all its threads, ns.
pub fn process_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until an instant of [`monotonic_ns`]; returns at once when it has passed.
pub fn sleep_until(instant_ns: u64) {
    loop {
        let until = timespec(to_kernel(instant_ns));
        while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
        // A clock that was slowed down meanwhile is not there yet.
        if !CLOCK.is_changed() || monotonic_ns() >= instant_ns {
            return;
        }
    }
}

/// Asks the kernel to end this thread's sleeps and waits without the usual slack of 50 µs.
pub fn set_precise_wakeups() {
    // Refused, it only leaves wake-ups less precise, which the measured lateness shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// The CPU clock of a thread of this process, or of any process.
///
/// Read with one system call and nanosecond resolution. A process's counts every thread it ever had, so it never goes
/// backwards. The alternatives do worse: `/proc/PID/stat` counts in ticks of 10 ms; `/proc/PID/schedstat` is the main
/// thread alone; the sum over `/proc/PID/task/*/schedstat` drops by a whole thread when one ends. For a thread that is
/// running right now the kernel's books are up to one scheduler tick old (4 ms at 250 Hz) in all of them, with no
/// accumulation. Any user may read it (kernel/time/posix-cpu-timers.c, `pid_for_clock`).
#[derive(Debug, Clone, Copy)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    // Bits of a CPU clock's number, below the number of the process or thread (linux/posix-timers_types.h).
    const SCHEDULED: i32 = 2;
    const OF_A_THREAD: i32 = 4;

    /// The calling thread's, which other threads of the process may read.
    pub fn of_this_thread() -> Self {
        Self(!gettid().as_raw_nonzero().get() << 3 | Self::SCHEDULED | Self::OF_A_THREAD)
    }

    /// That of a process, with all its threads.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let no_process = || io::Error::from(rustix::io::Errno::SRCH);
        // 0 would be the calling process.
        let number = Some(pid).filter(|pid| (1..=PID_MAX).contains(pid)).ok_or_else(no_process)? as i32;
        let clock = Self(!number << 3 | Self::SCHEDULED);
        clock.read_ns().map(|_| clock).ok_or_else(no_process)
    }

    /// User and system time so far, ns; `None` once the thread has ended or the process was reaped.
    pub fn read_ns(self) -> Option<u64> {
        // rustix reads only clocks that always exist, or that belong to a device.
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` outlives the call that writes it; an unknown clock is an error, not undefined.
        let code = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

#[inline]
fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds as the kernel wants them.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_after_its_instant() {
        let until = monotonic_ns() + 1_000_000;
        sleep_until(until);
        assert!(monotonic_ns() >= until);
        sleep_until(0);
    }

    #[test]
    fn a_threads_cpu_time_grows_while_it_works_and_ends_with_it() {
        let cpu = std::thread::spawn(|| {
            let cpu = CpuClock::of_this_thread();
            let start = cpu.read_ns().unwrap();
            while cpu.read_ns().unwrap() < start + 1_000_000 {}
            assert!(thread_cpu_ns() >= start + 1_000_000, "two clocks for one thread");
            cpu
        });
        let cpu = cpu.join().unwrap();
        // The kernel comes to the thread's end a moment after the join.
        let deadline = monotonic_ns() + 10_000_000_000;
        while cpu.read_ns().is_some() {
            assert!(monotonic_ns() < deadline, "the clock outlives its thread");
        }
    }

    #[test]
    fn clocks_of_the_process_advance() {
        let begun = monotonic_ns();
        let own = CpuClock::of_process(std::process::id()).unwrap();
        let (first, thread) = (own.read_ns().unwrap(), thread_cpu_ns());
        while own.read_ns().unwrap() < first + 1_000_000 {
            assert!(thread_cpu_ns() < thread + 10_000_000_000, "the process's clock stands still");
        }
        assert!(monotonic_ns() > begun && process_cpu_ns() > first && since_boot_ns() >= begun);
        // 2020 to 2100.
        assert!((1_577_836_800..4_102_444_800).contains(&(since_1970_ns() / 1_000_000_000)));
    }

    #[test]
    fn no_process_no_clock() {
        for pid in [0, PID_MAX, 0x7fff_fff0, u32::MAX] {
            assert!(CpuClock::of_process(pid).is_err(), "{pid}");
        }
    }
}
