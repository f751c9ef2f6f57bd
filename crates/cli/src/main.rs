//! `pushlab`: measures real-time web transports.

mod commands;
mod failure;
mod page;
mod progress;
mod signals;
mod table;
mod units;

use clap::{CommandFactory as _, Parser, Subcommand};
use commands::{backend, doctor, lab, list, serve, worker};
use pushlab_wire::codes::ExitCode;

/// Measure real-time web transports: which one, on which server, for which workload, at what cost.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(lab::CompareArgs),
    Run(lab::RunArgs),
    Report(lab::ReportArgs),
    List(list::ListArgs),
    Serve(Box<serve::ServeArgs>),
    Backend(backend::BackendArgs),
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Host virtual clients: reads a plan from standard input. The lab starts this by itself.
    #[command(hide = true)]
    Worker,
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Compare(args) => lab::compare(&args),
        Command::Run(args) => lab::run(&args),
        Command::Report(args) => lab::report(&args),
        Command::List(args) => list::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Backend(args) => backend::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "pushlab", &mut std::io::stdout());
            Ok(ExitCode::Ok)
        }
        Command::Worker => worker::run(),
    };
    let code = result.unwrap_or_else(|error| {
        eprintln!("error: {}", failure::text(&error));
        failure::exit_code(&error)
    });
    std::process::ExitCode::from(code.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
