//! Results as a report takes them, and what is known of their subjects.

use super::run_values::RunValues;
use super::samples::{self, SeriesRuns, Source};
use crate::header::Header;
use pushlab_experiment::Experiment;
use pushlab_report::Origin;
use std::collections::BTreeMap;

/// One result: what was planned, and its runs.
#[derive(Debug)]
pub struct ResultRuns {
    /// Distinguishes it from others in the same report; empty for a single one.
    pub tag: String,
    /// What was planned, and where.
    pub header: Header,
    /// What is known of its subjects, by their names in results.
    pub known: BTreeMap<String, KnownSubject>,
    /// Its runs.
    pub runs: Vec<RunValues>,
}

/// What is known of a subject beside its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSubject {
    /// Its name for people.
    pub title: String,
    /// On what it runs, for people.
    pub platform: String,
    /// Whether it is compiled while it runs, so that it is slower at first.
    pub warms_up: bool,
}

/// The series of one experiment over all results, and what the studies printed.
pub fn series_of<'a>(
    experiment: &Experiment,
    results: &'a [ResultRuns],
    published: &'a [RunValues],
) -> Vec<SeriesRuns<'a>> {
    let mut sources: Vec<Source<'a>> = results
        .iter()
        .map(|result| Source { origin: Origin::Measured, tag: &result.tag, runs: &result.runs })
        .collect();
    if experiment.study.is_some() {
        sources.push(Source { origin: Origin::Published, tag: "", runs: published });
    }
    samples::series(experiment, &sources)
}
