//! Refusals that all demonstrations share.

use crate::telling::tell;
use pushlab_application::requests::Refusal;
use pushlab_wire::codes::ErrorCode;

/// Nothing is served at the path.
pub fn unknown_path() -> Refusal {
    Refusal::new(
        ErrorCode::UnknownPath,
        "nothing is served at this path; docs/demos.md lists those of the demonstrations",
    )
}

/// Something of the server itself failed; what goes to the server's output is not told to the peer.
pub fn failed(what: &str, error: &dyn std::error::Error) -> Refusal {
    tell(format_args!("{what}: {error}"));
    Refusal::new(ErrorCode::InternalError, "the server failed; its output says why")
}
