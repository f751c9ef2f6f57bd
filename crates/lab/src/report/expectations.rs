//! What a study found, beside what was measured.

use super::model::{Expectation, Origin};
use super::samples::SeriesRuns;
use crate::experiment::Experiment;
use crate::statement::{Judgement, PointSamples, Statement, Term, judge};

/// Judges everything that an experiment expects.
pub fn expectations(experiment: &Experiment, series: &[SeriesRuns<'_>], seed: u64) -> Vec<Expectation> {
    let parsed = experiment.expect.iter().filter_map(|e| Some((e, Statement::parse(&e.that).ok()?)));
    parsed
        .map(|(expect, statement)| {
            let measured = judgement(&statement, series, Origin::Measured, seed);
            // Where the study printed nothing of the kind, it neither agrees nor disagrees.
            let is_printed = statement.terms().all(|term| find(term, series, Origin::Published).is_ok());
            let published = is_printed.then(|| judgement(&statement, series, Origin::Published, seed));
            Expectation {
                statement: statement.to_string(),
                finding: expect.finding.clone(),
                outcome: measured.outcome,
                published: published.map(|judgement| judgement.outcome),
                detail: measured.detail,
            }
        })
        .collect()
}

/// Judges one statement from the series of one origin.
pub fn judgement(statement: &Statement, series: &[SeriesRuns<'_>], origin: Origin, seed: u64) -> Judgement {
    judge(statement, &|term| find(term, series, origin), seed)
}

/// The one series that bears all the words.
fn find(term: &Term, series: &[SeriesRuns<'_>], origin: Origin) -> Result<Vec<PointSamples>, String> {
    let bears = |s: &&SeriesRuns<'_>| s.origin == origin && term.words.iter().all(|word| s.words.contains(word));
    let found: Vec<&SeriesRuns<'_>> = series.iter().filter(bears).collect();
    match found.as_slice() {
        [one] if one.has(term.metric.name) => Ok(one.samples(term.metric.name)),
        [one] => Err(format!("{} has no {}", one.label, term.metric.name)),
        [] => Err(format!("no series is called {}", term.words.join(", "))),
        many => {
            let labels: Vec<&str> = many.iter().map(|s| s.label.as_str()).collect();
            Err(format!("{} stands for several series: {}", term.words.join(", "), labels.join(", ")))
        }
    }
}
