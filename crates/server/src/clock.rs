//! Clocks: the host's monotonic one, which stamps are written in, and those that `/metrics` tells of.

/// Nanoseconds on `CLOCK_MONOTONIC`: the same for every process of the host.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this process and all its threads, ns.
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time since the host was booted, sleep included, ns.
pub fn since_boot_ns() -> u64 {
    read_ns(libc::CLOCK_BOOTTIME)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to, and each of the clocks above always exists on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
