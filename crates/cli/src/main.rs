//! `pushlab`: measures real-time web transports.

mod commands;
mod signals;
mod units;

use clap::{Parser, Subcommand};
use pushlab_wire::codes::ExitCode;

/// Measure real-time web transports, on Pushlab's own server and on others.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(commands::serve::ServeArgs),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => commands::serve::run(&args),
    };
    let code = result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::Failed
    });
    std::process::ExitCode::from(code.number())
}
