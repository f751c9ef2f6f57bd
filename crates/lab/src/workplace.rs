//! Where a campaign's runs happen.

use crate::pinning::Pinning;
use crate::workers::Workers;
use pushlab_subjects::builds::Builds;
use pushlab_subjects::{certificate, leftovers};
use pushlab_watch::agent::Agents;
use std::io;
use std::path::PathBuf;

/// Where runs happen.
pub struct Workplace {
    /// The `pushlab` program, which is subject and worker too.
    pub program: PathBuf,
    /// Copies of it and of other builds, where they are compared.
    pub builds: Builds,
    /// Cores of both sides.
    pub pinning: Pinning,
    /// Where the load's workers are.
    pub workers: Workers,
    /// Who watches servers that the lab did not start.
    pub agents: Agents,
    /// Where subjects write their logs.
    pub logs: PathBuf,
    /// Whether to keep every packet that crosses a link, beside the logs.
    pub captures: bool,
}

/// Why there is no place for runs.
#[derive(Debug, thiserror::Error)]
pub enum WorkplaceError {
    /// The folder of its report and logs.
    #[error("cannot write {}: {source}; choose another folder with --out", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// This program's own path is not known, so that it cannot be started as subject and worker.
    #[error("cannot determine this program's own path: {0}")]
    Program(io::Error),
}

impl Workplace {
    /// Makes the folder. What a killed lab may have left behind is ended first.
    ///
    /// # Errors
    /// See [`WorkplaceError`].
    pub fn make(
        pinning: Pinning,
        workers: Workers,
        agents: Agents,
        logs: PathBuf,
        captures: bool,
    ) -> Result<Self, WorkplaceError> {
        let program = this_program().map_err(WorkplaceError::Program)?;
        std::fs::create_dir_all(&logs).map_err(|source| WorkplaceError::Folder { path: logs.clone(), source })?;
        // What may not be ended is somebody else's, and shows as a noisy neighbour if it matters.
        let _ = leftovers::clean();
        certificate::sweep(&logs);
        Ok(Self { program, builds: Builds::default(), pinning, workers, agents, logs, captures })
    }
}

/// The program that runs now: subject and worker are the same.
pub fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
