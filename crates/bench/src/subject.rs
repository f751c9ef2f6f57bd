//! The programs that are measured: child processes of this binary.

use crate::{floods, limit, rooms, secure};
use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use pushlab_attacks::{Flood, tokens};
use pushlab_demos::auction::Auction;
use pushlab_os::affinity::pin_to;
use pushlab_os::clock::CpuClock;
use pushlab_os::process::{Signal, end_with_parent};
use pushlab_server::access::LiveAccess;
use pushlab_server::{Config, Handover, Io, Server};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The kernel's send buffer of a connection, where little is kept: bytes.
const SMALL_SEND_BUFFER_BYTES: usize = 4096;

/// What a child process does.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
#[command(hide = true)]
pub enum Role {
    /// Our server.
    #[command(hide = true)]
    Server(Serve),
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
    /// Attacks a server.
    #[command(hide = true)]
    Attacker(floods::plan::Plan),
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

/// Our server, and what differs from its defaults.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Serve {
    /// Where it runs.
    #[arg(long)]
    pub core: usize,
    /// How it fans out.
    #[arg(long, value_enum, default_value_t)]
    pub io: FanOut,
    /// The folder of its certificate, with TLS.
    #[arg(long)]
    pub tls: Option<PathBuf>,
    /// From which size on it compresses messages, bytes.
    #[arg(long)]
    pub compression_from: Option<usize>,
    /// Where it takes over from another, and hands over to the next.
    #[arg(long)]
    pub handover: Option<PathBuf>,
    /// Whether its application is the auction house, with a database in memory.
    #[arg(long = "auction")]
    pub has_auction: bool,
    /// Whether an access file says who may do what, which is everything.
    #[arg(long = "access")]
    pub has_access: bool,
    /// What it may keep for all peers together, bytes. Then the kernel has small send buffers, so that little has to be
    /// published until it is reached.
    #[arg(long)]
    pub held_bytes: Option<usize>,
}

/// How our server fans out.
///
/// Without the option it is by plain writes, in every build: `--against` starts other builds that way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FanOut {
    /// By a write for each subscriber.
    #[default]
    Write,
    /// By io_uring, to however few.
    Uring,
    /// As for its users: by io_uring to large groups, where the kernel allows it.
    Auto,
}

impl Role {
    /// Does it; returns only on failure.
    pub fn run(&self) -> anyhow::Result<()> {
        end_with_parent(Signal::KILL)?;
        match *self {
            Self::Server(ref serve) => {
                pin_to(&[serve.core])?;
                serve.run()
            }
            Self::LimitOfFanout { core, uring } => {
                pin_to(&[core])?;
                limit::fanout::run(if uring { Io::Uring } else { Io::Write })
            }
            Self::RoomsLoad(plan) => {
                pin_to(&[plan.core])?;
                rooms::load::run(plan)
            }
            Self::Attacker(ref plan) => {
                pin_to(&[plan.core])?;
                match plan.flood {
                    Flood::Attack(attack) => floods::attacker::run(plan, attack),
                    Flood::Hoard(hoard) => floods::hoarder::run(plan, hoard),
                }
            }
            Self::LimitOfReplies { core, immediate } => {
                pin_to(&[core])?;
                limit::replies::run(immediate)
            }
        }
    }

    /// Its command line.
    pub fn arguments(&self) -> Vec<String> {
        let (name, core, switch) = match *self {
            Self::Server(ref serve) => return serve.arguments(),
            Self::LimitOfFanout { core, uring } => ("limit-of-fanout", core, uring.then_some("--uring")),
            Self::RoomsLoad(plan) => return plan.arguments(),
            Self::Attacker(ref plan) => return plan.arguments(),
            Self::LimitOfReplies { core, immediate } => ("limit-of-replies", core, immediate.then_some("--immediate")),
        };
        let mut arguments = vec![name.to_owned(), "--core".to_owned(), core.to_string()];
        arguments.extend(switch.map(str::to_owned));
        arguments
    }
}

impl From<Io> for FanOut {
    fn from(io: Io) -> Self {
        match io {
            Io::Write => Self::Write,
            Io::Uring => Self::Uring,
        }
    }
}

impl FanOut {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Write => None,
            Self::Uring => Some("--io=uring"),
            Self::Auto => Some("--io=auto"),
        }
    }
}

impl Serve {
    /// Without TLS, compression or application.
    pub fn plain(core: usize, io: FanOut) -> Self {
        Self {
            core,
            io,
            tls: None,
            compression_from: None,
            handover: None,
            has_auction: false,
            has_access: false,
            held_bytes: None,
        }
    }

    /// Its command line.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["server".to_owned(), "--core".to_owned(), self.core.to_string()];
        arguments.extend(self.io.option().map(str::to_owned));
        arguments.extend(self.tls.as_ref().map(|folder| format!("--tls={}", folder.display())));
        arguments.extend(self.compression_from.map(|bytes| format!("--compression-from={bytes}")));
        arguments.extend(self.handover.as_ref().map(|path| format!("--handover={}", path.display())));
        arguments.extend(self.has_auction.then(|| "--auction".to_owned()));
        arguments.extend(self.has_access.then(|| "--access".to_owned()));
        arguments.extend(self.held_bytes.map(|bytes| format!("--held-bytes={bytes}")));
        arguments
    }

    /// Runs it, without heartbeats, which would answer to nobody's publication.
    fn run(&self) -> anyhow::Result<()> {
        let mut config = Config::new(limit::ANY_PORT);
        match self.io {
            FanOut::Write => config.io = Some(Io::Write),
            FanOut::Uring => {
                config.io = Some(Io::Uring);
                config.min_uring_members = 1;
            }
            FanOut::Auto => {}
        }
        config.tls = self.tls.as_deref().map(secure::files_in);
        config.compression_from = self.compression_from;
        if self.has_auction {
            config.application = Some(Arc::new(Auction::open("sqlite::memory:")?));
        }
        if self.has_access {
            config.access = Some(Arc::new(LiveAccess::new(tokens::rules()?)));
        }
        if let Some(bytes) = self.held_bytes {
            config.limits.max_queued_total_bytes = bytes / 2;
            config.limits.max_history_total_bytes = bytes / 2;
            config.limits.max_send_buffer_bytes = Some(SMALL_SEND_BUFFER_BYTES);
        }
        config.limits.heartbeat = Duration::from_secs(3600);
        config.handover = self.handover.clone().map(|path| Handover { path, tell: |_| {} });
        let server = Server::start(config)?;
        println!("{}", server.address());
        server.join()?;
        if self.handover.is_some() {
            return Ok(());
        }
        bail!("the server ended by itself")
    }
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
        Self::start_program(&std::env::current_exe().context("cannot find this binary")?, role)
    }

    /// Starts our server, or that of another build.
    pub fn start_server(other: Option<&Path>, core: usize, io: FanOut) -> anyhow::Result<Self> {
        let role = Role::Server(Serve::plain(core, io));
        let Some(program) = other else { return Self::start(role) };
        let explain = || format!("{} starts no server: is it the pushlab-bench of another build?", program.display());
        Self::start_program(program, role).with_context(explain)
    }

    fn start_program(program: &Path, role: Role) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
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

    /// Whether it has ended, as it should.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        let Some(status) = self.child.try_wait()? else { return Ok(false) };
        ensure!(status.success(), "a subject failed: {status}");
        Ok(true)
    }

    /// Processor time it has used, ns.
    pub fn cpu_ns(&self) -> anyhow::Result<u64> {
        self.clock.read_ns().context("a subject ended")
    }

    /// Whether it has a ring of io_uring. A server that will have one has it before it answers.
    pub fn has_ring(&self) -> anyhow::Result<bool> {
        let path = format!("/proc/{}/fd", self.child.id());
        let descriptors = std::fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?;
        let targets = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.ok()?.path()).ok());
        Ok(targets.into_iter().any(|target| target.as_os_str() == "anon_inode:[io_uring]"))
    }

    /// Refuses a server that fans out otherwise: that of another build might. It must have answered before.
    pub fn ensure_io(&self, io: Io) -> anyhow::Result<()> {
        let found = if self.has_ring()? { Io::Uring } else { Io::Write };
        ensure!(found == io, "a server fans out by {found:?} instead of {io:?}");
        Ok(())
    }

    /// The largest memory in use so far, bytes.
    pub fn largest_resident_bytes(&self) -> anyhow::Result<u64> {
        kib_of(&format!("/proc/{}/status", self.child.id()), "VmHWM:").map(|kib| kib * 1024)
    }

    /// Memory of its own: pages that no file backs, in bytes. Exact, because the kernel walks the page tables for it.
    pub fn anonymous_bytes(&self) -> anyhow::Result<u64> {
        kib_of(&format!("/proc/{}/smaps_rollup", self.child.id()), "Anonymous:").map(|kib| kib * 1024)
    }
}

/// A line of a file of the kernel, in KiB.
fn kib_of(path: &str, line: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let kib = text.lines().find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB"));
    Ok(kib.with_context(|| format!("{path} has no line {line}"))?.trim().parse()?)
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended by itself, which shows elsewhere.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use rooms::load::{Dialect, Plan, Shape};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        role: Role,
    }

    #[test]
    fn a_role_survives_its_command_line() {
        let servers = [FanOut::Write, FanOut::Uring, FanOut::Auto].map(|io| Serve::plain(3, io));
        let more = Serve {
            tls: Some("/a b".into()),
            compression_from: Some(256),
            handover: Some("/c d".into()),
            has_auction: true,
            has_access: true,
            held_bytes: Some(7),
            ..servers[0].clone()
        };
        let shape = Shape { clients: 7, rooms: 5, rooms_per_client: 2 };
        let plan = Plan { core: 1, address: limit::ANY_PORT, dialect: Dialect::Bare, shape, family: 21 };
        let servers = servers.into_iter().chain([more]).map(Role::Server);
        let attacker = floods::plan::Plan {
            core: 1,
            address: limit::ANY_PORT,
            flood: "slow-sse-http2".parse().unwrap(),
            duration_ms: 5,
            connections: 6,
            tls: Some("/a b".into()),
        };
        for role in servers.chain([Role::RoomsLoad(plan), Role::Attacker(attacker)]) {
            let line = Line::try_parse_from([String::new()].into_iter().chain(role.arguments())).unwrap();
            assert_eq!(line.role, role);
        }
    }

    #[test]
    fn a_server_of_plain_writes_is_asked_for_as_every_build_knows_it() {
        assert_eq!(Role::Server(Serve::plain(3, FanOut::Write)).arguments(), ["server", "--core", "3"]);
    }
}
