//! The columns that there can be, and what rows are marked with.

use pushlab_experiment::traffic::is_closed_loop;
use pushlab_experiment::{Experiment, traffic};
use pushlab_stats::WarningCode;
use pushlab_workload::scenario::Scenario;

/// The column with the rate of the schedules, which is what was asked for.
pub const RATE: &str = "due";

/// The warnings that rows are marked with: the others are about the machine, or about how sure an interval is.
pub const MARKS: [(WarningCode, &str); 6] = [
    (WarningCode::Loss, "some deliveries never arrived; latency counts them as longer than all that did"),
    (WarningCode::Duplication, "deliveries came more than once; the first counts"),
    (WarningCode::Reordering, "deliveries overtook earlier ones of the same publisher"),
    (
        WarningCode::Overloaded,
        "deliveries fell behind a schedule: what was measured at that rate has no rank, since latency depends on how long \
         the load lasted",
    ),
    (WarningCode::GeneratorBound, "the load was the slower side: the server's deliveries are a lower bound"),
    (WarningCode::Unstable, "a figure still rose or fell while it was measured"),
];

/// Whether a mark says something of a column's figures that have a rank. Whoever has one for what was measured on a
/// schedule has kept up with that.
pub fn bears_on(mark: &str, metric: &str) -> bool {
    let column = COLUMNS.iter().find(|column| column.metric == metric);
    if mark == WarningCode::GeneratorBound.to_string() {
        column.is_some_and(|column| column.from.contains(&Kind::ClosedLoop))
    } else {
        mark != WarningCode::Overloaded.to_string()
    }
}

/// A column: whose figures it takes, and how it is headed.
pub struct ColumnKind {
    pub metric: &'static str,
    pub title: &'static str,
    /// Not the metric's own where the figure is told of more than one delivery: µs of one are ms of a thousand.
    pub unit: &'static str,
    /// Kinds of experiments that can answer it, the best first.
    pub from: &'static [Kind],
}

/// A kind of experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The next message follows from the last.
    ClosedLoop,
    /// Messages are due on a schedule, the same for every server.
    SameRate,
    /// They are due at a share of what each server can do.
    OwnRate,
    /// There are none.
    Idle,
}

impl Kind {
    /// Which an experiment is of.
    pub fn of(experiment: &Experiment) -> Self {
        match experiment.scenario {
            Scenario::Idle => Self::Idle,
            _ if is_closed_loop(&experiment.scenario) => Self::ClosedLoop,
            _ if experiment.capacity_share.is_some() => Self::OwnRate,
            _ => Self::SameRate,
        }
    }

    /// Whether its messages are due at instants of their own.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Self::SameRate | Self::OwnRate)
    }
}

/// Deliveries a second that an experiment plans for all servers with this scenario; `None` if there is no common rate.
pub fn common_rate(experiment: &Experiment, scenario: &Scenario) -> Option<f64> {
    let clients = *experiment.clients.first()?;
    let own = || traffic::deliveries_per_s(scenario, clients);
    let is_common = Kind::of(experiment) == Kind::SameRate;
    experiment.deliveries_per_s.first().copied().map(f64::from).or_else(own).filter(|_| is_common)
}

const fn column(metric: &'static str, title: &'static str, unit: &'static str, from: &'static [Kind]) -> ColumnKind {
    ColumnKind { metric, title, unit, from }
}

/// Every column there can be, the one that orders the rows first: what a delivery costs on a schedule. The closed loop,
/// which rewards whoever writes many messages at once, comes last.
pub const COLUMNS: [ColumnKind; 8] = [
    column("cpu_per_delivery", "CPU time per 1,000 deliveries", "ms", &[Kind::SameRate, Kind::OwnRate]),
    column(RATE, "At a rate of", "deliveries/s", &[Kind::OwnRate]),
    column("latency_median", "Latency, median", "ms", &[Kind::OwnRate, Kind::SameRate]),
    column("latency_p99", "Latency, p99", "ms", &[Kind::OwnRate, Kind::SameRate]),
    column("memory_per_client", "Memory per idle client", "KiB", &[Kind::Idle]),
    column("delivered", "Deliveries in a closed loop", "/s", &[Kind::ClosedLoop]),
    column("bytes_per_delivery", "Bytes per delivery", "B", &[Kind::ClosedLoop]),
    column("generator_cpu", "Generator's CPU", "%", &[Kind::ClosedLoop]),
];
