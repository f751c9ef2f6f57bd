//! Experiments carried out: the order of their runs, and going on after an interruption.

use crate::archive::{self, Archive, ArchiveError};
use crate::capacities::Capacities;
use crate::certificate;
use crate::header::{self, this_build};
use crate::pinning::Pinning;
use crate::queue::{Queue, Waiting, follows_others};
use crate::run::{Executed, RunObserver, Usage, Workplace, execute};
use crate::wall_clock;
use pushlab_analysis::doubts;
use pushlab_analysis::header::Header;
use pushlab_analysis::record::{PlannedRun, RunRecord};
use pushlab_analysis::report::RunFigures;
use pushlab_analysis::report::model::LeftOut;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::{Experiment, Written};
use pushlab_load::browser;
use pushlab_os::affinity::pin_to;
use pushlab_os::limits;
use pushlab_stats::DoubtCode;
use pushlab_store::Store;
use pushlab_subjects::install::Cache;
use pushlab_subjects::leftovers;
use pushlab_subjects::manifest::Platform;
use pushlab_subjects::named::Named;
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::{ClientsIn, Phase};
use pushlab_workload::plan_checks::BadPlan;
use pushlab_workload::roles::Roles;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Times that a run is tried whose generator was held up.
const MAX_ATTEMPTS: u32 = 3;
/// Times that a run is tried whose limit was the load.
const MAX_ATTEMPTS_AT_THE_LIMIT: u32 = 6;
/// Shortest and longest warm-up of a run that is tried again because its subject had not warmed up, ms.
const WARM_UP_MIN_MS: u64 = 5_000;
const WARM_UP_MAX_MS: u64 = 60_000;

/// A campaign: one or more experiments whose runs are interleaved.
pub struct Campaign {
    header: Header,
    runs: Vec<PlannedRun>,
    archive: Archive,
    place: Workplace,
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
    /// Subjects that were taken out: see [`leave_out_missing`].
    pub left_out: Vec<LeftOut>,
}

/// Why a campaign cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// See there.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A cell that the load cannot run.
    #[error("{cell}: {source}")]
    Plan {
        /// Which.
        cell: String,
        /// Why.
        source: Box<BadPlan>,
    },
    /// No subject is left.
    #[error("nothing can be measured: {}", .0.iter().map(|out| out.reason.as_str()).collect::<Vec<_>>().join("; "))]
    NothingLeft(Vec<LeftOut>),
    /// A subject that is not known any more.
    #[error("{0}")]
    Subject(String),
    /// The folder of its report and logs.
    #[error("cannot write {}: {source}; choose another folder with --out", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// This program's own path is not known, so that it cannot be started as subject and worker.
    #[error("this program cannot find itself: {0}")]
    Program(std::io::Error),
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
    /// A campaign: the one of the same experiments that was interrupted last, or a new one.
    pub fn open(experiments: Vec<Experiment>, store: Store, start: Start) -> Result<Self, CampaignError> {
        let pinning = Pinning::of_this_machine();
        check_plans(&experiments, &pinning)?;
        let unfinished = match start.is_fresh {
            true => None,
            false => archive::find_unfinished(&store, &start.name, &experiments, start.seed, this_build())?,
        };
        let (archive, header) = match unfinished {
            Some((id, header)) => (Archive::resume(store, id)?, header),
            None => {
                let seed = start.seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
                let header = header::begin(&start.name, experiments, seed, start.command, &pinning);
                let header = Header { left_out: start.left_out, ..header };
                (Archive::begin(store, &header)?, header)
            }
        };
        let runs = order(&header.experiments, header.seed);
        let place = workplace(pinning, &start.out, start.captures, &header, archive.id())?;
        Ok(Self { header, runs, archive, place })
    }

    /// The folder of its report and logs.
    pub fn folder(&self) -> &Path {
        &self.place.logs
    }

    /// Its number in the store.
    pub fn id(&self) -> i64 {
        self.archive.id()
    }

    /// Carries out the runs that have no record yet.
    pub fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<Ended, CampaignError> {
        // Away from the subject's core; where that is not allowed the doubt about shared cores says so.
        let _ = pin_to(&self.place.pinning.load);
        let done = self.archive.done()?;
        observer.begin(&self.runs, done.len(), self.archive.id());
        let mut capacities = Capacities::default();
        if self.header.experiments.iter().any(|experiment| experiment.capacity_share.is_some()) {
            self.archive.runs()?.iter().for_each(|run| capacities.note(run));
        }
        let left = self.runs.iter().filter(|run| !done.contains(&run.order)).cloned();
        let mut queue = Queue::new(left, &self.header.experiments);
        while let Some(Waiting { planned, attempts }) = queue.next() {
            let Some(experiment) = self.header.experiments.iter().find(|e| e.name == planned.cell.experiment) else {
                continue;
            };
            observer.run(&planned);
            let record = match capacities.apply(experiment.at(&planned.cell), &planned.cell) {
                Ok(own) => execute_until_valid(&planned, &own, &self.place, observer),
                Err(reason) => Some(Box::new(RunRecord::failed(&planned, reason, wall_clock::now()))),
            };
            let Some(mut record) = record else { return Ok(Ended::Interrupted) };
            record.attempts += attempts;
            if record.attempts < MAX_ATTEMPTS_AT_THE_LIMIT && is_bound_by_load(&record) {
                queue.put_off(Waiting { planned, attempts: record.attempts });
                continue;
            }
            capacities.note(&RunFigures::of(&record));
            self.archive.write(&record)?;
            observer.recorded(&record);
        }
        self.archive.complete()?;
        Ok(Ended::Complete)
    }
}

/// Takes out the subjects that are not installed or that this machine cannot run, and the variants whose browser is not.
///
/// # Errors
/// [`CampaignError::NothingLeft`].
pub fn leave_out_missing(experiments: &mut Vec<Experiment>, cache: &Cache) -> Result<Vec<LeftOut>, CampaignError> {
    let mut left_out: Vec<LeftOut> = Vec::new();
    for experiment in experiments.iter_mut() {
        let experiment: &mut Written = experiment;
        experiment.subjects.retain(|text| {
            let obstacle = Named::parse(text).ok().and_then(|named| named.obstacle(cache));
            let out = obstacle.map(|why| LeftOut { subject: text.clone(), reason: why.to_string() });
            let is_kept = out.is_none();
            left_out.extend(out.filter(|out| !left_out.contains(out)));
            is_kept
        });
        let mut missing = |clients_in: ClientsIn, what: String| {
            let out = browser::check_installed(clients_in.kind).err();
            let out = out.map(|why| LeftOut { subject: what, reason: why.to_string() });
            let is_missing = out.is_some();
            left_out.extend(out.filter(|out| !left_out.contains(out)));
            is_missing
        };
        let (name, own) = (&experiment.name, experiment.clients_in);
        let had_variants = !experiment.variants.is_empty();
        experiment
            .variants
            .retain(|variant| !missing(variant.clients_in.unwrap_or(own), format!("{name}, variant {}", variant.name)));
        // Without any of its variants an experiment would be another one.
        let is_empty = if had_variants { experiment.variants.is_empty() } else { missing(own, name.clone()) };
        if is_empty {
            experiment.subjects.clear();
        }
    }
    experiments.retain(|experiment| !experiment.cells().is_empty());
    if experiments.is_empty() { Err(CampaignError::NothingLeft(left_out)) } else { Ok(left_out) }
}

/// Refuses what could not be carried out on this machine, as far as that can be found out `within` so long: a campaign
/// looks at all of it before it begins.
///
/// # Errors
/// [`CampaignError::Plan`], [`CampaignError::Subject`].
pub fn check_experiments(experiments: &[Experiment], within: Duration) -> Result<(), CampaignError> {
    let begun = Instant::now();
    check_each(experiments, &Pinning::of_this_machine())
        .take_while(|found| found.is_err() || begun.elapsed() < within)
        .collect()
}

/// Refuses what the load could not run, before anything runs.
pub fn check_plans(experiments: &[Experiment], pinning: &Pinning) -> Result<(), CampaignError> {
    check_each(experiments, pinning).collect()
}

/// What is to be said of each cell, found out as it is asked for.
fn check_each(experiments: &[Experiment], pinning: &Pinning) -> impl Iterator<Item = Result<(), CampaignError>> {
    let cells = experiments.iter().flat_map(|experiment| experiment.cells().into_iter().map(move |c| (experiment, c)));
    cells.map(|(experiment, cell)| {
        let label = cell.label();
        let planned = PlannedRun { order: 1, repeat: 1, seed: 1, cell };
        let plan = crate::run::plan_of(&planned, &experiment.at(&planned.cell), pinning.load.len());
        let plan = plan.map_err(CampaignError::Subject)?;
        let is_good = Roles::of(&plan, limits::descriptors().soft).map(drop);
        is_good.map_err(|source| CampaignError::Plan { cell: label, source: Box::new(source) })
    })
}

/// Where a campaign's runs happen; its folder is made. What a killed lab may have left behind is ended first.
pub fn workplace(
    pinning: Pinning,
    out: &Path,
    captures: bool,
    header: &Header,
    id: i64,
) -> Result<Workplace, CampaignError> {
    let program = crate::run::this_program().map_err(CampaignError::Program)?;
    let logs = out.join(header.folder_name(id));
    std::fs::create_dir_all(&logs).map_err(|source| CampaignError::Folder { path: logs.clone(), source })?;
    // What may not be ended is somebody else's, and shows as a noisy neighbour if it matters.
    let _ = leftovers::clean();
    certificate::sweep(&logs);
    Ok(Workplace { program, pinning, logs, captures })
}

/// Executes a run, and again while the generator was held up by something else than its own work, or while the subject
/// was still warming up: the next try warms it up twice as long. `None` when interrupted.
pub fn execute_until_valid(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    observer: &mut dyn Observer,
) -> Option<Box<RunRecord>> {
    let mut experiment = experiment.clone();
    for attempt in 1.. {
        let Executed::Recorded(mut record) = execute(planned, &experiment, place, &mut Forward(observer)) else {
            return None;
        };
        record.attempts = attempt;
        let is_cold = is_warming_up(&record);
        if attempt >= MAX_ATTEMPTS || !(is_cold || is_worth_another_try(&record)) {
            return Some(record);
        }
        if is_cold {
            let longer = (2 * experiment.phases.warm_up_ms).max(WARM_UP_MIN_MS);
            experiment.phases.warm_up_ms = longer.min(WARM_UP_MAX_MS);
        }
    }
    None
}

/// Whether a virtual machine was still compiling what it ran: its latency fell over the whole load phase. What is
/// measured then is its start, which says nothing of the server that it becomes.
fn is_warming_up(record: &RunRecord) -> bool {
    let named = Named::parse(&record.planned.cell.subject);
    let is_compiled_late = named.is_ok_and(|named| named.platform() == Some(Platform::Java));
    is_compiled_late && doubts::latency_trend(record).is_some_and(|change| change < 0.0)
}

/// Whether a run is void only because something held up the generator: on a shared machine that passes. What the
/// subject did plays no part in this, or repeating would choose the results.
fn is_worth_another_try(record: &RunRecord) -> bool {
    let mut voids = record.doubts.iter().filter(|d| d.is_void()).peekable();
    record.is_void()
        && voids.peek().is_some()
        && voids.all(|d| matches!(d.code, DoubtCode::Lateness | DoubtCode::LoopLag))
}

/// Whether a run says how fast the load is instead of the subject, and is measured again later: see
/// `docs/decisions/0020-measured-again.md`.
fn is_bound_by_load(record: &RunRecord) -> bool {
    record.doubts.iter().any(|doubt| doubt.code == DoubtCode::GeneratorBound)
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
        let mut block: Vec<Cell> =
            experiments.iter().filter(|e| e.repeats >= repeat).flat_map(Experiment::cells).collect();
        random.shuffle(&mut block);
        // What follows from other runs of the block comes after them.
        block.sort_by_key(|cell| follows_others(cell, experiments));
        for cell in block {
            let order = runs.len() as u32 + 1;
            runs.push(PlannedRun { order, cell, repeat, seed: random.u64(..1 << 48) });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_experiment::presets;
    use std::collections::HashSet;

    #[test]
    fn every_cell_comes_once_in_every_block_in_an_order_that_the_seed_gives() {
        let (_, experiments) = experiments::load_all("transports", None).unwrap();
        let runs = order(&experiments, 7);
        let cells: usize = experiments.iter().map(|e| e.runs() / e.repeats as usize).sum();
        assert_eq!(runs.len(), cells * 3);
        for block in runs.chunks(cells) {
            assert_eq!(block.iter().map(|r| r.cell.clone()).collect::<HashSet<_>>().len(), cells);
        }
        assert_eq!(order(&experiments, 7), runs);
        assert_ne!(order(&experiments, 8), runs);
    }

    /// Looking at each cell may take longer than a page waits: what was not reached in time is left to the campaign.
    #[test]
    fn looking_an_experiment_over_ends_in_time() {
        let clients = |list: &str| {
            let text = presets::text("tangen-chat").unwrap();
            let start = text.find("\nclients = ").unwrap() + 1;
            let end = start + text[start..].find('\n').unwrap();
            let text = [&text[..start], "clients = ", list, &text[end..]].concat();
            vec![experiments::parse(&text, None, "test").unwrap()]
        };
        // A million need more descriptors than there are.
        let (good_first, bad_first) = (clients("[2, 1000000]"), clients("[1000000, 2]"));
        let long = Duration::from_secs(3600);
        for (experiments, within, is_good) in [
            (&good_first, long, false),
            (&good_first, Duration::ZERO, true),
            (&bad_first, long, false),
            (&bad_first, Duration::ZERO, false),
        ] {
            assert_eq!(check_experiments(experiments, within).is_ok(), is_good, "{within:?}");
        }
    }
}
