//! Printed figures beside measured ones.

use super::quantiles::lacking_or_failed;
use super::run_values::RunValues;
use super::samples::{SeriesRuns, figure};
use pushlab_experiment::cell::{Cell, Sweep};
use pushlab_experiment::metric::Metric;
use pushlab_report::{Column, DataCell, DataTable, Estimate, Origin};
use pushlab_store::Bound;

/// Each printed figure beside the measured ones that are nearest to it: [`nearest`] is the rule. Of a series that was
/// measured at some of its places only these are there.
pub fn side_by_side(sweep: Sweep, series: &[SeriesRuns<'_>], metrics: &[&Metric], seed: u64) -> Option<DataTable> {
    let of = |origin: Origin| series.iter().filter(move |one| one.origin == origin);
    let measured: Vec<&SeriesRuns<'_>> = of(Origin::Measured).collect();
    let mut rows = Vec::new();
    for printed in of(Origin::Published) {
        let places = printed.cells.iter().map(|(&x, runs)| (x, runs, nearest(runs, printed, &measured)));
        let places: Vec<(u32, &Vec<&RunValues>, Vec<Near<'_>>)> = places.collect();
        let is_exact = |near: &[Near<'_>]| near.iter().any(Near::is_exact);
        let is_any_exact = places.iter().any(|(_, _, near)| is_exact(near));
        for (x, runs, near) in places.iter().filter(|(_, _, near)| is_exact(near) || !is_any_exact) {
            for metric in metrics {
                let Some(figure) = figure(runs, metric.name, seed) else { continue };
                let row = |near: &Near<'_>| row(sweep, (printed, *x, figure), near, metric, seed);
                rows.extend(near.iter().map(row));
            }
        }
    }
    let columns = ["Series", "Metric", "Published at", "Published", "Measured at", "Measured", "Ratio"];
    (!rows.is_empty()).then(|| DataTable {
        title: "Published beside measured".to_owned(),
        note: "What the study printed for its own machines and servers, beside what was measured here over the same \
               transport with the same number of clients, rate and size, or with the nearest. Where the study leaves \
               open which variant it means, each stands beside it. The ratio, measured divided by published, is given \
               only where all that the study states agrees."
            .to_owned(),
        columns: columns.map(|title| Column::new(title, "")).to_vec(),
        rows,
        stack: None,
    })
}

fn row(
    sweep: Sweep,
    (printed, x, published): (&SeriesRuns<'_>, u32, Estimate),
    near: &Near<'_>,
    metric: &Metric,
    seed: u64,
) -> Vec<DataCell> {
    let runs = &near.series.cells[&near.place];
    let here = figure(runs, metric.name, seed);
    let ratio = here.filter(|_| near.is_exact()).and_then(|here| ratio(&here, &published));
    let unit = if metric.unit.is_empty() { "number" } else { metric.unit };
    // What it shares with the printed series need not be said again, but for a name that only its own label has; what tells
    // them apart must be.
    let cells = runs.first().zip(printed.cells[&x].first());
    let far = cells.map_or_else(Vec::new, |(own, other)| differing(&own.cell, &other.cell, sweep));
    let is_shared = |part: &str| match part == near.series.subject {
        true => printed.label.split(" · ").any(|other| other == part),
        false => printed.words.contains(part),
    };
    let is_told = |part: &&str| !is_shared(part) && far.iter().all(|far| far != part);
    let own = near.series.label.split(" · ").filter(is_told).map(str::to_owned);
    let own: Vec<String> = own.chain(far.iter().cloned()).collect();
    let by = if own.is_empty() { String::new() } else { format!("{}, ", own.join(" · ")) };
    // Why there is no figure, if there is none.
    let absent = || lacking_or_failed(runs, metric.name).map(|lacking| DataCell::text(lacking.why.words()));
    vec![
        DataCell::text(printed.label.trim_end_matches(" · published")),
        DataCell::text(format!("{}, {unit}", metric.title)),
        DataCell::text(sweep.place(x)),
        DataCell::Estimate(published),
        DataCell::text(format!("{by}{}", sweep.place(near.place))),
        here.map(DataCell::Estimate).or_else(absent).unwrap_or(DataCell::Nothing(())),
        ratio.map_or(DataCell::Nothing(()), DataCell::text),
    ]
}

/// Measured over published, with two significant digits or more; a lower bound where what was measured is one, or what was
/// printed an upper one.
fn ratio(here: &Estimate, published: &Estimate) -> Option<String> {
    let is_at_least = here.is_lower_bound() || published.bound == Some(Bound::Below);
    let sign = if is_at_least { "≥ " } else { "" };
    let ratio = Some(here.value / published.value).filter(|ratio| ratio.is_finite())?;
    let decimals = if ratio == 0.0 { 2 } else { (1.0 - ratio.abs().log10().floor()).clamp(2.0, 9.0) as usize };
    Some(format!("{sign}{ratio:.decimals$} ×"))
}

/// A measured cell beside a printed one.
struct Near<'a> {
    series: &'a SeriesRuns<'a>,
    place: u32,
    distance: f64,
}

impl Near<'_> {
    /// Whether it agrees in all that the study gives.
    fn is_exact(&self) -> bool {
        self.distance == 0.0
    }
}

/// The measured cells that a printed one stands beside: of the same transport, and of the variant and the network that the
/// study names, the nearest in clients, rate and size. What the study does not say may be anything, so of each variant
/// that is equally near one is there. Of several subjects it is the study's own, else the last, as experiments name servers
/// of a study's time after today's; where the study names no network, what was measured without a link comes first.
fn nearest<'a>(cell: &[&RunValues], printed: &SeriesRuns<'_>, measured: &[&'a SeriesRuns<'a>]) -> Vec<Near<'a>> {
    let Some(cell) = cell.first().map(|run| &run.cell) else { return Vec::new() };
    let mut found: Vec<Near<'a>> = Vec::new();
    for series in measured.iter().copied().filter(|series| may_be_meant(series, printed)) {
        let places = series.cells.iter().filter_map(|(&place, runs)| {
            let distance = distance(&runs.first()?.cell, cell);
            Some(Near { series, place, distance })
        });
        let Some(own) = places.min_by(|a, b| a.distance.total_cmp(&b.distance)) else { continue };
        match found.iter_mut().find(|other| other.series.variant == series.variant) {
            Some(other) => {
                let by_likeness = likeness(other.series, printed).cmp(&likeness(series, printed));
                if own.distance.total_cmp(&other.distance).then(by_likeness).is_le() {
                    *other = own;
                }
            }
            None => found.push(own),
        }
    }
    let least = found.iter().map(|near| near.distance).fold(f64::INFINITY, f64::min);
    found.retain(|near| near.distance <= least);
    found
}

/// Whether what a study printed may be of what a series measured: it gives a transport always, the others not always.
fn may_be_meant(own: &SeriesRuns<'_>, printed: &SeriesRuns<'_>) -> bool {
    let is_said = |own: &str, printed: &str| printed.is_empty() || own == printed;
    own.transport == printed.transport
        && is_said(&own.variant, &printed.variant)
        && is_said(&own.network, &printed.network)
}

/// How far two cells are from each other: the factors between their numbers of clients, rates and sizes, multiplied, as a
/// logarithm. Where only one of them has a number, nothing tells them apart.
fn distance(own: &Cell, printed: &Cell) -> f64 {
    let known = |axis: Sweep| axis.of(own).zip(axis.of(printed));
    let factor = |(own, printed): (u32, u32)| f64::from(own.max(1)) / f64::from(printed.max(1));
    Sweep::ALL.into_iter().filter_map(known).map(|values| factor(values).ln().abs()).sum()
}

/// Of the axes but that of the charts, those in which two cells differ, by the first one's numbers.
fn differing(own: &Cell, printed: &Cell, charted: Sweep) -> Vec<String> {
    let differs = |axis: Sweep| {
        let (own, printed) = axis.of(own).zip(axis.of(printed))?;
        (own != printed).then(|| axis.place(own))
    };
    Sweep::ALL.into_iter().filter(|axis| *axis != charted).filter_map(differs).collect()
}

/// Words that two series share, and whether they are of the same network.
fn likeness(own: &SeriesRuns<'_>, printed: &SeriesRuns<'_>) -> usize {
    own.words.intersection(&printed.words).count() + usize::from(own.network == printed.network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::samples::{self, Source};
    use pushlab_wire::transport::Transport;

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
        assert_eq!(beside(&[Some("3g")], None).unwrap(), "3g, 2 clients", "it is told which");
    }

    /// The rows beside what a study printed at these places (transport, clients, rate) when all cells of CometD's load at the
    /// study's size had a median of 5 ms: where it was printed, where it was measured, the ratio to the printed 10 ms.
    fn at_full_size(printed: &[(Transport, u32, u32)], bound: Option<Bound>) -> Vec<[String; 3]> {
        let experiment = presets::load("cometd-load", Some("full")).unwrap();
        let metric = "latency_median";
        let run = |cell: Cell, ms: f64, bound: Option<Bound>| RunValues {
            figures: [(metric.to_owned(), ms)].into(),
            bounds: bound.map(|bound| (metric.to_owned(), bound)).into_iter().collect(),
            ..RunValues::planned(cell)
        };
        let measured: Vec<RunValues> = experiment.cells().into_iter().map(|cell| run(cell, 5.0, None)).collect();
        let first = experiment.cells().remove(0);
        let cell = |&(transport, clients, rate): &(Transport, u32, u32)| Cell {
            subject: "cometd-2011".to_owned(),
            transport,
            variant: None,
            clients,
            deliveries_per_s: Some(rate),
            payload_bytes: Some(50),
            ..first.clone()
        };
        let published: Vec<RunValues> = printed.iter().map(|place| run(cell(place), 10.0, bound)).collect();
        let sources = [
            Source { origin: Origin::Measured, tag: "", runs: &measured },
            Source { origin: Origin::Published, tag: "", runs: &published },
        ];
        let series = samples::series(&experiment, &sources);
        let metrics = [Metric::find(metric).unwrap()];
        let table = side_by_side(experiment.sweep(), &series, &metrics, 1).unwrap();
        let text = |cell: &DataCell| match cell {
            DataCell::Text(text) => text.clone(),
            _ => String::new(),
        };
        table.rows.iter().map(|row| [2, 4, 6].map(|column| text(&row[column]))).collect()
    }

    #[test]
    fn every_variant_that_a_study_may_mean_stands_beside_it() {
        let both = ["rooms-of-200", "rooms-of-20000"];
        let row = |variant: &str, far: &str, rate: u32, ratio: &str| {
            [format!("{rate} deliveries/s"), format!("{variant}{far}, {rate} deliveries/s"), ratio.to_owned()]
        };
        let found = at_full_size(&[(Transport::WebSocket, 200_000, 20_000)], None);
        assert_eq!(
            found,
            both.map(|variant| row(variant, "", 20_000, "0.50 ×")),
            "those of 500 and 2,000 B are farther"
        );
        let found = at_full_size(&[(Transport::LongPolling, 50_000, 20_000)], None);
        assert_eq!(found, [row("polls", "", 20_000, "0.50 ×")], "the other number of clients is farther");
        let found = at_full_size(&[(Transport::WebSocket, 50_000, 50_000)], None);
        let nearest = both.map(|variant| row(variant, " · 200000 clients", 50_000, ""));
        assert_eq!(found, nearest, "four times the clients at that rate are nearer than fewer at less than half of it");
        let found = at_full_size(&[(Transport::Sse, 50_000, 50_000), (Transport::LongPolling, 20_000, 1000)], None);
        assert_eq!(found, [row("polls", "", 1000, "0.50 ×")], "nothing was measured over event streams");
    }

    #[test]
    fn of_a_printed_series_that_was_measured_only_the_measured_places_are_there() {
        let places = [(Transport::LongPolling, 20_000, 20_000), (Transport::LongPolling, 20_000, 30_000)];
        let found = at_full_size(&places, None);
        assert_eq!(found.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["20000 deliveries/s"]);
        let found = at_full_size(&places[1..], None);
        assert_eq!(found.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(), ["polls, 20000 deliveries/s"]);
    }

    #[test]
    fn a_ratio_to_an_upper_bound_is_a_lower_one() {
        let place = [(Transport::LongPolling, 20_000, 20_000)];
        let ratio = |bound| at_full_size(&place, bound).remove(0)[2].clone();
        assert_eq!([None, Some(Bound::About), Some(Bound::Below)].map(ratio), ["0.50 ×", "0.50 ×", "≥ 0.50 ×"]);
    }

    #[test]
    fn a_small_ratio_keeps_its_digits() {
        let of = |value: f64| Estimate { value, low: value, high: value, runs: 3, bound: None };
        let told = |here: f64, published: f64| ratio(&of(here), &of(published));
        let shown = [(2500.0, 10.0), (23.4, 1229.0), (0.002, 10.0), (0.0, 10.0)].map(|(a, b)| told(a, b).unwrap());
        assert_eq!(shown, ["250.00 ×", "0.019 ×", "0.00020 ×", "0.00 ×"]);
        assert_eq!(told(1.0, 0.0), None);
    }
}
