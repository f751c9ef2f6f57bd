//! The programs that are measured: child processes of this binary.

use crate::{limit, rooms};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use pushlab_os::affinity::pin_to;
use pushlab_os::clock::CpuClock;
use pushlab_os::process::{Signal, end_with_parent};
use pushlab_server::{Config, Io, Server};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What a child process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
#[command(hide = true)]
pub enum Role {
    /// Our server.
    #[command(hide = true)]
    Server {
        /// Where it runs.
        #[arg(long)]
        core: usize,
        /// Fans out by io_uring, to however few.
        #[arg(long)]
        uring: bool,
    },
    /// The limit of fan-out.
    #[command(hide = true)]
    LimitOfFanout {
        /// Where it runs.
        #[arg(long)]
        core: usize,
        /// Sends by io_uring.
        #[arg(long)]
        uring: bool,
    },
    /// Subscribers and publishers of rooms, by the orders on its standard input.
    #[command(hide = true)]
    RoomsLoad(rooms::load::Plan),
    /// The limit of replies.
    #[command(hide = true)]
    LimitOfReplies {
        /// Where it runs.
        #[arg(long)]
        core: usize,
        /// Answers each request at once instead of holding it.
        #[arg(long)]
        immediate: bool,
    },
}

impl Role {
    /// Does it; returns only on failure.
    pub fn run(self) -> anyhow::Result<()> {
        end_with_parent(Signal::KILL)?;
        match self {
            Self::Server { core, uring } => {
                pin_to(&[core])?;
                serve(io(uring))
            }
            Self::LimitOfFanout { core, uring } => {
                pin_to(&[core])?;
                limit::fanout::run(io(uring))
            }
            Self::RoomsLoad(plan) => {
                pin_to(&[plan.core])?;
                rooms::load::run(plan)
            }
            Self::LimitOfReplies { core, immediate } => {
                pin_to(&[core])?;
                limit::replies::run(immediate)
            }
        }
    }

    /// Its command line.
    pub fn arguments(self) -> Vec<String> {
        let (name, core, switch) = match self {
            Self::Server { core, uring } => ("server", core, uring.then_some("--uring")),
            Self::LimitOfFanout { core, uring } => ("limit-of-fanout", core, uring.then_some("--uring")),
            Self::RoomsLoad(plan) => return plan.arguments(),
            Self::LimitOfReplies { core, immediate } => ("limit-of-replies", core, immediate.then_some("--immediate")),
        };
        let mut arguments = vec![name.to_owned(), "--core".to_owned(), core.to_string()];
        arguments.extend(switch.map(str::to_owned));
        arguments
    }
}

fn io(uring: bool) -> Io {
    if uring { Io::Uring } else { Io::Write }
}

/// Our server with its defaults, but without heartbeats, which would answer to nobody's publication.
fn serve(io: Io) -> anyhow::Result<()> {
    let mut config = Config::new(limit::ANY_PORT);
    config.io = Some(io);
    config.min_uring_members = 1;
    config.limits.heartbeat = Duration::from_secs(3600);
    let server = Server::start(config)?;
    println!("{}", server.address());
    server.join()?;
    bail!("the server ended by itself")
}

/// A running child process; it is killed when dropped.
pub struct Subject {
    child: Child,
    address: SocketAddr,
    clock: CpuClock,
}

impl Subject {
    /// Starts one and waits until it listens.
    pub fn start(role: Role) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("cannot find this binary")?;
        let mut child = Command::new(binary)
            .args(role.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a subject")?;
        let clock = CpuClock::of_process(child.id()).context("cannot read a subject's processor time")?;
        let stdout = child.stdout.take().context("a subject has no standard output")?;
        let mut line = String::new();
        let result = BufReader::new(stdout).read_line(&mut line);
        let address = result.map_err(anyhow::Error::from).and_then(|_| Ok(line.trim().parse()?));
        let mut subject = Self { child, address: limit::ANY_PORT, clock };
        subject.address = address.with_context(|| format!("{role:?} did not tell its address but {line:?}"))?;
        Ok(subject)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Processor time it has used, ns.
    pub fn cpu_ns(&self) -> anyhow::Result<u64> {
        self.clock.read_ns().context("a subject ended")
    }

    /// Memory of its own: pages that no file backs, in bytes. Exact, because the kernel walks the page tables for it.
    pub fn anonymous_bytes(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/smaps_rollup", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let kib = text.lines().find_map(|line| line.strip_prefix("Anonymous:")?.trim().strip_suffix(" kB"));
        let kib: u64 = kib.with_context(|| format!("{path} has no line Anonymous"))?.trim().parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended by itself, which shows elsewhere.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
