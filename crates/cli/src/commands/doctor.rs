//! `pushlab doctor`: what on this machine will spoil a measurement.

use anyhow::Context as _;
use clap::Args;
use pushlab_lab::{check_clients, check_pinning};
use pushlab_link::rights::{self, How};
use pushlab_probe::machine::{Check, Verdict, checks};
use pushlab_subjects::leftovers;
use pushlab_wire::codes::ExitCode;
use pushlab_wire::transport::Transport;

/// Say what on this machine will spoil a measurement, and how to fix it.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// End processes that outlived their lab, instead of checking. The next measurement does so too.
    #[arg(long, conflicts_with_all = ["json", "clients"])]
    clean: bool,
    /// Also say whether this many silent clients of our server fit on this machine: event loops, descriptors, source
    /// addresses, memory. `pushlab run` refuses, in the same words, what does not fit.
    #[arg(long, value_name = "N")]
    clients: Option<u32>,
    /// Transport of these clients.
    #[arg(long, value_name = "TRANSPORT", default_value = "websocket", requires = "clients")]
    transport: Transport,
}

pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if args.clean {
        return clean();
    }
    let mut checks = checks();
    checks.push(check_pinning());
    checks.push(links());
    if let Some(clients) = args.clients {
        checks.extend(check_clients(clients, args.transport).map_err(anyhow::Error::msg)?);
    }
    let is_bad = checks.iter().any(|c| c.verdict == Verdict::Bad);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&checks)?);
    } else {
        for check in &checks {
            let mark = match check.verdict {
                Verdict::Ok => "ok     ",
                Verdict::Unknown => "unknown",
                Verdict::Warn => "warning",
                Verdict::Bad => "BAD    ",
            };
            println!("{mark}  {:<14} {}", check.name, check.found);
            if matches!(check.verdict, Verdict::Warn | Verdict::Bad) {
                println!("         why: {}\n         fix: {}", check.why, check.fix);
            }
        }
    }
    Ok(if is_bad { ExitCode::MachineCheckFailed } else { ExitCode::Ok })
}

fn clean() -> anyhow::Result<ExitCode> {
    let cleaned = leftovers::clean().context("cannot end what a lab left behind; try as the user who started it")?;
    for leftover in &cleaned {
        println!("ended process {} ({})", leftover.pid, leftover.command);
    }
    if cleaned.is_empty() {
        println!("nothing is left: no process outlived its lab, and namespaces and interfaces vanish with theirs");
    }
    Ok(ExitCode::Ok)
}

/// Whether experiments over networks can be run.
fn links() -> Check {
    let (verdict, found) = match rights::check() {
        Ok(How::AsItIs) => (Verdict::Ok, "can be made".to_owned()),
        Ok(How::UserNamespace) => (Verdict::Ok, "can be made, in a user namespace".to_owned()),
        Err(error) => (Verdict::Warn, error.to_string()),
    };
    Check {
        name: "networks",
        verdict,
        found,
        why: "experiments over networks run in namespaces joined by a link",
        fix: "see above; or run as root",
    }
}
