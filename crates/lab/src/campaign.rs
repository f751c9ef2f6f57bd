//! Experiments carried out: the order of their runs, and going on after an interruption.

#[cfg(test)]
mod tests;

use crate::archive::{self, Archive, ArchiveError};
use crate::attempts::{Stopped, execute_until_valid};
use crate::checks::{CheckError, check_plans};
use crate::header::{self, this_build};
use crate::observer::RunObserver;
use crate::pinning::Pinning;
use crate::place::{Place, ThisMachine};
use crate::planner::search::{Capacity, CapacitySearch, Search, SearchError};
use crate::planner::{Matrix, Planned, Planner};
use crate::side_by_side::Member;
use crate::workers::Workers;
use crate::workplace::{Workplace, WorkplaceError};
use pushlab_analysis::header::Header;
use pushlab_analysis::report::RunValues;
use pushlab_bus::CrewError;
use pushlab_experiment::Experiment;
use pushlab_record::{PlannedRun, RunRecord};
use pushlab_report::LeftOut;
use pushlab_store::Store;
use pushlab_watch::Usage;
use pushlab_watch::agent::Agents;
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::Phase;
use std::path::{Path, PathBuf};

/// A campaign: what a planner plans, carried out at a place and stored.
pub struct Campaign<P, W = ThisMachine> {
    planner: P,
    header: Header,
    archive: Archive,
    place: W,
    folder: PathBuf,
    so_far: Vec<RunValues>,
}

/// How a campaign is to be begun.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// What to call it.
    pub name: String,
    /// Seed of the order and of everything random; a new one by default.
    pub seed: Option<u64>,
    /// Whether to begin anew, even if the same campaign was interrupted before.
    pub is_fresh: bool,
    /// What was typed, so that it can be repeated.
    pub command: Vec<String>,
    /// Folder of reports: the campaign's own, with its subjects' logs, is made in it.
    pub out: PathBuf,
    /// Whether to keep every packet that crosses a link, beside the logs.
    pub captures: bool,
    /// Subjects that were taken out: see [`crate::leave_out_missing`].
    pub left_out: Vec<LeftOut>,
    /// Where the load's workers are.
    pub workers: Workers,
    /// Who watches servers that the lab did not start.
    pub agents: Agents,
}

/// Why a campaign cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// See there.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// See there.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// See there.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// See there.
    #[error(transparent)]
    Workplace(#[from] WorkplaceError),
    /// See there; what was measured so far is kept.
    #[error("{0}; the same command then continues with the missing runs")]
    Fleet(CrewError),
}

/// What somebody who watches is told.
pub trait Observer {
    /// What is planned, how much of it an earlier part of the same campaign did, and its number in the store.
    fn begin(&mut self, planned: &[PlannedRun], done: usize, id: i64);
    /// A run begins.
    fn run(&mut self, planned: &PlannedRun);
    /// A phase of it begins.
    fn phase(&mut self, phase: Phase);
    /// The generator tells how far it is: once a second.
    fn progress(&mut self, _progress: &Progress) {}
    /// What both sides have used since the run began: at least every 50 ms.
    fn usage(&mut self, _subject: Usage, _generator: Usage) {}
    /// There are too few workers yet: who is there, and who cannot be used.
    fn waits(&mut self, _line: &str) {}
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

impl Campaign<Matrix> {
    /// All runs of these experiments: the campaign of the same that was interrupted last, or a new one.
    ///
    /// # Errors
    /// See [`CampaignError`].
    pub fn open(experiments: Vec<Experiment>, store: Store, start: Start) -> Result<Self, CampaignError> {
        Self::open_at(experiments, store, &start, |pinning, logs| this_machine(pinning, logs, &start))
    }
}

impl<W: Place> Campaign<Matrix, W> {
    /// The same, at a place that is made once its cores and the folder of its logs are known.
    fn open_at(
        experiments: Vec<Experiment>,
        store: Store,
        start: &Start,
        make: impl FnOnce(Pinning, &Path) -> Result<W, WorkplaceError>,
    ) -> Result<Self, CampaignError> {
        let pinning = Pinning::for_experiments(&experiments).map_err(CheckError::from)?;
        check_plans(&experiments, start.workers.seats(pinning.load.len()), start.workers.room())?;
        let is_same = |header: &Header| header.search.is_none() && header.experiments == experiments;
        let (archive, header) = begin_or_go_on(store, start, &pinning, is_same, |header| Header {
            experiments: experiments.clone(),
            ..header
        })?;
        let planner = Matrix::new(&header.experiments, header.seed);
        Self::of(planner, header, archive, start, |logs| make(pinning, logs))
    }
}

impl Campaign<CapacitySearch> {
    /// A search for the largest load that meets a goal: the same one that was interrupted last, or a new one.
    ///
    /// # Errors
    /// See [`CampaignError`].
    pub fn search(search: &Search, store: Store, start: Start) -> Result<Self, CampaignError> {
        Self::search_at(search, store, &start, |pinning, logs| this_machine(pinning, logs, &start))
    }
}

impl<W: Place> Campaign<CapacitySearch, W> {
    /// The same, at a place that is made once its cores and the folder of its logs are known.
    fn search_at(
        search: &Search,
        store: Store,
        start: &Start,
        make: impl FnOnce(Pinning, &Path) -> Result<W, WorkplaceError>,
    ) -> Result<Self, CampaignError> {
        let pinning = Pinning::for_experiments(std::slice::from_ref(&search.experiment)).map_err(CheckError::from)?;
        let seats = start.workers.seats(pinning.load.len());
        let room = start.workers.room();
        CapacitySearch::new(search, seats, room, 0)?;
        let wanted = search.header();
        let is_same = |header: &Header| header.search.as_ref() == Some(&wanted);
        let (archive, header) = begin_or_go_on(store, start, &pinning, is_same, |header| Header {
            search: Some(wanted.clone()),
            ..header
        })?;
        let planner = CapacitySearch::new(search, seats, room, header.seed)?;
        Self::of(planner, header, archive, start, |logs| make(pinning, logs))
    }

    /// What was found so far.
    pub fn found(&self) -> Vec<Capacity> {
        self.planner.found(&self.so_far)
    }
}

/// The place where a campaign's runs happen.
fn this_machine(pinning: Pinning, logs: &Path, start: &Start) -> Result<ThisMachine, WorkplaceError> {
    let (workers, agents) = (start.workers.clone(), start.agents.clone());
    Workplace::make(pinning, workers, agents, logs.to_owned(), start.captures).map(ThisMachine::new)
}

impl<P: Planner, W: Place> Campaign<P, W> {
    fn of(
        planner: P,
        header: Header,
        archive: Archive,
        start: &Start,
        make: impl FnOnce(&Path) -> Result<W, WorkplaceError>,
    ) -> Result<Self, CampaignError> {
        let folder = start.out.join(header.folder_name(archive.id()));
        let place = make(&folder)?;
        let so_far = archive.runs()?;
        Ok(Self { planner, header, archive, place, folder, so_far })
    }

    /// The folder of its report and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its number in the store.
    pub fn id(&self) -> i64 {
        self.archive.id()
    }

    /// Whether no run has a record yet.
    pub fn is_empty(&self) -> bool {
        self.so_far.is_empty()
    }

    /// Keeps nothing of it, neither in the store nor on the disk.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn discard(self) -> Result<(), CampaignError> {
        self.archive.remove()?;
        // Logs that stay behind hurt nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(())
    }

    /// Carries out the runs that have no record yet.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<Ended, CampaignError> {
        let mut told = 0;
        while let Some(block) = self.planner.block(&self.so_far) {
            self.replan()?;
            let known = self.planner.known(&self.so_far);
            if known.len() != told {
                told = known.len();
                observer.begin(&known, self.so_far.len(), self.archive.id());
            }
            if self.carry_out_block(block, observer)? == Ended::Interrupted {
                return Ok(Ended::Interrupted);
            }
        }
        self.place.keep_blocks(&[]);
        if told == 0 {
            observer.begin(&self.planner.known(&self.so_far), self.so_far.len(), self.archive.id());
        }
        self.replan()?;
        self.archive.complete()?;
        Ok(Ended::Complete)
    }

    /// Stores what is planned by now, where that has changed.
    fn replan(&mut self) -> Result<(), CampaignError> {
        let experiments = self.planner.experiments(&self.so_far);
        if experiments != self.header.experiments {
            self.header.experiments = experiments;
            self.archive.replan(&self.header)?;
        }
        Ok(())
    }

    fn carry_out_block(&mut self, block: Vec<Planned>, observer: &mut dyn Observer) -> Result<Ended, CampaignError> {
        let runs = block.iter().filter_map(|planned| Some((planned.experiment.as_ref().ok()?, planned.run.repeat)));
        self.place.keep_blocks(&runs.map(|(experiment, repeat)| experiment.block_of(repeat)).collect::<Vec<_>>());
        let goes_beside = |one: &Planned, next: &Planned| {
            one.side.zip(next.side).is_some_and(|(one, next)| one.group == next.group && one.own < next.own)
        };
        for group in block.chunk_by(goes_beside) {
            group.iter().for_each(|planned| observer.run(&planned.run));
            let (mut runs, mut records) = (Vec::new(), Vec::new());
            for planned in group {
                match &planned.experiment {
                    Ok(own) => runs.push(Member { planned: &planned.run, experiment: own, side: planned.side }),
                    Err(reason) => {
                        let failed = RunRecord::failed(&planned.run, reason.clone(), self.place.now());
                        records.push(Box::new(failed));
                    }
                }
            }
            if !runs.is_empty() {
                match execute_until_valid(&runs, &mut self.place, &mut Forward(observer)) {
                    Ok(done) => records.extend(done),
                    Err(Stopped::Interrupted) => return Ok(Ended::Interrupted),
                    Err(Stopped::Unmanned(error)) => return Err(CampaignError::Fleet(error)),
                }
            }
            for record in records {
                self.archive.write(&record)?;
                self.so_far.push(RunValues::of(&record));
                observer.recorded(&record);
            }
        }
        Ok(Ended::Complete)
    }
}

/// Goes on with the latest campaign of the same name and seed that is the same and was not finished, or begins one whose
/// header `fill` makes of an empty one.
fn begin_or_go_on(
    store: Store,
    start: &Start,
    pinning: &Pinning,
    is_same: impl Fn(&Header) -> bool,
    fill: impl FnOnce(Header) -> Header,
) -> Result<(Archive, Header), CampaignError> {
    if !start.is_fresh
        && let Some((id, header)) = archive::find_unfinished(&store, &start.name, start.seed, this_build(), |header| {
            let is_seen_alike = header.agents.is_empty() == start.agents.are_none();
            is_same(header) && is_seen_alike && header.fleet.is_empty() == start.workers.are_here()
        })?
    {
        return Ok((Archive::resume(store, id)?, header));
    }
    let seed = start.seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
    let header = fill(header::empty(&start.name, seed, start.command.clone(), pinning));
    let header = header::with_versions(Header {
        left_out: start.left_out.clone(),
        fleet: start.workers.machines(),
        agents: start.agents.machines(),
        ..header
    });
    Ok((Archive::begin(store, &header)?, header))
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
    fn waits(&mut self, line: &str) {
        self.0.waits(line);
    }
    fn is_interrupted(&mut self) -> bool {
        self.0.is_interrupted()
    }
}
