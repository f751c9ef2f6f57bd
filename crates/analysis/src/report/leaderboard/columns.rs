//! The columns that there can be, and what rows are marked with.

use pushlab_experiment::Experiment;
use pushlab_experiment::traffic::is_closed_loop;
use pushlab_stats::WarningCode;
use pushlab_workload::scenario::Scenario;

/// The column with the rate of the schedules, which is what was asked for.
pub const RATE: &str = "due";

/// The warnings that rows are marked with: the others are about the machine, or about how sure an interval is.
pub const MARKS: [(WarningCode, &str); 6] = [
    (WarningCode::Loss, "some deliveries never arrived; latency covers those that did"),
    (WarningCode::Duplication, "deliveries came more than once; the first counts"),
    (WarningCode::Reordering, "deliveries overtook earlier ones of the same publisher"),
    (
        WarningCode::Overloaded,
        "deliveries fell behind the schedule: latency depends on how long the load lasted, and is not ranked",
    ),
    (WarningCode::GeneratorBound, "the load was the slower side: the server's deliveries are a lower bound"),
    (WarningCode::Unstable, "a figure still rose or fell while it was measured"),
];

/// Whether a mark says something of a column's figures: two are of one kind of experiment alone.
pub fn bears_on(mark: &str, metric: &str) -> bool {
    let from = COLUMNS.iter().find(|column| column.metric == metric).map(|column| column.from);
    let only = [(WarningCode::GeneratorBound, Kind::ClosedLoop), (WarningCode::Overloaded, Kind::Scheduled)];
    only.iter().all(|(code, kind)| code.to_string() != mark || from == Some(*kind))
}

/// A column: whose figures it takes, and how it is headed.
pub struct ColumnKind {
    pub metric: &'static str,
    pub title: &'static str,
    /// Not the metric's own where the figure is told of more than one delivery: µs of one are ms of a thousand.
    pub unit: &'static str,
    pub from: Kind,
}

/// A kind of experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The next message follows from the last.
    ClosedLoop,
    /// Messages are due on a schedule.
    Scheduled,
    /// There are none.
    Idle,
}

impl Kind {
    /// Which an experiment is of.
    pub fn of(experiment: &Experiment) -> Self {
        match experiment.scenario {
            Scenario::Idle => Self::Idle,
            _ if is_closed_loop(&experiment.scenario) => Self::ClosedLoop,
            _ => Self::Scheduled,
        }
    }
}

const fn column(metric: &'static str, title: &'static str, unit: &'static str, from: Kind) -> ColumnKind {
    ColumnKind { metric, title, unit, from }
}

/// Every column there can be, the one that orders the rows first.
pub const COLUMNS: [ColumnKind; 8] = [
    column("delivered", "Deliveries", "/s", Kind::ClosedLoop),
    column(RATE, "At a rate of", "deliveries/s", Kind::Scheduled),
    column("latency_median", "Latency, median", "ms", Kind::Scheduled),
    column("latency_p99", "Latency, p99", "ms", Kind::Scheduled),
    column("memory_per_client", "Memory per idle client", "KiB", Kind::Idle),
    column("cpu_per_delivery", "CPU time per 1,000 deliveries", "ms", Kind::ClosedLoop),
    column("bytes_per_delivery", "Bytes per delivery", "B", Kind::ClosedLoop),
    column("generator_cpu", "Generator's CPU", "%", Kind::ClosedLoop),
];
