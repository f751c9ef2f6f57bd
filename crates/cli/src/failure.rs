//! What is said and returned when a command fails.

use pushlab_lab::archive::ArchiveError;
use pushlab_lab::experiments::LoadError;
use pushlab_lab::stored::StoredError;
use pushlab_lab::{CampaignError, CheckError, FleetError, WorkplaceError};
use pushlab_store::StoreError;
use pushlab_wire::codes::ExitCode;

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<LoadError>() {
        return ExitCode::BadExperiment;
    }
    if let Some(error) = error.downcast_ref::<FleetError>() {
        let is_about_it = matches!(error, FleetError::NotOverAFleet(_) | FleetError::Check(CheckError::Plan { .. }));
        return if is_about_it { ExitCode::BadExperiment } else { ExitCode::Failed };
    }
    let campaign = match error.downcast_ref::<CampaignError>() {
        Some(CampaignError::Fleet(_)) => return ExitCode::Interrupted,
        Some(CampaignError::Workplace(WorkplaceError::Folder { .. })) => return ExitCode::ResultsUnwritable,
        Some(CampaignError::Check(CheckError::Plan { .. } | CheckError::Subject(_))) => return ExitCode::BadExperiment,
        Some(CampaignError::Check(CheckError::Room { .. })) => return ExitCode::MachineCheckFailed,
        Some(CampaignError::Search(_)) => return ExitCode::Usage,
        Some(CampaignError::Archive(archive)) => Some(archive),
        _ => match error.downcast_ref::<StoredError>() {
            Some(StoredError::Archive(archive)) => Some(archive),
            _ => error.downcast_ref::<ArchiveError>(),
        },
    };
    let store = match campaign {
        Some(ArchiveError::Store(store)) => Some(store),
        _ => error.downcast_ref::<StoreError>(),
    };
    match store {
        Some(store) if store.is_unwritable() => ExitCode::ResultsUnwritable,
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
