//! Reports of what is stored: of one result, of several over each other, of several against each other.

use crate::archive::{self, ArchiveError};
use crate::wall_clock;
use pushlab_analysis::report::model::{Comparison, Report};
use pushlab_analysis::report::{self, Asked, COMPARED_METRICS, CompareError, Contender, ResultRuns, RunValues};
use pushlab_experiment::metric::Metric;
use pushlab_experiment::studies;
use pushlab_store::{CampaignRow, Store};
use std::collections::BTreeSet;

/// Why stored results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// They cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// They have nothing to compare.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// The runs of these results, each with a tag that tells it from the others; of one alone without.
///
/// # Errors
/// See [`ArchiveError`].
pub fn read_all(store: &Store, rows: &[CampaignRow]) -> Result<Vec<ResultRuns>, ArchiveError> {
    let is_same_name = |row: &CampaignRow| rows.iter().filter(|other| other.name == row.name).count() > 1;
    let tag = |row: &CampaignRow| match is_same_name(row) {
        true => format!("{} #{}", row.name, row.id),
        false => row.name.clone(),
    };
    let tags = rows.iter().map(|row| if rows.len() > 1 { tag(row) } else { String::new() });
    rows.iter().zip(tags).map(|(row, tag)| archive::read(store, row.id, &tag)).collect()
}

/// The report of results, beside what their studies printed.
///
/// # Errors
/// See [`ArchiveError`].
pub fn report_of(results: &[ResultRuns], asked: Asked<'_>) -> Result<Report, ArchiveError> {
    Ok(report::build(results, &published(results)?, asked, wall_clock::now()))
}

/// What changed from the first result to each of the others; of one that measured several subjects, from the first
/// subject to the others. Without metrics, those of [`COMPARED_METRICS`].
///
/// # Errors
/// See [`StoredError`].
pub fn compare(
    store: &Store,
    rows: &[CampaignRow],
    metrics: &[&'static Metric],
) -> Result<(Vec<ResultRuns>, Comparison), StoredError> {
    let results = read_all(store, rows)?;
    let metrics = match metrics {
        [] => COMPARED_METRICS.iter().filter_map(|name| Metric::find(name)).collect(),
        named => named.to_vec(),
    };
    let contenders = match (rows, results.as_slice()) {
        ([row], [result]) => subjects_of(row, result),
        _ => rows.iter().zip(&results).map(|(row, result)| contender(row, result)).collect(),
    };
    let seed = results.first().map_or(1, |result| result.header.seed);
    let comparison = report::compare(&contenders, &metrics, seed)?;
    Ok((results, comparison))
}

fn contender(row: &CampaignRow, result: &ResultRuns) -> Contender {
    Contender { label: result.tag.clone(), runs: result.runs.clone(), campaign: row.id }
}

/// The subjects of one result, in the experiment's order.
fn subjects_of(row: &CampaignRow, result: &ResultRuns) -> Vec<Contender> {
    let mut names: Vec<&str> = Vec::new();
    for cell in result.header.experiments.iter().flat_map(|e| e.cells()) {
        if let Some(run) = result.runs.iter().find(|run| run.cell.subject == cell.subject)
            && !names.contains(&run.cell.subject.as_str())
        {
            names.push(&run.cell.subject);
        }
    }
    let of = |name: &str| result.runs.iter().filter(|run| run.cell.subject == name).cloned().collect();
    names.iter().map(|name| Contender { label: (*name).to_owned(), runs: of(name), campaign: row.id }).collect()
}

/// In what experiments of the same name were measured differently; of bare figures that is not known.
pub fn differences(results: &[ResultRuns]) -> Option<String> {
    let measured = results.iter().filter(|result| result.header.machine.is_some());
    let all: Vec<_> = measured.flat_map(|r| r.header.experiments.iter().map(move |e| (&r.tag, e))).collect();
    all.iter().enumerate().find_map(|(i, (tag, experiment))| {
        let (first, own) = all[..i].iter().find(|(_, earlier)| earlier.name == experiment.name)?;
        let keys = own.differences(experiment);
        (!keys.is_empty()).then(|| format!("{first} and {tag} differ in {}", keys.join(", ")))
    })
}

/// The published runs that these results' studies printed.
fn published(results: &[ResultRuns]) -> Result<Vec<RunValues>, ArchiveError> {
    let named = results.iter().flat_map(|result| &result.header.experiments).filter_map(|e| e.study.as_deref());
    let ids: BTreeSet<&str> = named.collect();
    let mut runs = Vec::new();
    for study in ids.into_iter().filter_map(studies::find) {
        runs.extend(archive::published(study)?);
    }
    Ok(runs)
}
