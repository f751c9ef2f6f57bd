//! The shape of a report: what the HTML page, the table at the end of a run and `--json` all show.
//!
//! Everything here is already computed: a reader of this structure draws, it never calculates.
//! `schema/report.schema.json` is generated from these types, and the console's TypeScript from that.

use pushlab_experiment::cell::Axis;
use pushlab_experiment::metric::{Better, Metric};
use pushlab_stats::{Band, Regime, Severity};
use pushlab_store::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment or several, aggregated over their repeats.
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
    /// The metrics that occur in this report.
    pub metrics: Vec<MetricInfo>,
    /// What two or more results differ in; only in a comparison, and then before everything else.
    pub comparison: Option<Comparison>,
    /// Every subject over every transport, ranked; only where an experiment asks for it, and then before all of them.
    pub leaderboard: Option<Leaderboard>,
    /// One entry for each experiment, in the order they ran.
    pub experiments: Vec<ExperimentReport>,
    /// Everything that makes a result less certain, worst first.
    pub doubts: Vec<DoubtReport>,
    /// The machine and versions, as label and value.
    pub environment: Vec<Fact>,
    /// How to repeat this.
    pub repeat: Repeat,
}

/// What a metric is: its name is the key in [`Point::figures`] and in statements.
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
    /// What the study found, and whether this measurement agrees.
    pub expectations: Vec<Expectation>,
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
    /// Below one full core, or at it; absent without a valid run.
    pub regime: Option<Regime>,
    /// Response time band of the median; absent without a valid run.
    pub band: Option<Band>,
    /// Figures by the metric's name; what was not measured is not there.
    pub figures: BTreeMap<String, Figure>,
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

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval; equals `value` when there is only one run.
    pub low: f64,
    /// Upper end of the 95 % interval; equals `value` when there is only one run.
    pub high: f64,
    /// Runs behind it. With 1 there is no interval, and a reader must say so.
    pub runs: u32,
    /// How exact a published value is, where the study says less than a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// A statement, and whether the measurement agrees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// As in the experiment: `cpu(websocket) < cpu(long-polling)`.
    pub statement: String,
    /// What it stands for, in the study's sense; may be empty.
    pub finding: String,
    /// What this measurement says.
    pub outcome: Agreement,
    /// What the published numbers say, where there are any to judge it by.
    pub published: Option<Agreement>,
    /// In words, by points of the axis: `confirmed at 50, 150; undecided at 300`.
    pub detail: String,
}

/// Whether a statement holds, judged from intervals.
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

/// A table beside the charts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataTable {
    /// E.g. `Performance factors`.
    pub title: String,
    /// What it shows and how it was computed, in a sentence or two.
    pub note: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<DataCell>>,
    /// How its rows can be drawn as bars, where their figures are parts of a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
}

/// A table's rows as bars, each stacked of its parts; what a bar is called stands in the first column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// The column whose texts put rows into groups, such as places on the axis; absent with one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The parts, from the inside of a message outwards.
    pub parts: Vec<StackPart>,
    /// Columns with the whole; in each row the first that has a figure counts.
    pub wholes: Vec<u32>,
}

/// A part of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackPart {
    /// Stable name, e.g. `payload`: the same part looks the same everywhere.
    pub name: String,
    /// The column with its figures.
    pub column: u32,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Unit; empty for text and for numbers of things.
    pub unit: String,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DataCell {
    /// Text.
    Text(String),
    /// A value with its interval.
    Figure(Figure),
    /// Nothing was measured.
    Nothing(()),
}

/// What results differ in: each of the others against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The first: what the others are compared with.
    pub baseline: String,
    /// The others.
    pub candidates: Vec<String>,
    /// In a sentence or two: what changed, what did not, how sure.
    pub summary: String,
    /// Cells that the baseline measured and a candidate ran without one run that counts, and why.
    pub missing: Vec<String>,
    /// One row for each candidate, cell and metric that both sides have, what changed first.
    pub rows: Vec<ComparisonRow>,
}

/// A candidate against the baseline, in one metric at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonRow {
    /// Which candidate.
    pub candidate: String,
    /// Which cell: `tangen-broadcast · websocket · 300 clients`.
    pub cell: String,
    /// The metric's name.
    pub metric: String,
    /// The baseline's figure.
    pub baseline: Figure,
    /// The candidate's figure.
    pub value: Figure,
    /// Candidate less baseline, in the metric's unit, with its interval.
    pub difference: Figure,
    /// The difference as a share of the baseline, per cent; absent where the baseline is 0.
    pub relative_percent: Option<f64>,
    /// Cliff's delta, −1 to 1.
    pub effect: f64,
    /// Its size in words: `negligible`, `small`, `medium`, `large`.
    pub magnitude: String,
    /// Chance of such a difference if there were none, corrected for the number of rows; absent with too few runs.
    pub p_value: Option<f64>,
    /// What it comes to.
    pub change: Change,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A change for the worse that chance does not explain.
    Worse,
    /// A change for the better that chance does not explain.
    Better,
    /// A change of something that is neither good nor bad.
    Different,
    /// Chance explains it, or it is too small to matter.
    Same,
    /// Too few runs to say.
    Unknown,
}

/// Every subject over every transport, ranked by each of several figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Leaderboard {
    /// In a sentence or two: what was measured how.
    pub note: String,
    /// Names of the experiments that asked for it.
    pub experiments: Vec<String>,
    /// What is ranked; only what was measured.
    pub columns: Vec<LeaderboardColumn>,
    /// A row for each subject and transport, in the order of the first column that is ranked, the best first.
    pub rows: Vec<LeaderboardRow>,
    /// What rows are marked with: only what occurs.
    pub doubts: Vec<LeaderboardDoubt>,
    /// Who was measured, and how it was started.
    pub subjects: Vec<LeaderboardSubject>,
    /// Who was not, and why.
    pub left_out: Vec<LeftOut>,
}

/// A column of a leaderboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardColumn {
    /// The metric's name, unique in the table.
    pub metric: String,
    /// Heading.
    pub title: String,
    /// Unit of its figures as they are shown here.
    pub unit: String,
    /// What is better; what is neither has no ranks.
    pub better: Better,
    /// Name of the experiment that its figures come from.
    pub experiment: String,
    /// Share of its own deliveries per second at which each row was measured; null where that is not what set the rate.
    pub share: Option<f64>,
}

/// A subject over a transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardRow {
    /// The subject, as in [`Leaderboard::subjects`].
    pub subject: String,
    /// Transport name.
    pub transport: String,
    /// Whether it is our own server.
    pub is_ours: bool,
    /// One for each column; null where nothing was measured.
    pub standings: Vec<Option<Standing>>,
    /// Codes of [`Leaderboard::doubts`] that runs behind its figures raised.
    pub doubts: Vec<String>,
}

/// A doubt that whoever reads a leaderboard has to know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardDoubt {
    /// Stable code, e.g. `generator-bound`.
    pub code: String,
    /// What it means for a row, in a clause.
    pub meaning: String,
}

/// A figure and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The value.
    pub figure: Figure,
    /// Among all rows; null where the metric is not judged.
    pub overall: Option<Rank>,
    /// Among the rows of the same transport; null where the metric is not judged.
    pub of_transport: Option<Rank>,
}

/// A rank that may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// 1 is best; tied entries share a rank.
    pub rank: u32,
    /// Whether the intervals cannot separate it from another of the same rank.
    pub is_tied: bool,
}

/// A subject of a leaderboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaderboardSubject {
    /// Its name.
    pub name: String,
    /// Its name for people, where it is known.
    pub title: Option<String>,
    /// On what it runs, for people, where it is known.
    pub platform: Option<String>,
    /// Its version, where it is known.
    pub version: Option<String>,
    /// The command lines that started it, each as a shell takes it; `PORT` stands for the port of a run. Empty where
    /// they are not known.
    pub commands: Vec<String>,
}

/// A subject that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub subject: String,
    /// Why: what is missing, or what it does not have.
    pub reason: String,
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
    /// Latency of clients' own publications, median of the second, ms; null where none came back.
    pub latency_own_median: Vec<Option<f64>>,
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
    /// What the ranked series have in common, where only some compete: `broadcast`; empty where all do.
    pub among: String,
    /// Load or stress.
    pub regime: Regime,
    /// Name of the metric that is ranked.
    pub metric: String,
    /// The place on the axis at which they were compared.
    pub x: f64,
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
    /// Its rank in the study, among all that the study printed of the same variant at this place on the axis, if it
    /// printed any of this subject over this transport.
    #[serde(default)]
    pub published_rank: Option<u32>,
    /// Its rank here among the places alone that have a published one: without ours, which the study did not have.
    #[serde(default)]
    pub rank_among_published: Option<u32>,
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
