//! One worker: runs a plan through its phases and measures it.
//!
//! Threads: the event loops of the clients; with them, where the plan asks for one, the prober, the collector of
//! an upstream run, and the back end or the feeder of a feed; and the calling thread, which only watches the clock.

mod silence;

use crate::backend::{Announcement, BackEnd, BackEndError, Feed, FeedReport};
use crate::broadcasts::Broadcasts;
use crate::browser::{BrowserError, Pages, report_every_ms};
use crate::clients::{self, LoopConfig};
use crate::dial::Dialler;
use crate::prober::{self, EchoPath, OverFrames, OverPosts, ProberConfig, ProberProgress, ProberReport};
use crate::record::{ErrorTally, Record};
use crate::run_state::{RunState, Timeline};
use crate::seconds::SecondTable;
use crate::tls::BadCertificate;
use crate::transport::foreign::{Foreign, TwoWay};
use crate::transport::planned::{in_plans_dialect, of_clients, of_feeder};
use crate::transport::websocket::WebSocket;
use crate::transport::{Receiver, ReceiverVisitor, Requests, Sending, with_receiver};
use pushlab_os::clock::{CpuClock, monotonic_ns, sleep_until};
use pushlab_os::{descriptors, limits};
use pushlab_stats::histogram::Histogram;
use pushlab_wire::stamp::RESOLUTION_NS;
use pushlab_workload::audience::Audience;
use pushlab_workload::check::Schedule;
use pushlab_workload::messages::{Progress, WorkerEvent};
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::plan_checks::BadPlan;
use pushlab_workload::result::{ClientBytes, ErrorCount, PhaseMark, WorkerResult};
use pushlab_workload::roles::Roles;
use pushlab_workload::traffic::Traffic;
use serde::Deserialize as _;
use silence::{Activity, Silence};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

const MS: u64 = 1_000_000;
/// How often the worker looks whether a phase that waits for others is over.
const WATCH_NS: u64 = 2 * MS;
/// How often it looks whether its threads still live, while it waits for an instant.
const WATCH_THREADS_NS: u64 = 250 * MS;
/// Time for every loop to learn the phases before the first of them begins.
const LEAD_NS: u64 = 20 * MS;

/// Longest time by which a silent subject prolongs the drain, ns: by then the lab has judged it.
const SILENT_DRAIN_NS: u64 = 30_000 * MS;
/// Pings further apart, ns, say too little of a silence.
const PINGS_HEARD_NS: u64 = 1_000 * MS;

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Standard input holds no plan.
    #[error("the plan cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// See there.
    #[error("the plan cannot be run: {0}")]
    Plan(#[from] BadPlan),
    /// See there.
    #[error(transparent)]
    BackEnd(#[from] BackEndError),
    /// The back end's address is taken, or not ours.
    #[error("the back end cannot listen on {address}: {source}")]
    Listen {
        /// `backend_listen`.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Nothing was inherited, or something else.
    #[error("the worker was not given a listener at {address} as descriptor {descriptor}: {source}")]
    Inherit {
        /// `backend_listen`.
        address: SocketAddr,
        /// `backend_descriptor`.
        descriptor: i32,
        /// Why it is none.
        source: io::Error,
    },
    /// See there.
    #[error("the plan cannot be run: {0}")]
    Certificate(#[from] BadCertificate),
    /// Nobody came to the back end.
    #[error("the subject did not connect to the back end at {address} within {connect_ms} ms: is it told where it is?")]
    NoSubject {
        /// Where the back end listens.
        address: SocketAddr,
        /// Time waited.
        connect_ms: u64,
    },
    /// Too few clients.
    #[error(
        "{connected} of {clients} clients were subscribed after {connect_ms} ms{prober}; most frequent error: {error}"
    )]
    NotConnected {
        /// Subscribed clients.
        connected: u32,
        /// Clients of the plan, and the collector or feeder.
        clients: u32,
        /// Time waited.
        connect_ms: u64,
        /// Says so if the prober was missing.
        prober: &'static str,
        /// What went wrong most often.
        error: String,
    },
    /// See there.
    #[error("the clients' browser: {0}")]
    Browser(#[from] BrowserError),
    /// A thread's sockets failed.
    #[error("a thread of the load failed: {0}")]
    Thread(#[from] io::Error),
}

/// Reads a plan from `input`, runs it, and writes its events to `output`, a JSON text a line.
///
/// The last line is `done` or `failed`; returns whether it was the former.
///
/// # Errors
/// When `output` cannot be written.
pub fn serve(input: impl io::Read, mut output: impl Write) -> io::Result<bool> {
    let mut broken = None;
    let mut emit = |event: WorkerEvent| {
        let written = serde_json::to_writer(&mut output, &event).map_err(io::Error::from);
        let written = written.and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush());
        if let Err(error) = written {
            broken = Some(error);
        }
    };
    let plan = Plan::deserialize(&mut serde_json::Deserializer::from_reader(input)).map_err(WorkerError::Unreadable);
    let outcome = plan.and_then(|plan| run(&plan, &mut emit));
    let is_done = outcome.is_ok();
    emit(match outcome {
        Ok(result) => WorkerEvent::Done { result: Box::new(result) },
        Err(error) => WorkerEvent::Failed { reason: error.to_string() },
    });
    broken.map_or(Ok(is_done), Err)
}

/// Runs a plan. Phases and progress go to `emit` while it runs; the result is returned.
///
/// # Errors
/// See [`WorkerError`].
pub fn run(plan: &Plan, emit: &mut dyn FnMut(WorkerEvent)) -> Result<WorkerResult, WorkerError> {
    let listener = plan.backend_listen.map(|address| listen(plan, address)).transpose()?;
    run_with_listener(plan, listener, emit)
}

fn listen(plan: &Plan, address: SocketAddr) -> Result<TcpListener, WorkerError> {
    match plan.backend_descriptor {
        None => TcpListener::bind(address).map_err(|source| WorkerError::Listen { address, source }),
        Some(descriptor) => {
            inherited(descriptor, address).map_err(|source| WorkerError::Inherit { address, descriptor, source })
        }
    }
}

/// A listener that whoever started this process left open for it.
fn inherited(descriptor: i32, address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::from(descriptors::inherited(descriptor)?);
    if listener.local_addr()? == address { Ok(listener) } else { Err(io::ErrorKind::AddrNotAvailable.into()) }
}

/// [`run`] with a listener for the back end that the caller has bound.
///
/// # Errors
/// See [`WorkerError`].
pub fn run_with_listener(
    plan: &Plan,
    listener: Option<TcpListener>,
    emit: &mut dyn FnMut(WorkerEvent),
) -> Result<WorkerResult, WorkerError> {
    let roles = Roles::of(plan, limits::descriptors().soft)?;
    let dialler = Dialler::of(plan)?;
    let back_end = match (roles.feed_bytes, listener) {
        (Some(payload_bytes), Some(listener)) => Some(start_back_end(plan, &roles, payload_bytes, listener)?),
        _ => None,
    };
    let pages = match plan.clients_in.is_browser().then(|| Pages::start(plan)).transpose() {
        Ok(pages) => pages,
        Err(error) => {
            back_end.map(BackEnd::stop).transpose()?;
            return Err(error.into());
        }
    };
    let run = Run::start(plan, &roles, &dialler, back_end, pages)?;
    let next_ns = run.state.origin_ns() + 1_000 * MS;
    let mut watch = Watch {
        run: &run,
        emit,
        next_ns,
        phases: Vec::new(),
        unsubscribed: 0,
        silence: Silence::new(run.state.origin_ns()),
        roles: &roles,
        hears_pings: plan.prober.as_ref().is_some_and(|prober| prober.interval_ms * MS <= PINGS_HEARD_NS),
    };
    watch.enter(Phase::Connect, run.state.origin_ns());
    if let Err(why) = watch.wait_for_clients(plan, &roles) {
        return Err(run.give_up(plan, why));
    }
    let timeline = timeline(plan, &roles);
    let load_count = timeline.schedule.as_ref().map_or(0, Schedule::load_count);
    run.state.begin(timeline.clone(), if roles.audience.is_ranked() { load_count } else { 0 });
    run.begin_feed(&timeline);
    let Some(cpu_load_ns) = watch.go_through(&timeline, plan.clients) else { return Err(run.give_up_broken()) };
    let after_ns = watch.drain(plan, &roles, &timeline);
    run.state.set_after(after_ns);
    watch.enter(Phase::After, after_ns);
    let end_ns = after_ns + plan.phases.after_ms * MS;
    watch.sleep_until(end_ns);
    let (phases, unsubscribed) = (watch.phases, watch.unsubscribed);
    run.state.set_end(end_ns);
    let mut result = run.finish(&roles, load_count)?;
    (result.phases, result.end_ns, result.cpu_load_ns) = (phases, end_ns, cpu_load_ns);
    result.unsubscribed = if may_starve(plan, &roles) { unsubscribed } else { 0 };
    Ok(result)
}

fn start_back_end(
    plan: &Plan,
    roles: &Roles,
    payload_bytes: u32,
    listener: TcpListener,
) -> Result<BackEnd, WorkerError> {
    let interval_us = match plan.scenario {
        pushlab_workload::scenario::Scenario::Feed { interval_us, .. } => interval_us,
        _ => 0,
    };
    let count = roles.pacing(plan, 0).map_or(0, |pacing| pacing.count);
    let back_end =
        BackEnd::start(listener, Announcement { interval_us, count, payload_bytes, has_receipt: plan.receipts })?;
    let deadline = monotonic_ns() + plan.phases.connect_ms * MS;
    while back_end.subjects() == 0 {
        if monotonic_ns() >= deadline {
            let (address, connect_ms) = (back_end.address(), plan.phases.connect_ms);
            back_end.stop()?;
            return Err(WorkerError::NoSubject { address, connect_ms });
        }
        sleep_until(monotonic_ns() + WATCH_NS);
    }
    Ok(back_end)
}

/// Whether clients may have to wait for a connection for as long as others keep theirs.
fn may_starve(plan: &Plan, roles: &Roles) -> bool {
    roles.hosts.is_some() || plan.clients_in.is_browser()
}

/// Time for everybody to learn the phases: pages do with the answer to their next report but one at the latest, and
/// hidden ones report once a second.
fn lead_ns(plan: &Plan, roles: &Roles) -> u64 {
    if !plan.clients_in.is_browser() || roles.payload.is_none() {
        return LEAD_NS;
    }
    let every_ms = report_every_ms(plan.clients_in.pages);
    LEAD_NS + 2 * MS * if plan.clients_in.hidden { every_ms.max(1_000) } else { every_ms }
}

fn timeline(plan: &Plan, roles: &Roles) -> Timeline {
    let round = |ns: u64| ns.next_multiple_of(RESOLUTION_NS);
    let idle_ns = round(monotonic_ns() + lead_ns(plan, roles));
    let warm_up_ns = idle_ns + plan.phases.idle_ms * MS;
    let load_ns = warm_up_ns + plan.phases.warm_up_ms * MS;
    let load_end_ns = load_ns + plan.phases.load_ms * MS;
    let schedule = match roles.pacing(plan, warm_up_ns) {
        Some(pacing) => {
            let load_from = pacing.first_at(load_ns);
            Some(Schedule::Open { pacing, load_from })
        }
        None if roles.is_closed_loop() => {
            let share = roles.warp.clone().map(|warp| (warm_up_ns, warp));
            Some(Schedule::Closed { load_ns, load_end_ns, share })
        }
        None => None,
    };
    Timeline { idle_ns, warm_up_ns, load_ns, load_end_ns, schedule }
}

type LoopThread = JoinHandle<io::Result<Record>>;

/// The threads of a run.
struct Run {
    state: Arc<RunState>,
    loops: Vec<LoopThread>,
    collector: Option<LoopThread>,
    /// In no scenario together with a collector: either has the place after the clients' loops.
    feeder: Option<LoopThread>,
    /// Clients of the collector or the feeder.
    instruments: u32,
    prober: Option<(JoinHandle<io::Result<ProberReport>>, Arc<ProberProgress>)>,
    back_end: Option<BackEnd>,
}

struct SpawnLoop(LoopConfig, Arc<RunState>);

impl ReceiverVisitor for SpawnLoop {
    type Output = io::Result<LoopThread>;
    fn visit<R: Receiver>(self) -> Self::Output {
        let Self(config, state) = self;
        let name = format!("clients-{}", config.progress);
        std::thread::Builder::new().name(name).spawn(move || clients::run::<R>(config, state))
    }
}

impl Run {
    fn start(
        plan: &Plan,
        roles: &Roles,
        dialler: &Dialler,
        back_end: Option<BackEnd>,
        pages: Option<Pages>,
    ) -> io::Result<Self> {
        let instruments = u32::from(roles.collector.is_some() || roles.feeder.is_some());
        let publishers = roles.feeder.as_ref().and_then(|feeder| feeder.publishers);
        let broadcasts = publishers.map(|publishers| Broadcasts::new(publishers, plan.clients)).transpose()?;
        let state = Arc::new(RunState::new(monotonic_ns(), roles.loops + instruments).with_broadcasts(broadcasts));
        state.count_thread(CpuClock::of_this_thread());
        if let Some(cpu) = back_end.as_ref().and_then(BackEnd::cpu) {
            state.count_thread(cpu);
        }
        let mut run = Self {
            state,
            loops: Vec::new(),
            instruments: roles.instruments(),
            collector: None,
            feeder: None,
            prober: None,
            back_end,
        };
        if let Err(error) = run.spawn_all(plan, roles, dialler, pages) {
            run.state.set_end(0);
            return Err(error);
        }
        Ok(run)
    }

    fn spawn_all(&mut self, plan: &Plan, roles: &Roles, dialler: &Dialler, mut pages: Option<Pages>) -> io::Result<()> {
        let instruments = dialler.clone().leaving_from(plan.instruments_from);
        for lane in 0..roles.loops {
            let config = loop_config(plan, roles, dialler, lane);
            if let Some(pages) = pages.take() {
                let (plan, state) = (plan.clone(), Arc::clone(&self.state));
                let work = move || pages.run(&plan, config, state);
                self.loops.push(std::thread::Builder::new().name("browser".into()).spawn(work)?);
                continue;
            }
            self.loops.push(with_receiver(
                plan.transport,
                plan.speaks.as_ref(),
                SpawnLoop(config, Arc::clone(&self.state)),
            )?);
        }
        let instrument = |requests| LoopConfig {
            hosts: None,
            clients: 1,
            lane: 0,
            lanes: 1,
            progress: roles.loops as usize,
            requests,
            traffic: Traffic::Silent,
            payload: None,
            audience: Audience::Nobodys,
            publishers: 0,
            ..loop_config(plan, roles, &instruments, 0)
        };
        if let Some(audience) = roles.collector.clone() {
            let channel = plan.upstream_channel();
            let requests = in_plans_dialect(Requests::new(&plan.target, &channel, &channel, 0), plan, None);
            let spawn = SpawnLoop(LoopConfig { audience, ..instrument(requests) }, Arc::clone(&self.state));
            self.collector = Some(match &plan.speaks {
                None => spawn.visit::<WebSocket>()?,
                speaks => with_receiver(plan.transport, speaks.as_ref(), spawn)?,
            });
        }
        if let Some(feeder) = &roles.feeder {
            let config = LoopConfig {
                clients: feeder.clients(),
                traffic: feeder.traffic(),
                payload: Some(feeder.payload.clone()),
                ..instrument(of_feeder(plan))
            };
            self.feeder =
                Some(with_receiver(plan.transport, plan.speaks.as_ref(), SpawnLoop(config, Arc::clone(&self.state)))?);
        }
        if let Some(prober) = &plan.prober {
            let channel = plan.prober_channel();
            let config = ProberConfig {
                dialler: instruments,
                requests: in_plans_dialect(
                    Requests::new(&plan.target, &channel, &channel, 0),
                    plan,
                    Some(Sending::Echo),
                ),
                interval_ns: prober.interval_ms * MS,
                seed: plan.seed ^ 0x70_72_6f_62_65_72,
            };
            let start = match (plan.pings_in_frames(), &plan.speaks) {
                (false, _) => spawn_prober::<OverPosts>,
                (true, None) => spawn_prober::<OverFrames<WebSocket>>,
                (true, Some(_)) => spawn_prober::<OverFrames<Foreign<TwoWay>>>,
            };
            self.prober = Some(start(config, Arc::clone(&self.state))?);
        }
        Ok(())
    }

    fn begin_feed(&self, timeline: &Timeline) {
        if let (Some(back_end), Some(Schedule::Open { pacing, load_from })) = (&self.back_end, &timeline.schedule) {
            let (pacing, count_from) = (pacing.clone(), *load_from);
            back_end.begin(Feed { pacing, count_from, origin_ns: self.state.origin_ns() });
        }
    }

    fn published(&self) -> u64 {
        self.back_end.as_ref().map_or_else(|| self.state.sum(|p| &p.published), BackEnd::published)
    }

    /// The collector or the feeder, if there is one.
    fn instrument(&self) -> Option<&LoopThread> {
        self.collector.as_ref().or(self.feeder.as_ref())
    }

    /// Clients subscribed now, and whether the collector or feeder is, if there is one.
    fn subscribed(&self) -> (u32, bool) {
        let instrument = self.instrument().map(|_| self.state.loop_progress(self.loops.len()));
        let instruments = instrument.map_or(0, |progress| progress.subscribed.load(Ordering::Relaxed));
        // The instrument's first: a client that comes in between is none.
        (self.state.subscribed().saturating_sub(instruments), instruments >= self.instruments)
    }

    fn is_prober_connected(&self) -> bool {
        self.prober.as_ref().is_none_or(|(_, progress)| progress.is_connected.load(Ordering::Relaxed))
    }

    fn has_dead_thread(&self) -> bool {
        self.loops.iter().chain(self.instrument()).any(JoinHandle::is_finished)
            || self.prober.as_ref().is_some_and(|(thread, _)| thread.is_finished())
    }

    /// Ends all threads and puts their measurements together.
    fn join(self) -> io::Result<(Record, ProberReport, Option<FeedReport>)> {
        let mut record = Record::default();
        for thread in self.loops {
            record.merge(join(thread)?);
        }
        if let Some(thread) = self.collector {
            record.merge(without_traffic(join(thread)?));
        }
        if let Some(thread) = self.feeder {
            let mut fed = without_traffic(join(thread)?);
            // Where subscribers cannot choose, the feeder is one too.
            (fed.result.unknown, fed.result.gaps) = (0, 0);
            record.merge(fed);
        }
        let prober = self.prober.map_or_else(|| Ok(ProberReport::default()), |(thread, _)| join(thread))?;
        let feed = self.back_end.map(BackEnd::stop).transpose()?;
        Ok((record, prober, feed))
    }

    fn give_up(self, plan: &Plan, why: NotYet) -> WorkerError {
        self.state.set_end(monotonic_ns());
        let clients = plan.clients + self.instruments;
        match self.join() {
            Err(error) => WorkerError::Thread(error),
            Ok((record, prober, _)) => {
                let mut errors: ErrorTally = record.errors;
                errors.merge(prober.errors);
                let error = errors.into_sorted().into_iter().next();
                WorkerError::NotConnected {
                    connected: why.connected,
                    clients,
                    connect_ms: plan.phases.connect_ms,
                    prober: if why.has_prober { "" } else { ", and the prober was not connected" },
                    error: error.map_or_else(
                        || "none, the server is silent".into(),
                        |(error, n)| format!("{error} ({n} times)"),
                    ),
                }
            }
        }
    }

    /// Ends everything after a thread has ended by itself; says why it did.
    fn give_up_broken(self) -> WorkerError {
        self.state.set_end(monotonic_ns());
        let unknown = || io::Error::other("it ended before the run did");
        WorkerError::Thread(self.join().err().unwrap_or_else(unknown))
    }

    fn finish(self, roles: &Roles, load_count: u64) -> io::Result<WorkerResult> {
        let state = Arc::clone(&self.state);
        let reported = self.back_end.as_ref().and_then(|back_end| back_end.wait_for_report(std::time::Duration::ZERO));
        let (record, prober, stopped) = self.join()?;
        let feed = reported.or(stopped);
        let Record { mut result, expected_in_rooms, mut errors } = record;
        result.seconds = state.with_seconds(SecondTable::finish);
        if let Some(feed) = feed {
            result.seconds.iter_mut().zip(&feed.seconds).for_each(|(second, sent)| second.published += sent);
            (result.published, result.lateness) = (feed.published, feed.lateness);
        }
        errors.merge(prober.errors);
        let errors = errors.into_sorted().into_iter().map(|(error, count)| ErrorCount { error, count }).collect();
        let scheduled = if roles.is_closed_loop() { result.published } else { load_count };
        let expected = result.published * roles.receivers + expected_in_rooms;
        Ok(WorkerResult {
            scheduled,
            unsent: scheduled.saturating_sub(result.published),
            expected,
            lost: expected.saturating_sub(result.delivered),
            reconnects: result.reconnects + prober.reconnects,
            errors,
            response_idle: prober.response_idle,
            response_load: prober.response_load,
            ..result
        })
    }
}

fn loop_config(plan: &Plan, roles: &Roles, dialler: &Dialler, lane: u32) -> LoopConfig {
    LoopConfig {
        dialler: dialler.clone(),
        hosts: roles.hosts,
        clients: plan.clients,
        lane,
        lanes: roles.loops,
        progress: lane as usize,
        requests: of_clients(plan, roles),
        traffic: roles.traffic,
        payload: roles.payload.clone(),
        audience: roles.audience.clone(),
        ignores_arrays: roles.feed_bytes.is_some(),
        publishers: roles.publishers,
        has_receipts: plan.receipts,
        connect_rate: plan.connect_rate,
        poll_interval_ns: plan.poll_interval_ms * MS,
        seed: plan.seed,
        handicap_ns: plan.handicap_us * 1_000,
    }
}

/// What an instrument measured, without what it sent and received: that is not the clients'.
fn without_traffic(record: Record) -> Record {
    let result = WorkerResult {
        bytes_sent: 0,
        bytes_received: 0,
        bytes_received_in_load: 0,
        bytes_whole: ClientBytes::default(),
        bytes_load: ClientBytes::default(),
        requests: 0,
        connections_opened: 0,
        connect: Histogram::default(),
        ..record.result
    };
    Record { result, ..record }
}

type ProberThread = (JoinHandle<io::Result<ProberReport>>, Arc<ProberProgress>);

fn spawn_prober<P: EchoPath>(config: ProberConfig, state: Arc<RunState>) -> io::Result<ProberThread> {
    let progress = Arc::new(ProberProgress::default());
    let shared = Arc::clone(&progress);
    let work = move || prober::run::<P>(config, &state, &shared);
    Ok((std::thread::Builder::new().name("prober".into()).spawn(work)?, progress))
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Deliveries that the load phase is to make; `None` in a closed loop, where nobody knows beforehand.
fn scheduled_deliveries(roles: &Roles, timeline: &Timeline) -> Option<u64> {
    match (&timeline.schedule, roles.rooms()) {
        (None, _) => Some(0),
        (Some(Schedule::Closed { .. }), _) => None,
        (Some(Schedule::Open { pacing, load_from }), Some(rooms)) => {
            Some(rooms.deliveries(*load_from..pacing.count, pacing))
        }
        (Some(schedule), None) => Some(schedule.load_count() * roles.receivers),
    }
}

/// Who is missing at the end of the connect phase.
struct NotYet {
    connected: u32,
    has_prober: bool,
}

/// The calling thread's view: it sleeps, announces phases and reports progress.
struct Watch<'a> {
    run: &'a Run,
    emit: &'a mut dyn FnMut(WorkerEvent),
    next_ns: u64,
    phases: Vec<PhaseMark>,
    /// Clients that were not subscribed when the load began.
    unsubscribed: u32,
    silence: Silence,
    roles: &'a Roles,
    /// Whether the prober pings so often that its answers say whether the subject is silent.
    hears_pings: bool,
}

impl Watch<'_> {
    fn enter(&mut self, phase: Phase, t_ns: u64) {
        self.phases.push(PhaseMark { phase, t_ns });
        (self.emit)(WorkerEvent::Phase { phase, t_ns });
    }

    /// Sleeps, and reports progress once a second.
    fn sleep_until(&mut self, instant_ns: u64) {
        while self.next_ns <= instant_ns {
            sleep_until(self.next_ns);
            self.next_ns += 1_000 * MS;
            let run = self.run;
            let (latency_median_ns, latency_p99_ns) = run.state.with_seconds(|seconds| seconds.latest_latency());
            let outstanding = self.outstanding();
            let silent_ms = self.silent_ns(outstanding) / MS;
            (self.emit)(WorkerEvent::Progress(Progress {
                connected: run.subscribed().0,
                published: run.published(),
                delivered: run.state.sum(|p| &p.delivered),
                latency_median_ns,
                latency_p99_ns,
                silent_ms,
                outstanding,
            }));
        }
        sleep_until(instant_ns);
    }

    /// How long nothing has come from the subject although load was due, ns.
    fn silent_ns(&mut self, outstanding: u64) -> u64 {
        let run = self.run;
        let prober = run.prober.as_ref().filter(|_| self.hears_pings);
        let activity = Activity {
            delivered: run.state.sum(|p| &p.delivered),
            subscribed: run.subscribed().0,
            unanswered: prober.map(|(_, progress)| progress.unanswered.load(Ordering::Relaxed)),
        };
        self.silence.observe(monotonic_ns(), activity, outstanding, |from_ns| run.state.timeline()?.due_from(from_ns))
    }

    fn is_silent(&mut self) -> bool {
        let outstanding = self.outstanding();
        self.silent_ns(outstanding) > 0
    }

    /// Deliveries that what was published so far is still to make, or that were lost.
    fn outstanding(&self) -> u64 {
        let (published, delivered) = (self.run.published(), self.run.state.sum(|p| &p.delivered));
        let schedule = self.run.state.timeline().and_then(|timeline| timeline.schedule.as_ref());
        let expected = match (self.roles.rooms(), schedule) {
            (Some(rooms), Some(Schedule::Open { pacing, .. })) => rooms.deliveries(0..published, pacing),
            _ => published * self.roles.receivers,
        };
        expected.saturating_sub(delivered)
    }

    /// Waits until all are subscribed. Where a host's connections are limited, those who wait for one may never be:
    /// the run goes on when nobody else is missing, or at the end of the time.
    fn wait_for_clients(&mut self, plan: &Plan, roles: &Roles) -> Result<(), NotYet> {
        let run = self.run;
        let deadline = run.state.origin_ns() + plan.phases.connect_ms * MS;
        loop {
            let ((subscribed, has_instrument), has_prober) = (run.subscribed(), run.is_prober_connected());
            let is_late = monotonic_ns() >= deadline;
            let is_enough = is_late && may_starve(plan, roles) && subscribed > 0;
            let is_full = subscribed + run.state.held_back() >= plan.clients;
            if (is_full || is_enough) && has_instrument && has_prober {
                return Ok(());
            }
            if is_late || run.has_dead_thread() {
                return Err(NotYet { connected: run.state.subscribed(), has_prober });
            }
            self.sleep_until(monotonic_ns() + WATCH_NS);
        }
    }

    /// Idle, warm-up and load; returns the CPU time of the load, or nothing if a thread has ended meanwhile.
    fn go_through(&mut self, timeline: &Timeline, clients: u32) -> Option<u64> {
        let mut cpu = [0; 2];
        for (phase, t_ns) in [
            (Phase::Idle, timeline.idle_ns),
            (Phase::WarmUp, timeline.warm_up_ns),
            (Phase::Load, timeline.load_ns),
            (Phase::Drain, timeline.load_end_ns),
        ] {
            while monotonic_ns() < t_ns {
                self.sleep_until(t_ns.min(monotonic_ns() + WATCH_THREADS_NS));
                if self.run.has_dead_thread() {
                    return None;
                }
            }
            match phase {
                Phase::Load => {
                    cpu[0] = self.run.state.cpu_ns();
                    self.unsubscribed = clients.saturating_sub(self.run.subscribed().0);
                }
                Phase::Drain => cpu[1] = self.run.state.cpu_ns(),
                _ => {}
            }
            self.enter(phase, t_ns);
        }
        Some(cpu[1].saturating_sub(cpu[0]))
    }

    /// Waits for what is under way; returns when the drain ended. A subject that is silent is waited for longer, until
    /// it is known whether it hangs: what it lost in a run that ends before would be taken for mere loss.
    fn drain(&mut self, plan: &Plan, roles: &Roles, timeline: &Timeline) -> u64 {
        let state = &self.run.state;
        let begun = monotonic_ns();
        let deadline = begun + plan.phases.drain_ms * MS;
        // Who ends the drain after a stall wants to know of losses alone.
        let longest = deadline + if plan.drain_stall_ms.is_none() { SILENT_DRAIN_NS } else { 0 };
        // Loops report once a turn, and an idle one turns every 5 ms.
        let earliest = (begun + LEAD_NS).min(deadline);
        let scheduled = scheduled_deliveries(roles, timeline);
        let stall_ns = plan.drain_stall_ms.map(|ms| ms * MS);
        let (mut moved, mut moved_ns) = ((0, 0), begun);
        loop {
            let now = monotonic_ns();
            let (published, delivered) = (state.sum(|p| &p.load_published), state.sum(|p| &p.load_delivered));
            if moved != (published, delivered) {
                (moved, moved_ns) = ((published, delivered), now);
            }
            let is_stalled = stall_ns.is_some_and(|stall_ns| now >= moved_ns + stall_ns);
            let expected = scheduled.unwrap_or(published * roles.receivers);
            let is_complete = delivered >= expected;
            let prober = self.run.prober.as_ref();
            let unanswered = prober.map_or(0, |(_, progress)| progress.unanswered.load(Ordering::Relaxed));
            let is_over = now >= deadline && !(now < longest && self.is_silent());
            if is_over || is_stalled || (now >= earliest && is_complete && unanswered == 0) {
                return now;
            }
            let until = if now < deadline { (now + WATCH_NS).min(deadline) } else { now + WATCH_NS };
            self.sleep_until(until);
        }
    }
}
