//! One run of several workers: when everybody goes on, how far the run is, and what came of it.
//!
//! The coordinator is told what workers say, in whatever order it comes, and the time. It answers with orders to them
//! and events for whoever started the run. How messages travel is not its business.

use crate::check::Schedule;
use crate::messages::{LoadError, Message, Order, Progress, RunEvent, WorkerState};
use crate::plan::{Phase, Plan};
use crate::result::{LoadResult, Part, PhaseMark, Second};
use crate::roles::Roles;
use crate::seconds::SecondTable;
use crate::segment::Segment;
use crate::silence::{Activity, Silence};
use crate::timeline::Timeline;
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Time for every loop to learn the phases before the first of them begins.
const LEAD_NS: u64 = 20 * MS;
/// The same with some on other machines, and time for what they say to come.
const FAR_LEAD_NS: u64 = 200 * MS;
/// How often a phase that waits for others is looked at, if nothing is heard.
const WATCH_NS: u64 = 2 * MS;
/// Longest time by which a silent subject prolongs the drain, ns: by then the lab has judged it.
const SILENT_DRAIN_NS: u64 = 30 * S;
/// How long nothing may have moved, ns, before what a server calls gone is no longer waited for.
const QUIET_NS: u64 = S;
/// Pings further apart, ms, say too little of a silence.
const PINGS_HEARD_MS: u64 = 1_000;
/// Time for a worker to get ready, ns: to start, and to learn the coordinator's clock. Who waits for more has more.
const PREPARE_NS: u64 = 10 * S;
/// Longest time between two words of a worker, ns, which speaks at least once a second: one that hangs is told within
/// 10 s.
const WORD_NS: u64 = 8 * S;
/// Time for a worker to say what it measured, ns: up to 64 MiB.
const RESULT_NS: u64 = 10 * S;
/// Whoever was not asked for longer, ns, cannot tell who was silent meanwhile: the machine slept, or this process did.
const ASKED_NS: u64 = 3 * S;

/// What the coordinator wants done.
#[derive(Debug)]
pub enum Output {
    /// Tell a worker.
    Order(usize, Order),
    /// Tell whoever started the run.
    Event(RunEvent),
}

#[derive(Debug)]
struct Worker {
    is_prepared: bool,
    state: WorkerState,
    heard_ns: u64,
    /// Whether it has said what it measured.
    has_told: bool,
    /// Seconds that it has told, and those that it says it has.
    seconds: usize,
    seconds_told: usize,
}

impl Worker {
    fn is_done(&self) -> bool {
        self.has_told && self.seconds >= self.seconds_told
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preparing,
    Connecting,
    /// Everybody is connected, and others go beside this run: it begins when it is told to.
    Ready,
    /// The phases up to the drain, of which so many have begun.
    Running(usize),
    Draining {
        begun_ns: u64,
        /// Publications and deliveries, and since when they are so many.
        moved: (u64, u64),
        moved_ns: u64,
    },
    Ending {
        end_ns: u64,
    },
    /// Too few clients: what went wrong is asked for.
    GivingUp {
        since_ns: u64,
        connected: u32,
        has_prober: bool,
    },
    Over,
}

/// Coordinates the workers of one run.
#[derive(Debug)]
pub struct Coordinator {
    plan: Plan,
    roles: Roles,
    workers: Vec<Worker>,
    /// What workers have said that they measured.
    whole: Part,
    lead_ns: u64,
    stage: Stage,
    begun_ns: u64,
    asked_ns: u64,
    origin_ns: u64,
    timeline: Option<Timeline>,
    phases: Vec<PhaseMark>,
    table: SecondTable,
    seconds: Vec<Second>,
    silence: Silence,
    next_progress_ns: u64,
    outputs: VecDeque<Output>,
}

impl Coordinator {
    /// Begins a run now; the segments are those of its workers.
    pub fn new(plan: Plan, roles: Roles, segments: &[Segment], now: u64) -> Self {
        let prepare = |(worker, segment): (usize, &Segment)| {
            Output::Order(worker, Order::Prepare { plan: Box::new(plan.clone()), segment: *segment })
        };
        let worker = |_| Worker {
            is_prepared: false,
            state: WorkerState::default(),
            heard_ns: now,
            has_told: false,
            seconds: 0,
            seconds_told: 0,
        };
        Self {
            outputs: segments.iter().enumerate().map(prepare).collect(),
            workers: segments.iter().map(worker).collect(),
            whole: Part::default(),
            lead_ns: LEAD_NS,
            stage: Stage::Preparing,
            begun_ns: now,
            asked_ns: now,
            origin_ns: now,
            timeline: None,
            phases: Vec::new(),
            table: SecondTable::new(segments.len() as u32),
            seconds: Vec::new(),
            silence: Silence::new(now),
            next_progress_ns: u64::MAX,
            plan,
            roles,
        }
    }

    /// The same for workers on other machines.
    pub fn with_workers_far_away(self) -> Self {
        Self { lead_ns: FAR_LEAD_NS, ..self }
    }

    /// Whether the run has ended, one way or the other.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// A worker says something.
    pub fn heard(&mut self, worker: usize, message: Message, now: u64) {
        let Some(of) = self.workers.get_mut(worker) else { return };
        of.heard_ns = now;
        match message {
            Message::Prepared => of.is_prepared = true,
            Message::State(state) if state.t_ns >= of.state.t_ns => of.state = state,
            Message::State(_) => {}
            Message::Second { index, part } => {
                of.seconds += 1;
                self.table.hand_in(index, part.published, part.latency.as_deref(), part.latency_own.as_deref());
                while let Some((_, second)) = self.table.take_closed() {
                    self.seconds.push(second.summary());
                }
            }
            // Merged at once: a thousand parts would take some gigabytes.
            Message::Done { part, seconds } if !of.has_told => {
                (of.has_told, of.seconds_told) = (true, seconds);
                self.whole.merge(*part);
            }
            Message::Done { .. } => {}
            Message::Failed { reason } => self.gone(worker, reason),
        }
    }

    /// A worker is gone, or what it says cannot be read.
    pub fn gone(&mut self, worker: usize, reason: String) {
        if self.workers.get(worker).is_some_and(|worker| !worker.is_done()) {
            self.fail(LoadError::Worker { worker, workers: self.workers.len(), reason });
        }
    }

    /// What is to be done next; `None` when there is nothing before [`Self::wake_ns`], or before something is heard.
    pub fn next(&mut self, now: u64) -> Option<Output> {
        if self.outputs.is_empty() {
            self.step(now);
        }
        self.outputs.pop_front()
    }

    /// When to ask again at the latest, ns.
    pub fn wake_ns(&self, now: u64) -> u64 {
        let next_phase_ns = match self.stage {
            Stage::Running(begun) => self.timeline.as_ref().map(|timeline| timeline.phases()[begun].1),
            Stage::Ending { .. } => None,
            _ => Some(now + WATCH_NS),
        };
        next_phase_ns.unwrap_or(u64::MAX).min(self.next_progress_ns).min(now + S)
    }

    fn step(&mut self, now: u64) {
        if self.stage == Stage::Over {
            return;
        }
        if now > self.asked_ns + ASKED_NS {
            self.workers.iter_mut().for_each(|worker| worker.heard_ns = now);
        }
        self.asked_ns = now;
        if now >= self.next_progress_ns {
            self.next_progress_ns = now.max(self.next_progress_ns + S);
            let progress = self.progress(now);
            self.outputs.push_back(Output::Event(RunEvent::Progress(progress)));
        }
        match self.stage {
            Stage::Preparing => self.wait_for_all_to_be_prepared(now),
            Stage::Connecting => self.wait_for_clients(now),
            Stage::Ready => self.fail_if_silent(|worker| Some(worker.heard_ns), WORD_NS, "said nothing", now),
            Stage::Running(begun) => self.go_through(begun, now),
            Stage::Draining { begun_ns, moved, moved_ns } => self.drain(begun_ns, moved, moved_ns, now),
            Stage::Ending { end_ns } => self.wait_for_the_end(end_ns, now),
            Stage::GivingUp { since_ns, connected, has_prober } => self.give_up(since_ns, connected, has_prober, now),
            Stage::Over => {}
        }
    }

    fn order_all(&mut self, order: &Order) {
        self.outputs.extend((0..self.workers.len()).map(|worker| Output::Order(worker, order.clone())));
    }

    fn enter(&mut self, phase: Phase, t_ns: u64) {
        self.phases.push(PhaseMark { phase, t_ns });
        self.outputs.push_back(Output::Event(RunEvent::Phase { phase, t_ns }));
    }

    fn fail(&mut self, error: LoadError) {
        if self.stage != Stage::Over {
            self.stage = Stage::Over;
            self.order_all(&Order::Abandon);
            self.outputs.push_back(Output::Event(RunEvent::Failed(error)));
        }
    }

    /// Fails if a worker has not done something for too long.
    fn fail_if_silent(
        &mut self,
        since_ns: impl Fn(&Worker) -> Option<u64>,
        within_ns: u64,
        what: &'static str,
        now: u64,
    ) {
        let is_late = |worker: &Worker| since_ns(worker).is_some_and(|since_ns| now > since_ns + within_ns);
        if let Some(worker) = self.workers.iter().position(is_late) {
            let workers = self.workers.len();
            self.fail(LoadError::Silent { worker, workers, what, within_s: within_ns / S });
        }
    }

    fn wait_for_all_to_be_prepared(&mut self, now: u64) {
        if self.workers.iter().all(|worker| worker.is_prepared) {
            (self.origin_ns, self.next_progress_ns) = (now, now + S);
            self.silence = Silence::new(now);
            self.stage = Stage::Connecting;
            self.order_all(&Order::Connect { origin_ns: now });
            return self.enter(Phase::Connect, now);
        }
        let (begun_ns, own_ms) = (self.begun_ns, self.plan.phases.connect_ms + self.plan.clients_in.start_max_ms());
        // All but whoever waits for the subject or for a browser have little to do.
        let waits = |index: usize| self.plan.clients_in.is_browser() || (self.roles.feed.is_some() && index == 0);
        let slow = self.workers.iter().enumerate().filter(|(_, worker)| !worker.is_prepared);
        let mut within = slow.map(|(index, _)| (index, PREPARE_NS + if waits(index) { own_ms * MS } else { 0 }));
        let late = within.find(|(_, within_ns)| now > begun_ns + within_ns);
        if let Some((worker, within_ns)) = late {
            let (workers, what, within_s) = (self.workers.len(), "did not get ready", within_ns / S);
            self.fail(LoadError::Silent { worker, workers, what, within_s });
        }
    }

    /// Waits until all are subscribed, or one is refused for good. Where a host's connections are limited, those who
    /// wait for one may never be: the run goes on when nobody else is missing, or at the end of the time.
    fn wait_for_clients(&mut self, now: u64) {
        let all = self.sum();
        let deadline = self.origin_ns + self.plan.phases.connect_ms * MS;
        let has_prober = self.plan.prober.is_none() || all.has_prober;
        let has_instruments = all.instruments >= self.roles.instruments();
        let is_late = now >= deadline;
        let is_enough = is_late && self.may_starve() && all.subscribed > 0;
        let is_full = all.subscribed + all.held_back >= self.plan.clients;
        if (is_full || is_enough) && has_instruments && has_prober {
            if self.plan.is_told_to_begin {
                self.stage = Stage::Ready;
                self.outputs.push_back(Output::Event(RunEvent::Ready));
            } else {
                self.begin(now + self.lead_ns());
            }
        } else if is_late || all.refused > 0 {
            self.order_all(&Order::Abandon);
            let connected = all.subscribed + all.instruments;
            self.stage = Stage::GivingUp { since_ns: now, connected, has_prober };
        } else {
            self.fail_if_silent(|worker| Some(worker.heard_ns), WORD_NS, "said nothing", now);
        }
    }

    /// A run that is ready begins its idle phase at an instant, of which its workers have to learn before.
    pub fn begin_at(&mut self, idle_ns: u64) {
        if self.stage == Stage::Ready {
            self.begin(idle_ns);
        }
    }

    fn begin(&mut self, idle_ns: u64) {
        let timeline = Timeline::of(&self.plan, &self.roles, idle_ns);
        self.order_all(&Order::Begin { idle_ns: timeline.idle_ns });
        self.timeline = Some(timeline);
        self.stage = Stage::Running(0);
    }

    fn go_through(&mut self, begun: usize, now: u64) {
        let Some((phase, t_ns)) = self.timeline.as_ref().map(|timeline| timeline.phases()[begun]) else { return };
        if now < t_ns {
            return self.fail_if_silent(|worker| Some(worker.heard_ns), WORD_NS, "said nothing", now);
        }
        self.enter(phase, t_ns);
        self.stage = match phase {
            Phase::Drain => Stage::Draining { begun_ns: now, moved: (0, 0), moved_ns: now },
            _ => Stage::Running(begun + 1),
        };
        self.step(now);
    }

    /// Waits for what is under way. A subject that is silent is waited for longer, until it is known whether it hangs:
    /// what it lost in a run that ends before would be taken for mere loss.
    fn drain(&mut self, begun_ns: u64, moved: (u64, u64), moved_ns: u64, now: u64) {
        let all = self.sum();
        let deadline = begun_ns + self.plan.phases.drain_ms * MS;
        // Who ends the drain after a stall wants to know of losses alone.
        let longest = deadline + if self.plan.drain_stall_ms.is_none() { SILENT_DRAIN_NS } else { 0 };
        // Loops report once a turn, and an idle one turns every 5 ms.
        let earliest = (begun_ns + self.lead_ns).min(deadline);
        let moves = (all.load_published, all.load_delivered);
        let moved_ns = if moves == moved { moved_ns } else { now };
        let is_stalled = self.plan.drain_stall_ms.is_some_and(|stall_ms| now >= moved_ns + stall_ms * MS);
        let due = self.timeline.as_ref().and_then(|timeline| timeline.load_deliveries(&self.roles));
        let due = due.unwrap_or(all.load_published * self.roles.receivers);
        // A server that calls messages gone may bring some of them all the same.
        let is_quiet = now >= moved_ns + QUIET_NS;
        let is_complete = all.load_delivered >= due || (is_quiet && all.load_delivered + all.load_gone >= due);
        let is_over = now >= deadline && !(now < longest && self.silent_ns(now) > 0);
        if is_over || is_stalled || (now >= earliest && is_complete && all.unanswered == 0) {
            self.order_all(&Order::Finish { after_ns: now });
            self.enter(Phase::After, now);
            self.stage = Stage::Ending { end_ns: now + self.plan.phases.after_ms * MS };
        } else {
            self.stage = Stage::Draining { begun_ns, moved: moves, moved_ns };
            self.fail_if_silent(|worker| Some(worker.heard_ns), WORD_NS, "said nothing", now);
        }
    }

    fn wait_for_the_end(&mut self, end_ns: u64, now: u64) {
        if self.workers.iter().all(Worker::is_done) {
            self.stage = Stage::Over;
            let result = Box::new(self.result(end_ns));
            self.outputs.push_back(Output::Event(RunEvent::Done { result }));
        } else {
            let since_ns = |worker: &Worker| (!worker.is_done()).then_some(end_ns);
            self.fail_if_silent(since_ns, RESULT_NS, "did not say what it measured", now);
        }
    }

    fn give_up(&mut self, since_ns: u64, connected: u32, has_prober: bool, now: u64) {
        if !self.workers.iter().all(|worker| worker.has_told) && now < since_ns + RESULT_NS {
            return;
        }
        let all = [&mut self.whole.refused, &mut self.whole.errors].map(|tally| std::mem::take(tally).into_sorted());
        let error = all
            .iter()
            .find_map(|errors| errors.first())
            .map_or_else(|| "nothing arrived".to_owned(), |most| format!("{} ({} times)", most.error, most.count));
        let clients = self.plan.clients + self.roles.instruments();
        let connect_ms = (since_ns.saturating_sub(self.origin_ns) / MS).min(self.plan.phases.connect_ms);
        self.stage = Stage::Over;
        let error = LoadError::NotConnected { connected, clients, connect_ms, has_prober, error };
        self.outputs.push_back(Output::Event(RunEvent::Failed(error)));
    }

    /// Time for everybody to learn the phases: pages do with the answer to their next report but one at the latest, and
    /// hidden ones report once a second.
    fn lead_ns(&self) -> u64 {
        let clients_in = self.plan.clients_in;
        if !clients_in.is_browser() || self.roles.payload.is_none() {
            return self.lead_ns;
        }
        let every_ms = clients_in.report_every_ms();
        self.lead_ns + 2 * MS * if clients_in.hidden { every_ms.max(1_000) } else { every_ms }
    }

    /// Whether clients may have to wait for a connection for as long as others keep theirs.
    fn may_starve(&self) -> bool {
        self.roles.hosts.is_some() || self.plan.clients_in.is_browser()
    }

    /// How far all workers together are.
    fn sum(&self) -> WorkerState {
        self.workers.iter().map(|worker| worker.state).sum()
    }

    fn progress(&mut self, now: u64) -> Progress {
        let all = self.sum();
        let latest = self.seconds.last().copied().unwrap_or_default();
        Progress {
            connected: all.subscribed,
            published: all.published,
            delivered: all.delivered,
            latency_median_ns: latest.latency_median_ns,
            latency_p99_ns: latest.latency_p99_ns,
            silent_ms: self.silent_ns(now) / MS,
            outstanding: self.outstanding(&all),
        }
    }

    /// Deliveries that what was published so far, and not refused, is still to make, or that were lost.
    fn outstanding(&self, all: &WorkerState) -> u64 {
        let published = all.published.saturating_sub(all.refused);
        let expected = match &self.timeline {
            Some(timeline) => timeline.deliveries(&self.roles, published),
            None => published * self.roles.receivers,
        };
        expected.saturating_sub(all.delivered)
    }

    /// How long nothing has come from the subject although load was due, ns.
    fn silent_ns(&mut self, now: u64) -> u64 {
        if self.roles.storm.is_some() {
            // Clients that are cut off hear nothing, and those that come back may be many: how long they take is what is
            // measured, and who never hears anything is counted.
            return 0;
        }
        let all = self.sum();
        let hears_pings = self.plan.prober.as_ref().is_some_and(|prober| prober.interval_ms <= PINGS_HEARD_MS);
        let activity = Activity {
            delivered: all.delivered,
            subscribed: all.subscribed,
            unanswered: hears_pings.then_some(all.unanswered),
        };
        let outstanding = self.outstanding(&all);
        let timeline = self.timeline.as_ref();
        self.silence.observe(now, activity, outstanding, |from_ns| timeline?.due_from(from_ns))
    }

    fn result(&mut self, end_ns: u64) -> LoadResult {
        let mut whole = std::mem::take(&mut self.whole);
        while let Some((_, second)) = self.table.take_front() {
            self.seconds.push(second.summary());
        }
        let mut seconds = std::mem::take(&mut self.seconds);
        seconds.iter_mut().zip(&whole.fed).for_each(|(second, fed)| second.published += fed);
        let (load_count, is_open) = match self.timeline.as_ref().and_then(|timeline| timeline.schedule.as_ref()) {
            Some(schedule @ Schedule::Open { .. }) => (schedule.load_count(), true),
            _ => (0, false),
        };
        if let Some(timeline) = self.timeline.as_ref().filter(|_| is_open && self.roles.audience.is_ranked()) {
            let receivers = |publication| timeline.receivers(&self.roles, publication);
            let (first, last) = std::mem::take(&mut whole.ranks).latencies(receivers);
            whole.latency_first.merge(&first);
            whole.latency_last.merge(&last);
        }
        let scheduled = if self.roles.is_closed_loop() { whole.published } else { load_count };
        let expected = whole.published * self.roles.receivers + whole.expected_in_rooms;
        let upstream_due =
            self.timeline.as_ref().and_then(|timeline| timeline.upstream.as_ref()).map_or(0, Schedule::load_count);
        let is_across = self.workers.len() > 1 && self.roles.are_latencies_one_way();
        let unsubscribed = if self.may_starve() { whole.unsubscribed } else { 0 };
        LoadResult {
            scheduled,
            unsent: scheduled.saturating_sub(whole.published),
            upstream_unsent: upstream_due.saturating_sub(whole.upstream),
            expected,
            lost: expected.saturating_sub(whole.delivered),
            phases: std::mem::take(&mut self.phases),
            end_ns,
            seconds,
            unsubscribed,
            ..whole.into_result(is_across)
        }
    }
}

#[cfg(test)]
mod tests;
