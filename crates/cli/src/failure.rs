//! What is said and returned when a command fails.

use pushlab_lab::archive::ArchiveError;
use pushlab_lab::experiments::LoadError;
use pushlab_lab::stored::StoredError;
use pushlab_lab::{CampaignError, CheckError, FleetError, PinningError, WorkplaceError};
use pushlab_link::error::LinkError;
use pushlab_store::StoreError;
use pushlab_store::export::ExportError;
use pushlab_store::import::ImportError;
use pushlab_wire::codes::ExitCode;
use std::error::Error;
use std::fmt::{self, Display};

/// A failure that says its exit code itself.
#[derive(Debug)]
struct Coded {
    code: ExitCode,
    text: String,
}

impl Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Coded {}

/// A command line that is wrong in a way that its parser does not see.
pub fn usage(text: impl Display) -> anyhow::Error {
    Coded { code: ExitCode::Usage, text: text.to_string() }.into()
}

/// A report that cannot be written where it was to be.
pub fn unwritable(text: impl Display) -> anyhow::Error {
    Coded { code: ExitCode::ResultsUnwritable, text: text.to_string() }.into()
}

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<Coded>() {
        return error.code;
    }
    if error.is::<LoadError>() {
        return ExitCode::BadExperiment;
    }
    if error.is::<LinkError>() {
        return ExitCode::MachineCheckFailed;
    }
    if let Some(error) = error.downcast_ref::<FleetError>() {
        let is_about_it = matches!(error, FleetError::NotOverAFleet(_) | FleetError::Check(CheckError::Plan { .. }));
        return if is_about_it { ExitCode::BadExperiment } else { ExitCode::Failed };
    }
    if let Some(error) = error.downcast_ref::<CampaignError>() {
        return match error {
            CampaignError::Fleet(_) => ExitCode::Interrupted,
            CampaignError::Workplace(error) => of_workplace(error),
            CampaignError::Check(error) => of_check(error),
            CampaignError::Search(_) => ExitCode::Usage,
            CampaignError::Archive(error) => of_archive(error),
        };
    }
    let of_the_rest = [
        error.downcast_ref().map(of_workplace),
        error.downcast_ref().map(of_check),
        error.downcast_ref().map(of_archive),
        error.downcast_ref().map(of_store),
        error.downcast_ref().map(|error| match error {
            StoredError::Archive(error) => of_archive(error),
            StoredError::Compare(_) => ExitCode::Failed,
        }),
        error.downcast_ref().map(|error| match error {
            ExportError::Store(error) => of_store(error),
            ExportError::Write(_) | ExportError::File { .. } => ExitCode::ResultsUnwritable,
            ExportError::Parquet(_) | ExportError::Name { .. } => ExitCode::Failed,
        }),
        error.downcast_ref().map(|error| match error {
            ImportError::Store(error) => of_store(error),
            ImportError::Read(_) | ImportError::Line { .. } => ExitCode::Failed,
        }),
    ];
    of_the_rest.into_iter().flatten().next().unwrap_or(ExitCode::Failed)
}

fn of_workplace(error: &WorkplaceError) -> ExitCode {
    match error {
        WorkplaceError::Folder { .. } => ExitCode::ResultsUnwritable,
        WorkplaceError::Program(_) => ExitCode::Failed,
    }
}

fn of_check(error: &CheckError) -> ExitCode {
    match error {
        CheckError::Plan { .. } | CheckError::Subject(_) | CheckError::Pinning(PinningError::Different { .. }) => {
            ExitCode::BadExperiment
        }
        // Servers that are known by their addresses can do nothing about this machine.
        CheckError::NothingLeft(out) if out.iter().all(|out| out.subject.contains("://")) => ExitCode::SubjectFailed,
        CheckError::Room { .. } | CheckError::NothingLeft(_) | CheckError::Pinning(PinningError::TooFew { .. }) => {
            ExitCode::MachineCheckFailed
        }
    }
}

fn of_archive(error: &ArchiveError) -> ExitCode {
    if let ArchiveError::Store(error) = error { of_store(error) } else { ExitCode::Failed }
}

fn of_store(error: &StoreError) -> ExitCode {
    match error {
        StoreError::Twice { .. } => ExitCode::Usage,
        error if error.is_unwritable() => ExitCode::ResultsUnwritable,
        _ => ExitCode::Failed,
    }
}

/// An error with its causes, each said once: some messages hold their cause in the middle of the sentence.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
