//! `pushlab doctor`: what on this machine will spoil a measurement.

use clap::Args;
use pushlab_probe::machine::{Verdict, checks};
use pushlab_wire::codes::ExitCode;

/// Say what on this machine will spoil a measurement, and how to fix it.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let checks = checks();
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
