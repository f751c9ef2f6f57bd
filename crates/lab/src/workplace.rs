//! Where a campaign's runs happen.

use crate::builds::Builds;
use crate::certificate;
use crate::observer::RunObserver;
use crate::pinning::Pinning;
use crate::place::Place;
use crate::run::{Executed, execute};
use crate::side_by_side::{Member, execute_together};
use crate::standing::Standing;
use crate::wall_clock;
use crate::workers::Workers;
use pushlab_os::affinity::pin_to;
use pushlab_subjects::leftovers;
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
    /// Servers that are up between runs.
    standing: Standing,
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
        let (builds, standing) = (Builds::default(), Standing::default());
        Ok(Self { program, builds, pinning, workers, agents, logs, captures, standing })
    }
}

impl Place for Workplace {
    fn execute(&mut self, members: &[Member<'_>], observer: &mut dyn RunObserver) -> Vec<Executed> {
        // Away from the subject's core; where that is not allowed the warning about shared cores says so.
        let _ = pin_to(&self.pinning.load);
        let [Member { planned, experiment, side: None }] = *members else {
            return execute_together(members, self, observer);
        };
        let mut standing = std::mem::take(&mut self.standing);
        let executed = execute(planned, experiment, self, &mut standing, None, observer);
        self.standing = standing;
        vec![executed]
    }

    fn keep_blocks(&mut self, blocks: &[u32]) {
        self.standing.retain(blocks);
    }

    fn now(&self) -> String {
        wall_clock::now()
    }
}

/// The program that runs now: subject and worker are the same.
pub fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
