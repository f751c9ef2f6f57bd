//! `pushlab`: measures real-time web transports.

// Those of the standard library panic where nothing can be printed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod commands;
mod exposed;
mod failure;
mod format;
mod gate;
mod progress;
mod shape;
mod signals;
mod units;

use clap::{CommandFactory as _, Parser, Subcommand};
use commands::{
    access, agent, backend, capacity, console, doctor, fleet, list, results, run, serve, subjects, transfer, worker,
};
use pushlab_wire::codes::ExitCode;
use std::io::Write as _;

/// Measure real-time web transports: which one, on which server, for which workload, at what cost.
#[derive(Debug, Parser)]
#[command(name = "pushlab", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Capacity(Box<capacity::CapacityArgs>),
    List(list::ListArgs),
    Runs(results::RunsArgs),
    Show(results::ShowArgs),
    Report(results::ReportArgs),
    Compare(results::CompareArgs),
    Merge(results::MergeArgs),
    Export(transfer::ExportArgs),
    Import(transfer::ImportArgs),
    Rm(results::RmArgs),
    Console(console::ConsoleArgs),
    Serve(Box<serve::ServeArgs>),
    Access(access::AccessArgs),
    Backend(backend::BackendArgs),
    Doctor(doctor::DoctorArgs),
    Subjects(subjects::SubjectsArgs),
    Fleet(fleet::FleetCommands),
    Worker(worker::WorkerArgs),
    Agent(agent::AgentArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether it is there for others, whatever becomes of its own output.
    fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Console(_) | Self::Backend(_) | Self::Worker(_) | Self::Agent(_))
    }
}

fn main() -> std::process::ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        // Help and versions are asked for, and are printed as what the other commands print.
        Err(asked) if !asked.use_stderr() => {
            // Its failure is told and kept.
            let _ = output::kept(|| asked.print());
            return std::process::ExitCode::from(output::exit_code().number());
        }
        Err(error) => error.exit(),
    };
    let serves = command.serves();
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::List(args) => list::run(&args),
        Command::Runs(args) => results::runs(&args),
        Command::Show(args) => results::show(&args),
        Command::Report(args) => results::report(&args),
        Command::Compare(args) => results::compare(&args),
        Command::Merge(args) => results::merge(&args),
        Command::Export(args) => transfer::export(&args),
        Command::Import(args) => transfer::import(&args),
        Command::Rm(args) => results::rm(&args),
        Command::Console(args) => console::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Access(args) => access::run(&args),
        Command::Backend(args) => backend::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Subjects(args) => subjects::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pushlab", &mut script);
            // It is told and kept.
            let _ = output::Output.write_all(&script);
            Ok(ExitCode::Ok)
        }
        Command::Fleet(args) => fleet::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Agent(args) => agent::run(&args),
    };
    let code = result.unwrap_or_else(|error| {
        eprintln!("error: {}", failure::text(&error));
        failure::exit_code(&error)
    });
    let code = if code == ExitCode::Ok && !serves { output::exit_code() } else { code };
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
