//! Where a server hands over, and what is told of that.

use pushlab_handover::HandoverError;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server gives its place to the next one, and takes it from the one before.
#[derive(Debug, Clone)]
pub struct Handover {
    /// The Unix socket. Whoever serves listens there; a server that starts asks it first.
    pub path: PathBuf,
    /// Is told what happens, from any thread.
    pub tell: fn(&Happened),
}

/// What happens at a handover.
#[derive(Debug)]
pub enum Happened {
    /// This process took over from the one before it.
    TookOver,
    /// Another process serves; connections move to it over this time.
    Served(Duration),
    /// There was no handover.
    Failed(HandoverError),
    /// The process that took over died; this one serves again.
    SuccessorDied,
    /// That process stops, and so does this one.
    SuccessorStops,
    /// That process lives, but the link to it broke; this one stops.
    LinkLost,
    /// It died when this one had begun to end.
    DiedTooLate,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TookOver => f.write_str("took over from the previous process"),
            Self::Served(window) => write!(f, "another process has taken over; connections move to it in {window:?}"),
            Self::Failed(why) => write!(f, "no handover: {why}; this process goes on serving"),
            Self::SuccessorDied => f.write_str(
                "the process that had taken over has died; this one serves again, without history, \
                 and clients that resume are told of a gap",
            ),
            Self::SuccessorStops => f.write_str("the process that had taken over is stopping, and so is this one"),
            Self::LinkLost => f.write_str("the link to the process that has taken over broke; this one stops at once"),
            Self::DiedTooLate => f.write_str("the process that had taken over died as this one was about to end"),
        }
    }
}
