//! Servers that the lab did not start, seen by agents beside them: their CPU time, memory, sockets and counters.
//!
//! An agent joins a fleet as workers do. For each run it starts a process ([`serve`]), which finds the server's, samples it
//! and tells the lab ([`Watch`]) what a local run would have read itself.

mod beside;
mod watch;
mod watched;

pub use beside::{Beside, serve};
pub use watch::{Agent, Elsewhere, FromBeside};
pub use watched::Agents;

use pushlab_probe::{MachineLoad, Sample, TcpActivity};
use pushlab_record::{CounterSample, KernelMemory};
use pushlab_workload::plan::{Phase, Target};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often an agent tells what it has sampled.
const TELL: Duration = Duration::from_millis(250);

/// What a lab tells the process of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Watch the server that clients reach so, and read it first after this time.
    Watch {
        /// How clients reach it.
        target: Target,
        /// Time before the first sample.
        delay_ns: u64,
    },
    /// Read its counters: it is ours.
    Count {
        /// Time between two readings.
        interval_ns: u64,
        /// Time before the first.
        delay_ns: u64,
    },
    /// A phase has begun.
    Phase(Phase),
    /// The run is over.
    End,
}

/// What the process of an agent tells a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Report {
    /// It has found the server, and watches.
    Watching,
    /// What it has sampled.
    Samples(Vec<Sample>),
    /// The server's processes have ended.
    Gone,
    /// It is done.
    Done(Box<Seen>),
    /// It cannot go on, and why.
    Failed(String),
}

/// What an agent tells of a run at its end.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    /// Planned readings that it missed.
    ticks_missed: u64,
    counters: Vec<CounterSample>,
    /// How busy its machine was in the load phase.
    machine: Option<MachineLoad>,
    /// What TCP did in the load and drain phases.
    tcp: Option<TcpActivity>,
    kernel: Option<KernelMemory>,
}
