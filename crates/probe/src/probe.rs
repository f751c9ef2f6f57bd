//! The probe: samples of a process tree.

use crate::budget::{Budget, Reader, ReaderCost};
use crate::cpu::Ledger;
use crate::descriptors::size_is_count;
use crate::error::ProbeError;
use crate::process::{Life, Process};
use crate::procfs::{ProcFile, interface_received, is_gone, labelled};
use crate::sample::{Loopback, Sample, TcpStates};
use crate::sock_diag::{SockDiag, SockDiagError};
use crate::switches::Count;
use crate::tree::TreeWatch;
use pushlab_os::clock::monotonic_ns;
use pushlab_os::system;
use std::collections::HashSet;
use std::io;

/// Least time between two readings of proportional memory, ns: it walks the subject's page tables under a lock
/// that its own memory mappings wait for.
const PSS_PERIOD_NS: u64 = 1_000_000_000;
/// Least time between two counts of TCP sockets, ns. Even an empty connection table takes the kernel 1 to 2 ms to
/// walk on a machine of 24 GB; four times a second that is 0.7 % of a core, and enough for a chart.
const TCP_PERIOD_NS: u64 = 250_000_000;
/// Least time between two counts of context switches, ns: they are counters, so detail is all that is lost.
const SWITCHES_PERIOD_NS: u64 = 250_000_000;

/// What a probe reads, and how much of the time it may take.
#[derive(Debug, Clone)]
pub struct ProbeConfig {
    /// Local ports whose TCP sockets are counted; none by default, and then nothing is asked.
    pub ports: Vec<u16>,
    /// Share of wall time that each costly reader (descriptors, switches, proportional memory, TCP, the search for
    /// descendants) may take, 0 to 1. Default 0.02. A reader over its share runs less often.
    pub budget: f64,
    /// Whether to read proportional memory. Default true.
    pub pss: bool,
    /// Connections up to which `tcp_info` is summed; the kernel locks each socket for it. Default 20,000, which
    /// takes about 30 ms. 0 never sums.
    pub totals_connections_max: u32,
    /// Processes followed; further descendants are left out. Default 1,024: three descriptors each.
    pub processes_max: usize,
    /// Whether it goes on when a root has ended, in whose place another may come ([`Probe::follow`]): between the two
    /// there may be samples of no process. Default false.
    pub outlives_roots: bool,
    /// The clock by which readers' costs are measured, ns. Default [`monotonic_ns`].
    pub clock: fn() -> u64,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            budget: 0.02,
            pss: true,
            totals_connections_max: 20_000,
            processes_max: 1_024,
            outlives_roots: false,
            clock: monotonic_ns,
        }
    }
}

/// Reads a process and all its descendants. Descendants that outlive their parents stay in the tree.
#[derive(Debug)]
pub struct Probe {
    config: ProbeConfig,
    roots: Vec<u32>,
    /// The roots first, then in order of discovery, so parents mostly stand before their children.
    processes: Vec<Process>,
    watch: TreeWatch,
    ledger: Ledger,
    /// Switches of processes that have ended.
    ended_switches: Count,
    loopback: Option<ProcFile>,
    sock_diag: Option<SockDiag>,
    connections: u32,
    fast_descriptors: bool,
    tick_ns: u64,
    page_bytes: u64,
    buffer: Vec<u8>,
    base: Budget,
    tree: Budget,
    descriptors: Budget,
    switches: Budget,
    pss: Budget,
    tcp: Budget,
}

impl Probe {
    /// Begins to follow a process.
    ///
    /// # Errors
    /// [`ProbeError::Gone`] when there is no such process; otherwise when `/proc` cannot be read.
    pub fn new(root: u32, config: ProbeConfig) -> Result<Self, ProbeError> {
        Self::of_all(&[root], config)
    }

    /// Begins to follow several processes as one. What is of a network namespace is read of the first one's.
    ///
    /// # Errors
    /// As [`Self::new`], of any of them.
    pub fn of_all(roots: &[u32], config: ProbeConfig) -> Result<Self, ProbeError> {
        let tick_ns = 1_000_000_000 / system::ticks_per_second();
        let share = Some(config.budget);
        let mut this = Self {
            roots: Vec::new(),
            processes: Vec::new(),
            watch: TreeWatch::new(),
            ledger: Ledger::default(),
            ended_switches: Count::default(),
            loopback: None,
            sock_diag: None,
            connections: 0,
            fast_descriptors: size_is_count(),
            tick_ns,
            page_bytes: system::page_bytes(),
            buffer: Vec::new(),
            base: Budget::new(Reader::Processes, None, 0),
            tree: Budget::new(Reader::Tree, share, 0),
            descriptors: Budget::new(Reader::Descriptors, share, 0),
            switches: Budget::new(Reader::Switches, share, SWITCHES_PERIOD_NS),
            pss: Budget::new(Reader::Pss, share, PSS_PERIOD_NS),
            tcp: Budget::new(Reader::Tcp, share, TCP_PERIOD_NS),
            config,
        };
        // The first one last, so that what is of a namespace is of its.
        roots.iter().rev().try_for_each(|&root| this.follow(root))?;
        Ok(this)
    }

    /// Follows one more process, in the place of a root that has ended or beside the others. What is of a network
    /// namespace is read of this one's from now on.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn follow(&mut self, root: u32) -> Result<(), ProbeError> {
        let process = Process::open(root, self.tick_ns, &mut self.buffer).map_err(|error| explain(root, error))?;
        if process.stat.is_dead() {
            return Err(ProbeError::Gone { pid: root });
        }
        self.roots.insert(0, root);
        self.processes.insert(0, process);
        (self.loopback, self.sock_diag) = (ProcFile::open(format!("/proc/{root}/net/dev")).ok(), None);
        Ok(())
    }

    /// The processes that were asked for.
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// Reads the tree. `now_ns` becomes the sample's instant and decides which costly readers are due; pass
    /// [`monotonic_ns`] or any clock that does not go back.
    ///
    /// # Errors
    /// [`ProbeError::Gone`] once a root has ended, unless it outlives its roots. A descendant's end is no error, and neither is a costly reader
    /// that fails: its field is `None`, and [`Probe::costs`] tells why.
    pub fn sample(&mut self, now_ns: u64) -> Result<Sample, ProbeError> {
        if self.tree.is_due(now_ns) && self.watch.may_have_grown(now_ns, &mut self.buffer) {
            let begun = (self.config.clock)();
            let failure = self.discover().err().map(|error| error.to_string());
            self.tree.spent(now_ns, self.since(begun), failure);
        }
        let begun = (self.config.clock)();
        let mut sample = Sample { t_ns: now_ns, ..Sample::default() };
        self.read_processes(&mut sample)?;
        sample.loopback = self.read_loopback();
        self.base.spent(now_ns, self.since(begun), None);
        self.read_costly(now_ns, &mut sample);
        Ok(sample)
    }

    /// What each reader has cost and how often it runs at present.
    pub fn costs(&self) -> Vec<ReaderCost> {
        let mut budgets = vec![&self.base, &self.tree, &self.descriptors, &self.switches];
        budgets.extend(self.config.pss.then_some(&self.pss));
        budgets.extend((!self.config.ports.is_empty()).then_some(&self.tcp));
        budgets.into_iter().map(Budget::cost).collect()
    }

    fn since(&self, begun: u64) -> u64 {
        (self.config.clock)().saturating_sub(begun)
    }

    /// Adds descendants until a look finds no more: children may have had children.
    fn discover(&mut self) -> io::Result<()> {
        let mut known: HashSet<u32> = self.processes.iter().map(|process| process.pid).collect();
        let mut parents = known.clone();
        while !parents.is_empty() && self.processes.len() < self.config.processes_max {
            let mut found = HashSet::new();
            self.watch.children(&parents, &mut self.buffer, |pid| {
                found.insert(pid);
            })?;
            found.retain(|pid| known.insert(*pid));
            for pid in &found {
                if self.processes.len() >= self.config.processes_max {
                    break;
                }
                // One that cannot be opened has ended already; its parent's books have its time.
                if let Ok(process) = Process::open(*pid, self.tick_ns, &mut self.buffer) {
                    self.processes.push(process);
                }
            }
            parents = found;
        }
        Ok(())
    }

    fn read_processes(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        // Children before parents: a child found gone has then been booked with its parent before that is read.
        for index in (0..self.processes.len()).rev() {
            let process = &mut self.processes[index];
            let pid = process.pid;
            let life = process.read(self.tick_ns, &mut self.buffer).map_err(|error| explain(pid, error))?;
            match life {
                Life::Alive => {
                    sample.processes += 1;
                    sample.threads += process.stat.threads;
                    sample.rss_bytes += process.rss_pages * self.page_bytes;
                }
                Life::Zombie | Life::Gone if self.roots.contains(&pid) && !self.config.outlives_roots => {
                    return Err(ProbeError::Gone { pid });
                }
                Life::Zombie => {}
                Life::Gone => self.settle(index),
            }
        }
        let cpu = self.ledger.sum(self.processes.iter().map(|process| process.account.times()));
        (sample.cpu_ns, sample.cpu_user_ns, sample.cpu_system_ns) = (cpu.total, cpu.user, cpu.system);
        Ok(())
    }

    /// Books what an ended process used with its parent, or with the orphans.
    fn settle(&mut self, index: usize) {
        let ended = self.processes.remove(index);
        self.ended_switches.add(ended.switches.total());
        let times = ended.account.times();
        match self.processes.iter_mut().find(|process| process.pid == ended.stat.ppid) {
            Some(parent) => parent.account.inherit(times),
            None => self.ledger.retire(times),
        }
    }

    fn read_loopback(&mut self) -> Option<Loopback> {
        let text = self.loopback.as_ref()?.read_all(&mut self.buffer).ok()?;
        let (bytes, packets) = interface_received(text, "lo")?;
        Some(Loopback { bytes, packets })
    }

    fn read_costly(&mut self, now_ns: u64, sample: &mut Sample) {
        if self.descriptors.is_due(now_ns) {
            let begun = (self.config.clock)();
            let read = self.sum(|process, fast, _| process.descriptors.count(process.stat.threads, fast, now_ns));
            self.descriptors.spent(now_ns, self.since(begun), failure(&read));
            sample.descriptors = read.ok();
        }
        if self.switches.is_due(now_ns) {
            let begun = (self.config.clock)();
            let read = self.sum(|process, _, buffer| process.switches.read(process.pid, buffer).map(|()| 0));
            self.switches.spent(now_ns, self.since(begun), failure(&read));
            if read.is_ok() {
                let mut total = self.ended_switches;
                self.processes.iter().for_each(|process| total.add(process.switches.total()));
                (sample.ctx_voluntary, sample.ctx_involuntary) = (Some(total.voluntary), Some(total.involuntary));
            }
        }
        if self.config.pss && self.pss.is_due(now_ns) {
            let begun = (self.config.clock)();
            let read = self.sum(|process, _, buffer| proportional_bytes(process.pid, buffer));
            self.pss.spent(now_ns, self.since(begun), failure(&read));
            sample.pss_bytes = read.ok();
        }
        if !self.config.ports.is_empty() && self.tcp.is_due(now_ns) {
            let begun = (self.config.clock)();
            let read = self.read_tcp();
            self.tcp.spent(now_ns, self.since(begun), failure(&read));
            sample.tcp = read.ok();
        }
    }

    /// Sums a reading over the living; one that ends meanwhile counts nothing.
    fn sum(&mut self, mut read: impl FnMut(&mut Process, bool, &mut Vec<u8>) -> io::Result<u64>) -> io::Result<u64> {
        let mut total = 0u64;
        for process in self.processes.iter_mut().filter(|process| !process.stat.is_dead()) {
            match read(process, self.fast_descriptors, &mut self.buffer) {
                Ok(found) => total = total.saturating_add(found),
                // An ending process refuses in many ways: not found, not permitted, an empty file.
                Err(_) if process.has_ended(&mut self.buffer) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    fn read_tcp(&mut self) -> Result<TcpStates, SockDiagError> {
        let diag = match &mut self.sock_diag {
            Some(diag) => diag,
            empty => empty.insert(SockDiag::open(self.roots.first().copied().unwrap_or_default())?),
        };
        // The last count decides, because the kernel must be asked before this one is known.
        let totals = self.connections < self.config.totals_connections_max;
        let read = diag.read(&self.config.ports, totals);
        match &read {
            Ok(states) => self.connections = states.connections(),
            // What is left of a broken dump must not be read as the next one's.
            Err(_) => self.sock_diag = None,
        }
        read
    }
}

fn failure<T, E: std::fmt::Display>(read: &Result<T, E>) -> Option<String> {
    read.as_ref().err().map(ToString::to_string)
}

/// `Pss` of `/proc/PID/smaps_rollup` (Linux 4.14 and later), bytes.
fn proportional_bytes(pid: u32, buffer: &mut Vec<u8>) -> io::Result<u64> {
    let text = ProcFile::open(format!("/proc/{pid}/smaps_rollup"))?.read_all(buffer)?;
    let kib = labelled(text, "Pss").ok_or(io::ErrorKind::InvalidData)?;
    Ok(kib.saturating_mul(1024))
}

fn explain(pid: u32, error: io::Error) -> ProbeError {
    let path = format!("/proc/{pid}/stat").into();
    match error.kind() {
        _ if is_gone(&error) => ProbeError::Gone { pid },
        io::ErrorKind::InvalidData => ProbeError::Malformed { path },
        _ => ProbeError::Unreadable { path, source: error },
    }
}

#[cfg(test)]
mod tests;
