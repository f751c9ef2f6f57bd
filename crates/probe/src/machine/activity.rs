//! What else the machine was doing, from two snapshots.

use crate::procfs::numbered_entries;
use pushlab_os::clock::{CpuClock, monotonic_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A process that used CPU while we watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyProcess {
    /// Process number.
    pub pid: u32,
    /// Its command name, at most 15 characters.
    pub name: String,
    /// CPU, per cent of one core.
    pub cpu_percent: f64,
}

/// CPU time used so far, by all processes and by the hypervisor's other guests.
#[derive(Debug)]
pub(super) struct Snapshot {
    t_ns: u64,
    /// CPU time by process, ns.
    processes: HashMap<u32, u64>,
    /// All CPUs' ticks, and of those the stolen ones.
    ticks: Option<(u64, u64)>,
}

impl Snapshot {
    pub(super) fn take() -> Self {
        let mut processes = HashMap::new();
        let listed = numbered_entries("/proc", |pid| {
            if let Some(ns) = CpuClock::of_process(pid).ok().and_then(CpuClock::read_ns) {
                processes.insert(pid, ns);
            }
        });
        if listed.is_err() {
            // Without /proc there is nobody to blame; the busiest process stays unknown.
            processes.clear();
        }
        let stat = std::fs::read_to_string("/proc/stat").ok();
        Self { t_ns: monotonic_ns(), processes, ticks: stat.as_deref().and_then(stolen_ticks) }
    }

    /// Time given to other guests, per cent of all CPUs' time.
    pub(super) fn steal_percent_since(&self, before: &Self) -> Option<f64> {
        let ((all, stolen), (all_before, stolen_before)) = (self.ticks?, before.ticks?);
        let all = all.checked_sub(all_before).filter(|all| *all > 0)?;
        Some(100.0 * stolen.saturating_sub(stolen_before) as f64 / all as f64)
    }

    /// The process other than `own` that used most CPU.
    pub(super) fn busiest_since(&self, before: &Self, own: u32) -> Option<BusyProcess> {
        let window = self.t_ns.checked_sub(before.t_ns).filter(|window| *window > 0)?;
        let used = |(pid, ns): (&u32, &u64)| {
            let used = ns.checked_sub(*before.processes.get(pid)?)?;
            (*pid != own).then_some((used, *pid))
        };
        let (used, pid) = self.processes.iter().filter_map(used).max()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned();
        Some(BusyProcess { pid, name, cpu_percent: 100.0 * used as f64 / window as f64 })
    }
}

/// The first line of `/proc/stat`: the sum of user to steal, and steal. Guest time is part of user time already.
fn stolen_ticks(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = fields.split_ascii_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let stolen = *ticks.get(7)?;
    Some((ticks.iter().sum(), stolen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn steal_is_a_share_of_all() {
        assert_eq!(stolen_ticks("cpu  10 1 20 300 4 0 5 60 7 8\ncpu0 1"), Some((400, 60)));
        assert_eq!(stolen_ticks("cpu  10 1 20 300"), None);
        let at = |all, stolen| Snapshot { t_ns: 0, processes: HashMap::new(), ticks: Some((all, stolen)) };
        assert_eq!(at(300, 30).steal_percent_since(&at(100, 10)), Some(10.0));
        assert_eq!(at(100, 30).steal_percent_since(&at(100, 10)), None);
    }

    #[test]
    fn a_busy_process_is_named() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let before = Snapshot::take();
        // Others may be busy too, so the test looks for this one alone.
        let used = loop {
            let mut after = Snapshot::take();
            after.processes.retain(|pid, _| *pid == child.id());
            match after.busiest_since(&before, std::process::id()) {
                Some(busy) if busy.cpu_percent > 1.0 => break busy,
                _ => assert!(Instant::now() < deadline, "a busy loop uses no CPU"),
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((used.pid, used.name.as_str()), (child.id(), "sh"));
    }
}
