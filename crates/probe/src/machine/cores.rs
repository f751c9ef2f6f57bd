//! Which of the kernel's CPUs are the same physical core.

use super::number;
use pushlab_os::affinity::allowed_cores;

/// A CPU as the kernel counts them: with simultaneous multithreading, one of several of a physical core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpu {
    /// The socket of its core.
    pub package: u64,
    /// Its core, among those of the socket.
    pub core: u64,
    /// Its number.
    pub number: usize,
}

/// The CPUs that this process may use. One of which the kernel does not tell the core is taken for a core of its own.
pub fn usable_cpus() -> Vec<Cpu> {
    let read = |cpu: usize, what: &str| number(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}"));
    let known = |number: usize| Cpu {
        package: read(number, "physical_package_id").unwrap_or(0),
        core: read(number, "core_id").unwrap_or(number as u64),
        number,
    };
    allowed_cores().unwrap_or_else(|_| vec![0]).into_iter().map(known).collect()
}

/// One CPU of each physical core, in the order of sockets.
pub fn physical_cores(cpus: &[Cpu]) -> Vec<Cpu> {
    let mut cores = cpus.to_vec();
    cores.sort_unstable();
    cores.dedup_by_key(|cpu| (cpu.package, cpu.core));
    cores
}
