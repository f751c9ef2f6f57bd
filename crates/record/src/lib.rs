//! What is kept of a run: enough to compute everything again, and to repeat it; and the figures that follow from it.

pub mod measure;

use pushlab_experiment::cell::Cell;
use pushlab_link::profile::Profile;
use pushlab_link::totals::Totals;
use pushlab_probe::Sample;
use pushlab_probe::TcpActivity;
use pushlab_probe::runtime_log::{Collection, LoopLag, MemoryUsage};
use pushlab_stats::{Histogram, Steady, Warning};
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Version of the record's format; raised when a field changes its meaning.
pub const RECORD_VERSION: u32 = 2;

/// A run as planned: a cell, which repeat of it, and its place in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Place in the order, from 1.
    pub order: u32,
    /// Which point.
    pub cell: Cell,
    /// Which repetition, from 1.
    pub repeat: u32,
    /// Seed of everything random in it.
    pub seed: u64,
}

/// One run, as it is written to its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// What was to be done.
    pub planned: PlannedRun,
    /// Wall-clock time of the start, RFC 3339, UTC.
    pub started_at: String,
    /// Wall-clock length of the whole run, ms.
    pub took_ms: u64,
    /// How often it was tried: again when the instrument failed, or when the subject was not steady at the end of its
    /// warm-up.
    pub attempts: u32,
    /// The tries before this one. Of results of earlier versions only their number is known.
    #[serde(default)]
    pub earlier: Vec<Attempt>,
    /// How the subject was warmed up; `None` where there was no load, and where that was not recorded.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// Whether it came to its end.
    pub outcome: Outcome,
    /// Why it is less certain than it looks.
    pub warnings: Vec<Warning>,
    /// What the generator measured; `None` when it never got to tell.
    pub result: Option<LoadResult>,
    /// The subject, every 50 ms.
    pub subject: Vec<Sample>,
    /// The generator, every 50 ms.
    pub generator: Vec<Sample>,
    /// The server's own counters, every 250 ms.
    pub counters: Vec<CounterSample>,
    /// Garbage collections of the subject, in their order; `None` where it did not log them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<Vec<Collection>>,
    /// How long the subject's event loop let a timer wait; empty where it does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_loop_lag: Vec<LoopLag>,
    /// The subject's memory by kind, as its runtime tells it; empty where it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_usage: Vec<MemoryUsage>,
    /// Command line of the subject.
    pub subject_command: Vec<String>,
    /// Why nothing but its clients tells of the subject, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unobserved: Option<String>,
    /// Order of the run for which the server was started, where runs of a block share one start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_since: Option<u32>,
    /// How many runs went side by side with it, itself counted; `None` where it went alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<u32>,
    /// What the worker was told; `None` when it was never started.
    pub plan: Option<Plan>,
    /// When the subject ran alone, ns; `None` where that was not asked for.
    pub baseline: Option<(u64, u64)>,
    /// Memory of the kernel; `None` where it cannot be read.
    pub kernel: Option<KernelMemory>,
    /// What TCP did in the subject's network namespace in the load and drain phases: without a network, on the whole
    /// machine.
    pub tcp: Option<TcpActivity>,
    /// The link between the two sides; `None` where there was none.
    pub network: Option<NetworkRecord>,
}

/// A try of a run after which it was tried again. What the subject did in it plays no part in that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Wall-clock time of the start, RFC 3339, UTC.
    pub started_at: String,
    /// Wall-clock length, ms.
    pub took_ms: u64,
    /// Why it was tried again: the code of the warning that voids it, [`LOAD_FAILED`] or [`NOT_WARM`].
    pub reason: String,
    /// The same in numbers, for people.
    pub detail: String,
    /// Figures by the metric's name, as far as it got: they count nowhere.
    pub figures: BTreeMap<String, f64>,
}

/// Why a run is tried again of which a worker could not go on although the subject lived.
pub const LOAD_FAILED: &str = "load-failed";
/// Why a run is tried again whose subject was not steady at the end of its warm-up.
pub const NOT_WARM: &str = "not-warm";

/// How a subject was warmed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long, ms.
    pub length_ms: u64,
    /// What its CPU time per delivery did in the last ten seconds of it; latency where nobody sees its CPU time.
    pub end: Steady,
}

/// What a link carried in one run. Bytes are those of IP packets, heads included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// What the network was like.
    pub profile: Profile,
    /// From the first packet until the clients were gone.
    pub whole: Totals,
    /// In the load and drain phases.
    pub load: Totals,
    /// How late packets left the link in the load phase: what the link itself added.
    pub lateness: Histogram,
    /// How long the link had to wait for a core each time that it had something to do, mean of the load phase, ms:
    /// packets that it reads late have no lateness. `None` where the kernel does not tell.
    #[serde(default)]
    pub core_wait_ms: Option<f64>,
    /// CPU time of the link in the load phase, ns.
    pub cpu_load_ns: u64,
    /// Every packet in a file; `None` where none was asked for.
    pub capture: Option<CaptureRecord>,
    /// Why it was not the network that it was to be.
    pub problem: Option<String>,
}

/// A file with the packets of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureRecord {
    /// Where it is.
    pub file: PathBuf,
    /// Why it is not whole.
    pub problem: Option<String>,
}

/// Memory that the kernel holds for everybody: slab, page tables, kernel stacks and socket buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelMemory {
    /// With the subject started and no client, bytes.
    pub before_bytes: u64,
    /// At the end of the idle phase, bytes.
    pub idle_bytes: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It came to its end; warnings may still make it void.
    Completed,
    /// It did not.
    Failed {
        /// What, where, and what to try.
        reason: String,
        /// The phase in which it happened, if one had begun.
        phase: Option<Phase>,
    },
}

impl Outcome {
    /// How a run ended that went through all phases. A load of which the subject refused a part was another one than
    /// planned; in a storm a server may refuse as it goes.
    pub fn of(result: &LoadResult, scenario: &Scenario) -> Self {
        let is_storm = matches!(scenario, Scenario::Storm { .. });
        result.refusals().filter(|_| !is_storm).map_or(Self::Completed, |refusals| {
            let reason =
                format!("the subject refused what clients sent: {refusals}; check its path and who may publish");
            Self::Failed { reason, phase: Some(Phase::Load) }
        })
    }
}

/// Counters of our server at one instant; cumulative but for the gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterSample {
    /// Monotonic clock of the host, ns.
    pub t_ns: u64,
    /// Publications received.
    pub received: u64,
    /// Deliveries sent.
    pub sent: u64,
    /// HTTP requests.
    pub requests: u64,
    /// Bytes read from sockets, those of this reading and all before left out.
    pub bytes_received: u64,
    /// Bytes written to sockets, likewise.
    pub bytes_sent: u64,
    /// Bytes queued for slow subscribers: a gauge.
    pub queued_bytes: i64,
    /// Messages dropped or conflated.
    pub dropped: u64,
    /// Connections closed because they were too slow.
    pub closed_slow: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Open connections: a gauge.
    pub open: i64,
}

impl CounterSample {
    /// With what the process had counted in whose place this one came.
    pub fn after(self, before: &Self) -> Self {
        Self {
            received: self.received + before.received,
            sent: self.sent + before.sent,
            requests: self.requests + before.requests,
            bytes_received: self.bytes_received + before.bytes_received,
            bytes_sent: self.bytes_sent + before.bytes_sent,
            dropped: self.dropped + before.dropped,
            closed_slow: self.closed_slow + before.closed_slow,
            accepted: self.accepted + before.accepted,
            ..self
        }
    }
}

impl RunRecord {
    /// Of a run of which nothing is known but how it ended.
    pub fn ended(planned: PlannedRun, outcome: Outcome) -> Self {
        Self {
            version: RECORD_VERSION,
            planned,
            started_at: String::new(),
            took_ms: 0,
            attempts: 1,
            earlier: Vec::new(),
            warm_up: None,
            outcome,
            warnings: Vec::new(),
            result: None,
            subject: Vec::new(),
            generator: Vec::new(),
            counters: Vec::new(),
            collections: None,
            event_loop_lag: Vec::new(),
            memory_usage: Vec::new(),
            subject_command: Vec::new(),
            unobserved: None,
            server_since: None,
            plan: None,
            side_by_side: None,
            baseline: None,
            kernel: None,
            tcp: None,
            network: None,
        }
    }

    /// Of a run that could not be begun; `now` is the wall-clock time, RFC 3339, UTC.
    pub fn failed(planned: &PlannedRun, reason: String, now: String) -> Self {
        Self { started_at: now, ..Self::ended(planned.clone(), Outcome::Failed { reason, phase: None }) }
    }

    /// Why it did not come to its end, if so.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Completed => None,
            Outcome::Failed { reason, .. } => Some(reason),
        }
    }

    /// Whether its figures count: it came to its end, and no warning voids it.
    pub fn counts(&self) -> bool {
        self.outcome == Outcome::Completed && self.result.is_some() && !self.is_void()
    }

    /// Whether a warning takes it out of the figures.
    pub fn is_void(&self) -> bool {
        self.outcome == Outcome::Completed && self.warnings.iter().any(Warning::is_void)
    }

    /// When a phase began and ended, ns; `None` if it never began.
    pub fn phase_span(&self, phase: Phase) -> Option<(u64, u64)> {
        let result = self.result.as_ref()?;
        let at = result.phases.iter().position(|mark| mark.phase == phase)?;
        let end = result.phases.get(at + 1).map_or(result.end_ns, |next| next.t_ns);
        Some((result.phases[at].t_ns, end))
    }
}

#[cfg(test)]
impl RunRecord {
    /// A run that came to its end and measured nothing.
    pub(crate) fn blank(cell: Cell) -> Self {
        let planned = PlannedRun { order: 1, cell, repeat: 1, seed: 1 };
        Self { result: Some(LoadResult::default()), ..Self::ended(planned, Outcome::Completed) }
    }
}

impl PlannedRun {
    /// Name for people: `tangen-chat · websocket · 100 clients · repeat 2`.
    pub fn label(&self) -> String {
        format!("{} · repeat {}", self.cell.label(), self.repeat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::errors::ErrorCount;
    use pushlab_workload::scenario::Outage;

    #[test]
    fn a_run_whose_publications_were_refused_has_failed_and_says_why() {
        let error = "/publish answered 403 {\"error\":\"forbidden\"}".to_owned();
        let refused = LoadResult { refused: vec![ErrorCount { error, count: 1_350 }], ..LoadResult::default() };
        let echo = Scenario::Echo { interval_ms: 1, payload_bytes: 50, streamed: false };
        let Outcome::Failed { reason, phase } = Outcome::of(&refused, &echo) else { panic!("it counts") };
        let said = "the subject refused what clients sent: /publish answered 403 {\"error\":\"forbidden\"} (1350 times); \
                    check its path and who may publish";
        assert_eq!((reason.as_str(), phase), (said, Some(Phase::Load)));
        assert_eq!(Outcome::of(&LoadResult::default(), &echo), Outcome::Completed);
        let storm = Scenario::Storm { missed: 1, payload_bytes: 50, return_over_ms: 0, outage: Outage::Kill };
        assert_eq!(Outcome::of(&refused, &storm), Outcome::Completed, "a server that is about to go refuses");
    }
}

/// A plan for four clients.
#[cfg(test)]
fn plan(transport: pushlab_wire::transport::Transport, scenario: &Scenario) -> Plan {
    let phases = serde_json::json!({
        "connect_ms": 0, "warm_up_ms": 1, "idle_ms": 0, "load_ms": 100, "drain_ms": 0, "after_ms": 0,
    });
    let text = serde_json::json!({
        "phases": phases,
        "target": "127.0.0.1:1", "transport": transport, "clients": 4, "channel": "a", "scenario": scenario,
        "poll_interval_ms": 1, "poll_wait_s": 1, "prober": null, "connect_rate": 1,
        "loops": 1, "seed": 1, "injected_delay_us": 0, "shape": { "kind": "steady" }, "headers": "minimal",
        "user_list": false, "receipts": false, "backend_listen": null,
    });
    serde_json::from_value(text).unwrap()
}

#[cfg(test)]
mod presets {
    use pushlab_experiment::{Experiment, Written, presets};

    /// An experiment of whose subjects anything is believed.
    pub fn load(name: &str) -> Experiment {
        let text = presets::text(name).expect("a preset");
        Experiment::believe(Written::read(text, None, name).expect("a sound preset"), &|_| Ok(None))
    }
}
