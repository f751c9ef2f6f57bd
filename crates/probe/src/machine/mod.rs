//! The machine: what to record beside a result, and what would spoil it.
//!
//! ```
//! use pushlab_probe::machine::{MachineFacts, Verdict};
//! use std::time::Duration;
//!
//! let facts = MachineFacts::read(Duration::from_millis(1));
//! for check in facts.checks() {
//!     if check.verdict == Verdict::Bad {
//!         println!("{}: {} — {} {}", check.name, check.found, check.why, check.fix);
//!     }
//! }
//! ```

mod activity;
mod addresses;
mod checks;
mod cores;
mod room;

pub use activity::BusyProcess;
pub use addresses::addresses;
pub use checks::{Check, Verdict, WATCH, checks};
pub use cores::{Cpu, physical_cores, usable_cpus};
pub use room::Room;

use crate::procfs::labelled;
use activity::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is known about a machine. A fact that cannot be read is `None`: nothing here fails.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Kernel name and release, e.g. `Linux 6.8.0-45-generic`.
    pub kernel: Option<String>,
    /// Instruction set, e.g. `x86_64`.
    pub architecture: String,
    /// Distribution, e.g. `Debian GNU/Linux 13`.
    pub distribution: Option<String>,
    /// CPU model as the CPU names itself.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cores: Option<u32>,
    /// CPUs that this process may use: affinity and cgroup quota considered.
    pub cores_usable: Option<u32>,
    /// NUMA nodes with CPUs.
    pub numa_nodes: Option<u32>,
    /// Threads of each physical core, e.g. 2 with hyper-threading.
    pub threads_per_core: Option<u32>,
    /// Whether a hypervisor runs below; on x86 from the CPU's own flag.
    pub virtual_machine: Option<bool>,
    /// The product name of the machine or of the hypervisor's pretence of one.
    pub product: Option<String>,
    /// Frequency governor of the first CPU, e.g. `performance`. `None` mostly means a virtual machine.
    pub governor: Option<String>,
    /// Whether the CPU may clock above its nominal frequency.
    pub boost: Option<bool>,
    /// Where the kernel reads the time, e.g. `tsc`.
    pub clocksource: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that can be had without swapping, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Load average over one minute.
    pub load_1_min: Option<f64>,
    /// CPU time that the hypervisor gave to others while we watched, per cent of all cores.
    pub steal_percent: Option<f64>,
    /// The process other than ours that used most CPU while we watched.
    pub busiest: Option<BusyProcess>,
    /// Descriptors that a process may hold.
    pub nofile_soft: Option<u64>,
    /// Descriptors to which it may raise that limit itself.
    pub nofile_hard: Option<u64>,
    /// Connections that may wait for `accept` (`net.core.somaxconn`).
    pub somaxconn: Option<u64>,
    /// Handshakes that may be under way (`net.ipv4.tcp_max_syn_backlog`).
    pub syn_backlog: Option<u64>,
    /// First and last local port given out (`net.ipv4.ip_local_port_range`).
    pub port_range: Option<(u16, u16)>,
    /// TCP memory: low, pressure and high mark, pages (`net.ipv4.tcp_mem`).
    pub tcp_mem_pages: Option<[u64; 3]>,
    /// A socket's receive buffer: least, default and most, bytes (`net.ipv4.tcp_rmem`).
    pub tcp_rmem_bytes: Option<[u64; 3]>,
    /// A socket's send buffer: least, default and most, bytes (`net.ipv4.tcp_wmem`).
    pub tcp_wmem_bytes: Option<[u64; 3]>,
    /// Whether outgoing connections may reuse ports in TIME-WAIT: 0 no, 1 yes, 2 on loopback (`net.ipv4.tcp_tw_reuse`).
    pub tcp_tw_reuse: Option<u64>,
    /// Congestion control, e.g. `cubic`.
    pub congestion_control: Option<String>,
}

impl MachineFacts {
    /// Reads everything. Blocks for `watch`, during which other processes' CPU and the hypervisor's steal are
    /// measured; zero leaves those two unknown.
    pub fn read(watch: Duration) -> Self {
        let before = (!watch.is_zero()).then(Snapshot::take);
        let mut facts = Self { architecture: std::env::consts::ARCH.to_owned(), ..Self::default() };
        facts.read_system();
        facts.read_cpu();
        facts.read_memory();
        facts.read_limits();
        facts.read_network();
        if let Some(before) = before {
            std::thread::sleep(watch);
            let after = Snapshot::take();
            facts.steal_percent = after.steal_percent_since(&before);
            facts.busiest = after.busiest_since(&before, std::process::id());
        }
        facts
    }

    fn read_system(&mut self) {
        self.kernel = word("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}"));
        self.distribution = text("/etc/os-release").and_then(|text| distribution(&text));
        self.product = word("/sys/class/dmi/id/product_name").or_else(|| word("/sys/hypervisor/type"));
        self.load_1_min = text("/proc/loadavg")
            .and_then(|text| text.split_ascii_whitespace().next().and_then(|load| load.parse().ok()));
    }

    fn read_cpu(&mut self) {
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        self.cpu_model = ["model name", "Model", "Processor"].iter().find_map(|label| cpu_field(&cpuinfo, label));
        self.virtual_machine =
            cpu_field(&cpuinfo, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        self.cores = text("/sys/devices/system/cpu/online").and_then(|list| list_length(&list));
        self.cores_usable = std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok());
        self.threads_per_core =
            text("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").and_then(|list| list_length(&list));
        self.numa_nodes = text("/sys/devices/system/node/has_cpu").and_then(|list| list_length(&list));
        self.governor = word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        self.boost = number("/sys/devices/system/cpu/cpufreq/boost")
            .map(|boost| boost == 1)
            .or_else(|| number("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0));
        self.clocksource = word("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        self.transparent_hugepages = text("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text));
    }

    fn read_memory(&mut self) {
        let meminfo = text("/proc/meminfo").unwrap_or_default();
        let bytes = |label| labelled_bytes(&meminfo, label);
        self.memory_bytes = bytes("MemTotal");
        self.memory_available_bytes = bytes("MemAvailable");
        let swap = bytes("SwapTotal").zip(bytes("SwapFree"));
        self.swap_used_bytes = swap.map(|(total, free)| total.saturating_sub(free));
    }

    fn read_limits(&mut self) {
        let limit = pushlab_os::limits::descriptors();
        (self.nofile_soft, self.nofile_hard) = (Some(limit.soft), Some(limit.hard));
    }

    fn read_network(&mut self) {
        self.somaxconn = number("/proc/sys/net/core/somaxconn");
        self.syn_backlog = number("/proc/sys/net/ipv4/tcp_max_syn_backlog");
        self.port_range = numbers("/proc/sys/net/ipv4/ip_local_port_range").map(|[first, last]| (first, last));
        self.tcp_mem_pages = numbers("/proc/sys/net/ipv4/tcp_mem");
        self.tcp_rmem_bytes = numbers("/proc/sys/net/ipv4/tcp_rmem");
        self.tcp_wmem_bytes = numbers("/proc/sys/net/ipv4/tcp_wmem");
        self.tcp_tw_reuse = number("/proc/sys/net/ipv4/tcp_tw_reuse");
        self.congestion_control = word("/proc/sys/net/ipv4/tcp_congestion_control");
    }
}

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn word(path: &str) -> Option<String> {
    text(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &str) -> Option<u64> {
    word(path)?.parse().ok()
}

fn numbers<T: std::str::FromStr, const N: usize>(path: &str) -> Option<[T; N]> {
    let found: Vec<T> = text(path)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    found.try_into().ok()
}

/// What `/proc/meminfo` has under a label, bytes.
fn labelled_bytes(meminfo: &str, label: &str) -> Option<u64> {
    labelled(meminfo.as_bytes(), label).map(|kib| kib.saturating_mul(1024))
}

/// The value of the first `label : value` line of `/proc/cpuinfo`.
fn cpu_field(cpuinfo: &str, label: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == label).then(|| value.trim().to_owned())
    })
}

/// How many numbers a kernel list such as `0-3,8` names.
fn list_length(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The choice in brackets, as in `always [madvise] never`.
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    rest.split_once(']').map(|(choice, _)| choice.to_owned())
}

fn distribution(os_release: &str) -> Option<String> {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_facts_every_linux_has() {
        let facts = MachineFacts::read(Duration::from_millis(1));
        assert!(facts.kernel.as_deref().is_some_and(|kernel| kernel.starts_with("Linux ")));
        assert!(facts.cores.is_some_and(|cores| cores >= 1) && facts.memory_bytes.is_some());
        assert!(facts.nofile_soft <= facts.nofile_hard);
        assert!(facts.port_range.is_some_and(|(first, last)| first < last));
        // serde_json reads fractions back to within one last bit, so they are left out of the comparison.
        let facts = MachineFacts { load_1_min: None, steal_percent: None, busiest: None, ..facts };
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<MachineFacts>(&json).unwrap(), facts);
    }

    #[test]
    fn kernel_lists() {
        assert_eq!(list_length("0-3,8\n"), Some(5));
        assert_eq!(list_length("0"), Some(1));
        assert_eq!(list_length(""), None);
        assert_eq!(list_length("3-1"), None);
        assert_eq!(list_length("0-4294967295"), None);
    }

    #[test]
    fn bracketed_and_labelled_choices() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("madvise"), None);
        assert_eq!(cpu_field("a : 1\nmodel name\t: AMD EPYC\n", "model name").as_deref(), Some("AMD EPYC"));
        assert_eq!(distribution("ID=x\nPRETTY_NAME=\"Debian 13\"\n").as_deref(), Some("Debian 13"));
    }
}
