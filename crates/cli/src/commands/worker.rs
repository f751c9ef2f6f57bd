//! `pushlab worker`: hosts virtual clients, for the lab that started it or for the labs of a fleet.

use super::joining::{JoiningArgs, Part};
use clap::Args;
use pushlab_bus::JoinsAs;
use pushlab_fleet::worker::serve;
use pushlab_wire::codes::ExitCode;
use std::io;
use std::net::IpAddr;

/// Host virtual clients for labs on other machines: join a fleet, and wait for work until Ctrl-C or SIGTERM.
///
/// Whoever may publish on the fleet's broker commands its workers (docs/fleet.md). Without --join it works for the process
/// that started it, which is how the lab starts workers on its own machine.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[command(flatten)]
    joining: JoiningArgs,
    /// Where others reach it: the back end of a feed listens there. Default: the address of the interface towards the
    /// broker.
    #[arg(long, value_name = "IP", requires = "join")]
    address: Option<IpAddr>,
    /// Physical cores, counted from the first, that it leaves to others.
    #[arg(long, value_name = "N", default_value_t = 0)]
    spare_cores: usize,
}

pub fn run(args: &WorkerArgs) -> anyhow::Result<ExitCode> {
    match args.joining.part()? {
        Part::OfRun(clock) => {
            let is_done = serve(io::stdin(), io::stdout().lock(), clock.as_ref())?;
            Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
        }
        Part::Join(address) => {
            let joins_as = JoinsAs::Worker { ip: args.address, spare_cores: args.spare_cores };
            args.joining.join(address, joins_as, vec!["worker".into()])?;
            Ok(ExitCode::Ok)
        }
    }
}
