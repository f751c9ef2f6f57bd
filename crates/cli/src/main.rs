//! `pushlab`: measures real-time web transports.

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

/// Measure real-time web transports: which one, on which server, for which workload, at what cost.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
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
    /// Whether it reads what is there and prints it, and talks to nobody.
    fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::List(_)
                | Self::Runs(_)
                | Self::Show(_)
                | Self::Report(_)
                | Self::Compare(_)
                | Self::Merge(_)
                | Self::Export(_)
                | Self::Completions { .. }
        )
    }
}

fn main() -> std::process::ExitCode {
    let command = Cli::parse().command;
    if command.only_reads() {
        pushlab_os::signals::end_with_closed_pipe();
    }
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
            clap_complete::generate(shell, &mut Cli::command(), "pushlab", &mut std::io::stdout());
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
