//! The experiment behind runs of which only figures are known.

use pushlab_analysis::report::RunValues;
use pushlab_experiment::cell::SlowPolicy;
use pushlab_experiment::metric::METRICS;
use pushlab_experiment::presets;
use pushlab_experiment::{Experiment, Polling, Variant, Written};
use pushlab_stats::GeneratorLimits;
use pushlab_subjects::named::offer;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{ClientsIn, Phases, RequestHeaders, Sockets};
use pushlab_workload::scenario::{Scenario, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the experiment of a browser's measurement.
pub const BROWSER: &str = "browser";

/// The title of bare figures: the preset's whose name they have, or their name.
pub fn title(name: &str) -> String {
    known(name).map_or_else(|| of_nothing(name).title, |experiment| experiment.title)
}

/// Among ours alone: an imported name is no path to open.
fn known(name: &str) -> Option<Written> {
    Written::read(presets::text(name)?, None, name).ok()
}

/// An experiment of which only figures are known: printed in a study, or imported from a table.
pub fn experiment_of(name: &str, runs: &[RunValues], is_published: bool) -> Experiment {
    let own: Vec<&RunValues> = runs.iter().filter(|run| run.cell.experiment == name).collect();
    let base = known(name).unwrap_or_else(|| of_nothing(name));
    let names: Vec<String> = base.variants.iter().map(|variant| variant.name.clone()).collect();
    let variants = distinct(&names, own.iter().filter_map(|run| run.cell.variant.clone()));
    let written = Written {
        // What a study printed is not drawn beside itself.
        study: base.study.clone().filter(|_| !is_published),
        subjects: distinct(&base.subjects, own.iter().map(|run| run.cell.subject.clone())),
        transports: distinct(&base.transports, own.iter().map(|run| run.cell.transport)),
        clients: distinct(&base.clients, own.iter().map(|run| run.cell.clients)),
        deliveries_per_s: distinct(&base.deliveries_per_s, own.iter().filter_map(|run| run.cell.deliveries_per_s)),
        payload_bytes: distinct(&base.payload_bytes, own.iter().filter_map(|run| run.cell.payload_bytes)),
        networks: distinct(&base.networks, own.iter().filter_map(|run| run.cell.network.clone())),
        repeats: own.iter().map(|run| run.repeat).max().unwrap_or(1),
        policies: distinct(&base.policies, own.iter().map(|run| run.cell.policy)),
        variants: variants.into_iter().map(|name| variant(&base.variants, name)).collect(),
        ..base
    };
    Experiment::believe(written, &offer)
}

/// The values that occur: those of the known experiment in its order, the others behind them in their own.
fn distinct<T: Ord + Clone>(known: &[T], values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: BTreeSet<T> = values.collect();
    let mut ordered: Vec<T> = known.iter().filter_map(|value| found.take(value)).collect();
    ordered.extend(found);
    ordered
}

/// The known variant of this name, or one of which nothing but its name is known.
fn variant(known: &[Variant], name: String) -> Variant {
    let nothing = Variant {
        name,
        transports: Vec::new(),
        subjects: Vec::new(),
        clients: Vec::new(),
        deliveries_per_s: Vec::new(),
        payload_bytes: Vec::new(),
        scenario: None,
        shape: None,
        polling: None,
        prober: None,
        headers: None,
        server_options: None,
        content: None,
        compression_from: None,
        environment: None,
        sockets: None,
        clients_in: None,
        loops: None,
        workers: None,
        phases: None,
    };
    known.iter().find(|variant| variant.name == nothing.name).cloned().unwrap_or(nothing)
}

fn of_nothing(name: &str) -> Written {
    let phases = Phases { connect_ms: 0, warm_up_ms: 0, idle_ms: 0, load_ms: 0, drain_ms: 0, after_ms: 0 };
    let (title, description) = match name {
        BROWSER => ("Measured in a browser", "One browser's own messages there and back over each transport."),
        _ => (name, "Imported figures."),
    };
    Written {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        study: None,
        published_as: None,
        subjects: Vec::new(),
        transports: Vec::new(),
        clients: Vec::new(),
        deliveries_per_s: Vec::new(),
        payload_bytes: Vec::new(),
        policies: vec![SlowPolicy::Close],
        variants: Vec::new(),
        networks: Vec::new(),
        repeats: 1,
        blocks: None,
        scenario: Scenario::Idle,
        shape: Shape::Steady,
        phases,
        baseline_ms: 0,
        turns_ms: None,
        at_once: None,
        soak_minutes: None,
        prober: None,
        polling: Polling::default(),
        headers: RequestHeaders::Minimal,
        receipts: false,
        sockets: Sockets::default(),
        clients_in: ClientsIn::default(),
        through: None,
        network: BTreeMap::new(),
        connect_rate: 1,
        loops: None,
        workers: None,
        server_options: Vec::new(),
        content: Content::Filler,
        compression_from: None,
        environment: BTreeMap::new(),
        collections: false,
        capacity_share: None,
        warm_up_max_ms: None,
        subject_cores: 1,
        axis: None,
        charts: METRICS.iter().map(|metric| metric.name.to_owned()).collect(),
        columns: Vec::new(),
        tables: Vec::new(),
        card: Vec::new(),
        expect: Vec::new(),
        margins: BTreeMap::new(),
        generator_limits: GeneratorLimits::default(),
        injected_delay_us: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_analysis::header::Header;
    use pushlab_analysis::report::{Asked, ResultRuns, build};

    /// Every cell of a preset with variants, three times, from the last to the first.
    fn backwards() -> Vec<RunValues> {
        let preset = experiments::load("browser-limit", None).unwrap();
        assert!(preset.variants.len() > 1);
        let run = |(cell, repeat)| RunValues {
            repeat,
            figures: [("delivered".to_owned(), 5.0)].into(),
            ..RunValues::planned(cell)
        };
        preset.cells().into_iter().rev().flat_map(|cell| (1..=3).map(move |r| (cell.clone(), r))).map(run).collect()
    }

    #[test]
    fn a_report_of_figures_has_the_variants_in_the_order_of_the_experiment() {
        let runs = backwards();
        let preset = experiments::load("browser-limit", None).unwrap();
        let experiment = experiment_of("browser-limit", &runs, false);
        assert_eq!((experiment.cells(), experiment.runs()), (preset.cells(), runs.len()));
        let header = Header {
            name: "figures".to_owned(),
            experiments: vec![experiment],
            seed: 1,
            command: Vec::new(),
            version: String::new(),
            created_at: String::new(),
            subject_cores: Vec::new(),
            load_cores: Vec::new(),
            prober_core: None,
            build: None,
            versions: BTreeMap::new(),
            runtimes: BTreeMap::new(),
            search: None,
            left_out: Vec::new(),
            machine: None,
            fleet: Vec::new(),
            agents: Vec::new(),
        };
        let count = runs.len() as u32;
        let mut result = ResultRuns { tag: String::new(), header, known: BTreeMap::new(), runs };
        let report = build(std::slice::from_ref(&result), &[], Asked::default(), String::new());
        let own = &report.experiments[0];
        assert_eq!((own.runs_done, own.runs_planned), (count, count));
        let mut labels: Vec<String> = Vec::new();
        for cell in preset.cells() {
            let label = format!("{} · {}", cell.transport.name(), cell.variant.unwrap());
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        assert_eq!(own.series.iter().map(|series| series.label.clone()).collect::<Vec<_>>(), labels);
        // Nobody knows whether the others were planned.
        result.runs.truncate(4);
        let sparse = build(&[result], &[], Asked::default(), String::new());
        assert_eq!((sparse.experiments[0].runs_done, sparse.experiments[0].runs_planned), (4, 4));
    }

    #[test]
    fn unknown_variants_come_in_their_own_order() {
        let mut runs = backwards();
        runs.iter_mut().for_each(|run| run.cell.experiment = "elsewhere".to_owned());
        let experiment = experiment_of("elsewhere", &runs, false);
        let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert!(names.len() > 1 && names.is_sorted(), "{names:?}");
        assert_eq!(experiment.runs(), runs.len());
    }
}
