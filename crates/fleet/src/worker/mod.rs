//! One worker: hosts its segment of the clients, does what the coordinator orders, and says what it measured.

mod allowed;
mod hosted;

pub use allowed::Allowed;

use crate::backend::{Announcement, BackEnd, BackEndError};
use crate::browser::{BrowserError, Pages};
use crate::clock::SteeredClock;
use crate::lines;
use hosted::{Hosted, Ready};
use pushlab_load::dial::Dialler;
use pushlab_load::tls::BadCertificate;
use pushlab_os::clock::{monotonic_ns, sleep_until};
use pushlab_os::{descriptors, limits};
use pushlab_workload::clock::Uneven;
use pushlab_workload::messages::{Message, Order, WorkerState};
use pushlab_workload::payload::Form;
use pushlab_workload::plan::Plan;
use pushlab_workload::plan_checks::BadPlan;
use pushlab_workload::result::Part;
use pushlab_workload::roles::Roles;
use pushlab_workload::scenario::Scenario;
use pushlab_workload::seconds::{SecondPart, SecondTable};
use pushlab_workload::segment::Segment;
use pushlab_workload::timeline::Timeline;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

const MS: u64 = 1_000_000;
/// How often the worker looks how far it is while it is waited for, ns.
const WATCH_NS: u64 = 2 * MS;
/// The same while the load runs, and whether its threads live.
const SLOW_WATCH_NS: u64 = 250 * MS;
/// Longest time between two words, ns: who says nothing is taken for dead.
const WORD_NS: u64 = 1_000 * MS;
/// Orders as they come; one that cannot be read is a text that says why.
pub type Orders = Receiver<Result<Order, String>>;

/// Why a worker could not go on.
#[derive(Debug, thiserror::Error)]
enum WorkerError {
    #[error("the worker's orders cannot be carried out: {0}")]
    Orders(String),
    #[error("the worker was not told to prepare first")]
    Unprepared,
    #[error("the plan cannot be run: {0}")]
    Plan(#[from] BadPlan),
    #[error(transparent)]
    BackEnd(#[from] BackEndError),
    #[error("the back end cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the worker was not given a listener at {address} as descriptor {descriptor}: {source}")]
    Inherit { address: SocketAddr, descriptor: i32, source: io::Error },
    #[error("the plan cannot be run: {0}")]
    Certificate(#[from] BadCertificate),
    #[error(
        "the subject did not connect to the back end at {address} within {connect_ms} ms: was it given this address?"
    )]
    NoSubject { address: SocketAddr, connect_ms: u64 },
    #[error("the clients' browser: {0}")]
    Browser(#[from] BrowserError),
    #[error("a thread of the load failed: {0}")]
    Thread(#[from] io::Error),
    #[error(transparent)]
    Clock(#[from] Uneven),
}

/// Reads orders from `input` and writes messages to `output`, a JSON text a line.
///
/// The last line is `done` or `failed`; returns whether it was the former. When `input` ends, so does the worker. The clock
/// is steered after the coordinator's, unless they are one. It uses only the allowed files and programs of this machine,
/// whatever the plan says.
///
/// # Errors
/// When `output` cannot be written.
pub fn serve(
    input: impl io::Read + Send + 'static,
    mut output: impl Write,
    clock: Option<&SteeredClock>,
    allowed: Allowed,
) -> io::Result<bool> {
    let (sender, orders) = mpsc::channel();
    let complete = move |order: Result<Order, String>| order.and_then(|order| allowed.complete(order));
    // Nobody listens any more when the worker is done; after the input, the sender is gone.
    lines::hear(input, move |order| order.is_some_and(|order| sender.send(complete(order)).is_ok()))?;
    let mut broken = None;
    let mut is_done = false;
    work(&orders, None, clock, &mut |message| {
        is_done |= matches!(message, Message::Done { .. });
        if let Err(error) = lines::say(&mut output, &message) {
            broken = Some(error);
        }
    });
    broken.map_or(Ok(is_done), Err)
}

/// Works on the calling thread until it is done or cannot go on; that is said last. The listener is for the back end, if
/// the caller has bound one. The clock is steered after the coordinator's, unless they are one.
pub fn work(
    orders: &Orders,
    listener: Option<TcpListener>,
    clock: Option<&SteeredClock>,
    say: &mut dyn FnMut(Message),
) {
    let message = match attempt(orders, listener, clock, say) {
        Ok((part, seconds)) => Message::Done { part: Box::new(part), seconds },
        Err(error) => Message::Failed { reason: error.to_string() },
    };
    say(message);
}

/// What was measured, and how many seconds were told.
fn attempt(
    orders: &Orders,
    listener: Option<TcpListener>,
    clock: Option<&SteeredClock>,
    say: &mut dyn FnMut(Message),
) -> Result<(Part, usize), WorkerError> {
    let (plan, segment) = match next_order(orders, None)? {
        Some(Order::Prepare { plan, segment }) => (*plan, segment),
        Some(Order::Abandon) => return Ok((Part::default(), 0)),
        _ => return Err(WorkerError::Unprepared),
    };
    let roles = Roles::of(&plan, limits::descriptors().soft)?;
    if roles.loops > segment.loops_of_all {
        // The coordinator counted on more descriptors than this machine has.
        let limit = limits::descriptors().soft;
        return Err(BadPlan::TooFewDescriptors { loops: segment.loops_of_all, needed: limit + 1, limit }.into());
    }
    let dialler = Dialler::of(&plan)?;
    let back_end = match roles.feed.filter(|_| segment.has_instruments()) {
        Some(form) => Some(start_back_end(&plan, &roles, form, listener)?),
        None => None,
    };
    let pages = match plan.clients_in.is_browser().then(|| Pages::start(&plan)).transpose() {
        Ok(pages) => pages,
        Err(error) => {
            back_end.map(BackEnd::stop).transpose()?;
            return Err(error.into());
        }
    };
    say(Message::Prepared);
    let origin_ns = match next_order(orders, None)? {
        Some(Order::Connect { origin_ns }) => origin_ns,
        _ => {
            back_end.map(BackEnd::stop).transpose()?;
            return Ok((Part::default(), 0));
        }
    };
    let ready = Ready { plan: &plan, roles: &roles, segment, dialler, back_end, pages };
    let hosted = Hosted::start(ready, origin_ns)?;
    let watch = Watch {
        plan: &plan,
        roles: &roles,
        segment,
        hosted,
        clock,
        say,
        stage: Stage::Connecting,
        said: WorkerState::default(),
        seconds: 0,
        cpu_before_ns: 0,
        cpu_load_ns: 0,
        unsubscribed: 0,
    };
    watch.work(orders)
}

/// The next order; nothing if none comes in time. A coordinator that is gone wants nothing any more.
fn next_order(orders: &Orders, timeout: Option<Duration>) -> Result<Option<Order>, WorkerError> {
    let order = match timeout {
        Some(timeout) => orders.recv_timeout(timeout),
        None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    match order {
        Ok(order) => order.map(Some).map_err(WorkerError::Orders),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Order::Abandon)),
    }
}

fn start_back_end(
    plan: &Plan,
    roles: &Roles,
    form: Form,
    listener: Option<TcpListener>,
) -> Result<BackEnd, WorkerError> {
    let listener = match (listener, plan.backend_listen) {
        (Some(listener), _) => listener,
        (None, Some(address)) => listen(plan, address)?,
        (None, None) => return Err(BadPlan::NoBackEnd.into()),
    };
    let interval_us = match plan.scenario {
        Scenario::Feed { interval_us, .. } => interval_us,
        _ => 0,
    };
    let count = roles.pacing(plan, 0).map_or(0, |pacing| pacing.count);
    let back_end = BackEnd::start(listener, Announcement { interval_us, count, form })?;
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

/// How far a worker is, and until when.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Clients connect.
    Connecting,
    /// Before the load.
    Waiting {
        load_ns: u64,
        load_end_ns: u64,
    },
    Loading {
        load_end_ns: u64,
    },
    /// Until everything under way has come.
    Draining,
    Ending {
        end_ns: u64,
    },
}

impl Stage {
    /// When to look again at the latest, ns: soon while the coordinator waits for something.
    fn next_ns(self, now: u64) -> u64 {
        match self {
            Self::Connecting | Self::Draining => now + WATCH_NS,
            Self::Waiting { load_ns: next_ns, .. }
            | Self::Loading { load_end_ns: next_ns }
            | Self::Ending { end_ns: next_ns } => next_ns.min(now + SLOW_WATCH_NS),
        }
    }
}

/// The calling thread's view of the run: it waits for orders and says how far everything is.
struct Watch<'a> {
    plan: &'a Plan,
    roles: &'a Roles,
    segment: Segment,
    hosted: Hosted,
    clock: Option<&'a SteeredClock>,
    say: &'a mut dyn FnMut(Message),
    stage: Stage,
    said: WorkerState,
    /// Seconds told.
    seconds: usize,
    /// CPU time of all threads when the load began, and what the load took, ns.
    cpu_before_ns: u64,
    cpu_load_ns: u64,
    unsubscribed: u32,
}

impl Watch<'_> {
    /// What was measured, and how many seconds were told.
    fn work(mut self, orders: &Orders) -> Result<(Part, usize), WorkerError> {
        loop {
            let now = monotonic_ns();
            self.pass_time(now);
            if matches!(self.stage, Stage::Ending { end_ns } if now >= end_ns) {
                return self.finish();
            }
            if self.hosted.has_dead_thread() {
                return Err(self.hosted.why_broken().into());
            }
            self.clock.map_or(Ok(()), SteeredClock::check)?;
            self.tell(now);
            let wait = Duration::from_nanos(self.stage.next_ns(now).saturating_sub(monotonic_ns()));
            match next_order(orders, Some(wait))? {
                None | Some(Order::Prepare { .. } | Order::Connect { .. }) => {}
                Some(Order::Begin { idle_ns }) => {
                    let timeline = Timeline::of(self.plan, self.roles, idle_ns);
                    self.stage = Stage::Waiting { load_ns: timeline.load_ns, load_end_ns: timeline.load_end_ns };
                    self.hosted.begin(timeline);
                }
                Some(Order::Finish { after_ns }) => {
                    let end_ns = after_ns + self.plan.phases.after_ms * MS;
                    self.stage = Stage::Ending { end_ns };
                    self.hosted.state().set_after(after_ns);
                    self.hosted.state().set_end(end_ns);
                }
                Some(Order::Abandon) => {
                    self.hosted.state().set_end(now);
                    return self.finish();
                }
            }
        }
    }

    /// Notes what is known at the beginning and the end of the load alone.
    fn pass_time(&mut self, now: u64) {
        if let Stage::Waiting { load_ns, load_end_ns } = self.stage
            && now >= load_ns
        {
            self.cpu_before_ns = self.hosted.state().cpu_ns();
            if let Some(clock) = self.clock {
                clock.begin_measuring();
            }
            let own = self.segment.clients(self.plan.clients);
            self.unsubscribed = own.saturating_sub(self.hosted.progress().subscribed);
            self.stage = Stage::Loading { load_end_ns };
        }
        if matches!(self.stage, Stage::Loading { load_end_ns } if now >= load_end_ns) {
            self.cpu_load_ns = self.hosted.state().cpu_ns().saturating_sub(self.cpu_before_ns);
            self.stage = Stage::Draining;
        }
    }

    /// Says how far everything is, if that has changed or nothing was said for long.
    fn tell(&mut self, now: u64) {
        let state = self.hosted.progress();
        if state.differs(&self.said) || now >= self.said.t_ns + WORD_NS {
            self.said = state;
            (self.say)(Message::State(state));
        }
        self.tell_seconds(SecondTable::take_closed);
    }

    fn tell_seconds(&mut self, next: fn(&mut SecondTable) -> Option<(usize, SecondPart)>) {
        while let Some((index, part)) = self.hosted.state().with_seconds(next) {
            self.seconds += 1;
            (self.say)(Message::Second { index, part });
        }
    }

    fn finish(mut self) -> Result<(Part, usize), WorkerError> {
        self.hosted.join()?;
        self.tell_seconds(SecondTable::take_front);
        self.clock.map_or(Ok(()), SteeredClock::check)?;
        let mut part = self.hosted.into_part()?;
        part.clocks.extend(self.clock.map(|clock| clock.of_worker(self.segment.worker)));
        (part.cpu_load_ns, part.unsubscribed) = (self.cpu_load_ns, u64::from(self.unsubscribed));
        Ok((part, self.seconds))
    }
}
