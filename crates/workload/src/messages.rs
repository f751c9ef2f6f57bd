//! What the coordinator of a run and its workers tell each other, and what the coordinator tells whoever started it.

use crate::plan::{Phase, Plan};
use crate::result::{LoadResult, Part};
use crate::seconds::SecondPart;
use crate::segment::Segment;
use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// What a worker is told: a JSON text a line. Instants are on the worker's monotonic clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// The first: get everything ready that needs no client.
    Prepare {
        /// What the run is.
        plan: Box<Plan>,
        /// Which part of it is the worker's.
        segment: Segment,
    },
    /// Connect the clients; the run began at an instant.
    Connect {
        /// From which seconds are counted and connections are spread, ns.
        origin_ns: u64,
    },
    /// Everybody is connected: the idle phase begins at an instant, and all others follow from it.
    Begin {
        /// When, ns.
        idle_ns: u64,
    },
    /// The drain is over: say what was measured after the last phase, which begins at an instant.
    Finish {
        /// When, ns.
        after_ns: u64,
    },
    /// End now, and say what was measured.
    Abandon,
}

/// What a worker says: a JSON text a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Message {
    /// Ready to connect.
    Prepared,
    /// How far it is, whenever that has changed.
    State(WorkerState),
    /// A second is over.
    Second {
        /// Which, since the run began.
        index: usize,
        /// What its clients saw of it.
        part: SecondPart,
    },
    /// The end.
    Done {
        /// What it measured.
        part: Box<Part>,
        /// How many seconds it has told; some may still be on their way.
        seconds: usize,
    },
    /// It could not go on; nothing follows.
    Failed {
        /// What, where, and what to try.
        reason: String,
    },
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerState {
    /// When, on its clock, ns: an older one that comes later says nothing new.
    pub t_ns: u64,
    /// Clients subscribed now.
    pub subscribed: u32,
    /// Clients that wait for one of their host's connections, all of which have endless answers, or will.
    pub held_back: u32,
    /// Collector and feeders subscribed now.
    pub instruments: u32,
    /// Whether its prober is connected, if it has one.
    pub has_prober: bool,
    /// Pings of its prober that wait for an answer.
    pub unanswered: usize,
    /// Publications sent in any phase.
    pub published: u64,
    /// Deliveries received in any phase.
    pub delivered: u64,
    /// Publications of the load phase sent.
    pub load_published: u64,
    /// Deliveries of the load phase, each counted once.
    pub load_delivered: u64,
    /// Deliveries of the load phase of which clients of a storm were told that they are gone.
    pub load_gone: u64,
    /// Publications in any phase, and attempts to subscribe, that the subject refused.
    pub refused: u64,
}

impl WorkerState {
    /// Whether anything but the time differs.
    pub fn differs(&self, other: &Self) -> bool {
        Self { t_ns: other.t_ns, ..*self } != *other
    }
}

/// How far several workers together are.
impl Sum for WorkerState {
    fn sum<I: Iterator<Item = Self>>(states: I) -> Self {
        states.fold(Self::default(), |all, own| Self {
            t_ns: all.t_ns.max(own.t_ns),
            subscribed: all.subscribed + own.subscribed,
            held_back: all.held_back + own.held_back,
            instruments: all.instruments + own.instruments,
            has_prober: all.has_prober || own.has_prober,
            unanswered: all.unanswered + own.unanswered,
            published: all.published + own.published,
            delivered: all.delivered + own.delivered,
            load_published: all.load_published + own.load_published,
            load_delivered: all.load_delivered + own.load_delivered,
            load_gone: all.load_gone + own.load_gone,
            refused: all.refused + own.refused,
        })
    }
}

/// What the coordinator says of a run while it goes on.
#[derive(Debug)]
pub enum RunEvent {
    /// All are connected, and the run waits to be told when to begin: one that takes turns with others.
    Ready,
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
        /// Monotonic clock of the host, ns.
        t_ns: u64,
    },
    /// Once a second.
    Progress(Progress),
    /// The end; nothing follows.
    Done {
        /// What was measured.
        result: Box<LoadResult>,
    },
    /// The run could not go on; nothing follows.
    Failed(LoadError),
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Too few clients.
    #[error(
        "{error}; {connected} of {clients} clients were subscribed after {connect_ms} ms{}",
        if *.has_prober { "" } else { ", and the prober was not connected" }
    )]
    NotConnected {
        /// Subscribed clients.
        connected: u32,
        /// Clients of the plan, and the collector or feeder.
        clients: u32,
        /// Time waited.
        connect_ms: u64,
        /// Whether the prober was connected, if there was to be one.
        has_prober: bool,
        /// What went wrong most often, or that nothing came.
        error: String,
    },
    /// A worker could not go on.
    #[error("{}{reason}", if *.workers > 1 { format!("worker {} of {workers}: ", worker + 1) } else { String::new() })]
    Worker {
        /// Which, from 0.
        worker: usize,
        /// Of how many.
        workers: usize,
        /// What it said.
        reason: String,
    },
    /// A worker says nothing any more.
    #[error("worker {} of {workers} {what} within {within_s} s", worker + 1)]
    Silent {
        /// Which, from 0.
        worker: usize,
        /// Of how many.
        workers: usize,
        /// What it did not do.
        what: &'static str,
        /// How long it was waited for.
        within_s: u64,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Clients connected.
    pub connected: u32,
    /// Publications sent so far.
    pub published: u64,
    /// Deliveries received so far.
    pub delivered: u64,
    /// Median delivery latency of the latest second that every loop has ended, ns; `None` where nothing was delivered.
    pub latency_median_ns: Option<u64>,
    /// 99th percentile of the same second's latency, ns.
    pub latency_p99_ns: Option<u64>,
    /// How long nothing has come from the subject although load was due, ms; 0 if that is not so.
    pub silent_ms: u64,
    /// Deliveries that what was published so far is still to make, or that were lost.
    pub outstanding: u64,
}
