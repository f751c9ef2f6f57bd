//! The shape of a report: what the HTML page, the table at the end of a run and `--json` all show.
//!
//! Everything here is already computed: a reader of this structure draws, it never calculates.
//! `schema/report.schema.json` is generated from these types, and the console's TypeScript from that.

use pushlab_stats::{Band, Regime, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A finished (or interrupted) experiment, aggregated over its repeats.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this structure; raised when a field changes its meaning.
    pub version: u32,
    /// Title for people, e.g. `Six transports under broadcast and chat`.
    pub title: String,
    /// When the report was made, RFC 3339, UTC.
    pub generated_at: String,
    /// Two or three sentences: what won, by how much, how sure.
    pub verdict: Vec<String>,
    /// One entry for each experiment, in the order they ran.
    pub experiments: Vec<ExperimentReport>,
    /// Everything that makes a result less certain, worst first.
    pub doubts: Vec<DoubtReport>,
    /// The machine and versions, as label and value.
    pub environment: Vec<Fact>,
    /// How to repeat this.
    pub repeat: Repeat,
}

/// One experiment: a scenario swept over transports and client counts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentReport {
    /// Experiment name, e.g. `tangen-broadcast`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What the traffic is, in one or two sentences.
    pub description: String,
    /// `complete`, or `partial` when runs are still missing.
    pub completeness: Completeness,
    /// Runs done, and runs planned.
    pub runs_done: u32,
    /// See `runs_done`.
    pub runs_planned: u32,
    /// What was varied besides the clients, for the legend: the subject × transport (× variant) series.
    pub series: Vec<Series>,
    /// Rankings, one for each of `load` and `stress` that occurred, and metric.
    pub rankings: Vec<Ranking>,
}

/// Whether every planned run is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Completeness {
    /// Every planned run has a record.
    Complete,
    /// The experiment was interrupted; the same command resumes it.
    Partial,
}

/// One line of every chart: a transport of a subject.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Stable key, e.g. `pushlab/websocket`.
    pub key: String,
    /// Legend text, e.g. `websocket`.
    pub label: String,
    /// The subject's name.
    pub subject: String,
    /// Transport name from the table of transports.
    pub transport: String,
    /// Points in order of clients.
    pub points: Vec<Point>,
}

/// One cell: a series at one client count.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of virtual clients.
    pub clients: u32,
    /// Runs that count towards the figures.
    pub runs: u32,
    /// Runs that failed, with their reasons.
    pub failures: Vec<String>,
    /// Runs that were void (the generator was the bottleneck), with their reasons.
    pub voids: Vec<String>,
    /// Below one full core, or at it; absent without a valid run.
    pub regime: Option<Regime>,
    /// Response time band of the median; absent without a valid run.
    pub band: Option<Band>,
    /// Prober's response time while loaded, median, ms.
    pub response_median: Option<Figure>,
    /// Prober's response time while loaded, mean, ms.
    pub response_mean: Option<Figure>,
    /// Prober's response time while loaded, 99th percentile, ms.
    pub response_p99: Option<Figure>,
    /// Prober's response time in the idle phase, median, ms.
    pub response_idle_median: Option<Figure>,
    /// Publication to delivery, from the intended instant, median, ms.
    pub latency_median: Option<Figure>,
    /// Publication to delivery, mean, ms.
    pub latency_mean: Option<Figure>,
    /// Publication to delivery, 99th percentile, ms.
    pub latency_p99: Option<Figure>,
    /// Latency of the first subscriber of each publication, median, ms.
    pub latency_first: Option<Figure>,
    /// Latency of the last subscriber of each publication, median, ms.
    pub latency_last: Option<Figure>,
    /// Subject's CPU in the load phase, per cent of one core.
    pub cpu: Option<Figure>,
    /// Subject's CPU in the idle phase, per cent of one core.
    pub cpu_idle: Option<Figure>,
    /// Subject's CPU time per delivery, µs.
    pub cpu_per_delivery: Option<Figure>,
    /// Subject's highest resident memory in the load phase, MiB.
    pub memory: Option<Figure>,
    /// Subject's resident memory after the load, MiB.
    pub memory_after: Option<Figure>,
    /// Deliveries per second, received and checked by the clients.
    pub delivered: Option<Figure>,
    /// Publications per second that entered the server.
    pub published: Option<Figure>,
    /// Bytes received by the clients per delivery (application bytes: transport framing and HTTP heads included).
    pub bytes_per_delivery: Option<Figure>,
    /// Generator's CPU, per cent of one core.
    pub generator_cpu: Option<Figure>,
    /// Summed over the runs: deliveries expected and not received.
    pub lost: u64,
    /// Summed over the runs: deliveries received more than once.
    pub duplicated: u64,
    /// Summed over the runs: deliveries received after a later one of the same publisher.
    pub reordered: u64,
    /// Codes of the doubts raised by this cell's runs.
    pub doubts: Vec<String>,
    /// What happened over time in one representative run (the median one by response time).
    pub timeline: Option<Timeline>,
}

/// A measured value with its interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval; equals `value` when there is only one run.
    pub low: f64,
    /// Upper end of the 95 % interval; equals `value` when there is only one run.
    pub high: f64,
    /// Runs behind it. With 1 there is no interval, and a reader must say so.
    pub runs: u32,
}

/// One-second and finer series of one run. Columns of equal length share their `*_t`, seconds since the run began.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Phases as name, start and end in seconds.
    pub phases: Vec<PhaseSpan>,
    /// Instants of the per-second columns.
    pub t: Vec<f64>,
    /// Publications sent per second.
    pub published: Vec<f64>,
    /// Publications received by the server per second; null where its counters were not read.
    pub server_received: Vec<Option<f64>>,
    /// Deliveries sent by the server per second; null where its counters were not read.
    pub server_sent: Vec<Option<f64>>,
    /// Deliveries received by the clients per second.
    pub delivered: Vec<f64>,
    /// Delivery latency, median of the second, ms; null where nothing was delivered.
    pub latency_median: Vec<Option<f64>>,
    /// Delivery latency, 99th percentile of the second, ms.
    pub latency_p99: Vec<Option<f64>>,
    /// Bytes queued in the server for slow subscribers; null where its counters were not read.
    pub queued_bytes: Vec<Option<f64>>,
    /// Instants of the probe's columns.
    pub probe_t: Vec<f64>,
    /// Subject's CPU, per cent of one core.
    pub cpu: Vec<f64>,
    /// Subject's resident memory, MiB.
    pub memory: Vec<f64>,
    /// Generator's CPU, per cent of one core.
    pub generator_cpu: Vec<f64>,
}

/// A phase within a timeline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpan {
    /// `connect`, `warm-up`, `idle`, `load`, `drain` or `after`.
    pub name: String,
    /// Seconds since the run began.
    pub start: f64,
    /// Seconds since the run began.
    pub end: f64,
}

/// An order of the series by one metric, at the load points or at the stress points.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// Load or stress.
    pub regime: Regime,
    /// What is ranked, for people: `response time`.
    pub metric: String,
    /// Unit of the values, e.g. `ms`.
    pub unit: String,
    /// The client count at which they were compared.
    pub clients: u32,
    /// Best first; equal ranks are ties that the intervals cannot separate.
    pub places: Vec<Place>,
}

/// A place in a ranking.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// 1 is best; tied entries share a rank.
    pub rank: u32,
    /// Series key.
    pub key: String,
    /// Legend text.
    pub label: String,
    /// The value compared.
    pub figure: Figure,
}

/// A doubt, with where it was raised.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DoubtReport {
    /// Stable code, e.g. `generator-saturated`.
    pub code: String,
    /// `void` takes the run out of the figures, `warning` leaves it in.
    pub severity: Severity,
    /// What it means and what to do, for people.
    pub message: String,
    /// Runs that raised it, as `experiment · label · clients · repeat`; at most 12 are listed.
    pub runs: Vec<String>,
    /// How many runs raised it.
    pub count: u32,
}

/// A label and its value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// E.g. `kernel`.
    pub label: String,
    /// E.g. `Linux 6.1.0`.
    pub value: String,
}

/// What is needed to repeat a result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Repeat {
    /// Commands to type, in order.
    pub commands: Vec<String>,
    /// Seed of the run order and of all pacing.
    pub seed: u64,
    /// The experiments with their profile applied: name and TOML.
    pub experiments: Vec<Fact>,
}
