//! The shape of a report: what the HTML page, the table at the end of a run and `--json` all show.
//!
//! Everything here is already computed: a reader of this structure draws, it never calculates.
//! `schema/report.schema.json` is generated from these types, and the console's TypeScript from that.

mod card;
mod comparison;
mod estimate;
mod leaderboard;
mod table;

pub use card::{Advice, CardCell, CardOption, CardRow, NarrowedCard, Scorecard};
pub use comparison::{Change, Comparison, ComparisonRow};
pub use estimate::{Estimate, Lacking, WhyLacking};
pub use leaderboard::{
    Leaderboard, LeaderboardColumn, LeaderboardRow, LeaderboardSubject, LeaderboardWarning, LeftOut, Rank, Standing,
};
pub use table::{Column, DataCell, DataTable, Stack, StackPart};

use pushlab_experiment::cell::Axis;
use pushlab_experiment::metric::{Better, Metric};
use pushlab_stats::{Band, Regime, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment or several, aggregated over their repeats.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this structure; raised when a field changes its meaning or goes.
    pub version: u32,
    /// Title for people, e.g. `Six transports under broadcast and chat`.
    pub title: String,
    /// When the report was made, RFC 3339, UTC.
    pub generated_at: String,
    /// Two or three sentences: what won, by how much, how sure.
    pub verdict: Vec<String>,
    /// The metrics that occur in this report.
    pub metrics: Vec<MetricInfo>,
    /// What two or more results differ in; only in a comparison, and then before everything else.
    pub comparison: Option<Comparison>,
    /// What is compared, judged by every quantity that bears on the choice; only where an experiment fills rows of it, and
    /// then before everything but a comparison.
    #[serde(default)]
    pub card: Option<Scorecard>,
    /// Every subject over every transport, ranked; only where an experiment asks for it, and then before all of them.
    pub leaderboard: Option<Leaderboard>,
    /// One entry for each experiment, in the order they ran.
    pub experiments: Vec<ExperimentReport>,
    /// Everything that makes a result less certain, worst first.
    pub warnings: Vec<WarningReport>,
    /// Subjects of which something could not be seen.
    pub unobserved: Vec<Unobserved>,
    /// The machine and versions, as label and value.
    pub environment: Vec<Fact>,
    /// How to repeat this.
    pub repeat: Repeat,
}

/// What a metric is: its name is the key in [`Point::figures`] and in assertions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricInfo {
    /// Stable name, e.g. `latency_median`.
    pub name: String,
    /// For people, e.g. `Delivery latency, median`.
    pub title: String,
    /// Unit, e.g. `ms`.
    pub unit: String,
    /// What is better.
    pub better: Better,
    /// Whether charts of it are drawn on a logarithmic scale.
    pub is_logarithmic: bool,
    /// What exactly is measured.
    pub description: String,
}

impl MetricInfo {
    /// What a report says of a metric.
    pub fn of(metric: &Metric) -> Self {
        Self {
            name: metric.name.to_owned(),
            title: metric.title.to_owned(),
            unit: metric.unit.to_owned(),
            better: metric.better,
            is_logarithmic: metric.is_logarithmic(),
            description: metric.description.to_owned(),
        }
    }
}

/// One experiment: a scenario swept over transports and an axis.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentReport {
    /// Experiment name, e.g. `tangen-broadcast`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What the traffic is, in one or two sentences.
    pub description: String,
    /// The published study that it repeats: authors, title, year.
    pub study: Option<String>,
    /// `complete`, or `partial` when runs are still missing.
    pub completeness: Completeness,
    /// Runs done, and runs planned.
    pub runs_done: u32,
    /// See `runs_done`.
    pub runs_planned: u32,
    /// What the horizontal axis of every chart is.
    pub axis: Axis,
    /// Metrics to chart, the most telling first.
    pub charts: Vec<String>,
    /// Metrics to list in the table of results, in order.
    pub columns: Vec<String>,
    /// The lines of the charts: measured first, published ones last.
    pub series: Vec<Series>,
    /// Rankings, one for each of `load` and `stress` that occurred, and metric.
    pub rankings: Vec<Ranking>,
    /// What lay between clients and subjects, in words: `loopback`, `4g (round trip 57 ms, …)`, `as it is (SUBJECT)`;
    /// empty where nobody knows.
    pub networks: Vec<String>,
    /// How the clocks of workers on machines other than the coordinator's did, in words, a text for each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<String>,
    /// What was expected, or what the study found, and who agrees.
    pub expectations: Vec<Expectation>,
    /// How many further findings of the study are about series that are not among these results, such as other numbers of
    /// clients; its page in docs/studies has them.
    #[serde(default)]
    pub findings_elsewhere: u32,
    /// What `--fail-if` asked, where it was given.
    pub alarms: Vec<Alarm>,
    /// Further tables: published beside measured, performance factors, memory per client.
    pub tables: Vec<DataTable>,
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

/// One line of every chart.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Stable key, unique in its experiment, e.g. `pushlab/websocket`.
    pub key: String,
    /// Legend text, e.g. `websocket`, or `websocket · published`.
    pub label: String,
    /// The subject's name.
    pub subject: String,
    /// Transport name from the table of transports; series of the same transport share a colour.
    pub transport: String,
    /// Where the numbers come from.
    pub origin: Origin,
    /// Points in order of the axis.
    pub points: Vec<Point>,
}

/// Where a series' numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured here, or imported from another lab's store.
    Measured,
    /// Printed in a study.
    Published,
}

/// One cell: a series at one place of the axis.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Place on the axis.
    pub x: f64,
    /// Number of virtual clients.
    pub clients: u32,
    /// Runs that count towards the figures.
    pub runs: u32,
    /// Runs that failed, with their reasons.
    pub failures: Vec<String>,
    /// Runs that were void (the generator was the bottleneck), with their reasons.
    pub voids: Vec<String>,
    /// Runs that count but for some figures, which the generator itself may have made, with the reasons. What the cell as a
    /// whole lacks is in `lacking`.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// Below one full core, or at it; absent without a valid run.
    pub regime: Option<Regime>,
    /// Response time band of the median; absent without a valid run.
    pub band: Option<Band>,
    /// Figures by the metric's name; what was not measured is not there.
    pub figures: BTreeMap<String, Estimate>,
    /// Why there are no figures of what was measured, by the metric's name.
    #[serde(default)]
    pub lacking: BTreeMap<String, Lacking>,
    /// Summed over the runs: deliveries expected and not received, of which no client was told; null where that is not
    /// known, as with imported figures.
    pub lost: Option<u64>,
    /// Summed over the runs: deliveries received more than once; null where that is not known.
    pub duplicated: Option<u64>,
    /// Summed over the runs: deliveries received after a later one of the same publisher; null where that is not known.
    pub reordered: Option<u64>,
    /// Codes of the warnings raised by this cell's runs.
    pub warnings: Vec<String>,
    /// What happened over time in one representative run (the median one by response time).
    pub timeline: Option<Timeline>,
    /// What a study gives of single seconds of its load; only in its own series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_seconds: Option<PublishedSeconds>,
    /// Wall-clock time that all its runs took together, ms; 0 where it is not known.
    pub took_ms: u64,
}

/// An assertion, and who agrees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// As in the experiment: `cpu(websocket) < cpu(long-polling)`.
    pub assertion: String,
    /// What it stands for; may be empty.
    pub finding: String,
    /// Where a study says so, and as what: `§5.3.2, table 5, a hypothesis`; empty where it is nobody's.
    #[serde(default)]
    pub source: String,
    /// What each subject says, and each server of the study by its published numbers; never empty.
    pub judged: Vec<Judged>,
}

/// What the figures of one subject say of an assertion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// Whose figures; empty where the assertion compares subjects, or none has figures of all that it names.
    pub subject: String,
    /// Measured, or printed in the study.
    pub origin: Origin,
    /// Whether they agree.
    pub outcome: Agreement,
    /// What the means alone say where that is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaning: Option<Agreement>,
    /// In words, by points of the axis: `confirmed at 50, 150; undecided at 300`.
    pub detail: String,
    /// What both sides are, a line for each point.
    pub figures: Vec<String>,
}

/// An assertion that was to raise an alarm, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    /// As it was given: `p99(websocket) > 50 ms`.
    pub assertion: String,
    /// `confirmed` where it holds at some point, which is the alarm; `refuted` where it holds at none.
    pub outcome: Agreement,
    /// In words, by points of the axis: `refuted at 50, 150; undecided at 300`.
    pub detail: String,
    /// What was measured of both sides, a line for each point.
    pub figures: Vec<String>,
}

/// Whether an assertion holds, judged from intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The intervals exclude that it is false.
    Confirmed,
    /// The intervals exclude that it is true.
    Refuted,
    /// They exclude neither, or there are too few runs.
    Undecided,
}

/// Seconds of a load as a study gives them, from its beginning: each the mean of those runs that lasted so long, as far as
/// half of them did.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedSeconds {
    /// Publications sent.
    pub published: Vec<f64>,
    /// Publications received by the server.
    pub server_received: Vec<f64>,
    /// Deliveries sent by the server.
    pub server_sent: Vec<f64>,
    /// Latency of clients' own publications, mean of the second, ms.
    pub latency_own_mean: Vec<f64>,
}

/// One-second and finer series of one run. Columns of equal length share their `*_t`, seconds since the run began.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
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
    /// Latency of clients' own publications, median of the second, ms; null where none came back.
    pub latency_own_median: Vec<Option<f64>>,
    /// Bytes queued in the server for slow subscribers; null where its counters were not read.
    pub queued_bytes: Vec<Option<f64>>,
    /// How long the server stood still for its garbage collector in the second, ms; null where it did not log that.
    pub collector_time: Vec<Option<f64>>,
    /// Longest pause for the garbage collector that ended in the second, ms; null where there was none, or it did not log it.
    pub collector_pause_max: Vec<Option<f64>>,
    /// Highest lag of the server's event loop among what was due in the second, ms; null where it does not tell.
    pub event_loop_lag: Vec<Option<f64>>,
    /// The used part of the heap of the server's runtime, MiB; null where it is not reported.
    pub memory_heap: Vec<Option<f64>>,
    /// The total heap of the server's runtime, MiB; null where it is not reported.
    pub memory_heap_total: Vec<Option<f64>>,
    /// What objects of that heap hold outside it, MiB; null where it is not reported.
    pub memory_external: Vec<Option<f64>>,
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
    /// What the ranked series have in common, where only some compete: `broadcast`; empty where all do.
    pub among: String,
    /// Load or stress.
    pub regime: Regime,
    /// Name of the metric that is ranked.
    pub metric: String,
    /// The place on the axis at which they were compared.
    pub x: f64,
    /// Margin within which those who share a rank may be equivalent, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<f64>,
    /// Best first; equal ranks are ties that the intervals cannot separate. A rank is one more than how many were shown to
    /// be better, so that a lower bound has the first.
    pub places: Vec<Place>,
    /// Those that were tried and have no place, in the order in which they follow: what was not reached is behind all places,
    /// of what is withheld or too little nothing is known, and what failed comes last.
    pub unplaced: Vec<Unplaced>,
}

/// A series that was tried and has no figure to be ranked by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unplaced {
    /// Series key.
    pub key: String,
    /// Legend text.
    pub label: String,
    /// Why it has none.
    #[serde(flatten)]
    pub lacking: Lacking,
}

/// Why a rank is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// It was shown to be as good as the first of those who share the rank, within the margin; of the first: all others are.
    Equivalent,
    /// Neither that nor a difference was shown.
    Undecided,
}

/// A place in a ranking.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// 1 is best; tied entries share a rank.
    pub rank: u32,
    /// What a shared rank means; absent where it is not shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// Series key.
    pub key: String,
    /// Legend text.
    pub label: String,
    /// The value compared.
    pub figure: Estimate,
    /// Its rank in the study, among all that the study printed of the same variant at this place on the axis, if it
    /// printed any of this subject over this transport.
    #[serde(default)]
    pub published_rank: Option<u32>,
    /// Its rank here among the places alone that have a published one: without ours, which the study did not have.
    #[serde(default)]
    pub rank_among_published: Option<u32>,
}

/// A warning, with where it was raised.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WarningReport {
    /// Stable code, e.g. `generator-saturated`.
    pub code: String,
    /// `void` takes the run out of the figures, `withheld` some figures of the run, `warning` none.
    pub severity: Severity,
    /// What it means and what to do, for people.
    pub message: String,
    /// Runs that raised it, as `experiment · label · clients · repeat`; at most 12 are listed.
    pub runs: Vec<String>,
    /// How many runs raised it.
    pub count: u32,
}

/// What could not be seen of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unobserved {
    /// Its name.
    pub subject: String,
    /// What, and why.
    pub reason: String,
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
