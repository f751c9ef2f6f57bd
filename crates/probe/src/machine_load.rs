//! What the kernel says of the machine as a whole, and of a network namespace as a whole.

use pushlab_os::control_group::folders_with_cpu_quota;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::{AddAssign, Sub};

/// CPU time of all cores together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// Used by anything, seconds.
    pub busy_s: f64,
    /// Taken by the hypervisor for other guests, seconds.
    pub steal_s: f64,
    /// What CPU quotas did to this process and the subject's.
    #[serde(default)]
    pub throttling: Throttling,
}

impl MachineLoad {
    /// Since boot; `None` where `/proc/stat` cannot be read. The subject is this process, if it can be seen.
    pub fn now(subject: Option<u32>) -> Option<Self> {
        let load = Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { throttling: Throttling::now(subject), ..load })
    }

    /// What was added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            busy_s: self.busy_s - before.busy_s,
            steal_s: self.steal_s - before.steal_s,
            throttling: self.throttling - before.throttling,
        }
    }

    /// The first line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal, in ticks of 10 ms.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else { return None };
        let (busy_s, steal_s) = ((user + nice + system + irq + softirq) / 100.0, steal / 100.0);
        Some(Self { busy_s, steal_s, throttling: Throttling::default() })
    }
}

/// How CPU quotas of control groups, as containers have them, held processes up. All are 0 where there is no quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods in which a quota was in force.
    pub periods: u64,
    /// Those in which it was used up, and its processes waited for the next.
    pub throttled: u64,
    /// For how long, over all cores, µs.
    pub waited_us: u64,
}

impl Throttling {
    /// Since the groups were made.
    fn now(subject: Option<u32>) -> Self {
        let processes = [Some(std::process::id()), subject].into_iter().flatten();
        let folders: BTreeSet<_> = processes.flat_map(folders_with_cpu_quota).collect();
        let mut all = Self::default();
        for folder in folders {
            // The root group has none.
            all += Self::parse(&std::fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default());
        }
        all
    }

    /// `cpu.stat`: names and values; the time is `throttled_usec` in version 2, and `throttled_time`, ns, in version 1.
    fn parse(text: &str) -> Self {
        let value = |name: &str| -> u64 {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
            found.unwrap_or(0)
        };
        Self {
            periods: value("nr_periods"),
            throttled: value("nr_throttled"),
            waited_us: value("throttled_usec") + value("throttled_time") / 1000,
        }
    }
}

impl AddAssign for Throttling {
    fn add_assign(&mut self, other: Self) {
        self.periods += other.periods;
        self.throttled += other.throttled;
        self.waited_us += other.waited_us;
    }
}

impl Sub for Throttling {
    type Output = Self;

    /// Groups may have gone meanwhile.
    fn sub(self, before: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            waited_us: self.waited_us.saturating_sub(before.waited_us),
        }
    }
}

/// What TCP did in a network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpActivity {
    /// Connections opened from within.
    pub opened: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Segments sent again.
    pub retransmitted: u64,
}

impl TcpActivity {
    /// Since the namespace of a process was made; `None` when the process is gone.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/net/snmp")).ok()?)
    }

    /// What was added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            opened: self.opened.saturating_sub(before.opened),
            accepted: self.accepted.saturating_sub(before.accepted),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
        }
    }

    /// A line of names and a line of values, both headed `Tcp:` (RFC 4022 has what they mean).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (lines.next()?, lines.next()?);
        let value = |wanted: &str| {
            let at = names.split_whitespace().position(|name| name == wanted)?;
            values.split_whitespace().nth(at)?.parse().ok()
        };
        Some(Self {
            opened: value("ActiveOpens")?,
            accepted: value("PassiveOpens")?,
            retransmitted: value("RetransSegs")?,
        })
    }
}

/// Memory that the kernel holds for everybody, bytes: slab, page tables, kernel stacks and socket buffers; `None`
/// where the kernel does not say.
pub fn kernel_memory_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| -> Option<u64> {
        meminfo.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())?.parse().ok()
    };
    // Objects in use, where that may be read: the pages of a slab stay when its objects are gone, so that what an
    // earlier run needed would be missing in the growth of this one.
    let in_use = std::fs::read_to_string("/proc/slabinfo").ok().and_then(|text| slab_in_use_bytes(&text));
    let slab = in_use.or_else(|| Some(kib("Slab:")? * 1024))?;
    let sockets = std::fs::read_to_string("/proc/net/sockstat").ok()?;
    let tcp = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let pages: u64 = tcp.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse().ok()?;
    Some(slab + (kib("PageTables:")? + kib("KernelStack:")?) * 1024 + pages * PAGE_BYTES)
}

/// The sum over all caches of `/proc/slabinfo` (slabinfo(5)): name, active objects, objects, object size …
fn slab_in_use_bytes(text: &str) -> Option<u64> {
    let caches = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("slabinfo"));
    caches
        .map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let active: u64 = fields.next()?.parse().ok()?;
            let size: u64 = fields.nth(1)?.parse().ok()?;
            Some(active * size)
        })
        .sum()
}

/// The unit in which `/proc/net/sockstat` counts: a page.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_read_by_the_names_of_its_fields() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens RetransSegs\nTcp: 200 3 4 5\n";
        let expected = TcpActivity { opened: 3, accepted: 4, retransmitted: 5 };
        assert_eq!(TcpActivity::parse(text), Some(expected));
        assert_eq!(TcpActivity::parse("Tcp: RtoMin\nTcp: 200\n"), None);
        assert!(TcpActivity::of(std::process::id()).is_some());
    }

    #[test]
    fn only_objects_in_use_count() {
        let text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize>\nTCP 10 20 100 3 4 : tunables 0 0 0\nfilp 3 9 7 1 1\n";
        assert_eq!(slab_in_use_bytes(text), Some(1021));
        assert_eq!(slab_in_use_bytes("TCP ten"), None);
    }

    #[test]
    fn the_first_line_is_read() {
        let load = MachineLoad::parse("cpu  100 0 50 999 9 10 40 7 0 0\ncpu0 1 2 3\n");
        let throttling = Throttling::default();
        assert_eq!(load, Some(MachineLoad { busy_s: 2.0, steal_s: 0.07, throttling }));
        assert_eq!(MachineLoad::parse("intr 1"), None);
        // As an agent of before tells it.
        assert_eq!(load, serde_json::from_str(r#"{"busy_s":2.0,"steal_s":0.07}"#).unwrap());
    }

    #[test]
    fn quotas_are_read_as_either_version_has_them() {
        let second = "usage_usec 9\nuser_usec 5\nnr_periods 40\nnr_throttled 14\nthrottled_usec 1000000\nnr_bursts 0\n";
        let first = "nr_periods 40\nnr_throttled 14\nthrottled_time 1000000000\n";
        let found = Throttling { periods: 40, throttled: 14, waited_us: 1_000_000 };
        assert_eq!([second, first].map(Throttling::parse), [found; 2]);
        assert_eq!(Throttling::parse("usage_usec 9\n"), Throttling::default(), "a group without a quota");
        let before = MachineLoad { busy_s: 0.0, steal_s: 0.0, throttling: Throttling { periods: 30, ..found } };
        let after = MachineLoad { throttling: Throttling { throttled: 15, ..found }, ..before };
        let between = Throttling { periods: 10, throttled: 1, waited_us: 0 };
        assert_eq!(after.since(before).throttling, between);
        assert_eq!(before.since(after).throttling.periods, 0, "a group that has gone");
    }
}
