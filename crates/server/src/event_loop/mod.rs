//! One event loop: a thread that owns its connections and writes to them straight away.
//!
//! A turn reads what has come, then fans out everything that was published meanwhile. When the loop is behind, more
//! publications meet in one turn and share one write per socket: corking adapts by itself and delays nothing.

mod accepting;
mod acting;
mod ending;
mod fanout;
mod http2;
mod leaving;
mod membership;
mod reading;
mod shedding;
mod timers;
mod writing;

use crate::config::{Config, Limits};
use crate::connection::Connection;
use crate::distributor::Distributor;
use crate::http2::Unsent;
use crate::inbox::{Arrivals, Inbox};
use crate::leaving::{LEAVING_INTERVAL, Leaving};
use crate::presence::{Attendance, Presence};
use crate::stage::{SharedStage, Stage};
use crate::stats::{Counters, add};
use mio::net::TcpListener;
use mio::{Events, Poll, Token};
use pushlab_application::pool::{Call, Caller};
use pushlab_engine::{Engine, Io, Send};
use pushlab_log::{Account, Publication, Ticket};
use pushlab_os::clock;
use pushlab_session::batch::Batch;
use pushlab_session::effect::Output;
use pushlab_session::groups::Groups;
use pushlab_session::missed::Kept;
use pushlab_session::queue::QueueRules;
use pushlab_session::rules::Rules;
use pushlab_session::spread::{self, Spread};
use pushlab_session::wheel::{TICK, Wheel};
use pushlab_tls::certificate::Tls;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::fields::FieldList;
use pushlab_wire::receipt::Receipt;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub const LISTENER: Token = Token(usize::MAX - 1);
pub const WAKER: Token = Token(usize::MAX - 2);

/// Events taken at once.
const MAX_EVENTS: usize = 4096;
/// Work done in one turn for connections that wait until others had theirs: as [`MAX_WORK`], and so much more for each, which
/// may have sent much. Some 2 ms at most.
const MAX_UNFINISHED_WORK: u32 = 1024;
const UNFINISHED_WORK: u32 = 16;
/// Bytes read from one connection in one turn.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Work done for one connection in one turn: a request or a frame counts one, a page of counters [`PAGE_WORK`], a large
/// head its size, a new set of channels the size of their names, a compressed message what it became. What it has sent
/// beyond that waits until everybody else has had their turn. At a microsecond or two for one, some 0.2 ms at most.
const MAX_WORK: u32 = 128;
/// What making `/stats` or `/metrics` counts, some 25 µs.
const PAGE_WORK: u32 = 24;
/// So many bytes of a frame that is no part of a body count one: each may stand for a field (HPACK).
const HEAD_BYTES_PER_WORK: usize = 128;
/// So many bytes count one that a compressed message became, or that were compressed for one reply: to inflate them takes
/// a microsecond or two, to compress them some more.
const CODED_BYTES_PER_WORK: usize = 512;
/// So many bytes of names of channels count one where they make a new set, whose group is made and goes again.
const SET_BYTES_PER_WORK: usize = 64;
/// Working space larger than this is given back at the end of a turn.
const MAX_SPACE_BYTES: usize = 1 << 20;

/// What all event loops of a server share.
pub struct Shared {
    pub presence: Option<Arc<Presence>>,
    pub config: Config,
    pub distributor: Arc<Distributor>,
    /// All that peers make the server keep.
    pub account: Arc<Account>,
    pub rules: Rules,
    pub tls: Option<Tls>,
    pub counters: Vec<Arc<Counters>>,
    pub open: AtomicUsize,
    pub stage: SharedStage,
    /// Over how long clients come back, from when it drains.
    pub return_window: OnceLock<Duration>,
}

impl Shared {
    /// The counters of the event loops.
    pub fn loop_counters(&self) -> impl Iterator<Item = &Counters> {
        self.counters.iter().take(self.distributor.loops()).map(|counters| &**counters)
    }

    /// Over how long clients come back: one window for all event loops, whichever stops first.
    pub fn return_window(&self) -> Duration {
        *self.return_window.get_or_init(|| {
            // Of each loop its own best second: they accept side by side.
            let best_second = self.counters.iter().map(|counters| counters.best_second.load(Ordering::Relaxed)).sum();
            let chosen = || spread::window(self.open.load(Ordering::Relaxed), best_second);
            self.config.limits.drain_window.unwrap_or_else(chosen)
        })
    }
}

pub struct EventLoop {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    inbox: Arc<Inbox>,
    index: usize,
    caller: Option<Caller>,
    /// What connections wait for of the application.
    calls: HashMap<usize, Arc<Call>>,
    /// What connections wait for of the log.
    asked: HashMap<Ticket, Asked>,
    poll: Poll,
    listeners: Vec<TcpListener>,
    is_accepting: bool,
    accept_again: Option<Instant>,
    connections: Slab<Connection>,
    generation: u32,
    epoch: Epoch,
    groups: Groups,
    /// Absent without an access file.
    attendance: Option<Attendance>,
    /// Fans out to large groups, if there is one.
    engine: Option<Engine>,
    wheel: Wheel,
    start: Instant,
    now: Instant,
    /// Connections that speak HTTP/2 and have something to send.
    unsent: Unsent,
    /// Working space, reused every turn.
    read_buffer: Vec<u8>,
    out: Vec<u8>,
    arrivals: Arrivals,
    output: Output,
    head: FieldList,
    dirty: Vec<usize>,
    due: Vec<usize>,
    /// Connections to go on with when others had their turn: with more to read, with bytes that are not used yet, and those
    /// that have yet to prove what they are.
    unfinished: VecDeque<usize>,
    batch: Batch,
    /// What those missed who have come back lately.
    kept: Kept,
    /// Made when it is first needed.
    sends: Vec<Send>,
    queue_rules: QueueRules,
    /// What was counted of what connections are subscribed to.
    counted_group_bytes: usize,
    /// Absent while what is kept fits.
    over: Option<Over>,
    /// Connections that broke, or were abandoned, while others were being written to.
    doomed: Vec<usize>,
    /// Connections that have ended in this turn.
    ended: Vec<usize>,
    turn: Turn,
    /// Work left for the connection whose bytes are being used: see [`MAX_WORK`].
    work_left: u32,
    /// When what is being read was received, where that is to be marked.
    receipt: Option<Receipt>,
    /// Publications up to here have left the inbox.
    fanned_out_to: u64,
    next_expiry: Instant,
    /// Seconds since 1970 at the beginning of the turn, where tokens are checked.
    unix_s: u64,
    /// When the latest second of accepting began, and the connections of it.
    accepted_in: (Instant, u64),
    /// The stage of the server that it has followed to.
    stage: Stage,
    leaving: Leaving,
    drain: Option<Drain>,
}

/// The end of a server.
struct Drain {
    /// Who has not ended by then is cut off.
    until: Instant,
    /// When clients come back.
    spread: Spread,
}

/// More is kept than may be, and no room could be made here.
#[derive(Clone, Copy)]
struct Over {
    /// Since when.
    since: Instant,
    /// The turn in which that was tried last: once in each, as all connections are looked at.
    tried: Instant,
}

/// Something that was asked of the log by an exchange, and has not come.
struct Asked {
    id: usize,
    generation: u32,
    /// Where the messages that were asked for begin.
    after: Option<Cursor>,
}

/// Counts of one turn, added to the shared counters at its end.
#[derive(Default)]
struct Turn {
    sent: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

/// The poller's token of a connection: an event for one that is gone is not taken for one of the next in its place.
fn token(id: usize, generation: u32) -> Token {
    Token((generation as usize) << 32 | id)
}

impl EventLoop {
    pub fn new(
        shared: Arc<Shared>,
        index: usize,
        poll: Poll,
        listeners: Vec<TcpListener>,
        inbox: Arc<Inbox>,
        caller: Option<Caller>,
    ) -> Self {
        let now = Instant::now();
        let config = &shared.config;
        Self {
            counters: shared.counters[index].clone(),
            inbox,
            index,
            caller,
            calls: HashMap::new(),
            asked: HashMap::new(),
            poll,
            listeners,
            is_accepting: false,
            accept_again: None,
            connections: Slab::new(),
            generation: 0,
            epoch: shared.distributor.head().epoch,
            groups: Groups::default(),
            attendance: shared.presence.clone().map(Attendance::new),
            engine: None,
            wheel: Wheel::default(),
            start: now,
            now,
            unsent: Unsent::default(),
            read_buffer: vec![0; READ_BUFFER_BYTES],
            out: Vec::new(),
            arrivals: Arrivals::default(),
            output: Output::default(),
            head: FieldList::default(),
            dirty: Vec::new(),
            due: Vec::new(),
            unfinished: VecDeque::new(),
            batch: Batch::default(),
            kept: Kept::default(),
            sends: Vec::new(),
            queue_rules: config.queue_rules(),
            counted_group_bytes: 0,
            over: None,
            doomed: Vec::new(),
            ended: Vec::new(),
            turn: Turn::default(),
            work_left: 0,
            receipt: None,
            fanned_out_to: 0,
            next_expiry: now,
            unix_s: 0,
            accepted_in: (now, 0),
            stage: Stage::Serving,
            leaving: Leaving::default(),
            drain: None,
            shared,
        }
    }

    fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Chooses by what it fans out; called in its thread, before it runs.
    ///
    /// # Errors
    /// If io_uring was asked for but cannot be used.
    pub fn open_engine(&mut self) -> io::Result<()> {
        let config = &self.shared.config;
        if config.io == Some(Io::Write) || config.splits_events || config.tls.is_some() {
            return Ok(());
        }
        match Engine::open(config.limits.max_connections) {
            Ok(engine) => {
                #[cfg(test)]
                let engine = engine.breaking_after(config.uring_breaks_after);
                self.set_engine(Some(engine));
            }
            Err(error) if config.io == Some(Io::Uring) => return Err(io::Error::other(error)),
            Err(_) => {}
        }
        Ok(())
    }

    fn set_engine(&mut self, engine: Option<Engine>) {
        self.counters.uses_uring.store(engine.is_some(), Ordering::Relaxed);
        self.engine = engine;
    }

    /// Runs until a stop has been asked for and every connection has ended.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        self.set_accepting(true)?;
        loop {
            self.take_events(&mut events)?;
            // Asked before what has come is read: what was published before the stop is delivered before the end.
            let stage = self.shared.stage.current();
            self.take_carried();
            self.take_dismissed();
            self.go_on_with_unfinished(stage);
            self.take_answers();
            self.on_timers();
            self.fan_out();
            self.keep_to_limit();
            self.follow(stage)?;
            self.send_outputs();
            self.finish_turn();
            if self.is_drained() {
                return Ok(());
            }
        }
    }

    /// Waits for events, and handles them: all that are there, unless those who may not wait take too long.
    fn take_events(&mut self, events: &mut Events) -> io::Result<()> {
        let mut timeout = self.timeout();
        let mut handled = 0;
        loop {
            match self.poll.poll(events, Some(timeout)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            self.now = Instant::now();
            if self.shared.rules.gate.access.is_some() {
                self.unix_s = clock::since_1970_ns() / 1_000_000_000;
            }
            let mut count = 0;
            for event in &*events {
                count += 1;
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER => {}
                    token => {
                        // Events of one poll may be of a connection that has closed since, whose place is taken.
                        let (id, generation) = (token.0 & u32::MAX as usize, (token.0 >> 32) as u32);
                        if self.connections.get(id).is_some_and(|c| c.generation == generation) {
                            handled += usize::from(self.on_event(id, event));
                            self.keep_to_limit();
                        }
                    }
                }
            }
            if count < MAX_EVENTS || handled >= MAX_EVENTS / 4 {
                return Ok(());
            }
            timeout = Duration::ZERO;
        }
    }

    fn timeout(&self) -> Duration {
        if !self.unfinished.is_empty() || !self.unsent.borrow().is_empty() {
            return Duration::ZERO;
        }
        if !self.leaving.is_empty() {
            return LEAVING_INTERVAL;
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        self.accept_again.map_or(TICK, |at| until(at).min(TICK))
    }

    fn finish_turn(&mut self) {
        // Before their places can be somebody else's.
        self.end_doomed();
        self.remove_ended();
        // Streams that went may have said so.
        self.send_outputs();
        let turn = std::mem::take(&mut self.turn);
        let counts = std::mem::take(&mut self.output.counts);
        let counters = &self.counters;
        add(&counters.received, counts.received);
        add(&counters.sent, turn.sent + counts.sent);
        add(&counters.requests, counts.requests);
        add(&counters.bytes_received, turn.bytes_received);
        add(&counters.bytes_sent, turn.bytes_sent);
        add(&counters.turns, 1);
        if let Some(engine) = &mut self.engine {
            engine.end_turn();
        }
        if self.out.capacity() > MAX_SPACE_BYTES {
            self.out = Vec::new();
        }
        if self.batch.bytes.capacity() > MAX_SPACE_BYTES {
            self.batch = Batch::default();
        }
        if self.arrivals.publications.capacity() > MAX_SPACE_BYTES / size_of::<Arc<Publication>>() {
            self.arrivals = Arrivals::default();
        }
        if self.output.bytes.capacity() > MAX_SPACE_BYTES {
            self.output.bytes = Vec::new();
        }
    }
}
