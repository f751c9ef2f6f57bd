//! `pushlab agent`: watches a server that the lab did not start, from beside it.

use super::joining::{JoiningArgs, Part};
use clap::Args;
use pushlab_bus::JoinsAs;
use pushlab_watch::agent::{Beside, serve};
use pushlab_wire::codes::ExitCode;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;

/// Watch servers on this machine for labs on others: join a fleet, and wait for work until Ctrl-C or SIGTERM.
///
/// `pushlab run --subject NAME=URL --fleet URL` then measures CPU time, memory, sockets and, for our own server, counters of
/// a server that it did not start. The agent reads what the system says about the server's processes and the machine, and
/// changes nothing. It can fully read another user's processes only as root. Without --join it works for the process that
/// started it.
#[derive(Debug, Args)]
pub struct AgentArgs {
    #[command(flatten)]
    joining: JoiningArgs,
    /// An address at which clients reach servers on this machine, besides those of its interfaces: for instance, that of a
    /// load balancer or router in front of it. May be repeated.
    #[arg(long, value_name = "IP", requires = "join")]
    address: Vec<IpAddr>,
    /// The port at which the server listens on this machine, if clients connect to another.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The server's main process, if the agent cannot find it by its port: for instance, if it listens inside a container.
    /// Its descendants are watched too.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

pub fn run(args: &AgentArgs) -> anyhow::Result<ExitCode> {
    match args.joining.part()? {
        Part::OfRun(clock) => {
            let server = Beside { process: args.pid, port: args.port };
            let is_done = serve(io::stdin(), io::stdout().lock(), clock.as_ref(), server)?;
            Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
        }
        Part::Join(address) => {
            let mut alone: Vec<OsString> = vec!["agent".into()];
            alone.extend(args.pid.map(|pid| format!("--pid={pid}").into()));
            alone.extend(args.port.map(|port| format!("--port={port}").into()));
            args.joining.join(address, JoinsAs::Agent { addresses: args.address.clone() }, alone)?;
            Ok(ExitCode::Ok)
        }
    }
}
