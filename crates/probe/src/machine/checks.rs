//! Judging a machine's facts: what would spoil a measurement, and what to do about it.

use super::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long [`checks`] watches for other activity: twenty ticks, so that one tick is 5 %.
pub const WATCH: Duration = Duration::from_millis(200);
/// Cores below which server and load cannot be pinned apart.
const CORES_MIN: u32 = 2;
/// Descriptors below which large runs need more worker processes than machines like: the design's own limit.
const NOFILE_MIN: u64 = 20_000;
/// Local ports of which the usual 10,000 connections from one source address to one server are more than half: then each
/// further one takes long.
const PORTS_MIN: u32 = 20_000;
/// Waiting connections below which a connect phase of thousands of clients overflows the accept queue: the kernel's
/// own default since 5.4.
const SOMAXCONN_MIN: u64 = 4_096;
/// Memory below which 20,000 connections with both ends on the machine (about 9 KB each) squeeze everything else.
const MEMORY_AVAILABLE_MIN: u64 = 1 << 30;
/// Load average for each core above which something else is running; ours has hardly begun when this is asked.
const LOAD_PER_CORE_WARN: f64 = 0.3;
const LOAD_PER_CORE_BAD: f64 = 0.8;
/// Stolen time, per cent. Even 1 % is a pause of 10 ms in each second.
const STEAL_WARN: f64 = 1.0;
const STEAL_BAD: f64 = 5.0;
/// Another process's CPU, per cent of one core.
const BUSY_WARN: f64 = 10.0;
const BUSY_BAD: f64 = 50.0;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It could not be read; no sign of trouble, none of its absence.
    Unknown,
    /// It widens the figures' spread or limits the size of a run.
    Warn,
    /// It spoils figures.
    Bad,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// Stable name, e.g. `governor`.
    pub name: &'static str,
    /// The judgement.
    pub verdict: Verdict,
    /// What was found, or `unknown`.
    pub found: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do when it is not as it should be.
    pub fix: &'static str,
}

/// A found value and its judgement; `None` when it could not be read.
type Finding = Option<(Verdict, String)>;

/// A check's name, how it judges, why it matters and what to do.
type Row = (&'static str, fn(&MachineFacts) -> Finding, &'static str, &'static str);

/// In the order in which they are told.
const ROWS: [Row; 12] = [
    (
        "cores",
        MachineFacts::judge_cores,
        "Server and load must not share a core, or each slows the other.",
        "Use a machine with at least two cores, or run the load on another machine.",
    ),
    (
        "governor",
        MachineFacts::judge_governor,
        "Other governors change the clock frequency with the load, so a core at half load takes longer for the \
         same work.",
        "cpupower frequency-set -g performance",
    ),
    (
        "clocksource",
        MachineFacts::judge_clocksource,
        "Other clock sources cost a system call or an exit to the hypervisor for each reading of the time.",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, where it is offered",
    ),
    (
        "busy-process",
        MachineFacts::judge_busiest,
        "Another process takes CPU and caches from what is measured.",
        "Stop it, or wait until it is done.",
    ),
    (
        "load-average",
        MachineFacts::judge_load,
        "Something has kept the machine busy during the last minute.",
        "Look with top; wait until the load falls.",
    ),
    (
        "steal",
        MachineFacts::judge_steal,
        "The hypervisor gives CPU time to other guests, which shows as pauses in every latency.",
        "Use a dedicated instance, or compare CPU time per delivery only.",
    ),
    (
        "memory",
        MachineFacts::judge_memory,
        "Connections take kernel memory at both ends; near the limit the kernel reclaims and delays everything.",
        "Stop what holds memory, or lower the number of clients.",
    ),
    (
        "swap",
        MachineFacts::judge_swap,
        "Pages that come back from swap delay whoever touches them by milliseconds.",
        "swapoff -a, once enough memory is free",
    ),
    (
        "nofile",
        MachineFacts::judge_nofile,
        "Each connection takes a descriptor; a process at its limit refuses connections.",
        "ulimit -n 1048576, or LimitNOFILE= in the unit file",
    ),
    (
        "somaxconn",
        MachineFacts::judge_somaxconn,
        "A connect phase overflows a short accept queue, and clients then retry after a second.",
        "sysctl -w net.core.somaxconn=65535",
    ),
    (
        "port-range",
        MachineFacts::judge_ports,
        "Each connection from one address to one server takes a local port.",
        "sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
    ),
    (
        "transparent-hugepages",
        MachineFacts::judge_hugepages,
        "With `always` the kernel merges pages in the background, which pauses processes and inflates their \
         resident memory.",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
];

/// Reads the facts, watching for [`WATCH`], and judges them.
pub fn checks() -> Vec<Check> {
    MachineFacts::read(WATCH).checks()
}

impl MachineFacts {
    /// Judges the facts, in a fixed order, one entry for each check whether or not it could be made.
    pub fn checks(&self) -> Vec<Check> {
        let check = |(name, judge, why, fix): Row| {
            let (verdict, found) = judge(self).unwrap_or((Verdict::Unknown, "unknown".to_owned()));
            Check { name, verdict, found, why, fix }
        };
        ROWS.map(check).into()
    }

    fn judge_cores(&self) -> Finding {
        let usable = self.cores_usable.or(self.cores)?;
        let found = match self.cores {
            Some(all) if all != usable => format!("{usable} of {all}"),
            _ => usable.to_string(),
        };
        Some((at_least(usable, CORES_MIN, Verdict::Bad), found))
    }

    fn judge_governor(&self) -> Finding {
        let governor = self.governor.clone()?;
        Some((unless(governor == "performance"), governor))
    }

    fn judge_clocksource(&self) -> Finding {
        let source = self.clocksource.clone()?;
        // Other machines than x86 have one good source of their own.
        let good = source == "tsc" || source == "arch_sys_counter" || !self.architecture.starts_with("x86");
        Some((unless(good), source))
    }

    fn judge_busiest(&self) -> Finding {
        let busy = self.busiest.as_ref()?;
        let found = format!("{} (pid {}) at {:.0} % of a core", busy.name, busy.pid, busy.cpu_percent);
        Some((graded(busy.cpu_percent, BUSY_WARN, BUSY_BAD), found))
    }

    fn judge_load(&self) -> Finding {
        let (load, cores) = (self.load_1_min?, self.cores?.max(1));
        let verdict = graded(load / f64::from(cores), LOAD_PER_CORE_WARN, LOAD_PER_CORE_BAD);
        Some((verdict, format!("{load:.2} on {cores} core(s)")))
    }

    fn judge_steal(&self) -> Finding {
        let steal = self.steal_percent?;
        Some((graded(steal, STEAL_WARN, STEAL_BAD), format!("{steal:.1} %")))
    }

    fn judge_memory(&self) -> Finding {
        let available = self.memory_available_bytes?;
        let found = format!("{:.1} GiB available", gib(available));
        Some((at_least(available, MEMORY_AVAILABLE_MIN, Verdict::Warn), found))
    }

    fn judge_swap(&self) -> Finding {
        let used = self.swap_used_bytes?;
        Some((unless(used == 0), format!("{:.2} GiB in use", gib(used))))
    }

    fn judge_nofile(&self) -> Finding {
        let (soft, hard) = (self.nofile_soft?, self.nofile_hard?);
        // The soft limit can be raised up to the hard one without asking, so the hard one counts.
        Some((at_least(hard, NOFILE_MIN, Verdict::Warn), format!("{} soft, {} hard", limit(soft), limit(hard))))
    }

    fn judge_somaxconn(&self) -> Finding {
        let found = self.somaxconn?;
        Some((at_least(found, SOMAXCONN_MIN, Verdict::Warn), found.to_string()))
    }

    fn judge_ports(&self) -> Finding {
        let (first, last) = self.port_range?;
        let ports = u32::from(last.saturating_sub(first)) + 1;
        Some((at_least(ports, PORTS_MIN, Verdict::Warn), format!("{first} to {last}: {ports} ports")))
    }

    fn judge_hugepages(&self) -> Finding {
        let choice = self.transparent_hugepages.clone()?;
        Some((unless(choice != "always"), choice))
    }
}

fn unless(good: bool) -> Verdict {
    if good { Verdict::Ok } else { Verdict::Warn }
}

fn at_least<T: PartialOrd>(found: T, least: T, otherwise: Verdict) -> Verdict {
    if found >= least { Verdict::Ok } else { otherwise }
}

fn graded(found: f64, warn: f64, bad: f64) -> Verdict {
    if found >= bad {
        Verdict::Bad
    } else if found >= warn {
        Verdict::Warn
    } else {
        Verdict::Ok
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn limit(value: u64) -> String {
    // RLIM_INFINITY is all ones.
    if value == u64::MAX { "unlimited".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::BusyProcess;

    fn good() -> MachineFacts {
        MachineFacts {
            architecture: "x86_64".into(),
            cores: Some(8),
            cores_usable: Some(8),
            governor: Some("performance".into()),
            clocksource: Some("tsc".into()),
            transparent_hugepages: Some("madvise".into()),
            memory_available_bytes: Some(16 << 30),
            swap_used_bytes: Some(0),
            load_1_min: Some(0.2),
            steal_percent: Some(0.0),
            busiest: Some(BusyProcess { pid: 2, name: "idle".into(), cpu_percent: 0.5 }),
            nofile_soft: Some(1_024),
            nofile_hard: Some(u64::MAX),
            somaxconn: Some(4_096),
            port_range: Some((32_768, 60_999)),
            ..MachineFacts::default()
        }
    }

    fn verdict(facts: &MachineFacts, name: &str) -> Verdict {
        facts.checks().into_iter().find(|check| check.name == name).unwrap().verdict
    }

    #[test]
    fn a_good_machine_passes_everything() {
        for check in good().checks() {
            assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
        }
    }

    #[test]
    fn nothing_known_is_unknown_everywhere() {
        for check in MachineFacts::default().checks() {
            assert_eq!((check.verdict, check.found.as_str()), (Verdict::Unknown, "unknown"), "{}", check.name);
        }
    }

    #[test]
    fn each_fault_is_found() {
        let busy = |cpu_percent| Some(BusyProcess { pid: 9, name: "ffmpeg".into(), cpu_percent });
        let cases: [(&str, Verdict, MachineFacts); 14] = [
            ("cores", Verdict::Bad, MachineFacts { cores_usable: Some(1), ..good() }),
            ("governor", Verdict::Warn, MachineFacts { governor: Some("powersave".into()), ..good() }),
            ("clocksource", Verdict::Warn, MachineFacts { clocksource: Some("hpet".into()), ..good() }),
            ("busy-process", Verdict::Warn, MachineFacts { busiest: busy(10.0), ..good() }),
            ("busy-process", Verdict::Bad, MachineFacts { busiest: busy(99.0), ..good() }),
            ("load-average", Verdict::Warn, MachineFacts { load_1_min: Some(2.5), ..good() }),
            ("load-average", Verdict::Bad, MachineFacts { load_1_min: Some(8.0), ..good() }),
            ("steal", Verdict::Bad, MachineFacts { steal_percent: Some(7.0), ..good() }),
            ("memory", Verdict::Warn, MachineFacts { memory_available_bytes: Some(1 << 20), ..good() }),
            ("swap", Verdict::Warn, MachineFacts { swap_used_bytes: Some(1), ..good() }),
            ("nofile", Verdict::Warn, MachineFacts { nofile_hard: Some(4_096), ..good() }),
            ("somaxconn", Verdict::Warn, MachineFacts { somaxconn: Some(128), ..good() }),
            ("port-range", Verdict::Warn, MachineFacts { port_range: Some((50_000, 60_000)), ..good() }),
            (
                "transparent-hugepages",
                Verdict::Warn,
                MachineFacts { transparent_hugepages: Some("always".into()), ..good() },
            ),
        ];
        for (name, expected, facts) in cases {
            assert_eq!(verdict(&facts, name), expected, "{name}");
        }
    }
}
