//! What a worker says while it runs.

use crate::plan::Phase;
use crate::result::WorkerResult;
use serde::{Deserialize, Serialize};

/// A line that the worker writes to its standard output while it runs, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkerEvent {
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
        result: Box<WorkerResult>,
    },
    /// The run could not go on; nothing follows.
    Failed {
        /// What, where, and what to try.
        reason: String,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
