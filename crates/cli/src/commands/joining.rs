//! What commands that join a fleet have in common: each starts itself again for its part of a run.

use super::fleet::BrokerArgs;
use crate::signals;
use anyhow::Context as _;
use clap::Args;
use pushlab_bus::{Address, Host, JoinConfig, JoinsAs, clock_of, host_name, join, told_clock};
use pushlab_fleet::clock::SteeredClock;
use pushlab_lab::this_program;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::Command;

/// Set by tests of fleets, of which all machines are one: how far this process's clock is to be from the machine's, ns,
/// and how much it is to gain, millionths: `5000000,50`.
const FALSE_CLOCK: &str = "PUSHLAB_FALSE_CLOCK";

/// How one joins a fleet.
#[derive(Debug, Args)]
pub struct JoiningArgs {
    /// Join the fleet at this broker: nats://HOST[:PORT][/FLEET], or tls://….
    #[arg(long, value_name = "URL", value_parser = Address::parse)]
    join: Option<Address>,
    #[command(flatten)]
    broker: BrokerArgs,
    /// What to call it; default: the name of this machine.
    #[arg(long, value_name = "NAME", requires = "join")]
    name: Option<String>,
    /// Do one part of a run as without --join, by the clock of this lab of the fleet. What has joined starts itself so.
    #[arg(long, value_name = "LAB", requires = "join", hide = true)]
    by_clock_of: Option<String>,
}

/// What a command that may join is to do now.
pub enum Part {
    /// Its part of one run, by this clock if it is not the machine's own.
    OfRun(Option<SteeredClock>),
    /// Join, and wait for work.
    Join(Address),
}

impl JoiningArgs {
    pub fn part(&self) -> anyhow::Result<Part> {
        match (&self.join, &self.by_clock_of) {
            (Some(address), None) => Ok(Part::Join(address.clone())),
            (Some(address), Some(lab)) => {
                falsify()?;
                let clock = SteeredClock::begin(clock_of(address, &self.broker.access(), lab, told_clock())?)?;
                Ok(Part::OfRun(Some(clock)))
            }
            (None, _) => {
                falsify()?;
                Ok(Part::OfRun(None))
            }
        }
    }

    /// Joins until it is told to stop. Its part of a run is done by this program with `alone` as arguments, or, on another
    /// machine than the lab's, with those that this process has.
    pub fn join(&self, address: Address, joins_as: JoinsAs, alone: Vec<OsString>) -> anyhow::Result<()> {
        signals::block();
        let program = this_program()?;
        // Of one machine there is one clock.
        let host: Host = Box::new(move |lab, is_of_this_machine| {
            let mut command = Command::new(&program);
            match is_of_this_machine && env::var_os(FALSE_CLOCK).is_none() {
                true => command.args(&alone),
                false => command.args(env::args_os().skip(1)).arg(format!("--by-clock-of={lab}")),
            };
            command
        });
        let name = self.name.clone().unwrap_or_else(host_name);
        let config = JoinConfig { address, access: self.broker.access(), name, joins_as, host };
        // Whoever read this may have gone, which is no reason to leave.
        let mut say = |line: &str| drop(writeln!(io::stdout(), "{}: {line}", config.name));
        join(&config, &mut say, &mut signals::has_come)?;
        Ok(())
    }
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
