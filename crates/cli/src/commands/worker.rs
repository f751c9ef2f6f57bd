//! `pushlab worker`: hosts virtual clients, for the lab that started it or for the labs of a fleet.

use super::joining::{JoiningArgs, Part};
use clap::Args;
use pushlab_bus::JoinsAs;
use pushlab_fleet::worker::{Allowed, serve};
use pushlab_wire::codes::ExitCode;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Host virtual clients for labs on other machines: join a fleet, and wait for work until Ctrl-C or SIGTERM.
///
/// The fleet's labs command its workers (docs/fleet.md). Without --join, a worker serves the process that started it,
/// as when the lab starts workers on its own machine.
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
    /// Let the run's clients live in a browser whose pages load these scripts. The lab sets this for its own workers.
    #[arg(long, value_name = "FILE", num_args = 0.., hide = true, conflicts_with = "join")]
    browser: Option<Vec<PathBuf>>,
    /// Record the first client's conversation with the server here. The lab sets this for its own workers.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "join")]
    recording: Option<PathBuf>,
}

pub fn run(args: &WorkerArgs) -> anyhow::Result<ExitCode> {
    match args.joining.part()? {
        Part::OfRun(clock) => {
            let allowed = Allowed { browser: args.browser.clone(), recording: args.recording.clone() };
            let is_done = serve(io::stdin(), io::stdout().lock(), clock.as_ref(), allowed)?;
            Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
        }
        Part::Join(address) => {
            let joins_as = JoinsAs::Worker { ip: args.address, spare_cores: args.spare_cores };
            args.joining.join(address, joins_as, vec!["worker".into()])?;
            Ok(ExitCode::Ok)
        }
    }
}
