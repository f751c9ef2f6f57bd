//! The loop itself: what the kernel says, what is due, when the run is over.

use super::client::Client;
use super::compression::Compression;
use super::config::{LoopConfig, polls};
use super::feeding::Feeding;
use super::hosts::Hosts;
use super::receipt_sample::ReceiptSample;
use crate::connection::{Connections, Outgoing, Protocol, Side};
use crate::record::Recorder;
use crate::run_state::RunState;
use crate::transport::{Asking, Receiver};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pushlab_os::clock::{CpuClock, monotonic_ns, set_precise_wakeups, sleep_until, thread_cpu_ns};
use pushlab_os::timer::Timer;
use pushlab_workload::audience::Audience;
use pushlab_workload::busy::{BusyWatch, LoadThread};
use pushlab_workload::check::Schedule;
use pushlab_workload::marks::Marks;
use pushlab_workload::pacing::{Pacing, Turns};
use pushlab_workload::result::Part;
use pushlab_workload::room_turns::RoomTurns;
use pushlab_workload::shape::Warp;
use pushlab_workload::traffic::Traffic;
use pushlab_workload::windows::Windows;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The loop's timer.
const TIMER: Token = Token(usize::MAX);
/// What wakes a feeder that waits for deliveries.
pub(super) const WAKEUP: Token = Token(usize::MAX - 1);
/// Events taken from the kernel in one turn.
const MAX_EVENTS: usize = 1024;
/// Size of the shared read buffer, bytes; grows only for a frame that is larger.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// How long the last answers of a run are waited for, ns.
const LAST_ANSWERS_NS: u64 = 500_000_000;
/// How often a loop looks whether the run has moved on, while it waits for that, or how many clients are to ask.
const TICK_NS: u64 = 5_000_000;
/// The same while the phases are known.
const SLOW_TICK_NS: u64 = 100_000_000;

/// All clients of one transport on one thread.
pub(super) struct ClientLoop<R, P> {
    pub(super) config: LoopConfig,
    pub(super) state: Arc<RunState>,
    pub(super) poll: Poll,
    pub(super) timer: Timer,
    pub(super) clients: Vec<Client<R>>,
    pub(super) connections: Connections<P>,
    pub(super) hosts: Option<Hosts>,
    pub(super) recorder: Recorder,
    pub(super) windows: Windows,
    pub(super) receipt_sample: ReceiptSample,
    /// This thread's own CPU time.
    busy: BusyWatch,
    pub(super) rng: fastrand::Rng,
    pub(super) buffer: Vec<u8>,
    /// What is sent next, while it is put together.
    pub(super) out: Outgoing,
    /// A frame's text before it is masked.
    pub(super) text: Vec<u8>,
    pub(super) compression: Compression,
    pub(super) marks: Marks,
    pub(super) connect_turns: Turns,
    pub(super) poll_turns: Option<Turns>,
    pub(super) publish_turns: Option<Turns>,
    /// When the next publication is due; kept, because it is compared with after every read.
    pub(super) next_publication_ns: u64,
    pub(super) pacing: Option<(Pacing, u64)>,
    /// What the clients are to publish next, where they are in rooms.
    pub(super) rooms: Option<RoomTurns>,
    /// Closed loop: which share of all clients asks, where that changes.
    pub(super) share: Option<(u64, Arc<Warp>)>,
    /// Closed loop: clients that ask now; the first so many.
    pub(super) active: usize,
    /// Closed loop of broadcasts: what is under way.
    pub(super) feeding: Option<Feeding>,
    /// Streams to be opened again, the earliest first: when, whose, and which.
    pub(super) retries: BinaryHeap<Reverse<(u64, usize, Side)>>,
    /// Connections that had more to read than one turn's share.
    pub(super) again: Vec<u32>,
    pub(super) subscribed: u32,
    pub(super) has_started_loop: bool,
    /// Whether the clients of a storm are still to be cut off.
    pub(super) is_to_be_cut: bool,
}

/// Runs clients of one transport, over connections of one kind, on the calling thread until the run ends.
///
/// # Errors
/// When the kernel refuses an epoll or timer descriptor; failing connections are counted instead.
pub(crate) fn run<R: Receiver, P: Protocol>(config: LoopConfig, state: Arc<RunState>) -> io::Result<Part> {
    set_precise_wakeups();
    state.count_thread(CpuClock::of_this_thread());
    let mut this = ClientLoop::<R, P>::new(config, state)?;
    let mut events = Events::with_capacity(MAX_EVENTS);
    loop {
        let wake_ns = this.next_wake();
        this.timer.arm(wake_ns)?;
        let timeout = if this.again.is_empty() { None } else { Some(Duration::ZERO) };
        match this.poll.poll(&mut events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        }
        let begun_ns = monotonic_ns();
        if this.turn(&events, begun_ns) {
            this.count_all_tls();
            return Ok(this.finish());
        }
        // While clients connect, the wait would count as part of that.
        let is_gathering = this.config.gather_ns > 0 && this.marks.load_ns < u64::MAX && this.again.is_empty();
        if is_gathering && events.iter().any(|event| event.token() != TIMER) {
            sleep_until((begun_ns + this.config.gather_ns).min(this.next_wake()));
        }
    }
}

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    fn new(config: LoopConfig, state: Arc<RunState>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new()?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let feeding = Self::feeding(&config, &state, poll.registry())?;
        let own = config.own_clients();
        let connect_span = u64::from(config.clients) * 1_000_000_000 / u64::from(config.connect_rate.max(1));
        let mut connects = Pacing::endless(state.origin_ns(), connect_span, config.clients);
        connects.count = u64::from(config.clients);
        let polls = polls(&config, state.origin_ns());
        Ok(Self {
            poll,
            timer,
            clients: (0..own).map(|_| Client::new()).collect(),
            connections: Connections::with_capacity(own as usize),
            hosts: config.hosts.map(|limit| Hosts::new(limit, own)),
            recorder: Recorder::new(own, &config, Arc::clone(&state)),
            windows: Windows::new(config.counts_drain),
            receipt_sample: ReceiptSample::of(&config),
            busy: BusyWatch::new(LoadThread::Clients, config.lane),
            rng: fastrand::Rng::with_seed(config.seed ^ u64::from(config.lane) << 32),
            buffer: vec![0; READ_BUFFER_BYTES],
            out: P::outgoing(),
            text: Vec::new(),
            compression: Compression::new(config.requests.compression_from()),
            marks: Marks::UNKNOWN,
            connect_turns: Turns::new(connects, config.lane, config.lanes),
            poll_turns: (R::ASKING == Asking::AtInterval).then(|| Turns::new(polls, config.lane, config.lanes)),
            publish_turns: None,
            next_publication_ns: u64::MAX,
            pacing: None,
            rooms: None,
            share: None,
            active: 0,
            feeding,
            retries: BinaryHeap::new(),
            again: Vec::new(),
            subscribed: 0,
            has_started_loop: false,
            is_to_be_cut: config.storm.is_some_and(|storm| storm.outage.is_cut()),
            config,
            state,
        })
    }

    /// Handles what came and what is due; `true` when the run is over.
    fn turn(&mut self, events: &Events, begun_ns: u64) -> bool {
        self.read_phases();
        if self.busy.is_due(begun_ns) {
            self.busy.note(begun_ns, thread_cpu_ns());
        }
        if self.config.injected_delay_ns > 0 {
            while monotonic_ns() < begun_ns + self.config.injected_delay_ns {
                std::hint::spin_loop();
            }
        }
        for event in events {
            if event.token() == TIMER {
                self.timer.has_expired();
                continue;
            }
            if event.token() == WAKEUP {
                continue;
            }
            let connection = event.token().0 as u32;
            if event.is_writable() {
                self.writable(connection);
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                self.readable(connection, event.is_read_closed() || event.is_error(), begun_ns);
            }
        }
        for connection in std::mem::take(&mut self.again) {
            // Whether the peer has closed is unknown by now: read until nothing is left.
            self.readable(connection, true, begun_ns);
        }
        let now = monotonic_ns();
        self.do_what_is_due(now);
        self.connections.end_turn();
        self.report(now);
        let done_ns = monotonic_ns();
        if self.marks.is_load(begun_ns) {
            self.recorder.part.turn_duration.record(done_ns - begun_ns);
        }
        self.is_over(done_ns)
    }

    /// Whether the run is over: answers that are under way are waited for, so that their bytes are counted at both
    /// ends of the network. A held poll is not under way.
    fn is_over(&self, now: u64) -> bool {
        let is_waiting = |client: &Client<R>| client.down.is_some() && client.receiver.is_waiting();
        let is_late = now >= self.marks.end_ns.saturating_add(LAST_ANSWERS_NS);
        now >= self.marks.end_ns && (is_late || !self.clients.iter().any(is_waiting))
    }

    /// Learns the phases once they are fixed.
    fn read_phases(&mut self) {
        if self.marks.load_ns == u64::MAX
            && let Some(timeline) = self.state.timeline()
        {
            self.marks.begin(timeline);
            self.recorder.set_timeline(timeline);
            self.busy.set_load(timeline.load_ns..timeline.load_end_ns);
            if let Some(Schedule::Closed { share, .. }) = &timeline.schedule {
                self.share.clone_from(share);
            }
            let polls = timeline.polls.as_ref().filter(|_| R::ASKING == Asking::AtInterval);
            if let Some(polls) = polls {
                self.poll_turns = Some(Turns::new(polls.clone(), self.config.lane, self.config.lanes));
            }
            if let Some((pacing, load_from)) = timeline.sent(self.config.traffic) {
                let mut turns = Turns::new(pacing.clone(), self.config.lane, self.config.lanes);
                if let Audience::Rooms(rooms) = &self.config.audience {
                    let LoopConfig { clients, lane, lanes, .. } = self.config;
                    let room_turns = RoomTurns::new(Arc::clone(rooms), pacing, clients, lane, lanes);
                    turns = Turns::new(pacing.clone(), 0, 1);
                    turns.skip_unless(|k| room_turns.is_own(k, pacing));
                    self.rooms = Some(room_turns);
                }
                self.next_publication_ns = turns.due_ns().unwrap_or(u64::MAX);
                self.publish_turns = Some(turns);
                self.pacing = Some((pacing.clone(), load_from));
            }
        }
        self.marks.after_ns = self.state.after_ns();
        self.marks.end_ns = self.state.end_ns();
    }

    fn do_what_is_due(&mut self, now: u64) {
        while let Some(client) = self.connect_turns.take_due(now) {
            self.connect(client as usize / self.config.lanes as usize, now);
        }
        self.cut_off_when_due(now);
        self.retry_due(now);
        self.publish_due(now);
        self.poll_due(now);
        self.start_closed_loop(now);
        self.keep_publishing(now);
        self.serve_hosts(now);
    }

    fn poll_due(&mut self, now: u64) {
        let Some(mut turns) = self.poll_turns.take_if(|_| now < self.marks.end_ns) else { return };
        while let Some(k) = turns.take_due(now) {
            let client = k % u64::from(self.config.clients) / u64::from(self.config.lanes);
            self.ask(client as usize, now);
        }
        self.poll_turns = Some(turns);
    }

    fn report(&mut self, now: u64) {
        self.recorder.pass_time(now);
        let progress = self.state.loop_progress(self.config.progress);
        progress.subscribed.store(self.subscribed, Ordering::Relaxed);
        if R::ASKING == Asking::Never
            && let Some(hosts) = &self.hosts
        {
            progress.held_back.store(hosts.queued_down(), Ordering::Relaxed);
        }
        progress.published.store(self.recorder.published_total, Ordering::Relaxed);
        progress.delivered.store(self.recorder.delivered_total, Ordering::Relaxed);
        progress.load_published.store(self.recorder.part.published, Ordering::Relaxed);
        progress.load_delivered.store(self.recorder.part.delivered, Ordering::Relaxed);
        progress.load_gone.store(self.recorder.returns.gone(), Ordering::Relaxed);
        progress.refused.store(self.recorder.refused_total, Ordering::Relaxed);
    }

    fn finish(self) -> Part {
        let deliveries = self.recorder.delivered_total;
        let mut part = self.recorder.finish();
        self.windows.finish(deliveries, &mut part);
        part.busiest = self.busy.finish();
        part
    }

    fn next_wake(&self) -> u64 {
        let now = monotonic_ns();
        let is_waiting = self.marks.load_ns == u64::MAX || now >= self.marks.load_end_ns || self.share.is_some();
        // On a grid, so that a busy loop arms its timer once a tick and not once a turn.
        let tick = (now + 1).next_multiple_of(if is_waiting { TICK_NS } else { SLOW_TICK_NS });
        if now >= self.marks.end_ns {
            return tick;
        }
        let is_closed = matches!(self.config.traffic, Traffic::ClosedLoop | Traffic::Broadcasts);
        let warm_up = if is_closed && !self.has_started_loop { self.marks.warm_up_ns.max(now) } else { u64::MAX };
        let dues = [
            self.is_to_be_cut.then_some(self.marks.load_ns),
            self.connect_turns.due_ns(),
            self.poll_turns.as_ref().and_then(Turns::due_ns),
            self.retries.peek().map(|Reverse((due_ns, ..))| *due_ns),
            Some(self.next_publication_ns),
            Some(self.marks.end_ns),
            Some(warm_up),
            self.next_turn_ns(now).filter(|due_ns| *due_ns > now),
        ];
        dues.into_iter().flatten().fold(tick, u64::min)
    }
}
