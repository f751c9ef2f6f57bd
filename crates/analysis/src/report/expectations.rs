//! What a study found, beside what was measured.

use super::judge::{Judgement, judge};
use super::quantiles::lacking;
use super::run_values::RunValues;
use super::samples::{self, PointSamples, SeriesRuns, Source};
use pushlab_experiment::Experiment;
use pushlab_experiment::assertion::{Assertion, Term};
use pushlab_report::{Agreement, Alarm, Expectation, Judged, Origin};
use std::collections::BTreeSet;

/// The variable in a foreign subject's environment by which it measures the lag of its event loop: how often, in ms.
const EVENT_LOOP_LAG: &str = "EVENT_LOOP_LAG";

/// Judges everything that an experiment expects.
pub fn expectations(experiment: &Experiment, series: &[SeriesRuns<'_>], seed: u64) -> Vec<Expectation> {
    let parsed = experiment.expect.iter().filter_map(|e| Some((e, Assertion::parse(&e.that).ok()?)));
    parsed
        .map(|(expect, assertion)| Expectation {
            assertion: assertion.to_string(),
            finding: expect.finding.clone(),
            source: expect.source.clone(),
            judged: judged(&assertion, series, seed),
        })
        .collect()
}

/// What each subject says of an assertion by itself, first those that were measured; where it names subjects, what they
/// say together. A subject of which not all is there neither agrees nor disagrees, but somebody who was measured always
/// says something, if only why it cannot be told.
pub fn judged(assertion: &Assertion, series: &[SeriesRuns<'_>], seed: u64) -> Vec<Judged> {
    let of_origin = |origin: Origin| -> Vec<Judged> {
        let own: Vec<&SeriesRuns<'_>> = series.iter().filter(|one| one.origin == origin).collect();
        let of = |subject: &str, own: &[&SeriesRuns<'_>]| {
            let Judgement { outcome, by_means, detail, figures, .. } = judgement(assertion, own, seed);
            let leaning = by_means.filter(|_| outcome == Agreement::Undecided);
            Judged { subject: subject.to_owned(), origin, outcome, leaning, detail, figures }
        };
        let mut subjects: Vec<&str> = Vec::new();
        for one in &own {
            if !subjects.contains(&one.subject.as_str()) {
                subjects.push(&one.subject);
            }
        }
        let names_some = assertion.terms().flat_map(|term| &term.words).any(|word| subjects.contains(&word.as_str()));
        let is_there = |own: &[&SeriesRuns<'_>]| assertion.terms().all(|term| find(term, own, seed).is_ok());
        let mut all: Vec<Judged> = Vec::new();
        if !names_some {
            let alone = |subject: &&str| own.iter().copied().filter(|one| one.subject == **subject).collect::<Vec<_>>();
            let each = subjects.iter().map(|subject| (*subject, alone(subject))).filter(|(_, own)| is_there(own));
            all.extend(each.map(|(subject, own)| of(subject, &own)));
        }
        let says_something = match origin {
            Origin::Measured => all.is_empty(),
            Origin::Published => names_some && is_there(&own),
        };
        all.extend(says_something.then(|| of("", &own)));
        all
    };
    [Origin::Measured, Origin::Published].into_iter().flat_map(of_origin).collect()
}

/// Judges those assertions that are to raise an alarm which an experiment can answer.
pub fn alarms(assertions: &[Assertion], experiment: &Experiment, series: &[SeriesRuns<'_>], seed: u64) -> Vec<Alarm> {
    let answerable = assertions.iter().filter(|assertion| unanswerable(assertion, experiment).is_none());
    answerable
        .map(|assertion| {
            let measured: Vec<&SeriesRuns<'_>> = series.iter().filter(|one| one.origin == Origin::Measured).collect();
            let judged = judgement(assertion, &measured, seed);
            Alarm {
                assertion: assertion.to_string(),
                outcome: judged.somewhere,
                detail: judged.detail,
                figures: judged.figures,
            }
        })
        .collect()
}

/// Judges one assertion from these series; on each of several machines by itself, where they are pooled.
fn judgement(assertion: &Assertion, own: &[&SeriesRuns<'_>], seed: u64) -> Judgement {
    let judge_of = |own: &[&SeriesRuns<'_>]| judge(assertion, &|term| find(term, own, seed), seed);
    let is_pooled = |one: &&&SeriesRuns<'_>| one.cells.values().flatten().any(|run| run.machine > 0);
    let machines: BTreeSet<&str> = own.iter().filter(is_pooled).map(|one| one.tag.as_str()).collect();
    if machines.is_empty() {
        return judge_of(own);
    }
    let on = |machine: &str| judge_of(&own.iter().copied().filter(|one| one.tag == machine).collect::<Vec<_>>());
    over_machines(machines.into_iter().map(|machine| (machine, on(machine))).collect())
}

/// What holds on each of several machines; where they disagree it is undecided.
fn over_machines(judged: Vec<(&str, Judgement)>) -> Judgement {
    let agreed = |of: &dyn Fn(&Judgement) -> Agreement| {
        let mut all = judged.iter().map(|(_, one)| of(one));
        all.next().filter(|first| all.all(|other| other == *first)).unwrap_or(Agreement::Undecided)
    };
    let details: Vec<String> = judged.iter().map(|(machine, one)| format!("{machine}: {}", one.detail)).collect();
    let figures = |(machine, one): &(&str, Judgement)| -> Vec<String> {
        one.figures.iter().map(|figures| format!("{machine}, {figures}")).collect()
    };
    Judgement {
        outcome: agreed(&|one| one.outcome),
        somewhere: agreed(&|one| one.somewhere),
        by_means: None,
        detail: details.join("; "),
        figures: judged.iter().flat_map(figures).collect(),
    }
}

/// Why an experiment cannot answer an assertion, whatever it will measure; `None` if it can.
pub fn unanswerable(assertion: &Assertion, experiment: &Experiment) -> Option<String> {
    let runs: Vec<RunValues> = experiment.cells().into_iter().map(RunValues::planned).collect();
    let series = samples::series(experiment, &[Source { origin: Origin::Measured, tag: "", runs: &runs }]);
    for term in assertion.terms() {
        let metric = term.metric.name;
        if metric.starts_with("response") && experiment.prober.is_none() {
            return Some(format!("{metric} is measured by the prober, and there is none"));
        }
        if ["latency_up_mean", "latency_down_mean"].contains(&metric) && !experiment.receipts {
            return Some(format!("{metric} needs receipts"));
        }
        if let Some(why) = untold(metric, experiment) {
            return Some(why);
        }
        let own = match series_of(term, &series.iter().collect::<Vec<_>>()) {
            Ok(own) => own,
            Err(why) => return Some(why),
        };
        let is_place = |at: &f64| own.cells.keys().any(|&place| f64::from(place) == *at);
        if let Some(at) = term.at.or(assertion.at).filter(|at| !is_place(at)) {
            let places: Vec<String> = own.cells.keys().map(ToString::to_string).collect();
            return Some(format!("nothing is measured at {at}, only at {}", places.join(", ")));
        }
    }
    None
}

/// Why no subject's runtime tells what a metric of it needs, if so.
fn untold(metric: &str, experiment: &Experiment) -> Option<String> {
    let is_of_collector = metric.starts_with("collections") || metric.starts_with("collector_");
    if is_of_collector && !experiment.collections {
        return Some(format!("{metric} needs collections = true"));
    }
    let of_variants = experiment.variants.iter().filter_map(|variant| variant.environment.as_ref());
    let mut environments = of_variants.chain([&experiment.environment]);
    let is_untold = metric.starts_with("event_loop_lag") && !environments.any(|one| one.contains_key(EVENT_LOOP_LAG));
    is_untold.then(|| format!("{metric} needs {EVENT_LOOP_LAG} in the environment"))
}

fn find(term: &Term, series: &[&SeriesRuns<'_>], seed: u64) -> Result<Vec<PointSamples>, String> {
    let own = series_of(term, series)?;
    let name = term.metric.name;
    let samples = own.samples(name, seed);
    if samples.is_empty() {
        let why = own.cells.values().find_map(|runs| lacking(runs, name));
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        return Err(format!("{} has no {name}{why}", own.label));
    }
    Ok(samples)
}

/// The one series that bears all the words.
fn series_of<'a, 'b>(term: &Term, series: &[&'a SeriesRuns<'b>]) -> Result<&'a SeriesRuns<'b>, String> {
    let bears = |s: &&SeriesRuns<'b>| term.words.iter().all(|word| s.words.contains(word));
    let found: Vec<&SeriesRuns<'b>> = series.iter().copied().filter(bears).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("no series is called {}", term.words.join(", "))),
        // Another build beside ours, or servers of a study: ours is meant.
        many if many.iter().filter(|s| s.subject == "pushlab").count() == 1 => {
            many.iter().find(|s| s.subject == "pushlab").copied().ok_or_else(String::new)
        }
        many => {
            let labels: Vec<&str> = many.iter().map(|s| s.label.as_str()).collect();
            Err(format!("{} stands for several series: {}", term.words.join(", "), labels.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn what_a_runtime_is_not_asked_to_tell_cannot_be_judged() {
        let mut experiment = presets::load("anomaly-memory", None).unwrap();
        let why = |experiment: &Experiment, that: &str| unanswerable(&Assertion::parse(that).unwrap(), experiment);
        let collector = "collector_time(websocket, as-published) < 5 at 40000";
        let lag = "event_loop_lag_p99(websocket, as-published) < 5 at 40000";
        assert_eq!((why(&experiment, collector), why(&experiment, lag)), (None, None));
        experiment.collections = false;
        experiment.environment.clear();
        experiment.variants.iter_mut().for_each(|variant| variant.environment = None);
        assert_eq!(why(&experiment, collector).unwrap(), "collector_time needs collections = true");
        assert_eq!(why(&experiment, lag).unwrap(), "event_loop_lag_p99 needs EVENT_LOOP_LAG in the environment");
    }
}
