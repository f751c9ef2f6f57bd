//! `pushlab fleet`, and how other commands find a fleet.

use crate::signals;
use crate::units;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use pushlab_bus::names::Rights;
use pushlab_bus::words::Role;
use pushlab_bus::{Access, Address, Broker, Crew, User, Watcher, unique};
use pushlab_experiment::Experiment;
use pushlab_lab::{Meeting, Workers, this_program};
use pushlab_subjects::install::Cache;
use pushlab_subjects::process::{Process, describe};
use pushlab_watch::agent::Agents;
use pushlab_wire::codes::ExitCode;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often the children are looked at.
const WATCH: Duration = Duration::from_millis(100);
/// Time for a worker to leave.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
/// The variable that holds the broker's token or password: unlike an argument, other users cannot see it.
const TOKEN: &str = "PUSHLAB_FLEET_TOKEN";

/// How a broker lets us in.
#[derive(Debug, Args)]
pub struct BrokerArgs {
    /// USER:PASSWORD or token for the fleet's broker. Others on this machine can read arguments, but not the variable.
    #[arg(long, value_name = "USER:PASSWORD", env = TOKEN, hide_env_values = true)]
    token: Option<String>,
    /// NATS credentials that the fleet's broker asks for: a file with a JWT and the seed of its key.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Authorities to trust for the fleet's broker, in place of the system's: a PEM file; requires TLS.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl BrokerArgs {
    pub fn access(&self) -> Access {
        let Self { token, credentials, tls_ca } = self;
        Access { token: token.clone(), credentials: credentials.clone(), tls_ca: tls_ca.clone() }
    }
}

/// The fleet that hosts the load, and watches servers that run elsewhere.
#[derive(Debug, Args)]
pub struct FleetArgs {
    /// Measure with the fleet at this broker: nats://HOST[:PORT][/FLEET], or tls://… (docs/fleet.md). With --workers N,
    /// N of its workers host the load; without it, processes on this machine do. Its agents watch those servers beside them
    /// that are measured by URL.
    #[arg(long, value_name = "URL", value_parser = Address::parse)]
    fleet: Option<Address>,
    /// Where the fleet's workers and agents reach this machine: a subject that is started here, and the lab's clock;
    /// default: the address of the interface towards the broker.
    #[arg(long, value_name = "IP", requires = "fleet")]
    subject_address: Option<Ipv4Addr>,
    #[command(flatten)]
    broker: BrokerArgs,
}

/// Whoever waits for workers at the terminal.
struct Terminal {
    is_quiet: bool,
}

impl Watcher for Terminal {
    fn tell(&mut self, line: &str) {
        if !self.is_quiet {
            eprintln!("{line}");
        }
    }

    fn is_interrupted(&mut self) -> bool {
        signals::has_come()
    }
}

/// Where the load of these experiments is to be, and who watches their servers: waits for so many workers of a fleet, and for
/// its agents. Call with signals blocked.
pub fn meet(
    args: &FleetArgs,
    wanted: Option<u32>,
    is_quiet: bool,
    experiments: &[Experiment],
) -> anyhow::Result<(Workers, Agents)> {
    let Some(address) = &args.fleet else { return Ok((Workers::Here, Agents::default())) };
    let meeting = Meeting {
        broker: address,
        access: &args.broker.access(),
        workers: wanted.map(|wanted| wanted as usize),
        subject_address: args.subject_address,
    };
    Ok(pushlab_lab::meet(&meeting, experiments, &mut Terminal { is_quiet })?)
}

/// A fleet: workers on many machines that host the load of a lab, and agents that watch servers for it.
///
/// They join it with `pushlab worker --join` and `pushlab agent --join`, and `pushlab run --fleet` measures with them.
#[derive(Debug, Args)]
pub struct FleetCommands {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Start a broker and some workers on this machine, until Ctrl-C, to try a fleet out. The first time, this installs
    /// the broker, a NATS server, which takes Go.
    Up(UpArgs),
    /// List the workers and agents that have joined.
    List {
        /// The fleet's broker: nats://HOST[:PORT][/FLEET], or tls://….
        #[arg(long, value_name = "URL", value_parser = Address::parse)]
        fleet: Address,
        #[command(flatten)]
        broker: BrokerArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct UpArgs {
    /// Workers to start.
    #[arg(long, value_name = "N", default_value_t = 3)]
    workers: usize,
    /// Where the broker listens; port 0 takes a free one.
    #[arg(long, value_parser = units::address, value_name = "ADDRESS", default_value = "127.0.0.1:4222")]
    listen: SocketAddr,
    /// Cores that the workers leave to the subject.
    #[arg(long, value_name = "N", default_value_t = 1)]
    spare_cores: usize,
}

pub fn run(args: &FleetCommands) -> anyhow::Result<ExitCode> {
    match &args.command {
        FleetCommand::Up(args) => up(args),
        FleetCommand::List { fleet, broker, json } => list(fleet, &broker.access(), *json),
    }
}

fn up(args: &UpArgs) -> anyhow::Result<ExitCode> {
    signals::block();
    let installed = Broker::install(&Cache::of_user(), &mut signals::has_come)?;
    let user = |name: &str, rights: fn(&str) -> Rights| -> anyhow::Result<User> {
        let password = format!("{:016x}{:016x}", unique()?, unique()?);
        Ok(User { name: name.to_owned(), password, rights: rights(name) })
    };
    let mut users = vec![user("lab", Rights::of_lab)?, user("worker", Rights::of_worker)?];
    for number in 1..=args.workers {
        users.push(user(&format!("worker-{number}"), Rights::of_worker)?);
    }
    let mut broker = Broker::start(&installed, args.listen, &users)?;
    let mut workers = Vec::new();
    for User { name, password, .. } in &users[2..] {
        let mut command = Command::new(this_program()?);
        command.args(["worker", "--join", &format!("nats://{}", broker.address), "--name", name]);
        command
            .arg(format!("--spare-cores={}", args.spare_cores))
            .env(TOKEN, format!("{name}:{password}"))
            .stdin(Stdio::null());
        let process = Process::start(&mut command, &[]).with_context(|| format!("cannot start {name}"))?;
        workers.push((name.clone(), process));
    }
    let as_user = |user: &User| format!("nats://{}:{}@{}", user.name, user.password, broker.address);
    println!("broker at {} (process {}); Ctrl-C ends it and its workers", broker.address, broker.id());
    println!("measure with: pushlab run EXPERIMENT --fleet {} --workers {}", as_user(&users[0]), args.workers);
    println!("join with:    pushlab worker --join {}", as_user(&users[1]));
    while !signals::wait(WATCH) {
        if let Some(why) = broker.death() {
            anyhow::bail!(why);
        }
        workers.retain_mut(|(name, process)| {
            let status = process.ended();
            status.iter().for_each(|status| eprintln!("{name} ended with {}", describe(*status)));
            status.is_none()
        });
    }
    for (_, process) in workers {
        process.stop(LEAVE_WITHIN);
    }
    broker.stop();
    Ok(ExitCode::Ok)
}

fn list(address: &Address, access: &Access, json: bool) -> anyhow::Result<ExitCode> {
    let there = Crew::open(address, access)?.list()?;
    if json {
        println!("{}", serde_json::to_string(&there)?);
        return Ok(ExitCode::Ok);
    }
    if there.is_empty() {
        eprintln!("nobody has joined; start a worker with `pushlab worker --join {address}`");
    }
    for one in there {
        let state = if one.lab.is_some() { "taken" } else { "free" };
        let machine = one.machine.cpu_model.as_deref().unwrap_or(&one.machine.architecture);
        let role = match &one.role {
            Role::Worker { cores, descriptors, address } => {
                format!("worker, cores: {cores}, descriptors: {descriptors}, at {address}")
            }
            Role::Agent { addresses, .. } => {
                let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                format!("agent for servers at {}", addresses.join(", "))
            }
        };
        println!("{:<20} {state:<6} version {}, {role}, {machine}", one.name, one.version);
    }
    Ok(ExitCode::Ok)
}
