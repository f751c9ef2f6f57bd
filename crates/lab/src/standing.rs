//! Servers that stay up from one run of a block to the next, so that a block's runs share their start.

use crate::planned::named;
use crate::target::{Target, loops};
use crate::topology::Topology;
use pushlab_experiment::{Experiment, Proxy};
use pushlab_record::PlannedRun;
use pushlab_subjects::running;
use std::collections::BTreeMap;

/// What a run measures, and where both sides are.
pub struct Stage {
    /// Namespaces, link and certificate.
    pub topology: Topology,
    /// The server.
    pub target: Target,
    /// Order of the run for which it was started.
    pub since: u32,
}

/// What runs must agree on to share a server: their block, and what the server is told when it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    block: u32,
    subject: String,
    has_tls: bool,
    through: Option<Proxy>,
    options: Vec<String>,
    environment: BTreeMap<String, String>,
    compression_from: Option<u32>,
    logs_collections: bool,
    is_cross_origin: bool,
}

impl Setup {
    /// Of a run of an experiment as it is for the run's cell; `None` where each run has a server of its own.
    ///
    /// # Errors
    /// When the subject is not known any more.
    pub fn of(planned: &PlannedRun, experiment: &Experiment) -> Result<Option<Self>, String> {
        if experiment.blocks.is_none() {
            return Ok(None);
        }
        let is_ours = named(&planned.cell, experiment)?.is_ours();
        let loops = if is_ours { loops(planned, experiment)? } else { 1 };
        Ok(Some(Self {
            block: experiment.block_of(planned.repeat),
            subject: planned.cell.subject.clone(),
            has_tls: experiment.sockets.tls,
            through: experiment.through,
            options: if is_ours { running::options(experiment, &planned.cell, loops) } else { Vec::new() },
            environment: experiment.environment.clone(),
            compression_from: experiment.compression_from,
            logs_collections: experiment.collections,
            is_cross_origin: !is_ours && experiment.clients_in.is_browser(),
        }))
    }
}

/// The servers that are up between runs.
#[derive(Default)]
pub struct Standing(Vec<(Setup, Stage)>);

impl Standing {
    /// Ends the servers of all blocks but these.
    pub fn retain(&mut self, blocks: &[u32]) {
        let (kept, over): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(setup, _)| blocks.contains(&setup.block));
        self.0 = kept;
        over.into_iter().for_each(|(_, stage)| stage.target.stop());
    }

    /// Hands out the server that runs of this setup share, if it is up.
    pub fn take(&mut self, setup: &Setup) -> Option<Stage> {
        let at = self.0.iter().position(|(own, _)| own == setup)?;
        let (_, mut stage) = self.0.swap_remove(at);
        // One that died between two runs is started again.
        stage.target.death().is_none().then_some(stage)
    }

    /// Takes back a server that is as it was.
    pub fn keep(&mut self, setup: Setup, stage: Stage) {
        self.0.push((setup, stage));
    }
}
