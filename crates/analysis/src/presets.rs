//! Experiments for tests, of whose subjects anything is believed, and results of them.

use crate::header::Header;
use crate::report::{ResultRuns, RunValues};
use pushlab_experiment::{Experiment, ExperimentError, Written, presets};
use pushlab_probe::machine::MachineFacts;
use std::collections::BTreeMap;

pub fn load(name: &str, profile: Option<&str>) -> Result<Experiment, ExperimentError> {
    let written = Written::read(presets::text(name).expect("a preset"), profile, name)?;
    Ok(Experiment::believe(written, &|_| Ok(None)))
}

/// A result that was measured, of these runs.
pub fn result(experiments: Vec<Experiment>, runs: Vec<RunValues>) -> ResultRuns {
    let header = Header {
        name: "result".to_owned(),
        experiments,
        search: None,
        seed: 7,
        command: vec!["pushlab".to_owned(), "run".to_owned()],
        version: "1.2.3".to_owned(),
        created_at: "2026-01-31T12:00:00Z".to_owned(),
        subject_cores: vec![0],
        load_cores: vec![1],
        prober_core: None,
        build: None,
        versions: BTreeMap::new(),
        runtimes: BTreeMap::new(),
        left_out: Vec::new(),
        machine: Some(MachineFacts::default()),
    };
    ResultRuns { tag: String::new(), header, known: BTreeMap::new(), runs }
}
