//! Why a process could not be read.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no probe or no sample.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The root process does not exist, or has ended (a zombie that nobody has waited for counts as ended).
    #[error("process {pid} is gone")]
    Gone {
        /// The root process.
        pid: u32,
    },
    /// A file that every sample needs cannot be read.
    #[error("cannot read {}: {source}; run as the same user as the subject, or as root", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file of `/proc` does not look as proc(5) says.
    #[error("{} is not in the format of proc(5)", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}
