//! Experiments carried out: the order of their runs, and going on after an interruption.

use crate::experiment::Experiment;
use crate::pinning::{Pinning, pin_to};
use crate::record::{Cell, Outcome, PlannedRun, RunRecord};
use crate::results::{Header, Results, ResultsError};
use crate::run::{Executed, RunObserver, Usage, Workplace, execute};
use pushlab_load::plan::{Phase, Progress};
use pushlab_stats::DoubtCode;
use std::path::{Path, PathBuf};

/// Times that a run is tried whose generator was held up.
const MAX_ATTEMPTS: u32 = 3;

/// A campaign: one or more experiments whose runs are interleaved.
pub struct Campaign {
    header: Header,
    runs: Vec<PlannedRun>,
    results: Results,
    place: Workplace,
}

/// What somebody who watches is told.
pub trait Observer {
    /// What is planned, what is done already, and whether this goes on with an earlier campaign.
    fn begin(&mut self, planned: &[PlannedRun], done: usize, folder: &Path);
    /// A run begins.
    fn run(&mut self, planned: &PlannedRun);
    /// A phase of it begins.
    fn phase(&mut self, phase: Phase);
    /// The generator tells how far it is: once a second.
    fn progress(&mut self, _progress: &Progress) {}
    /// What both sides have used since the run began: at least every 50 ms.
    fn usage(&mut self, _subject: Usage, _generator: Usage) {}
    /// It has ended and is written.
    fn recorded(&mut self, record: &RunRecord);
    /// Whether to stop now.
    fn is_interrupted(&mut self) -> bool;
}

/// How a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every planned run has a record.
    Complete,
    /// Stopped before that; the same command goes on.
    Interrupted,
}

impl Campaign {
    /// A campaign in `folder`: the one of the same experiments that was interrupted last, or a new one.
    pub fn open(
        name: &str,
        experiments: Vec<Experiment>,
        seed: Option<u64>,
        folder: &Path,
        begins_anew: bool,
        command: Vec<String>,
    ) -> Result<Self, ResultsError> {
        let pinning = Pinning::of_this_machine();
        let unfinished = if begins_anew { None } else { Results::find_unfinished(folder, name, &experiments, seed)? };
        let (results, header) = match unfinished {
            Some(found) => found,
            None => {
                let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
                let header = Header::new(name, experiments, seed, command, &pinning);
                (Results::create(folder, &header)?, header)
            }
        };
        let runs = order(&header.experiments, header.seed);
        let program = crate::run::this_program()
            .map_err(|source| ResultsError::Write { path: PathBuf::from("this program's own path"), source })?;
        let place = Workplace { program, pinning, logs: results.runs_folder() };
        Ok(Self { header, runs, results, place })
    }

    /// The folder of its results.
    pub fn folder(&self) -> &Path {
        self.results.folder()
    }

    /// Carries out the runs that have no record yet.
    pub fn carry_out(&self, observer: &mut dyn Observer) -> Result<Ended, ResultsError> {
        // Away from the subject's core; where that is not allowed the doubt about shared cores says so.
        let _ = pin_to(&self.place.pinning.load);
        let done = self.results.done()?;
        observer.begin(&self.runs, done.len(), self.results.folder());
        for planned in self.runs.iter().filter(|run| !done.contains(&run.order)) {
            let Some(experiment) = self.header.experiments.iter().find(|e| e.name == planned.cell.experiment) else {
                continue;
            };
            observer.run(planned);
            let Some(record) = self.execute_until_valid(planned, experiment, observer) else {
                return Ok(Ended::Interrupted);
            };
            self.results.write(&record)?;
            observer.recorded(&record);
        }
        Ok(Ended::Complete)
    }
}

impl Campaign {
    /// Executes a run, and again while the generator was held up by something else than its own work. `None` when
    /// interrupted.
    fn execute_until_valid(
        &self,
        planned: &PlannedRun,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Option<Box<RunRecord>> {
        for attempt in 1.. {
            let Executed::Recorded(mut record) = execute(planned, experiment, &self.place, &mut Forward(observer))
            else {
                return None;
            };
            record.attempts = attempt;
            if attempt >= MAX_ATTEMPTS || !is_worth_another_try(&record) {
                return Some(record);
            }
        }
        None
    }
}

/// Whether a run is void only because something held up the generator: on a shared machine that passes. What the
/// subject did plays no part in this, or repeating would choose the results.
fn is_worth_another_try(record: &RunRecord) -> bool {
    let mut voids = record.doubts.iter().filter(|d| d.is_void()).peekable();
    record.is_void()
        && voids.peek().is_some()
        && voids.all(|d| matches!(d.code, DoubtCode::Lateness | DoubtCode::LoopLag))
}

/// The part of an observer that a run sees.
struct Forward<'a>(&'a mut dyn Observer);

impl RunObserver for Forward<'_> {
    fn phase(&mut self, phase: Phase) {
        self.0.phase(phase);
    }
    fn progress(&mut self, progress: &Progress) {
        self.0.progress(progress);
    }
    fn usage(&mut self, subject: Usage, generator: Usage) {
        self.0.usage(subject, generator);
    }
    fn is_interrupted(&mut self) -> bool {
        self.0.is_interrupted()
    }
}

/// All runs in the order in which they are done: every repeat is a block of all cells of all experiments, shuffled,
/// so that a drift of the machine hits all alike, and an interruption leaves whole blocks.
pub fn order(experiments: &[Experiment], seed: u64) -> Vec<PlannedRun> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut runs: Vec<PlannedRun> = Vec::new();
    let repeats = experiments.iter().map(|e| e.repeats).max().unwrap_or(0);
    for repeat in 1..=repeats {
        let mut block: Vec<Cell> = experiments.iter().filter(|e| e.repeats >= repeat).flat_map(cells).collect();
        random.shuffle(&mut block);
        for cell in block {
            let order = runs.len() as u32 + 1;
            runs.push(PlannedRun { order, cell, repeat, seed: random.u64(..1 << 48) });
        }
    }
    runs
}

fn cells(experiment: &Experiment) -> Vec<Cell> {
    let mut cells = Vec::new();
    for subject in &experiment.subjects {
        for &transport in &experiment.transports {
            for &policy in &experiment.policies {
                for &clients in &experiment.clients {
                    let (experiment, subject) = (experiment.name.clone(), subject.clone());
                    cells.push(Cell { experiment, subject, transport, policy, clients });
                }
            }
        }
    }
    cells
}

/// Whether a campaign's records hold anything to report, and what went wrong with the rest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Runs whose figures count.
    pub valid: usize,
    /// Runs that a doubt voids.
    pub void: usize,
    /// Runs that failed.
    pub failed: usize,
}

impl Tally {
    /// Of these records.
    pub fn of(records: &[RunRecord]) -> Self {
        let failed = records.iter().filter(|r| r.outcome != Outcome::Completed).count();
        let void = records.iter().filter(|r| r.is_void()).count();
        Self { valid: records.len() - failed - void, void, failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use std::collections::HashSet;

    #[test]
    fn every_cell_comes_once_in_every_block_in_an_order_that_the_seed_gives() {
        let experiments: Vec<Experiment> =
            presets::COMPARED.iter().map(|name| presets::load(name, Some("compare")).unwrap()).collect();
        let runs = order(&experiments, 7);
        let cells: usize = experiments.iter().map(|e| e.runs() / e.repeats as usize).sum();
        assert_eq!(runs.len(), cells * 3);
        for block in runs.chunks(cells) {
            assert_eq!(block.iter().map(|r| r.cell.clone()).collect::<HashSet<_>>().len(), cells);
        }
        assert_eq!(order(&experiments, 7), runs);
        assert_ne!(order(&experiments, 8), runs);
    }
}
