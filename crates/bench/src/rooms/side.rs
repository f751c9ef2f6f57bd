//! A server with its load.

use super::load::{Dialect, Order, Plan, Report, Shape};
use crate::processor::Cores;
use crate::scale::Load;
use crate::subject::{FanOut, Role, Subject};
use anyhow::{Context as _, ensure};
use pushlab_os::clock::CpuClock;
use pushlab_os::counter::CacheMisses;
use pushlab_os::folder::TemporaryFolder;
use pushlab_subjects::catalogue::{Entry, catalogue};
use pushlab_subjects::install::{Cache, Installed};
use pushlab_subjects::running::{ForeignStart, Subject as Foreign};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What one side did in one segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Processor time of the server for a delivery.
    pub cpu_us: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Writes of the server for a delivery.
    pub writes: f64,
    /// Cache misses of the server for a delivery.
    pub misses: Option<f64>,
    /// Deliveries.
    pub per_second: f64,
    pub late: f64,
}

/// A server, and who loads it.
pub struct Side {
    /// Its name.
    pub name: &'static str,
    /// Goes first: whoever still reads would take the server's end for a failure.
    load: Crowd,
    clock: CpuClock,
    misses: Result<Vec<CacheMisses>, String>,
    server: Server,
}

/// Held for its end.
enum Server {
    Ours { subject: Subject },
    Foreign { subject: Option<Foreign> },
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Foreign { subject } = self
            && let Some(subject) = subject.take()
        {
            subject.stop();
        }
    }
}

/// A peer, if it is installed; otherwise the reason why it cannot be measured.
pub fn find(name: &str) -> anyhow::Result<(&'static Entry, Installed)> {
    let entry = catalogue()?.find(name)?;
    Ok((entry, Cache::of_user().find(entry)?))
}

impl Side {
    /// Our server, or that of another build.
    pub fn ours(
        (name, io): (&'static str, FanOut),
        other: Option<&Path>,
        shape: Shape,
        family: u8,
        cores: Cores,
    ) -> anyhow::Result<Self> {
        let subject = Subject::start_server(other, cores.subject, io)?;
        let (id, address) = (subject.id(), subject.address());
        let plan = Plan { core: cores.load, address, dialect: Dialect::Native, shape, family };
        Self::new(name, Server::Ours { subject }, id, plan)
    }

    /// Somebody else's.
    pub fn peer(
        name: &'static str,
        (entry, installed): (&Entry, Installed),
        shape: Shape,
        family: u8,
        cores: Cores,
    ) -> anyhow::Result<Self> {
        let subject = Foreign::start_foreign(ForeignStart {
            manifest: &entry.manifest,
            installed: &installed,
            host: Ipv4Addr::LOCALHOST,
            port: None,
            namespace: None,
            feed: None,
            compression_from: None,
            logs_collections: false,
            environment: &[],
            cores: &[cores.subject],
            log: TemporaryFolder::make("pushlab-bench")?.keep().join(format!("{name}.log")),
        })?;
        let (id, address) = (subject.id(), subject.address);
        let plan = Plan { core: cores.load, address, dialect: Dialect::Bare, shape, family };
        Self::new(name, Server::Foreign { subject: Some(subject) }, id, plan)
    }

    fn new(name: &'static str, server: Server, id: u32, plan: Plan) -> anyhow::Result<Self> {
        let load = Crowd::start(plan)?;
        let clock = CpuClock::of_process(id).context("cannot read a server's processor time")?;
        Ok(Self { name, load, clock, misses: misses_of(id).map_err(|e| why_none(&e)), server })
    }

    /// Why nobody counts cache misses, if nobody does.
    pub fn why_no_misses(&self) -> Option<String> {
        self.misses.as_ref().err().cloned()
    }

    /// Whether our server has a ring of io_uring; of a peer nobody asks.
    pub fn has_ring(&self) -> anyhow::Result<bool> {
        match &self.server {
            Server::Ours { subject } => subject.has_ring(),
            Server::Foreign { .. } => Ok(false),
        }
    }

    /// Publishes for some time and waits until all of it has been delivered.
    pub fn run(&mut self, load: Load, duration: Duration) -> anyhow::Result<Segment> {
        let before = (self.cpu_ns()?, self.misses()?);
        let report = self.load.run(Order { load, duration }).with_context(|| format!("the load of {}", self.name))?;
        let after = (self.cpu_ns()?, self.misses()?);
        let deliveries = report.deliveries as f64;
        let misses = before.1.zip(after.1).map(|(before, after)| (after - before) as f64 / deliveries);
        Ok(Segment {
            cpu_us: (after.0 - before.0) as f64 / 1e3 / deliveries,
            p50_ms: report.p50_ns as f64 / 1e6,
            p99_ms: report.p99_ns as f64 / 1e6,
            writes: report.segments as f64 / deliveries,
            misses,
            per_second: deliveries / report.elapsed.as_secs_f64(),
            late: report.late as f64,
        })
    }

    fn cpu_ns(&self) -> anyhow::Result<u64> {
        self.clock.read_ns().with_context(|| format!("{} ended", self.name))
    }

    fn misses(&self) -> anyhow::Result<Option<u64>> {
        let Ok(counters) = &self.misses else { return Ok(None) };
        let counts = counters.iter().map(CacheMisses::read).sum::<std::io::Result<u64>>();
        Ok(Some(counts.context("cannot read cache misses")?))
    }
}

/// A counter for each thread of a process.
fn misses_of(process: u32) -> std::io::Result<Vec<CacheMisses>> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse().ok());
    threads.filter_map(|entry| entry.ok().and_then(number)).map(CacheMisses::of_thread).collect()
}

fn why_none(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Unsupported => "this processor or virtual machine counts none".to_owned(),
        ErrorKind::PermissionDenied => "kernel.perf_event_paranoid forbids to count them".to_owned(),
        _ => format!("they cannot be counted: {error}"),
    }
}

/// The process of a load; it is killed when dropped.
struct Crowd {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
}

impl Crowd {
    /// Starts it and waits until all have subscribed.
    fn start(plan: Plan) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe().context("cannot find this binary")?)
            .args(Role::RoomsLoad(plan).arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a load")?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(stdout)) = pipes else { anyhow::bail!("a load has no pipes") };
        let mut crowd = Self { child, orders, reports: BufReader::new(stdout) };
        let address: SocketAddr = crowd.line()?.parse().context("a load did not say that it is ready")?;
        ensure!(address == plan.address, "a load is not where it was sent");
        Ok(crowd)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let n = self.reports.read_line(&mut line)?;
        ensure!(n > 0, "a load has ended by itself");
        Ok(line.trim().to_owned())
    }

    fn run(&mut self, order: Order) -> anyhow::Result<Report> {
        writeln!(self.orders, "{}", serde_json::to_string(&order)?)?;
        serde_json::from_str(&self.line()?).context("a report is not understood")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // It may have ended by itself, which shows elsewhere.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
