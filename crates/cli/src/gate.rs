//! What a gate says: passed, failed, or undecided.

use clap::{Args, ValueEnum};
use pushlab_report::Agreement;
use pushlab_wire::codes::ExitCode;

/// What undecided is worth.
#[derive(Debug, Clone, Copy, Args)]
pub struct GateArgs {
    /// How to exit if a condition was neither shown nor ruled out.
    #[arg(long, value_enum, default_value = "report", value_name = "HOW")]
    undecided: Undecided,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Undecided {
    /// Exit with code 10.
    Report,
    /// Exit with code 0: nothing was shown to be wrong.
    Pass,
    /// Exit with code 9: the absence of a fault was not shown.
    Fail,
}

impl GateArgs {
    /// The exit code of a gate whose condition, such as "something got worse", came out so.
    pub fn code(self, condition: Agreement) -> ExitCode {
        match (condition, self.undecided) {
            (Agreement::Confirmed, _) | (Agreement::Undecided, Undecided::Fail) => ExitCode::ConditionMet,
            (Agreement::Undecided, Undecided::Report) => ExitCode::Undecided,
            (Agreement::Refuted, _) | (Agreement::Undecided, Undecided::Pass) => ExitCode::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecided_is_neither_passed_nor_failed_unless_asked() {
        let codes = |undecided| {
            let gate = GateArgs { undecided };
            [Agreement::Confirmed, Agreement::Undecided, Agreement::Refuted].map(|condition| gate.code(condition))
        };
        let (met, open, ok) = (ExitCode::ConditionMet, ExitCode::Undecided, ExitCode::Ok);
        assert_eq!(codes(Undecided::Report), [met, open, ok]);
        assert_eq!(codes(Undecided::Pass), [met, ok, ok]);
        assert_eq!(codes(Undecided::Fail), [met, met, ok]);
    }
}
