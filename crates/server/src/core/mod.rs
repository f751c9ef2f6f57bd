//! One event loop: a thread that owns its connections and writes to them straight away.
//!
//! A turn reads what has come, then fans out everything that was published meanwhile. When the loop is behind, more
//! publications meet in one turn and share one write per socket: corking adapts by itself and delays nothing.

mod accepting;
mod application;
mod catch_up;
mod ending;
mod fanout;
pub mod feed;
pub mod http;
mod membership;
mod reading;
mod timers;
mod websocket;
mod writing;

use crate::config::{Config, Limits};
use crate::connection::Connection;
use crate::groups::Groups;
use crate::hub::{Hub, Inbox, Publication};
use crate::pool::Caller;
use crate::stats::{Counters, add};
use crate::wheel::{TICK, Tick, Wheel};
use feed::{FEED_PAUSE, FeedState, TickState};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use pushlab_wire::websocket::{self as ws, Role};
use rustls::ServerConfig;
use slab::Slab;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub const LISTENER: Token = Token(usize::MAX - 1);
pub const WAKER: Token = Token(usize::MAX - 2);

/// Bytes read from one connection in one turn.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// What all event loops of a server share.
pub struct Shared {
    pub config: Config,
    pub hub: Arc<Hub>,
    pub tls: Option<Arc<ServerConfig>>,
    pub counters: Vec<Arc<Counters>>,
    pub open: AtomicUsize,
    pub is_draining: AtomicBool,
}

pub struct Core {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    inbox: Arc<Inbox>,
    caller: Option<Caller>,
    poll: Poll,
    listener: Option<TcpListener>,
    accept_again: Option<Instant>,
    connections: Slab<Connection>,
    groups: Groups,
    wheel: Wheel,
    ws_config: ws::Config,
    now: Instant,
    /// Working space, reused every turn.
    read_buffer: Vec<u8>,
    out: Vec<u8>,
    incoming: Vec<Arc<Publication>>,
    dirty: Vec<usize>,
    due: Vec<(Tick, usize)>,
    /// Connections with more to read, or whose bytes were not all understood in the last turn.
    unfinished: Vec<usize>,
    /// Connections that broke while others were being written to.
    doomed: Vec<usize>,
    turn: Turn,
    /// Publications up to here have left the inbox.
    fanned_out_to: u64,
    feed: Option<FeedState>,
    tick: Option<TickState>,
    next_sweep: Instant,
    next_group_sweep: Instant,
    drain_until: Option<Instant>,
}

/// Counts of one turn, added to the shared counters at its end.
#[derive(Default)]
struct Turn {
    received: u64,
    sent: u64,
    requests: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

impl Core {
    pub fn new(
        shared: Arc<Shared>,
        index: usize,
        poll: Poll,
        listener: TcpListener,
        inbox: Arc<Inbox>,
        caller: Option<Caller>,
    ) -> Self {
        let now = Instant::now();
        let config = &shared.config;
        let is_first = index == 0;
        Self {
            counters: shared.counters[index].clone(),
            inbox,
            caller,
            poll,
            listener: Some(listener),
            accept_again: None,
            connections: Slab::new(),
            groups: Groups::default(),
            wheel: Wheel::new(now),
            ws_config: ws::Config {
                max_message_bytes: config.limits.max_message_bytes,
                ..ws::Config::new(Role::Server)
            },
            now,
            read_buffer: vec![0; READ_BUFFER_BYTES],
            out: Vec::new(),
            incoming: Vec::new(),
            dirty: Vec::new(),
            due: Vec::new(),
            unfinished: Vec::new(),
            doomed: Vec::new(),
            turn: Turn::default(),
            fanned_out_to: 0,
            feed: config.feed.clone().filter(|_| is_first).map(|f| FeedState::new(f, now)),
            tick: config.tick.clone().filter(|_| is_first).map(TickState::new),
            next_sweep: now,
            next_group_sweep: now,
            drain_until: None,
            shared,
        }
    }

    fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Runs until a stop has been asked for and every connection has ended.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.poll.registry().register(
            self.listener.as_mut().expect("a new loop has its listener"),
            LISTENER,
            Interest::READABLE,
        )?;
        loop {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            self.now = Instant::now();
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER => {}
                    Token(id) => self.on_event(id, event),
                }
            }
            self.go_on_with_unfinished();
            self.take_answers();
            self.on_timers();
            self.fan_out();
            // What was published before the stop has been delivered.
            if self.shared.is_draining.load(Ordering::Relaxed) && self.drain_until.is_none() {
                self.begin_drain();
            }
            self.finish_turn();
            if self.is_drained() {
                return Ok(());
            }
        }
    }

    fn timeout(&self) -> Duration {
        match self.unfinished[..] {
            [] => {}
            // Waits for another event loop, which takes longer than a turn.
            [id] if self.is_stalled(id) => return FEED_PAUSE,
            _ => return Duration::ZERO,
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let mut timeout = TICK;
        for at in [self.tick.as_ref().map(TickState::due), self.accept_again].into_iter().flatten() {
            timeout = timeout.min(until(at));
        }
        timeout
    }

    fn finish_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        let counters = &self.counters;
        add(&counters.received, turn.received);
        add(&counters.sent, turn.sent);
        add(&counters.requests, turn.requests);
        add(&counters.bytes_received, turn.bytes_received);
        add(&counters.bytes_sent, turn.bytes_sent);
        add(&counters.turns, 1);
    }
}
