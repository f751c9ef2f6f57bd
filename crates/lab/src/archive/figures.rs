//! The experiment behind runs of which only figures are known.

use crate::cell::SlowPolicy;
use crate::experiment::{Experiment, Polling};
use crate::metric::METRICS;
use crate::presets::{self, PRESETS};
use crate::report::RunFigures;
use pushlab_load::plan::{Phases, RequestHeaders, Scenario, Shape, Sockets};
use pushlab_stats::GeneratorLimits;
use std::collections::{BTreeMap, BTreeSet};

/// An experiment of which only figures are known: printed in a study, or imported from a table.
pub fn experiment_of(name: &str, runs: &[RunFigures], is_published: bool) -> Experiment {
    let own: Vec<&RunFigures> = runs.iter().filter(|run| run.cell.experiment == name).collect();
    fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
        values.collect::<BTreeSet<T>>().into_iter().collect()
    }
    // Among ours alone: an imported name is no path to open.
    let known = PRESETS.iter().any(|(preset, _)| *preset == name).then(|| presets::load(name, None).ok()).flatten();
    let base = known.unwrap_or_else(|| of_nothing(name));
    Experiment {
        // What a study printed is not drawn beside itself.
        study: base.study.clone().filter(|_| !is_published),
        subjects: distinct(own.iter().map(|run| run.cell.subject.clone())),
        transports: distinct(own.iter().map(|run| run.cell.transport)),
        clients: distinct(own.iter().map(|run| run.cell.clients)),
        deliveries_per_s: distinct(own.iter().filter_map(|run| run.cell.deliveries_per_s)),
        payload_bytes: distinct(own.iter().filter_map(|run| run.cell.payload_bytes)),
        networks: distinct(own.iter().filter_map(|run| run.cell.network.clone())),
        repeats: own.iter().map(|run| run.repeat).max().unwrap_or(1),
        variants: Vec::new(),
        ..base
    }
}

fn of_nothing(name: &str) -> Experiment {
    let phases = Phases { connect_ms: 0, warm_up_ms: 0, idle_ms: 0, load_ms: 0, drain_ms: 0, after_ms: 0 };
    Experiment {
        name: name.to_owned(),
        title: name.to_owned(),
        description: "Imported figures.".to_owned(),
        study: None,
        subjects: Vec::new(),
        transports: Vec::new(),
        clients: Vec::new(),
        deliveries_per_s: Vec::new(),
        payload_bytes: Vec::new(),
        policies: vec![SlowPolicy::Close],
        variants: Vec::new(),
        networks: Vec::new(),
        repeats: 1,
        scenario: Scenario::Idle,
        shape: Shape::Steady,
        phases,
        baseline_ms: 0,
        soak_minutes: None,
        prober: None,
        polling: Polling::default(),
        headers: RequestHeaders::Minimal,
        receipts: false,
        sockets: Sockets::default(),
        network: BTreeMap::new(),
        connect_rate: 1,
        server_options: Vec::new(),
        axis: None,
        charts: METRICS.iter().map(|metric| metric.name.to_owned()).collect(),
        columns: Vec::new(),
        tables: Vec::new(),
        expect: Vec::new(),
        generator_limits: GeneratorLimits::default(),
        handicap_us: 0,
    }
}
