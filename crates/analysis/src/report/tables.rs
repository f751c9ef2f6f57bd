//! Tables that are derived from the figures.

use super::CONFIDENCE;
use super::beside::side_by_side;
use super::break_even::polling_break_even;
use super::byte_table::bytes_per_message;
use super::samples::{SeriesRuns, figure, values};
use pushlab_experiment::metric::Metric;
use pushlab_experiment::{Derived, Experiment};
use pushlab_report::{Column, DataCell, DataTable, Estimate, Origin};
use pushlab_stats::slope;
use pushlab_wire::transport::Transport;

const KIB_PER_MIB: f64 = 1024.0;

/// What an experiment asks for, and published figures of these metrics beside measured ones where there are any.
pub fn tables(experiment: &Experiment, series: &[SeriesRuns<'_>], columns: &[&Metric], seed: u64) -> Vec<DataTable> {
    let derived = experiment.tables.iter().filter_map(|table| match table {
        Derived::PerformanceFactors => performance_factors(series, seed),
        Derived::MemoryPerClient => memory_per_client(series),
        Derived::BytesPerMessage => bytes_per_message(experiment.sweep(), series, seed),
        Derived::PollingBreakEven => polling_break_even(experiment.sweep(), series, seed),
        // Of the whole report, not of one experiment.
        Derived::Leaderboard => None,
    });
    side_by_side(experiment.sweep(), series, columns, seed).into_iter().chain(derived).collect()
}

/// What a transport costs whatever the hardware, filled from measurement.
fn performance_factors(series: &[SeriesRuns<'_>], seed: u64) -> Option<DataTable> {
    let mut rows = Vec::new();
    for own in series.iter().filter(|s| s.origin == Origin::Measured) {
        for (&x, runs) in &own.cells {
            let of = |metric: &str| figure(runs, metric, seed);
            let clients = runs.first().map_or(0, |run| run.cell.clients);
            let per_client =
                |metric: &str| of(metric).filter(|_| clients > 0).map(|f| scaled(f, 1.0 / f64::from(clients)));
            let requests = of("requests").zip(of("delivered")).filter(|(_, delivered)| delivered.value > 0.0);
            let is_push = Transport::from_name(&own.transport).is_some_and(Transport::is_push);
            let place = if own.cells.len() > 1 { format!("{} · {x}", own.label) } else { own.label.clone() };
            rows.push(vec![
                DataCell::text(place),
                DataCell::text(if is_push { "push" } else { "request and response" }),
                DataCell::figure(per_client("connections")),
                DataCell::figure(requests.map(|(requests, delivered)| scaled(requests, 1.0 / delivered.value))),
                DataCell::figure(of("overhead_per_delivery")),
                DataCell::figure(of("delivered")),
            ]);
        }
    }
    (!rows.is_empty()).then(|| DataTable {
        title: "Performance factors".to_owned(),
        note: "What each transport costs whatever the hardware: connections held by a client, requests that the \
               server must parse for a message, and bytes beside the message's own, both ways, as clients sent and \
               received them."
            .to_owned(),
        columns: vec![
            Column::new("Series", ""),
            Column::new("Direction", ""),
            Column::new("Connections of a client", ""),
            Column::new("Requests a message", ""),
            Column::new("Overhead a message", "B"),
            Column::new("Messages", "/s"),
        ],
        rows,
        stack: None,
    })
}

fn scaled(figure: Estimate, factor: f64) -> Estimate {
    Estimate { value: figure.value * factor, low: figure.low * factor, high: figure.high * factor, ..figure }
}

/// Memory of one more idle client: the slope over the numbers of clients, so that what the server needs anyway
/// does not count.
fn memory_per_client(series: &[SeriesRuns<'_>]) -> Option<DataTable> {
    let mut rows = Vec::new();
    for own in series {
        let of = |metric: &str| {
            let points: Vec<(f64, f64)> = own
                .cells
                .values()
                .flat_map(|runs| {
                    let clients = runs.first().map_or(0, |run| run.cell.clients);
                    values(runs, metric).into_iter().map(move |value| (f64::from(clients), value * KIB_PER_MIB))
                })
                .collect();
            let found = slope(&points, CONFIDENCE).ok()?;
            let (value, low, high) = (found.per_unit, found.low, found.high);
            Some(Estimate { value, low, high, runs: points.len() as u32, bound: None })
        };
        let (user, kernel) = (of("memory_idle"), of("memory_kernel"));
        if user.is_some() || kernel.is_some() {
            rows.push(vec![DataCell::text(own.label.clone()), DataCell::figure(user), DataCell::figure(kernel)]);
        }
    }
    (!rows.is_empty()).then(|| DataTable {
        title: "Memory of one idle client".to_owned(),
        note: "The slope over the numbers of clients. User memory is the server's own resident memory; kernel memory \
               is what the kernel of the server's machine holds for the connections, for both ends where the clients \
               share that machine."
            .to_owned(),
        columns: vec![
            Column::new("Series", ""),
            Column::new("User memory", "KiB"),
            Column::new("Kernel memory", "KiB"),
        ],
        rows,
        stack: None,
    })
}
