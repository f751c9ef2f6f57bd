//! Tables that are derived from the figures.

use super::CONFIDENCE;
use super::break_even::polling_break_even;
use super::byte_table::bytes_per_message;
use super::quantiles::lacking;
use super::run_values::RunValues;
use super::samples::{SeriesRuns, figure, values};
use pushlab_experiment::cell::Sweep;
use pushlab_experiment::metric::Metric;
use pushlab_experiment::{Derived, Experiment};
use pushlab_report::{Column, DataCell, DataTable, Estimate, Origin};
use pushlab_stats::slope;
use pushlab_wire::transport::Transport;

const KIB_PER_MIB: f64 = 1024.0;

/// What an experiment asks for, and published figures beside measured ones where there are any.
pub fn tables(experiment: &Experiment, series: &[SeriesRuns<'_>], charted: &[&Metric], seed: u64) -> Vec<DataTable> {
    let derived = experiment.tables.iter().filter_map(|table| match table {
        Derived::PerformanceFactors => performance_factors(series, seed),
        Derived::MemoryPerClient => memory_per_client(series),
        Derived::BytesPerMessage => bytes_per_message(experiment.sweep(), series, seed),
        Derived::PollingBreakEven => polling_break_even(experiment.sweep(), series, seed),
        // Of the whole report, not of one experiment.
        Derived::Leaderboard => None,
    });
    side_by_side(experiment.sweep(), series, charted, seed).into_iter().chain(derived).collect()
}

/// Each printed figure beside the measured one of the same transport at the same place, or at the nearest where
/// that series was measured at no place that was printed.
fn side_by_side(sweep: Sweep, series: &[SeriesRuns<'_>], charted: &[&Metric], seed: u64) -> Option<DataTable> {
    let measured: Vec<&SeriesRuns<'_>> = series.iter().filter(|s| s.origin == Origin::Measured).collect();
    let mut rows = Vec::new();
    for published in series.iter().filter(|s| s.origin == Origin::Published) {
        let Some(own) = measured.iter().max_by_key(|s| likeness(s, published)).filter(|s| likeness(s, published) > 0)
        else {
            continue;
        };
        let printed_label = published.label.trim_end_matches(" · published");
        let by = if own.label == printed_label { String::new() } else { format!("{}, ", own.label) };
        let is_exact = published.cells.keys().any(|x| own.cells.contains_key(x));
        for (&x, runs) in &published.cells {
            let nearest = own.cells.keys().copied().min_by_key(|&other| other.abs_diff(x));
            let Some(place) = nearest.filter(|&place| place == x || !is_exact) else { continue };
            for metric in charted {
                let Some(printed) = figure(runs, metric.name, seed) else { continue };
                let here = figure(&own.cells[&place], metric.name, seed);
                let is_same = place == x && clients(&own.cells[&place]) == clients(runs);
                let ratio = here.filter(|_| is_same && printed.value != 0.0).map(|here| here.value / printed.value);
                let sign = if here.is_some_and(|here| here.is_lower_bound()) { "≥ " } else { "" };
                rows.push(vec![
                    DataCell::text(printed_label),
                    DataCell::text(format!("{}, {}", metric.title, unit(metric))),
                    DataCell::text(sweep.place(x)),
                    DataCell::figure(Some(printed)),
                    DataCell::text(format!("{by}{}", sweep.place(place))),
                    here.map_or_else(|| without_figure(&own.cells[&place], metric), DataCell::Estimate),
                    ratio.map_or(DataCell::Nothing(()), |ratio| DataCell::text(format!("{sign}{ratio:.2} ×"))),
                ]);
            }
        }
    }
    let columns = [
        ("Series", ""),
        ("Metric", ""),
        ("Published at", ""),
        ("Published", ""),
        ("Measured at", ""),
        ("Measured", ""),
        ("Ratio", ""),
    ];
    (!rows.is_empty()).then(|| DataTable {
        title: "Published beside measured".to_owned(),
        note: "What the study printed, on its own machines and servers, beside what our server did here. The ratio is \
               measured over published, where clients and load are the same."
            .to_owned(),
        columns: columns.map(|(title, unit)| Column::new(title, unit)).to_vec(),
        rows,
        stack: None,
    })
}

/// What stands where there is no figure: why, if it was measured.
fn without_figure(runs: &[&RunValues], metric: &Metric) -> DataCell {
    lacking(runs, metric.name).map_or(DataCell::Nothing(()), |lacking| DataCell::text(lacking.why.words()))
}

fn clients(runs: &[&RunValues]) -> Option<u32> {
    runs.first().map(|run| run.cell.clients)
}

fn unit(metric: &Metric) -> &'static str {
    if metric.unit.is_empty() { "number" } else { metric.unit }
}

/// Words that two series share; 0 without the same transport and variant, and the same network where the study has
/// one. Where it has none, what was measured without a link comes first.
fn likeness(own: &SeriesRuns<'_>, published: &SeriesRuns<'_>) -> usize {
    let is_same_network = own.network == published.network;
    let is_same = own.transport == published.transport && own.variant == published.variant;
    if !is_same || !(is_same_network || published.network.is_empty()) {
        return 0;
    }
    own.words.intersection(&published.words).count() + usize::from(is_same_network)
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
               is what the kernel holds for both ends of the connections, since server and clients share this machine."
            .to_owned(),
        columns: vec![
            Column::new("Series", ""),
            Column::new("User memory", "KiB"),
            Column::new("Kernel memory, both ends", "KiB"),
        ],
        rows,
        stack: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::samples::{self, Source};

    /// What the table says was measured beside the printed series of a network.
    fn beside(networks: &[Option<&str>], printed: Option<&str>) -> Option<String> {
        let experiment = presets::load("bigestans-chat", None).unwrap();
        let run = |network: Option<&str>| {
            let mut cell = experiment.cells().remove(0);
            cell.network = network.map(str::to_owned);
            RunValues { figures: [("cpu".to_owned(), 1.0)].into(), ..RunValues::planned(cell) }
        };
        let measured: Vec<RunValues> = networks.iter().map(|network| run(*network)).collect();
        let sources = [
            Source { origin: Origin::Measured, tag: "", runs: &measured },
            Source { origin: Origin::Published, tag: "", runs: &[run(printed)] },
        ];
        let series = samples::series(&experiment, &sources);
        let table = side_by_side(Sweep::Clients, &series, &[Metric::find("cpu").unwrap()], 1)?;
        match &table.rows[0][4] {
            DataCell::Text(text) => Some(text.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_printed_network_has_the_same_one_beside_it() {
        assert_eq!(beside(&[None, Some("4g"), Some("3g")], Some("4g")).unwrap(), "2 clients");
        assert_eq!(beside(&[None, Some("3g")], Some("4g")), None);
        assert_eq!(beside(&[Some("3g"), None, Some("4g")], None).unwrap(), "2 clients");
        assert_eq!(beside(&[Some("3g")], None).unwrap(), "websocket · 3g, 2 clients", "it is told which");
    }
}
