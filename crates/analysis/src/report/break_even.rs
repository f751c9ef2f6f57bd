//! Where polling costs a server less than a connection that is held: at which traffic it is cheaper, and at which dearer.

use super::CONFIDENCE;
use super::samples::{PointSamples, SeriesRuns, figure};
use super::wording::{digits, show};
use pushlab_experiment::cell::Sweep;
use pushlab_experiment::metric::Metric;
use pushlab_report::{Column, DataCell, DataTable, Origin};
use pushlab_stats::{Comparison, Family, Pair, Verdict, compare_family};
use pushlab_wire::transport::Transport;

/// What decides.
const COSTS: [&str; 2] = ["cpu_per_client", "bytes_per_client"];
/// What polling is compared with.
const OTHERS: [Transport; 3] = [Transport::WebSocket, Transport::Sse, Transport::LongPolling];

/// What polling costs with each traffic, and how many times that of the other transports this is; `None` where nothing
/// was measured beside polling.
pub fn polling_break_even(sweep: Sweep, series: &[SeriesRuns<'_>], seed: u64) -> Option<DataTable> {
    let measured: Vec<&SeriesRuns<'_>> = series.iter().filter(|one| one.origin == Origin::Measured).collect();
    let polling: Vec<&SeriesRuns<'_>> =
        measured.iter().copied().filter(|one| one.transport == Transport::Polling.name()).collect();
    let mut rows = Vec::new();
    for metric in COSTS.iter().filter_map(|name| Metric::find(name)) {
        for own in &polling {
            let others = OTHERS.map(|transport| beside(own, transport, &measured));
            if others.iter().any(Option::is_some) {
                rows.extend(rows_of(own, others, metric, sweep, seed));
            }
        }
    }
    let titles =
        ["Cost", "Server", "Traffic", "Polling", "Against WebSocket", "Against event streams", "Against long polling"];
    (!rows.is_empty()).then(|| DataTable {
        title: "Where polling is cheaper".to_owned(),
        note:
            "The cost of polling as a multiple of the other transport's with the same traffic, with its 95 % interval \
               over the repeats: cheaper where all of the interval lies below 1, dearer where it lies above, undecided \
               otherwise. Each comparison stands alone: of twenty without any difference, one is expected to be \
               decided by chance."
                .to_owned(),
        columns: titles.map(|title| Column::new(title, "")).to_vec(),
        rows,
        stack: None,
    })
}

/// A row for each place of a series of polling.
fn rows_of(
    own: &SeriesRuns<'_>,
    others: [Option<&SeriesRuns<'_>>; 3],
    metric: &Metric,
    sweep: Sweep,
    seed: u64,
) -> Vec<Vec<DataCell>> {
    let others = others.map(|other| other.map_or_else(Vec::new, |other| other.samples(metric.name, seed)));
    let row = |point: &PointSamples| {
        let place = point.x as u32;
        let cost = own.cells.get(&place).and_then(|runs| figure(runs, metric.name, seed));
        let against = others.each_ref().map(|all| {
            let same = all.iter().find(|one| one.x == point.x);
            same.map_or(DataCell::Nothing(()), |other| DataCell::text(conclusion(point, other, seed)))
        });
        let head = [
            DataCell::text(metric.title),
            DataCell::text(own.subject.clone()),
            DataCell::text(traffic(own, sweep, place)),
            cost.map_or(DataCell::Nothing(()), |cost| DataCell::text(show(&cost, metric.unit))),
        ];
        head.into_iter().chain(against).collect()
    };
    own.samples(metric.name, seed).iter().map(row).collect()
}

/// The series that differs from another in its transport alone.
fn beside<'a>(
    own: &SeriesRuns<'_>,
    transport: Transport,
    measured: &[&'a SeriesRuns<'a>],
) -> Option<&'a SeriesRuns<'a>> {
    let is_same = |one: &&&SeriesRuns<'_>| one.subject == own.subject && one.kind == own.kind && one.tag == own.tag;
    measured.iter().filter(is_same).find(|one| one.transport == transport.name()).copied()
}

/// What is sent, in words: what distinguishes the series, and its place where there is nothing else.
fn traffic(own: &SeriesRuns<'_>, sweep: Sweep, place: u32) -> String {
    match (own.kind.as_str(), own.cells.len()) {
        ("", _) => sweep.place(place),
        (kind, 1) => kind.to_owned(),
        (kind, _) => format!("{kind} · {}", sweep.place(place)),
    }
}

/// `0.45 (0.40 to 0.51): cheaper`, of the repeats that both have.
fn conclusion(own: &PointSamples, other: &PointSamples, seed: u64) -> String {
    let value_of = |repeat| other.samples.iter().find(|(number, _)| *number == repeat).map(|(_, value)| *value);
    let blocks = own.samples.iter().filter_map(|(repeat, value)| Some((*value, value_of(*repeat)?)));
    let (a, b): (Vec<f64>, Vec<f64>) = blocks.unzip();
    let pair = Pair { a: &a, b: &b, is_paired: true, margin: 0.0 };
    let family = Family { confidence: CONFIDENCE, relevant_change: 0.0, seed };
    let found = compare_family(&[pair], &family).ok().and_then(|mut found| found.pop());
    let Some(Comparison { factor: Some(factor), verdict, .. }) = found else { return "undecided".to_owned() };
    let word = match verdict {
        Verdict::Lower => "cheaper",
        Verdict::Higher => "dearer",
        Verdict::Equivalent | Verdict::Undecided | Verdict::TooFew => "undecided",
    };
    format!("{} ({} to {}): {word}", digits(factor.value), digits(factor.low), digits(factor.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::run_values::RunValues;
    use crate::report::samples::{self, Source};
    use pushlab_experiment::Experiment;

    /// Three repeats of every cell of one variant, with the CPU that each transport is given.
    fn runs(experiment: &Experiment, cpu: impl Fn(Transport) -> [f64; 3]) -> Vec<RunValues> {
        let cells = experiment.cells();
        let variant = cells[0].variant.clone();
        let own = cells.into_iter().filter(|cell| cell.subject == "pushlab" && cell.variant == variant);
        let repeats = own.flat_map(|cell| {
            let values = cpu(cell.transport);
            (1..).zip(values).map(move |(repeat, value)| RunValues {
                repeat,
                figures: [("cpu_per_client".to_owned(), value)].into(),
                ..RunValues::planned(cell.clone())
            })
        });
        repeats.collect()
    }

    fn rows(experiment: &Experiment, runs: &[RunValues]) -> Option<Vec<Vec<String>>> {
        let series = samples::series(experiment, &[Source { origin: Origin::Measured, tag: "", runs }]);
        let table = polling_break_even(experiment.sweep(), &series, 1)?;
        let text = |cell: DataCell| match cell {
            DataCell::Text(text) => text,
            DataCell::Estimate(_) | DataCell::Nothing(()) => String::new(),
        };
        Some(table.rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    #[test]
    fn each_traffic_has_one_of_three_conclusions() {
        let experiment = presets::load("polling-share", None).unwrap();
        let measured = runs(&experiment, |transport| match transport {
            Transport::WebSocket => [20.0, 21.0, 20.5],
            Transport::Sse => [9.0, 10.5, 11.0],
            Transport::LongPolling => [4.0, 4.1, 4.2],
            _ => [10.0, 10.4, 10.2],
        });
        let rows = rows(&experiment, &measured).unwrap();
        let [row] = rows.as_slice() else { panic!("bytes were not measured: {rows:?}") };
        assert_eq!(row[1], "pushlab");
        assert!(row[3].contains("µs/s"), "{row:?}");
        let words: Vec<&str> = row[4..].iter().filter_map(|cell| cell.split(": ").nth(1)).collect();
        assert_eq!(words, ["cheaper", "undecided", "dearer"], "{row:?}");
    }

    #[test]
    fn without_polling_or_without_anything_beside_it_there_is_no_table() {
        let experiment = presets::load("polling-share", None).unwrap();
        let all = runs(&experiment, |_| [1.0, 2.0, 3.0]);
        let (polling, others): (Vec<RunValues>, Vec<RunValues>) =
            all.into_iter().partition(|run| run.cell.transport == Transport::Polling);
        assert_eq!((rows(&experiment, &polling), rows(&experiment, &others)), (None, None));
    }

    #[test]
    fn two_repeats_decide_nothing() {
        let experiment = presets::load("polling-share", None).unwrap();
        let mut measured =
            runs(&experiment, |transport| if transport == Transport::Polling { [1.0; 3] } else { [9.0; 3] });
        measured.retain(|run| run.repeat < 3);
        let rows = rows(&experiment, &measured).unwrap();
        assert!(rows[0][4..].iter().all(|cell| cell == "undecided"), "{rows:?}");
    }
}
