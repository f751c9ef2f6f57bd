//! The threads of one worker: the event loops of its clients and, where it has them, the prober, the collector of an
//! upstream run, and the back end or the feeder of a feed.

use crate::backend::{BackEnd, Feed};
use crate::browser::Pages;
use pushlab_load::broadcasts::Broadcasts;
use pushlab_load::clients::LoopConfig;
use pushlab_load::dial::Dialler;
use pushlab_load::prober::ProberConfig;
use pushlab_load::run_state::RunState;
use pushlab_load::threads::{LoopThread, ProberThread, spawn_loop, spawn_prober};
use pushlab_load::transport::planned::{in_plans_dialect, of_clients, of_feeder};
use pushlab_load::transport::{Requests, Sending};
use pushlab_os::affinity::allowed_cores;
use pushlab_os::clock::{CpuClock, monotonic_ns};
use pushlab_stats::histogram::Histogram;
use pushlab_wire::transport::Transport;
use pushlab_workload::audience::Audience;
use pushlab_workload::busy::{BusiestSecond, LoadThread};
use pushlab_workload::check::Schedule;
use pushlab_workload::messages::WorkerState;
use pushlab_workload::plan::{Http, Plan, RequestHeaders};
use pushlab_workload::result::{ClientBytes, Part};
use pushlab_workload::roles::Roles;
use pushlab_workload::segment::Segment;
use pushlab_workload::timeline::Timeline;
use pushlab_workload::traffic::{HostLimit, Traffic};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Time between two turns of a core's loops, ns: of each turn some 5 µs are the waking up.
const GATHER_NS: u64 = 50_000;

/// What is there before the first client.
pub struct Ready<'a> {
    /// What the run is.
    pub plan: &'a Plan,
    /// What its scenario means.
    pub roles: &'a Roles,
    /// Which part of it is this worker's.
    pub segment: Segment,
    /// How the subject is reached.
    pub dialler: Dialler,
    /// The back end, if it is here, to which the subject has connected.
    pub back_end: Option<BackEnd>,
    /// The browser, if clients live in one.
    pub pages: Option<Pages>,
}

/// The threads of one worker's run.
pub struct Hosted {
    state: Arc<RunState>,
    loops: Vec<LoopThread>,
    collector: Option<LoopThread>,
    /// In no scenario together with a collector: either has the place after the clients' loops.
    feeder: Option<LoopThread>,
    prober: Option<ProberThread>,
    back_end: Option<BackEnd>,
    /// What threads that have ended measured.
    part: Part,
}

impl Hosted {
    /// Starts the threads of a segment, whose clients begin to connect.
    ///
    /// # Errors
    /// When the kernel gives no thread or descriptor.
    pub fn start(ready: Ready<'_>, origin_ns: u64) -> io::Result<Self> {
        let Ready { plan, roles, segment, dialler, back_end, pages } = ready;
        let has_another_loop = segment.has_instruments() && (roles.collector.is_some() || roles.feeder.is_some());
        let instruments = u32::from(has_another_loop);
        let publishers = roles.feeder.as_ref().and_then(|feeder| feeder.publishers);
        let broadcasts = publishers.map(|publishers| Broadcasts::new(publishers, plan.clients)).transpose()?;
        let cores = allowed_cores().map_or(1, |cores| cores.len());
        let gather_ns = gather_ns(roles.is_closed_loop(), segment.loops_here, cores);
        let state = Arc::new(RunState::new(origin_ns, segment.loops + instruments).with_broadcasts(broadcasts));
        state.count_thread(CpuClock::of_this_thread());
        if let Some(cpu) = back_end.as_ref().and_then(BackEnd::cpu) {
            state.count_thread(cpu);
        }
        let mut run = Self {
            state,
            loops: Vec::new(),
            collector: None,
            feeder: None,
            prober: None,
            back_end,
            part: Part::default(),
        };
        if let Err(error) = run.spawn_all(plan, roles, segment, gather_ns, &dialler, pages) {
            run.state.set_end(0);
            return Err(error);
        }
        Ok(run)
    }

    fn spawn_all(
        &mut self,
        plan: &Plan,
        roles: &Roles,
        segment: Segment,
        gather_ns: u64,
        dialler: &Dialler,
        mut pages: Option<Pages>,
    ) -> io::Result<()> {
        for progress in 0..segment.loops {
            let config = LoopConfig { gather_ns, ..loop_config(plan, roles, segment, dialler, progress) };
            if let Some(pages) = pages.take() {
                let (plan, state) = (plan.clone(), Arc::clone(&self.state));
                let work = move || pages.run(&plan, config, state);
                self.loops.push(std::thread::Builder::new().name("browser".into()).spawn(work)?);
                continue;
            }
            self.loops.push(spawn_loop(plan.transport, plan.speaks.as_ref(), plan.http(), config, &self.state)?);
        }
        if !segment.has_instruments() {
            return Ok(());
        }
        self.spawn_instruments(plan, roles, segment, dialler.clone().leaving_from(plan.instruments_from))
    }

    /// Collector, feeder and prober, where the plan asks for one.
    fn spawn_instruments(
        &mut self,
        plan: &Plan,
        roles: &Roles,
        segment: Segment,
        instruments: Dialler,
    ) -> io::Result<()> {
        let instrument = |requests| LoopConfig {
            // Each on a connection of its own, which over HTTP/2 carries all that it does.
            hosts: roles.hosts.filter(|_| plan.http() != Http::Http11).map(|limit| HostLimit { clients: 1, ..limit }),
            clients: 1,
            lane: 0,
            lanes: 1,
            progress: segment.loops as usize,
            requests,
            traffic: Traffic::Silent,
            payload: None,
            audience: Audience::Nobodys,
            publishers: 0,
            storm: None,
            ..loop_config(plan, roles, segment, &instruments, 0)
        };
        if let Some(audience) = roles.collector.clone() {
            let channel = plan.upstream_channel();
            let requests = Requests::new(&plan.target, &channel, &channel, 0);
            let requests = requests.with_headers(RequestHeaders::Minimal, plan.compression_from);
            let requests = in_plans_dialect(requests, plan, None);
            let transport = if plan.speaks.is_none() { Transport::WebSocket } else { plan.transport };
            let config = LoopConfig { audience, ..instrument(requests) };
            self.collector = Some(spawn_loop(transport, plan.speaks.as_ref(), plan.http(), config, &self.state)?);
        }
        if let Some(feeder) = &roles.feeder {
            let config = LoopConfig {
                clients: feeder.clients(),
                traffic: feeder.traffic(),
                payload: Some(feeder.payload.clone()),
                ..instrument(of_feeder(plan))
            };
            self.feeder = Some(spawn_loop(plan.transport, plan.speaks.as_ref(), plan.http(), config, &self.state)?);
        }
        if let Some(prober) = &plan.prober {
            let channel = plan.prober_channel();
            let channels = match prober.subscribed {
                true => format!("{}&channel={channel}", plan.channel),
                false => channel.clone(),
            };
            // What echoes alone is a route without channels in the bare dialect.
            let sending = (!prober.subscribed).then_some(Sending::Echo);
            let requests = Requests::new(&plan.target, &channels, &channel, 0);
            let requests = requests.with_keep_alive(plan.sockets.keep_alive);
            let requests = requests.with_headers(RequestHeaders::Minimal, None);
            let config = ProberConfig {
                dialler: instruments,
                requests: in_plans_dialect(requests, plan, sending),
                interval_ns: prober.interval_ms * MS,
                in_closed_loop: prober.closed_loop,
                turns: plan.turns,
                seed: plan.seed ^ 0x70_72_6f_62_65_72,
            };
            self.prober = Some(spawn_prober(plan, config, &self.state)?);
        }
        Ok(())
    }

    /// What its threads share.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Lets the phases begin.
    pub fn begin(&self, timeline: Timeline) {
        if let (Some(back_end), Some(Schedule::Open { pacing, load_from })) = (&self.back_end, &timeline.schedule) {
            let (pacing, count_from) = (pacing.clone(), *load_from);
            back_end.begin(Feed { pacing, count_from, origin_ns: self.state.origin_ns() });
        }
        self.state.begin(timeline);
    }

    /// The collector or the feeder, if there is one.
    fn instrument(&self) -> Option<&LoopThread> {
        self.collector.as_ref().or(self.feeder.as_ref())
    }

    /// How far all of it is.
    pub fn progress(&self) -> WorkerState {
        let state = &self.state;
        let instrument = self.instrument().map(|_| state.loop_progress(self.loops.len()));
        // The instruments first: a client that comes in between is none.
        let instruments = instrument.map_or(0, |progress| progress.subscribed.load(Ordering::Relaxed));
        let prober = self.prober.as_ref().map(|(_, progress)| progress);
        WorkerState {
            t_ns: monotonic_ns(),
            subscribed: state.subscribed().saturating_sub(instruments),
            held_back: state.held_back(),
            instruments,
            has_prober: prober.is_some_and(|prober| prober.is_connected.load(Ordering::Relaxed)),
            unanswered: prober.map_or(0, |prober| prober.unanswered.load(Ordering::Relaxed)),
            published: self.back_end.as_ref().map_or_else(|| state.sum(|p| &p.published), BackEnd::published),
            delivered: state.sum(|p| &p.delivered),
            load_published: state.sum(|p| &p.load_published),
            load_delivered: state.sum(|p| &p.load_delivered),
            load_gone: state.sum(|p| &p.load_gone),
            refused: state.sum(|p| &p.refused)
                + u64::from(prober.is_some_and(|prober| prober.is_refused.load(Ordering::Relaxed))),
        }
    }

    /// Whether a thread has ended that should not have.
    pub fn has_dead_thread(&self) -> bool {
        self.loops.iter().chain(self.instrument()).any(JoinHandle::is_finished)
            || self.prober.as_ref().is_some_and(|(thread, _)| thread.is_finished())
    }

    /// Ends everything after a thread has ended by itself; says why it did.
    pub fn why_broken(mut self) -> io::Error {
        self.state.set_end(monotonic_ns());
        let ended = self.join().and_then(|()| self.into_part());
        ended.err().unwrap_or_else(|| io::Error::other("it ended before the run did"))
    }

    /// Waits for all threads, whose end has been set, and puts together what they measured.
    ///
    /// # Errors
    /// What made one of them end before.
    pub fn join(&mut self) -> io::Result<()> {
        for thread in self.loops.drain(..) {
            self.part.merge(join(thread)?);
        }
        if let Some(thread) = self.collector.take() {
            self.part.merge(without_traffic(join(thread)?, LoadThread::Collector));
        }
        if let Some(thread) = self.feeder.take() {
            let mut fed = without_traffic(join(thread)?, LoadThread::Feeder);
            // Where subscribers cannot choose, the feeder is one too.
            (fed.unknown, fed.gaps) = (0, 0);
            self.part.merge(fed);
        }
        if let Some((thread, _)) = self.prober.take() {
            let report = join(thread)?;
            self.part.reconnects += report.reconnects;
            self.part.errors.merge(report.errors);
            self.part.refused.merge(report.refused);
            self.part.busiest = BusiestSecond::busier(self.part.busiest, report.busiest);
            (self.part.response_idle, self.part.response_load) = (report.response_idle, report.response_load);
            (self.part.response_unanswered, self.part.response_own) = (report.response_unanswered, report.response_own);
        }
        Ok(())
    }

    /// What all of it measured, the back end too, which ends.
    ///
    /// # Errors
    /// What made the back end end before.
    pub fn into_part(mut self) -> io::Result<Part> {
        if let Some(back_end) = self.back_end {
            let reported = back_end.wait_for_report(Duration::ZERO);
            let stopped = back_end.stop()?;
            let feed = reported.unwrap_or(stopped);
            (self.part.published, self.part.fed) = (feed.published, feed.seconds);
            // Beside what clients sent.
            self.part.lateness.merge(&feed.lateness);
            self.part.published_after = feed.published_after;
            self.part.busiest = BusiestSecond::busier(self.part.busiest, feed.busiest);
        }
        Ok(self.part)
    }
}

fn loop_config(plan: &Plan, roles: &Roles, segment: Segment, dialler: &Dialler, progress: u32) -> LoopConfig {
    LoopConfig {
        dialler: dialler.clone(),
        hosts: roles.hosts,
        clients: plan.clients,
        lane: segment.first_loop + progress,
        lanes: segment.loops_of_all,
        progress: progress as usize,
        requests: of_clients(plan, roles),
        traffic: roles.traffic,
        payload: roles.payload.clone(),
        audience: roles.audience.clone(),
        ignores_arrays: roles.feed.is_some(),
        publishers: roles.publishers,
        has_receipts: plan.receipts,
        storm: roles.storm,
        counts_drain: plan.counts_drain(),
        connect_rate: plan.connect_rate,
        poll_interval_ns: plan.poll_interval_ms * MS,
        poll_phase_ns: plan.poll_phase_ns(),
        turns: plan.turns,
        seed: plan.seed,
        gather_ns: 0,
        injected_delay_ns: plan.injected_delay_us * 1_000,
    }
}

/// How long each of so many loops on so many cores gathers what comes, where several share one. Otherwise every delivery would
/// wake another loop, whose core may have gone to sleep meanwhile: with twelve loops on one core that was a third of the
/// server's CPU time. The first delivery is read at once. In a closed loop, what waits would be missing in the rate.
fn gather_ns(is_closed_loop: bool, loops: u32, cores: usize) -> u64 {
    let loops_of_core = u64::from(loops).div_ceil(cores.max(1) as u64);
    if loops_of_core > 1 && !is_closed_loop { loops_of_core * GATHER_NS } else { 0 }
}

/// What an instrument measured, without what it sent and received: that is not the clients'.
fn without_traffic(part: Part, thread: LoadThread) -> Part {
    Part {
        busiest: part.busiest.map(|second| BusiestSecond { thread, number: 0, ..second }),
        bytes_sent: 0,
        bytes_received: 0,
        bytes_received_in_load: 0,
        bytes_whole: ClientBytes::default(),
        bytes_load: ClientBytes::default(),
        bytes_opening: 0,
        requests: 0,
        requests_idle: 0,
        polls: 0,
        polls_empty: 0,
        connections_opened: 0,
        connections_cut: 0,
        connect: Histogram::default(),
        ..part
    }
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loops_that_share_a_core_gather_and_not_in_a_closed_loop() {
        assert_eq!([1, 2, 3, 4].map(|loops| gather_ns(false, loops, 2)), [0, 0, 2 * GATHER_NS, 2 * GATHER_NS]);
        assert_eq!((gather_ns(false, 12, 1), gather_ns(true, 12, 1)), (12 * GATHER_NS, 0));
    }
}
