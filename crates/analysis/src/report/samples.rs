//! What a report is made of: series of runs, and the figures of a cell over its runs.

use super::quantiles::{CellQuantile, lacking};
use super::run_values::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::cell::SlowPolicy;
use pushlab_experiment::cell::Sweep;
use pushlab_experiment::metric::{Better, METRICS, Metric};
use pushlab_experiment::subject::OURS;
use pushlab_report::{Estimate, Origin, WhyLacking};
use pushlab_stats::{Interval, Regime, WarningCode, interval_of_mean, interval_of_whole, regime, stress_limit};
use pushlab_store::Bound;
use std::collections::{BTreeMap, BTreeSet};

/// Level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// A metric's values at one place of a series, one for each run.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSamples {
    /// Place on the axis.
    pub x: f64,
    /// Load or stress; `None` where CPU was not measured.
    pub regime: Option<Regime>,
    /// Values by their repeat; infinite where the quantile was not reached.
    pub samples: Vec<(u32, f64)>,
    /// What is shown of them; `None` where it was not reached.
    pub shown: Option<Estimate>,
}

/// One line of every chart: the runs of a series by their place on the axis.
#[derive(Debug)]
pub struct SeriesRuns<'a> {
    /// Name of the experiment.
    pub experiment: String,
    /// Stable key.
    pub key: String,
    /// Legend text.
    pub label: String,
    /// What assertions may call it by.
    pub words: BTreeSet<String>,
    /// Which of several results it is of; empty for a single one.
    pub tag: String,
    /// The subject's name.
    pub subject: String,
    /// The variant, or empty.
    pub variant: String,
    /// The network, or empty.
    pub network: String,
    /// What else distinguishes it but subject, transport and policy: only series of the same kind, and of one machine where
    /// several are pooled, are ranked.
    pub kind: String,
    /// Transport name.
    pub transport: String,
    /// Where its numbers come from.
    pub origin: Origin,
    /// Runs of each cell by its place.
    pub cells: BTreeMap<u32, Vec<&'a RunValues>>,
}

impl SeriesRuns<'_> {
    /// Whether any of its runs has this metric.
    pub fn has(&self, metric: &str) -> bool {
        self.cells.values().flatten().any(|run| run.measured(metric))
    }

    /// Load or stress at each place, by the mean CPU of the runs that count; no entry where nobody could see it.
    pub fn regimes(&self) -> BTreeMap<u32, Regime> {
        let known: Vec<(u32, f64)> = self.cells.iter().filter_map(|(&x, runs)| Some((x, mean_cpu(runs)?))).collect();
        let limit = stress_limit(&known.iter().map(|(_, cpu)| *cpu).collect::<Vec<_>>());
        known.into_iter().map(|(x, cpu)| (x, regime(cpu, limit))).collect()
    }

    /// The values of a metric at each place.
    pub fn samples(&self, metric: &str, seed: u64) -> Vec<PointSamples> {
        let regimes = self.regimes();
        let point = |(&x, runs): (&u32, &Vec<&RunValues>)| {
            let counting = runs.iter().filter(|run| run.counts());
            let samples = match lacking(runs, metric) {
                Some(lacking) if lacking.why == WhyLacking::NotReached => {
                    counting.map(|run| (run.repeat, f64::INFINITY)).collect()
                }
                _ => values_by_repeat(runs, metric),
            };
            let shown = figure(runs, metric, seed);
            // The ends of a range that was printed are no two runs.
            let printed = shown.filter(|shown| shown.bound.is_some() && shown.runs == 1);
            let samples = printed.map_or(samples, |shown| vec![(1, shown.value)]);
            let point = PointSamples { x: f64::from(x), regime: regimes.get(&x).copied(), samples, shown };
            (!point.samples.is_empty()).then_some(point)
        };
        self.cells.iter().filter_map(point).collect()
    }
}

/// A source of runs: what was measured, what was printed, or one of several results that are laid over each other.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Where the numbers come from.
    pub origin: Origin,
    /// Distinguishes results of the same experiment; empty for a single one.
    pub tag: &'a str,
    /// The runs.
    pub runs: &'a [RunValues],
}

/// The series of an experiment, in the order of its first run; what was printed comes last.
pub fn series<'a>(experiment: &Experiment, sources: &[Source<'a>]) -> Vec<SeriesRuns<'a>> {
    let sweep = experiment.sweep();
    let mut all: Vec<SeriesRuns<'a>> = Vec::new();
    // Over all of them: a study's networks are to be told from those measured.
    let networks = sources.iter().flat_map(|source| own_of(experiment, source)).map(|run| &run.cell.network);
    let has_networks = networks.collect::<BTreeSet<_>>().len() > 1;
    for source in sources {
        let own: Vec<&RunValues> = own_of(experiment, source).collect();
        let mut varies = Varying::of(&own, sweep);
        varies.all[NETWORK] |= has_networks;
        let mut order: Vec<&RunValues> = own;
        let planned = experiment.cells();
        // What was not planned, such as what a study printed, comes behind, by its numbers.
        order.sort_by_key(|RunValues { cell, .. }| {
            let place = planned.iter().position(|one| one == cell).unwrap_or(planned.len());
            (place, cell.clients, cell.deliveries_per_s, cell.payload_bytes)
        });
        for run in order {
            let Some(place) = sweep.of(&run.cell) else { continue };
            let parts = parts(&run.cell, sweep);
            let key = key(&parts, source);
            let at = all.iter().position(|series| series.key == key).unwrap_or_else(|| {
                all.push(SeriesRuns {
                    experiment: experiment.name.clone(),
                    key,
                    label: label(&parts, &varies, source),
                    words: words(&parts, source),
                    tag: source.tag.to_owned(),
                    subject: run.cell.subject.clone(),
                    variant: run.cell.variant.clone().unwrap_or_default(),
                    network: run.cell.network.clone().unwrap_or_default(),
                    kind: kind(&parts, if run.machine > 0 { source.tag } else { "" }),
                    transport: run.cell.transport.name().to_owned(),
                    origin: source.origin,
                    cells: BTreeMap::new(),
                });
                all.len() - 1
            });
            all[at].cells.entry(place).or_default().push(run);
        }
    }
    all.sort_by_key(|series| series.origin == Origin::Published);
    all
}

fn own_of<'a>(experiment: &Experiment, source: &Source<'a>) -> impl Iterator<Item = &'a RunValues> + use<'a> {
    let printed_as = experiment.published_as.as_ref().filter(|_| source.origin == Origin::Published);
    let name = printed_as.unwrap_or(&experiment.name).clone();
    source.runs.iter().filter(move |run| run.cell.experiment == name)
}

/// What distinguishes a series: subject, transport, variant, policy, network, and what is swept but not the axis.
type Parts = [String; 8];

/// Where among the parts the network is.
const NETWORK: usize = 4;

fn parts(cell: &Cell, sweep: Sweep) -> Parts {
    let beside = |other: Sweep| match other.of(cell) {
        Some(value) if other != sweep => other.place(value),
        _ => String::new(),
    };
    [
        cell.subject.clone(),
        cell.transport.name().to_owned(),
        cell.variant.clone().unwrap_or_default(),
        cell.policy.name().to_owned(),
        cell.network.clone().unwrap_or_default(),
        beside(Sweep::Clients),
        beside(Sweep::DeliveriesPerS),
        beside(Sweep::PayloadBytes),
    ]
}

/// What a series is ranked among: the traffic, the network and, where results of several machines are pooled, its machine.
fn kind(parts: &Parts, machine: &str) -> String {
    let others = [&parts[2], &parts[4], &parts[5], &parts[6], &parts[7]].map(String::as_str);
    others.into_iter().chain([machine]).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Which parts have more than one value among the runs.
struct Varying {
    all: [bool; 8],
    /// Among those of each variant.
    of_variant: BTreeMap<String, [bool; 8]>,
}

impl Varying {
    fn of(runs: &[&RunValues], sweep: Sweep) -> Self {
        let all: Vec<Parts> = runs.iter().map(|run| parts(&run.cell, sweep)).collect();
        let varying = |variant: Option<&String>| {
            let own = || all.iter().filter(|parts| variant.is_none_or(|variant| parts[2] == *variant));
            std::array::from_fn(|i| own().map(|parts| &parts[i]).collect::<BTreeSet<_>>().len() > 1)
        };
        let variants: BTreeSet<&String> = all.iter().map(|parts| &parts[2]).collect();
        let of_variant = variants.into_iter().map(|variant| (variant.clone(), varying(Some(variant))));
        Self { all: varying(None), of_variant: of_variant.collect() }
    }
}

fn key(parts: &Parts, source: &Source<'_>) -> String {
    let mut key = parts[..4].join("/");
    for part in parts[4..].iter().filter(|part| !part.is_empty()) {
        key = format!("{key}/{part}");
    }
    match (source.origin, source.tag) {
        (Origin::Published, _) => format!("{key}/published"),
        (Origin::Measured, "") => key,
        (Origin::Measured, tag) => format!("{key}/{tag}"),
    }
}

/// The transport, and whatever else varies. Rate and size go without saying where their variant has no other, and so does
/// our own server; the number of clients is what results at scale are told by.
fn label(parts: &Parts, varies: &Varying, source: &Source<'_>) -> String {
    let varies_in_variant = |i: usize| varies.of_variant.get(&parts[2]).is_some_and(|own| own[i]);
    let is_telling = |i: usize| match i {
        0 if parts[0] != OURS => varies.all[i],
        1 => true,
        3 => varies.all[i] || parts[i] != SlowPolicy::Close.name(),
        0 | 6 | 7 => varies_in_variant(i),
        _ => varies.all[i],
    };
    let mut shown: Vec<&str> =
        (0..parts.len()).filter(|&i| is_telling(i) && !parts[i].is_empty()).map(|i| parts[i].as_str()).collect();
    match source.origin {
        Origin::Published => shown.push("published"),
        Origin::Measured if !source.tag.is_empty() => shown.push(source.tag),
        Origin::Measured => {}
    }
    shown.join(" · ")
}

fn words(parts: &Parts, source: &Source<'_>) -> BTreeSet<String> {
    let tag = Some(source.tag.to_owned());
    parts.iter().cloned().chain(tag).filter(|word| !word.is_empty()).collect()
}

/// One metric's values over the runs that count; none where the cell as a whole has no figure ([`lacking`]).
pub fn values(runs: &[&RunValues], metric: &str) -> Vec<f64> {
    values_by_repeat(runs, metric).into_iter().map(|(_, value)| value).collect()
}

fn values_by_repeat(runs: &[&RunValues], metric: &str) -> Vec<(u32, f64)> {
    if lacking(runs, metric).is_some() {
        return Vec::new();
    }
    let value = |run: &&RunValues| Some((run.repeat, run.figures.get(metric).copied()?));
    runs.iter().filter(|run| run.counts()).filter_map(value).collect()
}

/// A figure and its interval over the runs that count: their mean, or the quantile of all of them together, marked as a
/// lower bound where it is a rate that the load set; for a range that was printed, its middle and its ends.
pub fn figure(runs: &[&RunValues], metric: &str, seed: u64) -> Option<Estimate> {
    let values = values(runs, metric);
    let bound = runs.iter().find_map(|run| run.bounds.get(metric).copied());
    if let Some(bound) = bound {
        let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
        let value = low.midpoint(high);
        return (!values.is_empty()).then_some(Estimate { value, low, high, runs: 1, bound: Some(bound) });
    }
    let Interval { value, low, high, runs: counted, .. } = match CellQuantile::of(runs, metric) {
        Some(_) if lacking(runs, metric).is_some() => return None,
        Some(whole) => interval_of_whole(whole.value_ms()?, &values, CONFIDENCE).ok()?,
        None => interval_of_mean(&values, CONFIDENCE, seed).ok()?,
    };
    // Hardly any measured quantity is negative, though the interval of a skewed one may reach below.
    let may_be_negative = Metric::find(metric).is_some_and(Metric::may_be_negative);
    let low = if may_be_negative { low } else { low.max(0.0) };
    let bound = is_limit_of_load(runs, metric).then_some(Bound::Min);
    Some(Estimate { value, low, high, runs: counted, bound })
}

/// Whether a rate is that of the load rather than of the subject, which may do better: in one of the runs behind it the
/// load was the slower side.
fn is_limit_of_load(runs: &[&RunValues], metric: &str) -> bool {
    let is_rate = Metric::find(metric).is_some_and(|metric| metric.better == Better::Higher && metric.unit == "/s");
    let is_bound = |run: &&RunValues| run.warnings.iter().any(|warning| warning.code == WarningCode::GeneratorBound);
    is_rate && runs.iter().filter(|run| run.counts()).any(is_bound)
}

fn mean_cpu(runs: &[&RunValues]) -> Option<f64> {
    pushlab_stats::mean(&values(runs, "cpu")).or_else(|| pushlab_stats::mean(&values(runs, "cpu_median")))
}

/// The metrics that any of these series has, in the order of the table.
pub fn metrics_in(series: &[SeriesRuns<'_>]) -> Vec<&'static Metric> {
    METRICS.iter().filter(|metric| series.iter().any(|series| series.has(metric.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn runs(experiment: &Experiment) -> Vec<RunValues> {
        let run = |(index, cell): (usize, Cell)| RunValues {
            figures: [("latency_own_mean".to_owned(), index as f64)].into(),
            ..RunValues::planned(cell)
        };
        experiment.cells().into_iter().enumerate().map(run).collect()
    }

    #[test]
    fn cells_of_two_networks_do_not_mix() {
        let mut experiment = presets::load("bigestans-chat", None).unwrap();
        experiment.subjects = vec!["pushlab".to_owned()];
        experiment.networks = vec!["local".to_owned(), "4g".to_owned()];
        let measured = runs(&experiment);
        let sources = [Source { origin: Origin::Measured, tag: "", runs: &measured }];
        let all = series(&experiment, &sources);
        assert_eq!(all.len(), 6);
        assert_eq!((all[0].label.as_str(), all[1].label.as_str()), ("websocket · local", "websocket · 4g"));
        assert_eq!((all[1].key.as_str(), all[1].kind.as_str()), ("pushlab/websocket//close/4g", "4g"));
        assert!(all.iter().all(|series| series.cells[&2].len() == 1));
        assert!(all[1].words.contains("4g"));
    }

    #[test]
    fn what_a_study_printed_may_stand_under_another_experiments_name() {
        let load = presets::load("johannessen-load", None).unwrap();
        let browsers = presets::load("johannessen-browsers", None).unwrap();
        let (printed, measured) = (runs(&load), runs(&browsers));
        let sources = [
            Source { origin: Origin::Measured, tag: "", runs: &measured },
            Source { origin: Origin::Published, tag: "", runs: &printed },
        ];
        let all = series(&browsers, &sources);
        let of = |origin| all.iter().filter(|series| series.origin == origin).collect::<Vec<_>>();
        let keys = |origin| of(origin).iter().map(|series| series.key.clone()).collect::<Vec<_>>();
        assert!(keys(Origin::Measured).iter().all(|key| !key.contains("broadcast")), "{:?}", keys(Origin::Measured));
        assert!(keys(Origin::Published).iter().any(|key| key.contains("broadcast")), "{:?}", keys(Origin::Published));
        let own = presets::load("johannessen-idle", None).unwrap();
        assert!(series(&own, &sources).is_empty(), "others have the numbers of their own name alone");
    }

    #[test]
    fn what_goes_without_saying_of_a_variant_is_not_said() {
        let experiment = presets::load("cometd-load", Some("full")).unwrap();
        let measured = runs(&experiment);
        let sources = [Source { origin: Origin::Measured, tag: "", runs: &measured }];
        let all = series(&experiment, &sources);
        let labels = |variant: &str| {
            let own = all.iter().filter(|series| series.variant == variant);
            own.map(|series| series.label.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(labels("rooms-of-200"), ["websocket · rooms-of-200 · 200000 clients"]);
        let polls = ["long-polling · polls · 20000 clients", "long-polling · polls · 50000 clients"];
        assert_eq!(labels("polls"), polls);
        let sizes =
            ["500 B", "2000 B"].map(|size| format!("websocket · rooms-of-200-larger · 200000 clients · {size}"));
        assert_eq!(labels("rooms-of-200-larger"), sizes);
        let servers = ["cometd", "cometd-2011"].map(|name| format!("{name} · websocket · cometd · 19000 clients"));
        assert_eq!(labels("cometd"), servers);
        assert!(all.iter().all(|series| series.words.contains(&series.subject)), "assertions may name it");
        let begun: Vec<RunValues> = measured.iter().filter(|run| run.cell.subject != "cometd-2011").cloned().collect();
        let all = series(&experiment, &[Source { origin: Origin::Measured, tag: "", runs: &begun }]);
        let own = all.iter().find(|series| series.variant == "cometd").unwrap();
        assert_eq!(own.label, "cometd · websocket · cometd · 19000 clients", "only ours goes without saying");
    }

    #[test]
    fn what_a_study_printed_comes_in_the_order_of_its_numbers() {
        let experiment = presets::load("cometd-load", None).unwrap();
        let first = experiment.cells().remove(0);
        let printed = [200_000, 20_000, 50_000].map(|clients| RunValues::planned(Cell { clients, ..first.clone() }));
        let all = series(&experiment, &[Source { origin: Origin::Published, tag: "", runs: &printed }]);
        let labels: Vec<&str> = all.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(
            labels,
            [20_000, 50_000, 200_000].map(|clients| format!("websocket · {clients} clients · published"))
        );
    }

    #[test]
    fn a_network_is_named_where_results_differ_in_it() {
        let mut plain = presets::load("bigestans-chat", None).unwrap();
        plain.subjects = vec!["pushlab".to_owned()];
        plain.networks.clear();
        let mut linked = plain.clone();
        linked.networks = vec!["4g".to_owned()];
        let (before, after) = (runs(&plain), runs(&linked));
        let source = |runs| Source { origin: Origin::Measured, tag: "", runs };
        let labels = |sources: &[Source<'_>]| -> Vec<String> {
            series(&plain, sources).into_iter().filter(|s| s.transport == "sse").map(|s| s.label).collect()
        };
        assert_eq!(labels(&[source(&before), source(&after)]), ["sse", "sse · 4g"]);
        assert_eq!(labels(&[source(&after)]), ["sse"]);
    }
}
