//! What is said and returned when a command fails.

use pushlab_lab::ResultsError;
use pushlab_lab::presets::LoadError;
use pushlab_wire::codes::ExitCode;

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<LoadError>() {
        return ExitCode::BadExperiment;
    }
    match error.downcast_ref() {
        Some(ResultsError::Write { .. } | ResultsError::Busy { .. }) => ExitCode::ResultsUnwritable,
        Some(ResultsError::Read { .. } | ResultsError::Format { .. }) | None => ExitCode::Failed,
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
