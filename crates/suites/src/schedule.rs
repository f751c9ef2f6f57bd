//! Runs suites side by side, or alone if they measure, and records how each ended.

use pushlab_os::process::Signal;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::outcome::{End, Outcome};
use crate::processes::{self, Event};
use crate::script::Timed;
use crate::timing::{self, First, Judgement};

/// How long suites have to end once asked.
const GRACE: Duration = Duration::from_secs(5);
/// How long processes may outlive their suites, and how long killing them may take.
const LINGER_MAX: Duration = Duration::from_secs(5);

/// A suite, ready to run.
#[derive(Debug, Clone)]
pub struct Job {
    pub name: String,
    /// A shell script.
    pub script: String,
    /// The program it tests.
    pub program: PathBuf,
    /// Of its tests, those that may be tried again.
    pub timed: Vec<Timed>,
    pub alone: bool,
    /// How long it may take before it counts as hung and is killed.
    pub longest: Duration,
}

/// Where and how jobs run.
#[derive(Debug)]
pub struct Place {
    pub root: PathBuf,
    /// The folder for the jobs' logs.
    pub logs: PathBuf,
    /// Environment variables for every job.
    pub variables: Vec<(String, String)>,
    /// How many may run at once.
    pub at_once_max: usize,
}

/// What came of all jobs.
#[derive(Debug, Default)]
pub struct Results {
    pub outcomes: Vec<Outcome>,
    pub is_interrupted: bool,
}

struct Running {
    job: Job,
    pid: u32,
    since: Instant,
    log: PathBuf,
    is_overdue: bool,
    /// What came before, when tests are tried again.
    first: Option<First>,
}

/// Runs the jobs, in order as far as possible, and passes each outcome to `observe`.
///
/// # Errors
/// If one cannot be started.
pub fn run(place: &Place, jobs: Vec<Job>, observe: &mut dyn FnMut(&Outcome)) -> Result<Results, String> {
    let mut waiting = jobs;
    let mut running: Vec<Running> = Vec::new();
    let mut results = Results::default();
    while !(waiting.is_empty() && running.is_empty()) {
        while let Some(at) = next(&waiting, &running, place.at_once_max) {
            running.push(start(place, waiting.remove(at))?);
        }
        match processes::wait(Duration::from_secs(1)) {
            Event::Interrupted => {
                end_all(&running);
                let cut = running.drain(..).map(|one| one.outcome(End::Interrupted));
                results.outcomes.extend(cut);
                results.is_interrupted = true;
                return Ok(results);
            }
            Event::Ended | Event::Nothing => {}
        }
        for ended in processes::ended() {
            let Some(at) = running.iter().position(|one| one.pid == ended.pid) else { continue };
            let one = running.remove(at);
            let end = match (one.is_overdue, ended.is_success) {
                (true, _) => End::TimedOut,
                (false, true) => End::Passed,
                (false, false) => End::Failed,
            };
            if end == End::Failed
                && let Some(again) = one.again(place)?
            {
                running.push(again);
                continue;
            }
            let outcome = one.outcome(end);
            observe(&outcome);
            results.outcomes.push(outcome);
        }
        for one in running.iter_mut().filter(|one| !one.is_overdue && one.since.elapsed() > one.job.longest) {
            one.is_overdue = true;
            processes::signal_group(one.pid, Signal::KILL);
        }
    }
    Ok(results)
}

/// The job to start now, if there is room for one.
fn next(waiting: &[Job], running: &[Running], at_once_max: usize) -> Option<usize> {
    if running.is_empty() {
        // Those that may run beside others come first, so that nothing waits for one that measures.
        let beside = waiting.iter().position(|job| !job.alone);
        return beside.or((!waiting.is_empty()).then_some(0));
    }
    let has_room = running.len() < at_once_max && running.iter().all(|one| !one.job.alone);
    if has_room { waiting.iter().position(|job| !job.alone) } else { None }
}

fn start(place: &Place, job: Job) -> Result<Running, String> {
    let log = place.logs.join(format!("{}.log", job.name));
    let output = File::create(&log).map_err(|error| cannot_start(&job.name, &error))?;
    let pid = launch(place, &job, &job.script, &output)?;
    Ok(Running { job, pid, since: Instant::now(), log, is_overdue: false, first: None })
}

fn launch(place: &Place, job: &Job, script: &str, output: &File) -> Result<u32, String> {
    let prepare = |command: &mut std::process::Command| {
        command.current_dir(&place.root).env("PUSHLAB", &job.program);
        command.envs(place.variables.iter().map(|(name, value)| (name, value)));
    };
    processes::start(script, prepare, output).map_err(|error| cannot_start(&job.name, &error))
}

fn cannot_start(name: &str, error: &std::io::Error) -> String {
    format!("cannot start {name}: {error}")
}

impl Running {
    /// Starts what failed again, if it may be: in its own place, so under the same load, and within its own time.
    fn again(&self, place: &Place) -> Result<Option<Self>, String> {
        let second = || timing::second(&self.output(), &self.job.timed);
        let Some((script, first)) = self.first.is_none().then(second).flatten() else { return Ok(None) };
        let name = &self.job.name;
        let output = File::options().append(true).open(&self.log).map_err(|error| cannot_start(name, &error))?;
        let pid = launch(place, &self.job, &script, &output)?;
        let (job, since, log) = (self.job.clone(), self.since, self.log.clone());
        Ok(Some(Self { job, pid, since, log, is_overdue: false, first: Some(first) }))
    }

    fn outcome(self, end: End) -> Outcome {
        let output = self.output();
        let Judgement { end, counts, unstable } = timing::judge(end, &output, self.first);
        Outcome { name: self.job.name, end, counts, unstable, took: self.since.elapsed(), log: self.log }
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

/// Asks what is running to end, so that scripts can clean up, then kills what is left.
fn end_all(running: &[Running]) {
    for one in running {
        processes::signal_group(one.pid, Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    while !processes::descendants().is_empty() && Instant::now() < deadline {
        processes::wait(Duration::from_millis(50));
        processes::ended();
    }
    processes::kill_descendants(LINGER_MAX);
}

/// Processes that outlive their suites; they are killed.
pub fn leftovers() -> Vec<String> {
    let deadline = Instant::now() + LINGER_MAX;
    loop {
        processes::ended();
        let left = processes::descendants();
        if left.is_empty() {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            processes::kill_descendants(LINGER_MAX);
            return left.into_iter().map(|(pid, line)| format!("process {pid}: {line}")).collect();
        }
        processes::wait(Duration::from_millis(50));
    }
}
