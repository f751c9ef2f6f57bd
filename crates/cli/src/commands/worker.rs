//! `pushlab worker`: hosts virtual clients, for the lab that started it or for the labs of a fleet.

use super::fleet::BrokerArgs;
use crate::signals;
use anyhow::Context as _;
use clap::Args;
use pushlab_bus::{Address, JoinConfig, clock_of, host_name, join, told_clock};
use pushlab_fleet::clock::SteeredClock;
use pushlab_fleet::worker::serve;
use pushlab_lab::this_program;
use pushlab_wire::codes::ExitCode;
use std::env;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::process::Command;

/// Set by tests of fleets, of which all machines are one: how far this process's clock is to be from the machine's, ns,
/// and how much it is to gain, millionths: `5000000,50`.
const FALSE_CLOCK: &str = "PUSHLAB_FALSE_CLOCK";

/// Host virtual clients for labs on other machines: join a fleet, and wait for work until Ctrl-C or SIGTERM.
///
/// Whoever may publish on the fleet's broker commands its workers (docs/fleet.md). Without --join it works for the process
/// that started it, which is how the lab starts workers on its own machine.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Join the fleet at this broker: nats://HOST[:PORT][/FLEET], or tls://….
    #[arg(long, value_name = "URL", value_parser = Address::parse)]
    join: Option<Address>,
    #[command(flatten)]
    broker: BrokerArgs,
    /// What to call it; default: the name of this machine.
    #[arg(long, value_name = "NAME", requires = "join")]
    name: Option<String>,
    /// Where others reach it: the back end of a feed listens there. Default: the address of the interface towards the
    /// broker.
    #[arg(long, value_name = "IP", requires = "join")]
    address: Option<IpAddr>,
    /// Physical cores, counted from the first, that it leaves to others.
    #[arg(long, value_name = "N", default_value_t = 0)]
    spare_cores: usize,
    /// Host one run as without --join, by the clock of this lab of the fleet. A worker that has joined starts itself so.
    #[arg(long, value_name = "LAB", requires = "join", hide = true)]
    by_clock_of: Option<String>,
}

pub fn run(args: &WorkerArgs) -> anyhow::Result<ExitCode> {
    if args.join.is_none() || args.by_clock_of.is_some() {
        falsify()?;
    }
    let Some(address) = &args.join else { return host(None) };
    if let Some(lab) = &args.by_clock_of {
        return host(Some(&SteeredClock::begin(clock_of(address, &args.broker.access(), lab, told_clock())?)?));
    }
    signals::block();
    let program = this_program()?;
    let config = JoinConfig {
        address: address.clone(),
        access: args.broker.access(),
        name: args.name.clone().unwrap_or_else(host_name),
        ip: args.address,
        spare_cores: args.spare_cores,
        // Of one machine there is one clock.
        host: Box::new(move |lab, is_of_this_machine| {
            let mut command = Command::new(&program);
            match is_of_this_machine && env::var_os(FALSE_CLOCK).is_none() {
                true => command.arg("worker"),
                false => command.args(env::args_os().skip(1)).arg("--by-clock-of").arg(lab),
            };
            command
        }),
    };
    // Whoever read this may have gone, which is no reason to leave.
    let mut say = |line: &str| drop(writeln!(io::stdout(), "{}: {line}", config.name));
    join(&config, &mut say, &mut signals::has_come)?;
    Ok(ExitCode::Ok)
}

fn host(clock: Option<&SteeredClock>) -> anyhow::Result<ExitCode> {
    let is_done = serve(io::stdin(), io::stdout().lock(), clock)?;
    Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
}

/// Makes this process's clock a wrong one, where a test wants that.
fn falsify() -> anyhow::Result<()> {
    if let Ok(text) = env::var(FALSE_CLOCK) {
        let numbers = text.split_once(',').and_then(|(ns, ppm)| Some((ns.parse().ok()?, ppm.parse::<f64>().ok()?)));
        let (offset_ns, ppm) = numbers.with_context(|| format!("{FALSE_CLOCK} is {text:?}, not NS,PPM"))?;
        pushlab_os::clock::falsify(offset_ns, ppm / 1e6);
    }
    Ok(())
}
