//! A place where nothing happens but what a test says, and the campaigns that are carried out there.

use crate::archive;
use crate::campaign::{Campaign, CampaignError, Ended, Observer, Start};
use crate::experiments;
use crate::observer::RunObserver;
use crate::place::Place;
use crate::planner::Matrix;
use crate::planner::search::{CapacitySearch, Search};
use crate::run::Executed;
use crate::side_by_side::Member;
use pushlab_experiment::Experiment;
use pushlab_record::{Outcome, PlannedRun, RunRecord};
use pushlab_stats::{Warning, WarningCode};
use pushlab_store::{CampaignRow, Run, Store};
use pushlab_workload::plan::Phase;
use pushlab_workload::result::{LoadResult, PhaseMark};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// When the clock of every place begins, seconds of Unix time.
const BEGIN_S: u64 = 1_800_000_000;
/// How long each try takes, ms.
pub const TRY_MS: u64 = 90_000;
/// Deliveries that a run makes in the second of its load.
pub const DELIVERIES: u64 = 100;

/// What comes of a run: told which try of it this is, from 1.
pub type Script = Box<dyn FnMut(&Member<'_>, u32) -> Executed>;

/// A place that answers from a script. A simulated clock goes on with every try.
pub struct ScriptedPlace {
    script: Script,
    clock_ms: u64,
    /// Of each try the orders of the runs that went side by side in it.
    pub tries: Vec<Vec<u32>>,
    /// Blocks whose servers were to stay up, each time that this changed.
    pub blocks: Vec<Vec<u32>>,
}

impl ScriptedPlace {
    fn new(script: Script) -> Self {
        Self { script, clock_ms: 0, tries: Vec::new(), blocks: Vec::new() }
    }
}

impl Place for ScriptedPlace {
    fn execute(&mut self, members: &[Member<'_>], observer: &mut dyn RunObserver) -> Vec<Executed> {
        if observer.is_interrupted() {
            return members.iter().map(|_| Executed::Interrupted).collect();
        }
        observer.phase(Phase::Load);
        let orders: Vec<u32> = members.iter().map(|member| member.planned.order).collect();
        self.tries.push(orders.clone());
        let number = self.tries.iter().filter(|tried| **tried == orders).count() as u32;
        let started_at = self.now();
        self.clock_ms += TRY_MS;
        let executed = members.iter().map(|member| (self.script)(member, number));
        executed.map(|executed| at(executed, &started_at)).collect()
    }

    fn keep_blocks(&mut self, blocks: &[u32]) {
        if self.blocks.last().map(Vec::as_slice) != Some(blocks) {
            self.blocks.push(blocks.to_vec());
        }
    }

    fn now(&self) -> String {
        clock(self.clock_ms)
    }
}

/// What the clock of a place says after so much time.
pub fn clock(ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(BEGIN_S) + Duration::from_millis(ms)).to_string()
}

/// The same try, begun then.
fn at(mut executed: Executed, started_at: &str) -> Executed {
    if let Executed::Recorded(record) | Executed::LoadFailed(record) | Executed::Cold { record, .. } = &mut executed {
        (record.started_at, record.took_ms) = (started_at.to_owned(), TRY_MS);
    }
    executed
}

/// A run that came to its end and delivered everything.
pub fn measured(member: &Member<'_>) -> RunRecord {
    let phase = |phase, t_ns| PhaseMark { phase, t_ns };
    let mut result = LoadResult {
        phases: vec![phase(Phase::Connect, 0), phase(Phase::Load, 1_000_000_000), phase(Phase::Drain, 2_000_000_000)],
        end_ns: 3_000_000_000,
        published: DELIVERIES,
        scheduled: DELIVERIES,
        expected: DELIVERIES,
        delivered: DELIVERIES,
        arrived: DELIVERIES,
        ..LoadResult::default()
    };
    result.latency.record_n(5_000_000, DELIVERIES);
    RunRecord { result: Some(result), ..RunRecord::ended(member.planned.clone(), Outcome::Completed) }
}

/// The same, kept.
pub fn good(member: &Member<'_>) -> Executed {
    Executed::Recorded(Box::new(measured(member)))
}

/// The same with warnings.
pub fn warned(member: &Member<'_>, codes: &[WarningCode]) -> Executed {
    let warnings = codes.iter().map(|code| Warning::new(*code, "in numbers")).collect();
    Executed::Recorded(Box::new(RunRecord { warnings, ..measured(member) }))
}

/// A run that failed.
pub fn failed(member: &Member<'_>, reason: &str) -> Box<RunRecord> {
    let outcome = Outcome::Failed { reason: reason.to_owned(), phase: Some(Phase::Load) };
    Box::new(RunRecord::ended(member.planned.clone(), outcome))
}

/// A folder with a store, which vanish with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pushlab-campaigns-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn store(&self) -> Store {
        archive::open(Some(&self.path("results.db"))).unwrap()
    }

    pub fn rows(&self) -> Vec<CampaignRow> {
        self.store().campaigns().unwrap()
    }

    /// The runs of a campaign by its number, as they are stored.
    pub fn runs(&self, id: i64) -> Vec<Run> {
        self.store().runs(id).unwrap()
    }

    /// Has the store refuse every run after so many, as a full disk does: it is there whole, or not at all.
    pub fn fill_after(&self, runs: usize) {
        self.change(&format!(
            "CREATE TRIGGER disk_is_full BEFORE INSERT ON runs WHEN (SELECT count(*) FROM runs) >= {runs} \
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        ));
    }

    /// Lets the store take runs again.
    pub fn make_room(&self) {
        self.change("DROP TRIGGER disk_is_full");
    }

    fn change(&self, statement: &str) {
        rusqlite::Connection::open(self.path("results.db")).unwrap().execute_batch(statement).unwrap();
    }

    /// How a campaign of this folder begins.
    pub fn start(&self) -> Start {
        Start { name: "test".to_owned(), out: self.path("results"), ..Start::default() }
    }

    /// Begins a campaign, or goes on with the one that was interrupted.
    pub fn open(
        &self,
        experiments: &[Experiment],
        start: &Start,
        script: impl FnMut(&Member<'_>, u32) -> Executed + 'static,
    ) -> Result<Campaign<Matrix, ScriptedPlace>, CampaignError> {
        let place = ScriptedPlace::new(Box::new(script));
        Campaign::open_at(experiments.to_vec(), self.store(), start, |_, _| Ok(place))
    }

    /// The same for a search.
    pub fn search(
        &self,
        search: &Search,
        start: &Start,
        script: impl FnMut(&Member<'_>, u32) -> Executed + 'static,
    ) -> Result<Campaign<CapacitySearch, ScriptedPlace>, CampaignError> {
        let place = ScriptedPlace::new(Box::new(script));
        Campaign::search_at(search, self.store(), start, |_, _| Ok(place))
    }

    /// Carries out a whole campaign, and gives its place and its stored runs.
    pub fn carry_out(
        &self,
        experiments: &[Experiment],
        script: impl FnMut(&Member<'_>, u32) -> Executed + 'static,
    ) -> (ScriptedPlace, Vec<Run>) {
        let mut campaign = self.open(experiments, &self.start(), script).unwrap();
        assert_eq!(campaign.carry_out(&mut Audience::default()).unwrap(), Ended::Complete);
        let id = campaign.id();
        (campaign.place, self.runs(id))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // One that stays behind hurts nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Who watches a campaign, and may interrupt it.
#[derive(Default)]
pub struct Audience {
    /// How many runs were planned and done, each time that a plan was told.
    pub begun: Vec<(usize, usize)>,
    /// Orders of the runs that began.
    pub run: Vec<u32>,
    /// Orders of those that ended.
    pub recorded: Vec<u32>,
    /// Interrupts the run after so many.
    pub stop_after: Option<usize>,
}

impl Audience {
    /// One who interrupts the run after so many.
    pub fn until(runs: usize) -> Self {
        Self { stop_after: Some(runs), ..Self::default() }
    }
}

impl Observer for Audience {
    fn begin(&mut self, planned: &[PlannedRun], done: usize, _: i64) {
        self.begun.push((planned.len(), done));
    }
    fn run(&mut self, planned: &PlannedRun) {
        self.run.push(planned.order);
    }
    fn phase(&mut self, _: Phase) {}
    fn recorded(&mut self, record: &RunRecord) {
        self.recorded.push(record.planned.order);
    }
    fn is_interrupted(&mut self) -> bool {
        self.stop_after.is_some_and(|most| self.recorded.len() >= most)
    }
}

/// An experiment of two clients over two transports; `changes` are lines of TOML in place of those of the same key.
pub fn experiment(changes: &[(&str, &str)]) -> Experiment {
    try_experiment(changes).unwrap()
}

/// The same, or why it is refused.
pub fn try_experiment(changes: &[(&str, &str)]) -> Result<Experiment, String> {
    let mut lines = vec![
        ("name", "\"test\""),
        ("title", "\"Test\""),
        ("transports", "[\"websocket\", \"long-polling\"]"),
        ("clients", "[2]"),
        ("repeats", "1"),
        ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173, by = \"publisher\" }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 200, load_ms = 1200, drain_ms = 3000, after_ms = 0 }",
        ),
    ];
    lines.retain(|(key, _)| changes.iter().all(|(changed, _)| changed != key));
    let text: String = lines.iter().chain(changes).map(|(key, value)| format!("{key} = {value}\n")).collect();
    experiments::parse(&text, None, "test").map_err(|error| error.to_string())
}
