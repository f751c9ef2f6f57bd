//! One run: a subject, a worker, probes on both, and what came of it.

use crate::following::{Ended, Follow};
use crate::link_watch::LinkWatch;
use crate::meeting::Beside;
use crate::observer::{LISTEN, RunObserver};
use crate::planned::{CHANNEL, Ends, named, plan, repetition};
use crate::planner::Side;
use crate::standing::{Setup, Stage, Standing};
use crate::target::{Launch, Target, outage_of};
use crate::topology::Topology;
use crate::wall_clock;
use crate::warming::Warming;
use crate::workers::{BackEnd, Local, RunWorkers};
use crate::workplace::Workplace;
use pushlab_analysis::warnings::{self, Evidence};
use pushlab_bus::{CrewError, Watcher, unique};
use pushlab_experiment::Experiment;
use pushlab_fleet::Load;
use pushlab_os::clock::monotonic_ns;
use pushlab_probe::runtime_log::RuntimeLog;
use pushlab_probe::{MachineLoad, Recording, Sampler, TcpActivity};
use pushlab_record::measure;
use pushlab_record::{CounterSample, KernelMemory, NetworkRecord, Outcome, PlannedRun, RunRecord, WarmUp};
use pushlab_subjects::named::Named;
use pushlab_watch::agent::Elsewhere;
use pushlab_watch::{CounterWatch, LatestUsage, MachineWatch, Phases, SAMPLE_INTERVAL, Watched, sample};
use pushlab_workload::phase::Periodic;
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::scenario::Scenario;
use std::time::{Duration, Instant};

/// The part of an observer that whoever waits for workers sees.
struct Waiting<'a>(&'a mut dyn RunObserver);

impl Watcher for Waiting<'_> {
    fn tell(&mut self, line: &str) {
        self.0.waits(line);
    }
    fn is_interrupted(&mut self) -> bool {
        self.0.is_interrupted()
    }
}

/// How a run's execution ended.
pub enum Executed {
    /// With a record, be it of a failure.
    Recorded(Box<RunRecord>),
    /// With a failure of the load, while the subject lived.
    LoadFailed(Box<RunRecord>),
    /// Before the load phase: the subject was not steady, and may be warmed up for longer.
    Cold {
        /// Of what there was until then.
        record: Box<RunRecord>,
        /// In numbers, for people.
        detail: String,
    },
    /// The observer wanted to stop; nothing is kept.
    Interrupted,
    /// There are too few workers or no agent, and no more will come; nothing is kept.
    Unmanned(CrewError),
}

impl Executed {
    fn unmanned(error: CrewError) -> Self {
        if matches!(error, CrewError::Interrupted) { Self::Interrupted } else { Self::Unmanned(error) }
    }
}

/// What was collected beside the worker's result.
#[derive(Default)]
struct Collected {
    subject: Option<Recording>,
    generator: Option<Recording>,
    counters: Vec<CounterSample>,
    runtime: RuntimeLog,
    machine: Option<MachineLoad>,
    subject_command: Vec<String>,
    plan: Option<Plan>,
    side_by_side: Option<u32>,
    baseline: Option<(u64, u64)>,
    kernel: Option<KernelMemory>,
    tcp: Option<TcpActivity>,
    network: Option<NetworkRecord>,
    unobserved: Option<String>,
    server_since: Option<u32>,
    warm_up: Option<WarmUp>,
    elsewhere: Option<Elsewhere>,
}

impl Collected {
    /// All of it as the record of a run that ended so.
    fn into_record(self, planned: &PlannedRun, outcome: Outcome) -> RunRecord {
        RunRecord {
            subject: self.subject.map(|r| r.samples).unwrap_or_default(),
            generator: self.generator.map(|r| r.samples).unwrap_or_default(),
            counters: self.counters,
            collections: self.runtime.collections,
            event_loop_lag: self.runtime.lags,
            memory_usage: self.runtime.memory,
            subject_command: self.subject_command,
            plan: self.plan,
            side_by_side: self.side_by_side,
            baseline: self.baseline,
            kernel: self.kernel,
            tcp: self.tcp,
            network: self.network,
            unobserved: self.unobserved,
            server_since: self.server_since,
            warm_up: self.warm_up,
            ..RunRecord::ended(planned.clone(), outcome)
        }
    }

    /// Takes what an agent saw of the subject, if one watched it. A run of which it did not tell all has failed.
    fn add_seen_from_beside(&mut self, target: &mut Target, ended: Ended) -> Ended {
        match (target.seen_from_beside(), &ended) {
            (Some(Ok(seen)), _) => {
                self.subject = Some(seen.recording);
                self.counters = seen.counters;
                (self.tcp, self.elsewhere) = (seen.tcp, seen.elsewhere);
                self.kernel = seen.kernel.filter(|_| self.side_by_side.is_none());
                ended
            }
            (Some(Err(reason)), Ended::Done(_)) => {
                Ended::Failed { reason, phase: Some(Phase::After), is_of_load: true }
            }
            (Some(Err(_)) | None, _) => ended,
        }
    }
}

/// Why a run came to nothing before its load began.
struct NotBegun {
    reason: String,
    /// Whether it was the load that failed, or an agent: one that went away may have been replaced when the run is tried
    /// again.
    is_of_load: bool,
}

impl From<String> for NotBegun {
    fn from(reason: String) -> Self {
        Self { reason, is_of_load: false }
    }
}

/// Executes one run of an experiment as it is for the run's cell, alone or beside others. Whatever goes wrong becomes a
/// record with its reason.
pub fn execute(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    standing: &mut Standing,
    mut beside: Option<Beside<'_>>,
    observer: &mut dyn RunObserver,
) -> Executed {
    let watcher = &mut Waiting(observer);
    if let Err(error) = place.workers.gather(watcher).and_then(|()| place.agents.gather(watcher)) {
        return Executed::unmanned(error);
    }
    let (started_at, start) = (wall_clock::now(), Instant::now());
    let mut collected = Collected::default();
    let ended = attempt(planned, experiment, place, standing, beside.as_mut(), observer, &mut collected)
        .unwrap_or_else(|NotBegun { reason, is_of_load }| Ended::Failed { reason, phase: None, is_of_load });
    let is_of_load = matches!(ended, Ended::Failed { is_of_load: true, .. });
    let mut cold = None;
    let (outcome, result) = match ended {
        Ended::Interrupted => return Executed::Interrupted,
        Ended::Done(result) => (Outcome::of(&result, &experiment.scenario), Some(*result)),
        Ended::Failed { reason, phase, .. } | Ended::Silent { reason, phase } => {
            (Outcome::Failed { reason, phase }, None)
        }
        Ended::Cold { detail } => {
            cold = Some(detail.clone());
            (Outcome::Failed { reason: detail, phase: Some(Phase::WarmUp) }, None)
        }
    };
    let missed = [&collected.subject, &collected.generator].into_iter().flatten().map(|r| r.ticks_missed).sum();
    let (mut machine, elsewhere) = (collected.machine, collected.elsewhere);
    let took_ms = start.elapsed().as_millis() as u64;
    let mut record = RunRecord { started_at, took_ms, result, ..collected.into_record(planned, outcome) };
    seen_from_outside(&mut record);
    let all_s = record.result.as_ref().map_or(0.0, |result| result.cpu_load_ns as f64 / 1e9);
    let mut known_s = place.workers.used_here_s(all_s);
    if let Some(beside) = beside {
        known_s += beside.end(warnings::used_s(&record, elsewhere.is_none()));
    }
    machine.iter_mut().for_each(|machine| machine.busy_s -= known_s);
    let evidence = Evidence {
        subject_cores: &place.pinning.subject,
        load_cores: if place.workers.are_here() { &place.pinning.load } else { &[] },
        load_cores_count: place.workers.seats(place.pinning.load.len()).cores,
        limits: &experiment.generator_limits,
        ticks_missed: missed,
        machine,
        // What others measure on it at the same time is not known.
        elsewhere: elsewhere.map(|machine| machine.load.filter(|_| record.side_by_side.is_none())),
    };
    record.warnings = warnings::of(&record, &evidence);
    match cold {
        Some(detail) => Executed::Cold { record: Box::new(record), detail },
        None if is_of_load => Executed::LoadFailed(Box::new(record)),
        None => Executed::Recorded(Box::new(record)),
    }
}

/// What a worker cannot see of a browser's clients is taken from the outside: the CPU time of the whole process tree,
/// and the connections by the server's own count.
fn seen_from_outside(record: &mut RunRecord) {
    let (Some(plan), Some(load)) = (&record.plan, record.phase_span(Phase::Load)) else { return };
    if !plan.clients_in.is_browser() {
        return;
    }
    let load_ns = load.1.saturating_sub(load.0) as f64;
    let cpu = measure::cpu_percent(&record.generator, load).map(|percent| (percent / 100.0 * load_ns) as u64);
    let accepted = measure::counter_rate(record, |counters| counters.accepted);
    let Some(result) = &mut record.result else { return };
    result.cpu_load_ns = cpu.unwrap_or(result.cpu_load_ns);
    result.connections_opened = accepted.map_or(0, |rate| (rate * load_ns / 1e9).round() as u64);
}

/// Starts what a run's cell asks for.
fn start(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    named: &Named,
    run: u64,
) -> Result<(Stage, Option<BackEnd>), NotBegun> {
    let prefix = place.logs.join(format!("{:05}", planned.order));
    let capture = place.captures.then(|| prefix.with_extension("pcapng"));
    let topology =
        Topology::make(planned, experiment, &place.pinning.load, place.workers.subject_address(), &prefix, capture)?;
    let has_back_end = experiment.scenario.has_back_end();
    let backend = has_back_end.then(|| place.workers.listen(run, &topology)).transpose();
    let backend = backend.map_err(|reason| of_workers(place, reason))?;
    let feed = backend.as_ref().map(|backend| (backend.address(), CHANNEL));
    let target = Target::start(Launch { named, planned, experiment, place, topology: &topology }, feed)?;
    Ok((Stage { topology, target, since: planned.order }, backend))
}

/// What went wrong with the workers of a run, of which those of a fleet may go away.
fn of_workers(place: &Workplace, reason: String) -> NotBegun {
    NotBegun { reason, is_of_load: !place.workers.are_here() }
}

fn attempt(
    planned: &PlannedRun,
    experiment: &Experiment,
    place: &Workplace,
    standing: &mut Standing,
    beside: Option<&mut Beside<'_>>,
    observer: &mut dyn RunObserver,
    collected: &mut Collected,
) -> Result<Ended, NotBegun> {
    let named = named(&planned.cell, experiment)?;
    let setup = Setup::of(planned, experiment)?;
    let run = unique().map_err(|error| error.to_string())?;
    let (stage, backend) = match setup.as_ref().and_then(|setup| standing.take(setup)) {
        Some(stage) => (stage, None),
        None => start(planned, experiment, place, &named, run)?,
    };
    let Stage { mut topology, mut target, since } = stage;
    collected.subject_command.clone_from(&target.command);
    collected.unobserved = target.unobserved().map(str::to_owned);
    collected.server_since = setup.is_some().then_some(since);
    let used = [LatestUsage::default(), LatestUsage::default()];
    let phases = Phases { repetition: repetition(planned, experiment), seed: planned.seed };
    let watch_subject = watch_subject(&mut target, &topology, &used[0], phases)?;
    let begin = monotonic_ns();
    if wait(Duration::from_millis(experiment.baseline_ms), observer) {
        return Ok(Ended::Interrupted);
    }
    collected.baseline = (experiment.baseline_ms > 0).then(|| (begin, monotonic_ns()));
    let mut seen = MachineWatch::of(target.process());
    let ends = ends(&target, &topology, backend.as_ref(), place);
    let side = beside.as_ref().map(|beside| beside.side);
    let cores = place.workers.seats(place.pinning.load.len()).cores as usize;
    collected.side_by_side = side.map(|side| side.of);
    let plan = Plan {
        is_told_to_begin: side.is_some(),
        turns: side.and_then(Side::turns),
        ..plan(planned, &named, experiment, &ends, cores)
    };
    let (mut load, plan) = begin_load(place, run, &plan, &topology, backend)?;
    collected.plan = Some(plan);
    let watch_generator = watch_generator(&load, &used[1], phases)?;
    let counters = target.watch_counters(&topology, experiment, phases)?;
    let (mut link, mut warming) = (LinkWatch::default(), Warming::default());
    let follow = Follow::of(planned, experiment, &used);
    let launch = Launch { named: &named, planned, experiment, place, topology: &topology };
    let mut on_phase = |target: &mut Target, phase, t_ns| {
        seen.phase(phase);
        target.phase(phase);
        link.phase(phase, t_ns, &experiment.phases, topology.network());
        if phase == Phase::Load && !outage_of(experiment).is_cut() {
            seen.subject = start_again(target, launch, watch_subject.as_ref(), counters.as_ref())?;
        }
        Ok(())
    };
    let ended = follow.to_the_end(&mut target, &mut load, beside, observer, &mut warming, &mut on_phase);
    (collected.machine, collected.tcp) = (seen.load, seen.tcp);
    let has_warm_up = experiment.scenario != Scenario::Idle && experiment.phases.warm_up_ms > 0;
    collected.warm_up = has_warm_up.then(|| warming.record(experiment));
    // The kernel's memory is the machine's, and so that of all runs that go side by side.
    collected.kernel = seen.kernel().filter(|_| side.is_none());
    collected.counters = counters.map(CounterWatch::finish).unwrap_or_default();
    collected.subject = watch_subject.map(Sampler::finish);
    let ended = collected.add_seen_from_beside(&mut target, ended);
    collected.generator = watch_generator.map(Sampler::finish);
    collected.runtime = target.runtime_log();
    drop(load);
    let kept = end(target, &ended, setup);
    // Not before: a server that stops waits for clients' farewells, which may still be under way.
    let counts_drain = collected.plan.as_ref().is_none_or(Plan::counts_drain);
    collected.network = topology.take_link().map(|ended| link.finish(ended, counts_drain));
    if let Some((setup, target)) = kept {
        standing.keep(setup, Stage { topology, target, since });
    }
    Ok(ended)
}

fn begin_load(
    place: &Workplace,
    run: u64,
    plan: &Plan,
    topology: &Topology,
    back_end: Option<BackEnd>,
) -> Result<(Load<RunWorkers>, Plan), NotBegun> {
    let local = Local { program: &place.program, cores: &place.pinning.load, topology };
    place.workers.begin(run, plan, &local, back_end).map_err(|reason| of_workers(place, reason))
}

/// Has the subject's processes sampled, where they can be seen.
fn watch_subject(
    target: &mut Target,
    topology: &Topology,
    used: &LatestUsage,
    phases: Phases,
) -> Result<Option<Sampler>, NotBegun> {
    let watched = target.watch(topology, used, phases);
    watched.map_err(|reason| NotBegun { reason, is_of_load: target.has_agent() })
}

/// Samples the generator's processes, where they are this machine's.
fn watch_generator(load: &Load<RunWorkers>, used: &LatestUsage, phases: Phases) -> Result<Option<Sampler>, String> {
    let pids = load.fleet().ids();
    let (what, used) = (Periodic::GeneratorSamples, used.clone());
    let delay = phases.delay(what, SAMPLE_INTERVAL);
    let watched = Watched { pids: &pids, ports: Vec::new(), what, delay, are_told_only: false };
    (!pids.is_empty()).then(|| sample(watched, move |sample| used.note(sample))).transpose()
}

/// Where the load finds the server, and the server its back end.
fn ends(target: &Target, topology: &Topology, backend: Option<&BackEnd>, place: &Workplace) -> Ends {
    Ends {
        target: target.reached.clone(),
        backend_listen: backend.map(BackEnd::address),
        backend_descriptor: backend.map(BackEnd::descriptor),
        sources: topology.sources(),
        instruments_from: topology.instruments_from(),
        prober_core: place.pinning.prober.filter(|_| place.workers.are_here()),
    }
}

/// Starts the server of a storm again. Whatever watches it watches the new process, which is returned, from then on.
fn start_again(
    target: &mut Target,
    launch: Launch<'_>,
    sampler: Option<&Sampler>,
    counters: Option<&CounterWatch>,
) -> Result<Option<u32>, String> {
    counters.into_iter().for_each(CounterWatch::pause);
    target.start_again(launch)?;
    sampler.into_iter().zip(target.process()).for_each(|(sampler, process)| sampler.follow(process));
    counters.into_iter().for_each(CounterWatch::begin_anew);
    Ok(target.process())
}

/// Ends the server of a run, unless another run of its setup is to find it as it is. One that hangs would not heed a
/// request to end.
fn end(target: Target, ended: &Ended, setup: Option<Setup>) -> Option<(Setup, Target)> {
    match (ended, setup) {
        (Ended::Done(_), Some(setup)) => return Some((setup, target)),
        (Ended::Silent { .. }, _) => drop(target),
        _ => target.stop(),
    }
    None
}

/// Waits; `true` when the observer wants to stop.
fn wait(length: Duration, observer: &mut dyn RunObserver) -> bool {
    let end = Instant::now() + length;
    while Instant::now() < end {
        if observer.is_interrupted() {
            return true;
        }
        std::thread::sleep(LISTEN.min(end.saturating_duration_since(Instant::now())));
    }
    false
}
