//! The server's event loop without sockets, clock and counters: it carries out effects and fans out in the same order as
//! `crates/server/src/event_loop`, whose names it has. What has guarantees is the code of the session and of the log.

mod acting;
mod fanout;
mod reading;
mod writing;

pub use reading::Ready;

use crate::fault::Seam;
use crate::link::Socket;
use crate::slow_log::SlowLog;
use crate::tally::{Happening, Tally};
use crate::truth::{Checked, Finding, Kind};
use pushlab_log::{Entry, Log, Publication, Replay, Settled, Ticket, Turn};
use pushlab_session::batch::Batch;
use pushlab_session::effect::{Context, Effect, Output, Time};
use pushlab_session::exchange::{Exchange, Silence};
use pushlab_session::framing::Framing;
use pushlab_session::missed::Kept;
use pushlab_session::queue::QueueRules;
use pushlab_session::rules::Rules;
use pushlab_session::spread::Spread;
use pushlab_session::subscriber::Subscriber;
use pushlab_session::unsent::Unsent;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Time for our last bytes to be read.
const LINGER: Duration = Duration::from_secs(2);
/// Time for an answer to be taken, however slowly.
const TAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// Over how long clients come back.
const RETURN_WINDOW: Duration = Duration::from_secs(5);
/// A deadline that does not come.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Open,
    Lingering,
    Ended,
}

/// Channels, sorted; none is no group.
type Group = Rc<[Channel]>;

pub struct Connection {
    pub generation: u32,
    socket: Socket,
    stage: Stage,
    pub exchange: Exchange,
    group: Group,
    /// The framing in which it is a member of its group.
    member_as: Option<Framing>,
    deadline: u64,
    last_read: u64,
    last_progress: u64,
    taken_by: u64,
    carry: Vec<u8>,
    unsent: Option<Box<Unsent>>,
    ticket: Option<Ticket>,
    has_unread: bool,
    is_behind: bool,
    has_ended: bool,
    /// It is a stream of HTTP/2, and the exchange knows whether the client's side has ended.
    http2: Option<bool>,
}

impl Connection {
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    fn is_gone(&self) -> bool {
        self.stage == Stage::Ended
    }

    fn has_queued(&self) -> bool {
        self.unsent.is_some() || self.exchange.subscriber.has_queued()
    }

    fn is_held_back(&self, max_bytes: usize) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| unsent.replies() > max_bytes)
    }

    fn waits(&self, max_bytes: usize) -> bool {
        self.exchange.is_busy() || self.is_held_back(max_bytes)
    }
}

/// Limits that the session does not know.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub queue: QueueRules,
    pub splits_events: bool,
    pub max_unread_replies_bytes: usize,
    pub read_buffer_bytes: usize,
    /// Work done for one connection in one turn.
    pub max_work: u32,
}

/// What has come in a turn.
#[derive(Default)]
struct Arrivals {
    publications: Vec<Arc<Publication>>,
    settlements: Vec<(Ticket, Settlement)>,
}

enum Settlement {
    Published(Cursor),
    Read(Replay),
    Failed,
}

struct Asked {
    id: usize,
    generation: u32,
    after: Option<Cursor>,
    is_from_now: bool,
}

pub struct EventLoop {
    pub rules: Rules,
    limits: Limits,
    queue_rules: QueueRules,
    pub log: SlowLog,
    epoch: Epoch,
    pub seam: Seam,
    pub connections: Vec<Option<Connection>>,
    generation: u32,
    asked: HashMap<Ticket, Asked>,
    inbox: Arrivals,
    /// What came out of the log and is not known to the model yet.
    pub published: Vec<Arc<Publication>>,
    offered_to: u64,
    pub now: u64,
    unfinished: Vec<usize>,
    doomed: Vec<usize>,
    batch: Batch,
    kept: Kept,
    out: Vec<u8>,
    pub output: Output,
    work_left: u32,
    pub drain: Option<Spread>,
    pub tally: Tally,
    /// The first thing that was wrong.
    finding: Option<Finding>,
}

impl EventLoop {
    pub fn new(rules: Rules, limits: Limits, log: SlowLog, seam: Seam, now: u64) -> Self {
        Self {
            rules,
            limits,
            queue_rules: seam.spoil_rules(limits.queue),
            epoch: log.head().epoch,
            log,
            seam,
            connections: Vec::new(),
            generation: 0,
            asked: HashMap::new(),
            inbox: Arrivals::default(),
            published: Vec::new(),
            offered_to: 0,
            now,
            unfinished: Vec::new(),
            doomed: Vec::new(),
            batch: Batch::default(),
            kept: Kept::default(),
            out: Vec::new(),
            output: Output::default(),
            work_left: 0,
            drain: None,
            tally: Tally::default(),
            finding: None,
        }
    }

    /// What was found wrong since it was asked last.
    pub fn check(&mut self) -> Checked {
        self.finding.take().map_or(Ok(()), Err)
    }

    fn report(&mut self, kind: Kind, what: String) {
        self.finding.get_or_insert(Finding { kind, what });
    }

    fn at(&mut self, id: usize) -> &mut Connection {
        self.connections[id].as_mut().expect("a connection stays in its place until the end of the turn")
    }

    /// One turn after the events: as `EventLoop::run`.
    pub fn turn(&mut self) {
        self.go_on_with_unfinished();
        self.on_timers();
        self.fan_out();
        self.connections.iter_mut().for_each(|place| {
            place.take_if(|connection| connection.is_gone());
        });
    }

    pub fn is_idle(&self) -> bool {
        self.unfinished.is_empty()
            && self.inbox.publications.is_empty()
            && self.inbox.settlements.is_empty()
            && !self.log.has_pending()
    }

    /// A connection comes; gives its place, and what tells it from others there.
    pub fn admit(&mut self, socket: Socket) -> (usize, u32) {
        self.generation += 1;
        let connection = Connection {
            generation: self.generation,
            socket,
            stage: Stage::Open,
            exchange: Exchange::default(),
            group: Rc::new([]),
            member_as: None,
            deadline: NEVER,
            last_read: self.now,
            last_progress: self.now,
            taken_by: 0,
            carry: Vec::new(),
            unsent: None,
            ticket: None,
            has_unread: false,
            is_behind: false,
            has_ended: false,
            http2: None,
        };
        let free = self.connections.iter().position(Option::is_none);
        let id = free.unwrap_or(self.connections.len());
        if free.is_none() {
            self.connections.push(None);
        }
        self.connections[id] = Some(connection);
        self.set_deadline(id, self.rules.head_timeout);
        (id, self.generation)
    }

    // --- Distributor ---

    /// Publishes, for an exchange or from elsewhere.
    pub fn publish(&mut self, channel: &str, data: &str) -> Result<Turn<Cursor>, BadChannel> {
        let entry = Entry { channel, data, receipt: None };
        Ok(match self.log.append(entry, self.now)? {
            Turn::Done(publication) => Turn::Done(self.distribute(publication)),
            Turn::Pending(ticket) => Turn::Pending(ticket),
        })
    }

    fn distribute(&mut self, publication: Arc<Publication>) -> Cursor {
        let cursor = Cursor { epoch: self.epoch, offset: publication.offset };
        self.published.push(publication.clone());
        self.inbox.publications.push(publication);
        cursor
    }

    /// The log has answered at most so many of those who wait.
    pub fn settle(&mut self, count: usize) {
        self.log.allowance = count;
        while let Some(settled) = self.log.settled() {
            let (ticket, settlement) = match settled {
                Settled::Published(publication, ticket) => {
                    let cursor = self.distribute(publication);
                    let Some(ticket) = ticket else { continue };
                    (ticket, Settlement::Published(cursor))
                }
                Settled::Read(replay, ticket) => (ticket, Settlement::Read(replay)),
                Settled::Failed(ticket) => (ticket, Settlement::Failed),
            };
            self.inbox.settlements.push((ticket, settlement));
        }
    }

    // --- Timers ---

    fn set_deadline(&mut self, id: usize, delay: Duration) {
        self.at(id).deadline = self.now + delay.as_nanos() as u64;
    }

    fn on_timers(&mut self) {
        for id in 0..self.connections.len() {
            let now = self.now;
            let Some(connection) = self.connections[id].as_mut().filter(|c| c.deadline <= now) else { continue };
            connection.deadline = NEVER;
            self.on_deadline(id);
            let connection = self.at(id);
            if !connection.is_gone() && connection.deadline == NEVER {
                let what = format!("nothing wakes {:?}", connection.exchange);
                self.report(Kind::Stuck, what);
            }
        }
    }

    fn on_deadline(&mut self, id: usize) {
        let now = self.now;
        let nanoseconds = |d: Duration| d.as_nanos() as u64;
        let (write_timeout, heartbeat) = (self.rules.write_timeout, self.rules.heartbeat);
        let max_unread = self.limits.max_unread_replies_bytes;
        let connection = self.at(id);
        let has_queued = connection.has_queued();
        let is_taking = |since: u64, d: Duration| has_queued && now.saturating_sub(since) < nanoseconds(d);
        if has_queued && !is_taking(connection.last_progress, write_timeout) {
            return self.close(id);
        }
        match connection.stage {
            Stage::Open if connection.exchange.is_answering() && connection.taken_by <= now => self.close(id),
            Stage::Open if connection.exchange.is_answering() => {
                let left = Duration::from_nanos(connection.taken_by - now);
                self.set_deadline(id, write_timeout.min(left));
            }
            Stage::Open => {
                let last_sign = connection.last_read.max(connection.last_progress);
                let silence = Silence {
                    has_queued,
                    has_partial: !connection.carry.is_empty(),
                    is_long: now.saturating_sub(last_sign) >= 2 * nanoseconds(heartbeat)
                        && !connection.is_held_back(max_unread),
                };
                let effect = self.step(id, |exchange, cx| exchange.expire(silence, cx));
                self.act(id, effect);
            }
            Stage::Lingering if is_taking(connection.last_progress, LINGER) => self.set_deadline(id, LINGER),
            Stage::Lingering => self.close(id),
            Stage::Ended => {}
        }
    }

    // --- Ends ---

    fn close(&mut self, id: usize) {
        if self.at(id).is_gone() {
            return;
        }
        self.leave_group(id);
        let connection = self.at(id);
        connection.ticket = None;
        connection.socket.shut(false);
        connection.stage = Stage::Ended;
        connection.exchange.end();
        connection.exchange.subscriber = Subscriber::default();
        connection.unsent = None;
        connection.carry = Vec::new();
    }

    fn close_gently(&mut self, id: usize) {
        if self.at(id).is_gone() {
            return;
        }
        self.leave_group(id);
        let connection = self.at(id);
        connection.ticket = None;
        connection.stage = Stage::Lingering;
        connection.exchange.end();
        connection.carry = Vec::new();
        if connection.has_queued() {
            connection.exchange.subscriber.abandon_queue();
            if connection.unsent.as_ref().is_none_or(|unsent| unsent.is_empty()) {
                connection.unsent = None;
            }
        }
        if !connection.has_queued() {
            connection.socket.shut(true);
        }
        self.set_deadline(id, LINGER);
        self.check_end(id);
    }

    /// Behind its end an exchange says nothing and asks for nothing.
    fn check_end(&mut self, id: usize) {
        let mut bytes = *b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let used = self.step(id, |exchange, cx| {
            let (used, effect) = exchange.receive(&mut bytes, cx);
            let effects = [effect, exchange.catch_up(cx), exchange.flushed(cx), exchange.drain(false, cx)];
            effects.iter().all(|effect| matches!(effect, Effect::Nothing)).then_some(used)
        });
        if used != Some(bytes.len()) || !self.output.bytes.is_empty() || !self.output.head.is_empty() {
            let what = format!("behind its end it goes on: {:?}", self.at(id).exchange);
            self.report(Kind::Stuck, what);
        }
    }

    pub fn begin_drain(&mut self) {
        self.drain = Some(Spread::new(RETURN_WINDOW, 0));
        self.tally.count(Happening::Stop);
        for id in 0..self.connections.len() {
            let Some(connection) = self.connections[id].as_ref().filter(|connection| connection.is_open()) else {
                continue;
            };
            let has_partial = !connection.carry.is_empty();
            let effect = self.step(id, |exchange, cx| exchange.drain(has_partial, cx));
            self.act(id, effect);
        }
    }

    // --- Membership ---

    fn leave_group(&mut self, id: usize) {
        let connection = self.at(id);
        connection.group = Rc::new([]);
        let member_as = connection.member_as.take();
        // The real loop looks for it in the list of the framing that it has now.
        let framing = connection.exchange.framing();
        if member_as.is_some() && member_as != framing {
            self.report(Kind::Stuck, format!("it leaves as {framing:?} what it entered as {member_as:?}"));
        }
    }

    fn join_group(&mut self, id: usize, group: Group) {
        self.leave_group(id);
        self.at(id).group = group;
        self.enter_group(id);
    }

    fn enter_group(&mut self, id: usize) {
        let connection = self.at(id);
        let framing = connection.exchange.framing().filter(|_| !connection.group.is_empty());
        if framing.is_some() && connection.member_as.replace(framing.expect("it is some")).is_some() {
            self.report(Kind::Doubled, "it enters a group twice".to_owned());
        }
    }

    /// One step of an exchange.
    fn step<R>(&mut self, id: usize, with: impl FnOnce(&mut Exchange, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            rules: &self.rules,
            peer: None,
            is_leaving: false,
            drain: self.drain.as_mut(),
            time: Time::default(),
            epoch: self.epoch,
            offered_to: self.offered_to,
            receipt: None,
            output: &mut self.output,
        };
        let connection = self.connections[id].as_mut().expect("it stays in its place until the end of the turn");
        with(&mut connection.exchange, &mut cx)
    }
}
