//! Reports of what is stored: of one result, of several over each other, of several against each other.

use crate::archive::{self, ArchiveError};
use crate::wall_clock;
use pushlab_analysis::report::{self, Asked, COMPARED_METRICS, CompareError, Contender, ResultRuns, RunValues};
use pushlab_experiment::Experiment;
use pushlab_experiment::metric::Metric;
use pushlab_experiment::{margins, studies};
use pushlab_report::{Comparison, Report};
use pushlab_store::{CampaignRow, Store};
use std::collections::{BTreeMap, BTreeSet};

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
/// subject to the others. Without metrics, those of [`COMPARED_METRICS`]. `margins`, per cent by metric or kind of metric,
/// take the place of those that the experiments fixed.
///
/// # Errors
/// See [`StoredError`].
pub fn compare(
    store: &Store,
    rows: &[CampaignRow],
    metrics: &[&'static Metric],
    own_margins: &BTreeMap<String, f64>,
) -> Result<(Vec<ResultRuns>, Comparison), StoredError> {
    margins::check(own_margins).map_err(CompareError::Margin)?;
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
    // The baseline's, which was measured first: margins are fixed before there is anything to compare.
    let fixed = |name: &str| results.first()?.header.experiments.iter().find(|e| e.name == name).map(|e| &e.margins);
    let margin_of = |experiment: &str, metric: &Metric| {
        let mut known = fixed(experiment).cloned().unwrap_or_default();
        known.extend(own_margins.clone());
        margins::margin(&known, metric)
    };
    let comparison = report::compare(&contenders, &metrics, &margin_of, seed)?;
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

/// Why the runs of these results are no repeats of one another; of bare figures that is not known.
pub fn unlike(results: &[ResultRuns]) -> Option<String> {
    let first = results.first()?;
    let circumstances = results[1..].iter().find_map(|result| {
        let what = first.header.circumstances_unlike(&result.header);
        (!what.is_empty()).then(|| format!("{} and {} differ in {}", first.tag, result.tag, what.join(", ")))
    });
    let limits = || {
        let all: Vec<_> = results.iter().flat_map(|r| r.header.experiments.iter().map(move |e| (&r.tag, e))).collect();
        all.iter().enumerate().find_map(|(i, (tag, experiment))| {
            let same = |(_, earlier): &&(&String, &Experiment)| earlier.name == experiment.name;
            let (other, own) = all[..i].iter().find(same)?;
            (own.generator_limits != experiment.generator_limits)
                .then(|| format!("{other} and {tag} differ in generator_limits"))
        })
    };
    differences(results).or(circumstances).or_else(limits)
}

/// Makes one result of several that are alike: their blocks follow one another, so that what is compared within blocks is
/// compared within those of one result.
pub fn pool(results: &mut [ResultRuns]) {
    let mut before = 0;
    for result in results {
        // Without tags, equal series of several results are one.
        result.tag.clear();
        let own = result.runs.iter().map(|run| run.repeat).max().unwrap_or(0);
        result.runs.iter_mut().for_each(|run| run.repeat += before);
        before += own;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pinning::Pinning;
    use crate::{experiments, header};
    use pushlab_analysis::header::Header;
    use std::collections::BTreeMap;

    /// A result of this machine and build, with two repeats of a cell, changed somehow.
    fn result(tag: &str, change: impl FnOnce(&mut Header)) -> ResultRuns {
        let mut header = header::empty("chat", 1, Vec::new(), &Pinning::of_this_machine());
        header.experiments = vec![experiments::load("tangen-chat", None).unwrap()];
        let cell = header.experiments[0].cells().remove(0);
        change(&mut header);
        let run = |repeat| RunValues { repeat, ..RunValues::planned(cell.clone()) };
        ResultRuns { tag: tag.to_owned(), header, known: BTreeMap::new(), runs: vec![run(1), run(2)] }
    }

    #[test]
    fn only_like_is_pooled_with_like() {
        let changed = |change: fn(&mut Header)| unlike(&[result("a", |_| ()), result("b", change)]);
        assert_eq!(changed(|_| ()), None);
        assert_eq!(changed(|header| header.seed = 9), None);
        assert_eq!(changed(|header| header.created_at = "another day".to_owned()), None);
        let machine = |header: &mut Header| header.machine.as_mut().unwrap().cpu_model = Some("another".to_owned());
        for (change, what) in [
            ((|header| header.build = Some(7)) as fn(&mut Header), "build"),
            (|header| header.version = "0.0.9".to_owned(), "build"),
            (machine, "machine"),
            (|header| header.machine.as_mut().unwrap().kernel = None, "machine"),
            (|header| header.machine.as_mut().unwrap().nofile_soft = Some(7), "limits"),
            (|header| header.machine.as_mut().unwrap().somaxconn = Some(7), "limits"),
            (|header| header.subject_cores.push(9), "cores"),
            (|header| header.prober_core = Some(9), "cores"),
            (|header| drop(header.runtimes.insert("node".to_owned(), "v30".to_owned())), "versions of the subjects"),
            (|header| header.experiments[0].generator_limits.cpu_percent_max = 7.0, "generator_limits"),
            (|header| header.experiments[0].phases.load_ms = 7, "phases"),
        ] {
            assert_eq!(changed(change), Some(format!("a and b differ in {what}")));
        }
        assert_eq!(changed(|header| header.machine = None), None, "figures alone tell nothing");
        let third = [result("a", |_| ()), result("b", |_| ()), result("c", machine)];
        assert_eq!(unlike(&third), Some("a and c differ in machine".to_owned()));
    }

    #[test]
    fn the_blocks_of_pooled_results_are_not_each_others() {
        let mut results = [result("a", |_| ()), result("b", |_| ())];
        pool(&mut results);
        let repeats: Vec<u32> = results.iter().flat_map(|result| &result.runs).map(|run| run.repeat).collect();
        assert_eq!(repeats, [1, 2, 3, 4]);
        assert!(results.iter().all(|result| result.tag.is_empty()));
    }
}
