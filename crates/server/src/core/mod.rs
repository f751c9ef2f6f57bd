//! One event loop: a thread that owns its connections and writes to them straight away.
//!
//! A turn reads what has come, then fans out everything that was published meanwhile. When the loop is behind, more
//! publications meet in one turn and share one write per socket: corking adapts by itself and delays nothing.

mod catch_up;
mod fanout;
pub mod feed;
mod http;
mod websocket;

use crate::config::{Config, Limits};
use crate::connection::{Connection, FeedPhase, Kind, NO_GROUP};
use crate::framing::Framing;
use crate::groups::Groups;
use crate::hub::{self, Hub, Inbox, Publication};
use crate::outbox::{Verdict, write_some};
use crate::stats::{Counters, add, shift};
use crate::wheel::{TICK, Tick, Wheel};
use feed::{FeedState, TickState};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use pushlab_wire::codes::{CloseCode, ErrorCode};
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{self as ws, Role};
use slab::Slab;
use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub const LISTENER: Token = Token(usize::MAX - 1);
pub const WAKER: Token = Token(usize::MAX - 2);

/// Bytes read from one connection in one turn.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Connections accepted in one turn.
const MAX_ACCEPTS: usize = 256;
/// How long our last words may take to be read.
const LINGER: Duration = Duration::from_secs(2);
/// How long an accept that failed for want of descriptors waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a feed waits before it tries again to publish what an event loop that is behind did not take.
const FEED_PAUSE: Duration = Duration::from_millis(1);
/// How often forgotten groups are swept.
const GROUP_SWEEP: Duration = Duration::from_secs(10);

/// What all event loops of a server share.
pub struct Shared {
    pub config: Config,
    pub hub: Hub,
    pub counters: Vec<Arc<Counters>>,
    pub open: AtomicUsize,
    pub is_draining: AtomicBool,
}

pub struct Core {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    inbox: Arc<Inbox>,
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
    pub fn new(shared: Arc<Shared>, index: usize, poll: Poll, listener: TcpListener, inbox: Arc<Inbox>) -> Self {
        let now = Instant::now();
        let config = &shared.config;
        let is_first = index == 0;
        Self {
            counters: shared.counters[index].clone(),
            inbox,
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

    // --- Accepting ---

    fn accept(&mut self) {
        self.accept_again = None;
        for _ in 0..MAX_ACCEPTS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, _)) => self.admit(socket),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptors or no memory: those who wait in the backlog are served when others leave.
                Err(_) => {
                    self.accept_again = Some(self.now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
        self.accept_again = Some(self.now);
    }

    fn admit(&mut self, mut socket: TcpStream) {
        add(&self.counters.accepted, 1);
        let max = self.limits().max_connections;
        if self.shared.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            add(&self.counters.refused, 1);
            // The answer goes out before the request is read, so that refusing costs next to nothing.
            let text = format!("the server holds {max} connections, as many as it may");
            let answer = http::refusal(ErrorCode::TooManyConnections, &text);
            let _ = write_some(&mut socket, &answer);
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read(&mut self.read_buffer);
            return;
        }
        shift(&self.counters.open, 1);
        let connection = Connection::new(socket, Kind::Http(None), self.wheel.now());
        if let Some(id) = self.adopt(connection) {
            self.set_deadline(id, self.limits().head_timeout);
        }
    }

    /// Registers a connection that is already counted as open.
    fn adopt(&mut self, connection: Connection) -> Option<usize> {
        let id = self.connections.insert(connection);
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.poll.registry().register(&mut self.connections[id].socket, Token(id), interest) {
            Ok(()) => Some(id),
            Err(_) => {
                self.close(id);
                None
            }
        }
    }

    // --- Reading ---

    fn on_event(&mut self, id: usize, event: &Event) {
        if event.is_writable() && self.connections.contains(id) {
            if self.is_connecting(id) {
                self.feed_connected(id);
            }
            self.flush(id);
        }
        let is_closed = event.is_read_closed();
        // A feed that is stalled is not read: what it sends stays with its sender.
        if (event.is_readable() || is_closed) && self.connections.contains(id) && !self.is_stalled(id) {
            self.read(id);
            // The end came with the last bytes. A short read does not show it, and there is no second event for it.
            if is_closed && self.connections.contains(id) {
                self.unfinished.push(id);
            }
        }
    }

    /// Reads one buffer; what is left is read in the next turn, after everybody else had theirs.
    fn read(&mut self, id: usize) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let result = self.connections[id].socket.read(&mut buffer);
        match result {
            Ok(0) => self.close(id),
            Ok(n) => {
                self.turn.bytes_received += n as u64;
                self.connections[id].last_read = self.wheel.now();
                self.take_in(id, &mut buffer[..n]);
                // A short read has emptied the socket: epoll(7) allows to rely on it for streams.
                if self.connections.contains(id) && (n == buffer.len() || self.is_stalled(id)) {
                    self.unfinished.push(id);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => self.unfinished.push(id),
            Err(_) => self.close(id),
        }
        self.read_buffer = buffer;
    }

    /// Understands bytes, together with what was left before.
    fn take_in(&mut self, id: usize, fresh: &mut [u8]) {
        let mut carry = std::mem::take(&mut self.connections[id].carry);
        if carry.is_empty() {
            let used = self.understand(id, fresh);
            if used < fresh.len() {
                carry.extend_from_slice(&fresh[used..]);
            }
        } else {
            carry.extend_from_slice(fresh);
            let used = self.understand(id, &mut carry);
            carry.drain(..used);
        }
        if carry.is_empty() {
            return;
        }
        let max = self.limits().max_head_bytes.max(self.limits().max_message_bytes);
        if let Some(connection) = self.connections.get_mut(id) {
            let max = if let Kind::Feed(_) = connection.kind { feed::MAX_MESSAGE_BYTES } else { max };
            connection.carry = carry;
            if connection.carry.len() > max + READ_BUFFER_BYTES {
                self.close(id);
            }
        }
    }

    /// Gives bytes to whatever is spoken on the connection until it wants no more; says how many were used.
    fn understand(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let Some(connection) = self.connections.get(id) else { return bytes.len() };
            let rest = &mut bytes[at..];
            let used = match connection.kind {
                Kind::Http(_) => self.on_http(id, rest),
                Kind::WebSocket { .. } => self.on_websocket(id, rest),
                Kind::Feed(_) => self.on_feed(id, rest),
                Kind::Stream(_) | Kind::Lingering => rest.len(),
                // The next request waits until this one is answered.
                Kind::HeldPoll => 0,
            };
            if used == 0 {
                break;
            }
            at += used;
        }
        at
    }

    fn go_on_with_unfinished(&mut self) {
        if self.unfinished.is_empty() {
            return;
        }
        let mut ids = std::mem::take(&mut self.unfinished);
        ids.sort_unstable();
        ids.dedup();
        for id in ids.drain(..) {
            self.go_on(id);
        }
        if self.unfinished.is_empty() {
            self.unfinished = ids;
        }
    }

    fn go_on(&mut self, id: usize) {
        let Some(connection) = self.connections.get(id) else { return };
        if connection.is_catching_up && connection.outbox.is_none() {
            self.catch_up(id);
        }
        if self.is_stalled(id) {
            self.publish_stalled();
        }
        if self.connections.get(id).is_some_and(|c| !c.carry.is_empty()) {
            self.take_in(id, &mut []);
        }
        if self.is_stalled(id) {
            self.unfinished.push(id);
        } else if self.connections.contains(id) {
            self.read(id);
        }
    }

    // --- Writing ---

    /// Sends bytes now, or queues them behind what is queued already.
    fn send(&mut self, id: usize, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut written = 0;
        if connection.outbox.is_none() {
            match write_some(&mut connection.socket, bytes) {
                Ok(n) => written = n,
                Err(_) => return self.close(id),
            }
        }
        self.turn.bytes_sent += written as u64;
        if written < bytes.len() {
            let limits = &self.shared.config.limits;
            let before = connection.outbox.as_ref().map_or(0, |o| o.bytes());
            let is_new = connection.outbox.is_none();
            let outbox = connection.outbox.get_or_insert_default();
            let verdict = outbox.push_bytes(&bytes[written..], limits);
            shift(&self.counters.queued_bytes, outbox.bytes() as i64 - before as i64);
            self.after_queueing(id, is_new, verdict);
        }
    }

    fn after_queueing(&mut self, id: usize, is_new: bool, verdict: Verdict) {
        if is_new {
            shift(&self.counters.slow_subscribers, 1);
            self.connections[id].last_progress = self.wheel.now();
            self.set_deadline(id, self.limits().write_timeout);
        }
        match verdict {
            Verdict::Stays { dropped } => add(&self.counters.dropped, dropped),
            Verdict::TooSlow => {
                add(&self.counters.closed_slow, 1);
                self.close(id);
            }
        }
    }

    /// Ends a subscriber that is too slow: a farewell takes the place of its queue, behind the frame that was begun.
    fn close_slow(&mut self, id: usize) {
        match self.connections[id].kind {
            Kind::WebSocket { .. } => self.close_websocket(id, CloseCode::SlowSubscriber, "its queue was full"),
            Kind::Stream(framing) => self.end_stream(id, framing),
            _ => self.close(id),
        }
    }

    fn end_stream(&mut self, id: usize, framing: Framing) {
        let mut end = Vec::new();
        framing.end(&mut end);
        self.send(id, &end);
        self.close_gently(id);
    }

    fn flush(&mut self, id: usize) {
        // Whatever came before in this event may have closed it.
        let Some(connection) = self.connections.get_mut(id) else { return };
        let framing = connection.framing_out();
        let Some(outbox) = &mut connection.outbox else { return };
        let before = outbox.bytes();
        let mut scratch = std::mem::take(&mut self.out);
        let result = outbox.flush(&mut connection.socket, framing, &self.shared.hub, &mut scratch);
        let after = outbox.bytes();
        self.out = scratch;
        shift(&self.counters.queued_bytes, after as i64 - before as i64);
        let Ok(flushed) = result else { return self.close(id) };
        self.turn.bytes_sent += flushed.bytes as u64;
        self.turn.sent += flushed.deliveries;
        add(&self.counters.gaps, flushed.gaps);
        if flushed.bytes > 0 {
            connection.last_progress = self.wheel.now();
        }
        if flushed.is_empty {
            connection.outbox = None;
            shift(&self.counters.slow_subscribers, -1);
            match connection.kind {
                Kind::Lingering => self.shut_down(id),
                Kind::Http(None) => self.set_deadline(id, self.limits().idle_timeout),
                _ if connection.is_catching_up => self.catch_up(id),
                _ => {}
            }
        }
    }

    // --- Ending ---

    /// Ends a connection at once.
    fn close(&mut self, id: usize) {
        if !self.connections.contains(id) {
            return;
        }
        self.leave_group(id);
        let connection = self.connections.remove(id);
        if let Some(outbox) = connection.outbox {
            shift(&self.counters.queued_bytes, -(outbox.bytes() as i64));
            shift(&self.counters.slow_subscribers, -1);
        }
        if let Some(transport) = connection.counted {
            shift(&self.counters.connections[transport.index()], -1);
        }
        if let Kind::Feed(_) = connection.kind {
            if let Some(feed) = &mut self.feed {
                feed.lost(self.now);
            }
            return;
        }
        shift(&self.counters.open, -1);
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends a connection after what was sent has been read: our side is shut, then the peer has [`LINGER`] to close.
    fn close_gently(&mut self, id: usize) {
        if !self.connections.contains(id) {
            return;
        }
        self.leave_group(id);
        let connection = &mut self.connections[id];
        connection.kind = Kind::Lingering;
        connection.carry = Vec::new();
        connection.is_catching_up = false;
        if let Some(outbox) = &mut connection.outbox {
            // Behind our last words nothing may follow; who resumes gets it then.
            let before = outbox.bytes();
            outbox.abandon_queue();
            let after = outbox.bytes();
            shift(&self.counters.queued_bytes, after as i64 - before as i64);
            if after == 0 {
                connection.outbox = None;
                shift(&self.counters.slow_subscribers, -1);
            }
        }
        if connection.outbox.is_none() {
            self.shut_down(id);
        }
        self.set_deadline(id, LINGER);
    }

    fn shut_down(&mut self, id: usize) {
        if self.connections[id].socket.shutdown(Shutdown::Write).is_err() {
            self.close(id);
        }
    }

    fn leave_group(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.group == NO_GROUP {
            return;
        }
        let (group, slot) = (connection.group as usize, connection.slot);
        connection.group = NO_GROUP;
        let framing = connection.framing();
        self.groups[group].references -= 1;
        if let Some(framing) = framing {
            if framing == Framing::Reply {
                shift(&self.counters.held_polls, -1);
            }
            if let Some(moved) = self.groups.leave(group, framing, slot) {
                self.connections[moved].slot = slot;
            }
        }
    }

    fn join_group(&mut self, id: usize, group: usize) {
        let connection = &mut self.connections[id];
        connection.group = group as u32;
        self.groups[group].references += 1;
        if let Some(framing) = connection.framing() {
            connection.slot = self.groups.join(group, framing, id);
            if framing == Framing::Reply {
                shift(&self.counters.held_polls, 1);
            }
        }
    }

    fn count_as(&mut self, id: usize, transport: Transport) {
        let connection = &mut self.connections[id];
        if connection.counted == Some(transport) {
            return;
        }
        if let Some(before) = connection.counted.replace(transport) {
            shift(&self.counters.connections[before.index()], -1);
        }
        shift(&self.counters.connections[transport.index()], 1);
    }

    // --- Time ---

    fn set_deadline(&mut self, id: usize, delay: Duration) {
        let at = self.wheel.after(delay);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.deadline = at;
        if at < connection.scheduled {
            connection.scheduled = at;
            self.wheel.insert(at, id);
        }
    }

    fn on_timers(&mut self) {
        if self.accept_again.is_some_and(|at| at <= self.now) {
            self.accept();
        }
        self.tick();
        self.keep_feed_connected();
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(self.now, &mut due);
        for (at, id) in due.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if connection.scheduled != at {
                continue;
            }
            connection.scheduled = Tick::MAX;
            if connection.deadline <= self.wheel.now() {
                self.on_deadline(id);
            } else {
                connection.scheduled = connection.deadline;
                self.wheel.insert(connection.deadline, id);
            }
        }
        self.due = due;
        if self.now >= self.next_sweep {
            self.next_sweep = self.now + hub::SWEEP_INTERVAL;
            self.shared.hub.sweep(self.now);
        }
        if self.now >= self.next_group_sweep {
            self.next_group_sweep = self.now + GROUP_SWEEP;
            self.groups.sweep();
        }
    }

    fn on_deadline(&mut self, id: usize) {
        let now = self.wheel.now();
        let limits = &self.shared.config.limits;
        let ticks = |d: Duration| Tick::try_from(d.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(Tick::MAX);
        let connection = &self.connections[id];
        let is_taking =
            |d: Duration| connection.outbox.is_some() && now.saturating_sub(connection.last_progress) < ticks(d);
        if connection.outbox.is_some() && !is_taking(limits.write_timeout) {
            add(&self.counters.closed_timeout, 1);
            return self.close(id);
        }
        // A peer that takes what is queued for it lives; no ping asked it to say so.
        let last_sign = connection.last_read.max(connection.last_progress);
        let is_silent = now.saturating_sub(last_sign) >= ticks(limits.heartbeat).saturating_mul(2);
        match connection.kind {
            Kind::HeldPoll => self.release_poll(id),
            Kind::WebSocket { .. } if is_silent => {
                add(&self.counters.closed_timeout, 1);
                self.close_websocket(id, CloseCode::IdleTimeout, "no answer to two pings");
            }
            Kind::WebSocket { .. } => self.heartbeat(id, Framing::WebSocket),
            Kind::Stream(framing) => self.heartbeat(id, framing),
            Kind::Http(None) if connection.outbox.is_some() => self.set_deadline(id, limits.write_timeout),
            Kind::Http(None) if connection.carry.is_empty() => {
                // Between two requests, or nothing came at all: not an error, just the end.
                add(&self.counters.closed_timeout, 1);
                self.close_gently(id);
            }
            Kind::Http(_) => {
                add(&self.counters.closed_timeout, 1);
                self.refuse(id, ErrorCode::RequestTimeout, "the request did not arrive in time");
            }
            Kind::Lingering if is_taking(LINGER) => self.set_deadline(id, LINGER),
            Kind::Feed(FeedPhase::Open(_)) if !is_silent || self.is_stalled(id) => self.ping_feed(id),
            Kind::Feed(_) | Kind::Lingering => self.close(id),
        }
    }

    fn heartbeat(&mut self, id: usize, framing: Framing) {
        // What is queued proves to the peer that we live; a heartbeat behind it would only add to it.
        if self.connections[id].outbox.is_none() {
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            framing.heartbeat(&mut out);
            self.send(id, &out);
            self.out = out;
        }
        self.set_deadline(id, self.limits().heartbeat);
    }

    // --- Stopping ---

    fn begin_drain(&mut self) {
        self.drain_until = Some(self.now + self.limits().drain_timeout);
        self.listener = None;
        self.feed = None;
        self.tick = None;
        let ids: Vec<usize> = self.connections.iter().map(|(id, _)| id).collect();
        for id in ids {
            match self.connections[id].kind {
                Kind::WebSocket { .. } => self.close_websocket(id, CloseCode::GoingAway, "the server is stopping"),
                Kind::Stream(framing) => self.end_stream(id, framing),
                Kind::HeldPoll => {
                    self.connections[id].keeps_alive = false;
                    self.release_poll(id);
                }
                Kind::Http(None) if self.connections[id].carry.is_empty() => self.close_gently(id),
                Kind::Feed(_) => self.close(id),
                Kind::Http(_) | Kind::Lingering => {}
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.drain_until.is_some_and(|until| self.connections.is_empty() || self.now >= until)
    }
}
