//! What a study found, beside what was measured.

use super::judge::{Judgement, judge};
use super::quantiles::lacking;
use super::run_values::RunValues;
use super::samples::{self, PointSamples, SeriesRuns, Source};
use super::sides::LINE_PLACES_MIN;
use pushlab_experiment::assertion::{Assertion, Claim, Figure, Term};
use pushlab_experiment::{Expect, Experiment};
use pushlab_report::{Agreement, Alarm, Expectation, Judged, Origin};
use std::collections::BTreeSet;

/// Metrics that a server tells only if a variable is in its environment, by how their names begin.
const TOLD_IF_ASKED: [(&str, &str); 3] =
    [("event_loop_lag", "EVENT_LOOP_LAG"), ("memory_heap", "MEMORY_USAGE"), ("memory_external", "MEMORY_USAGE")];

/// Judges everything that an experiment expects; the series are those of all experiments. What a study found of series that
/// are not there is counted: it would be undecided whatever is measured.
pub fn expectations(experiment: &Experiment, series: &[&SeriesRuns<'_>], seed: u64) -> (Vec<Expectation>, u32) {
    let is_there = |term: &Term| series.iter().any(|one| bears(term, &experiment.name, one));
    let parsed = experiment.expect.iter().filter_map(|e| Some((e, Assertion::parse(&e.that).ok()?)));
    let (own, elsewhere): (Vec<_>, Vec<_>) =
        parsed.partition(|(expect, assertion)| expect.source.is_empty() || assertion.terms().all(is_there));
    let judge = |(expect, assertion): (&Expect, Assertion)| Expectation {
        assertion: assertion.to_string(),
        finding: expect.finding.clone(),
        source: expect.source.clone(),
        judged: judged(&assertion, &experiment.name, series, seed),
    };
    (own.into_iter().map(judge).collect(), elsewhere.len() as u32)
}

/// What each subject says of an assertion by itself, first those that were measured; where it names subjects, what they
/// say together. A subject of which not all is there neither agrees nor disagrees, but somebody who was measured always
/// says something, if only why it cannot be told.
///
/// The series may be of other experiments too; `experiment` is the one of a side that names none.
pub fn judged(assertion: &Assertion, experiment: &str, series: &[&SeriesRuns<'_>], seed: u64) -> Vec<Judged> {
    let is_named =
        |one: &SeriesRuns<'_>| assertion.terms().any(|term| experiment_of(term, experiment) == one.experiment);
    let of_origin = |origin: Origin| -> Vec<Judged> {
        let is_own = |one: &&SeriesRuns<'_>| one.origin == origin && is_named(one);
        let own: Vec<&SeriesRuns<'_>> = series.iter().copied().filter(is_own).collect();
        let of = |subject: &str, own: &[&SeriesRuns<'_>]| {
            let Judgement { outcome, by_means, detail, figures, .. } = judgement(assertion, experiment, own, seed);
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
        let is_there =
            |own: &[&SeriesRuns<'_>]| assertion.terms().all(|term| find(term, experiment, own, seed).is_ok());
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

/// Judges those assertions that are to raise an alarm which an experiment can answer, beside all that were run with it.
pub fn alarms(
    assertions: &[Assertion],
    experiment: &Experiment,
    all: &[&Experiment],
    series: &[&SeriesRuns<'_>],
    seed: u64,
) -> Vec<Alarm> {
    let answerable = assertions.iter().filter(|assertion| unanswerable(assertion, experiment, all).is_none());
    answerable
        .map(|assertion| {
            let is_measured = |one: &&SeriesRuns<'_>| one.origin == Origin::Measured;
            let measured: Vec<&SeriesRuns<'_>> = series.iter().copied().filter(is_measured).collect();
            let judged = judgement(assertion, &experiment.name, &measured, seed);
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
fn judgement(assertion: &Assertion, experiment: &str, own: &[&SeriesRuns<'_>], seed: u64) -> Judgement {
    let judge_of = |own: &[&SeriesRuns<'_>]| judge(assertion, &|term| find(term, experiment, own, seed), seed);
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

/// The experiment that a side is of.
fn experiment_of<'a>(term: &'a Term, own: &'a str) -> &'a str {
    term.experiment.as_deref().unwrap_or(own)
}

/// Why an experiment cannot answer an assertion, whatever it and all that are run with it will measure; `None` if it can.
pub fn unanswerable(assertion: &Assertion, experiment: &Experiment, all: &[&Experiment]) -> Option<String> {
    let is_own = |term: &Term| experiment_of(term, &experiment.name) == experiment.name;
    if !assertion.terms().any(is_own) {
        return Some(format!("no side of it is of {}", experiment.name));
    }
    assertion.terms().find_map(|term| {
        let name = experiment_of(term, &experiment.name);
        match all.iter().chain([&experiment]).find(|one| one.name == name) {
            Some(own) => unanswered(term, assertion, own),
            None => Some(format!("{name} is not measured beside {}", experiment.name)),
        }
    })
}

/// Why an experiment cannot answer one figure of an assertion.
fn unanswered(term: &Term, assertion: &Assertion, experiment: &Experiment) -> Option<String> {
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
    let runs: Vec<RunValues> = experiment.cells().into_iter().map(RunValues::planned).collect();
    let series = samples::series(experiment, &[Source { origin: Origin::Measured, tag: "", runs: &runs }]);
    let own = match series_of(term, &experiment.name, &series.iter().collect::<Vec<_>>()) {
        Ok(own) => own,
        Err(why) => return Some(why),
    };
    let is_place = |at: &f64| own.cells.keys().any(|&place| f64::from(place) == *at);
    let places = || own.cells.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(at) = term.at.or(assertion.at).filter(|at| !is_place(at)) {
        return Some(format!("nothing is measured at {at}, only at {}", places()));
    }
    let needed = match (&assertion.claim, term.figure) {
        (Claim::GrowsEvenly(_), _) | (_, Figure::Slope) => LINE_PLACES_MIN,
        (Claim::Grows | Claim::Falls, _) => 2,
        _ => 1,
    };
    (own.cells.len() < needed).then(|| format!("it needs {needed} places on the axis, and there is only {}", places()))
}

/// Why no subject's runtime tells what a metric of it needs, if so.
fn untold(metric: &str, experiment: &Experiment) -> Option<String> {
    let is_of_collector = metric.starts_with("collections") || metric.starts_with("collector_");
    if is_of_collector && !experiment.collections {
        return Some(format!("{metric} needs collections = true"));
    }
    let of_variants = experiment.variants.iter().filter_map(|variant| variant.environment.as_ref());
    let mut environments = of_variants.chain([&experiment.environment]);
    let (_, variable) = TOLD_IF_ASKED.iter().find(|(begin, _)| metric.starts_with(begin))?;
    (!environments.any(|one| one.contains_key(*variable)))
        .then(|| format!("{metric} needs {variable} in the environment"))
}

fn find(term: &Term, experiment: &str, series: &[&SeriesRuns<'_>], seed: u64) -> Result<Vec<PointSamples>, String> {
    let own = series_of(term, experiment, series)?;
    let name = term.metric.name;
    let mut samples = own.samples(name, seed);
    // Where a study printed the median alone, that is its CPU: as for the regimes.
    if samples.is_empty() && term.figure == Figure::Full {
        samples = own.samples("cpu_median", seed);
    }
    if samples.is_empty() {
        let why = own.cells.values().find_map(|runs| lacking(runs, name));
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        return Err(format!("{} has no {name}{why}", own.label));
    }
    Ok(samples)
}

/// Whether a series is of the experiment that a side is of, and is called by all of its words.
fn bears(term: &Term, experiment: &str, one: &SeriesRuns<'_>) -> bool {
    one.experiment == experiment_of(term, experiment) && term.words.iter().all(|word| one.words.contains(word))
}

/// The one series of its experiment that bears all the words.
fn series_of<'a, 'b>(
    term: &Term,
    experiment: &str,
    series: &[&'a SeriesRuns<'b>],
) -> Result<&'a SeriesRuns<'b>, String> {
    let name = experiment_of(term, experiment);
    let found: Vec<&SeriesRuns<'b>> = series.iter().copied().filter(|one| bears(term, experiment, one)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] if name != experiment && series.iter().all(|s| s.experiment != name) => {
            Err(format!("{name} is not among these results"))
        }
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
    use pushlab_experiment::presets::PRESETS;
    use pushlab_experiment::studies::STUDIES;

    #[test]
    fn what_a_runtime_is_not_asked_to_tell_cannot_be_judged() {
        let mut experiment = presets::load("anomaly-memory", None).unwrap();
        let why = |experiment: &Experiment, that: &str| unanswerable(&Assertion::parse(that).unwrap(), experiment, &[]);
        let collector = "collector_time(websocket, as-published) < 5 at 40000";
        let lag = "event_loop_lag_p99(websocket, as-published) < 5 at 40000";
        assert_eq!((why(&experiment, collector), why(&experiment, lag)), (None, None));
        experiment.collections = false;
        experiment.environment.clear();
        experiment.variants.iter_mut().for_each(|variant| variant.environment = None);
        assert_eq!(why(&experiment, collector).unwrap(), "collector_time needs collections = true");
        assert_eq!(why(&experiment, lag).unwrap(), "event_loop_lag_p99 needs EVENT_LOOP_LAG in the environment");
        let heap = "memory_heap(websocket, as-published) < 5 at 40000";
        assert_eq!(why(&experiment, heap).unwrap(), "memory_heap needs MEMORY_USAGE in the environment");
        experiment.environment.insert("MEMORY_USAGE".to_owned(), "1000".to_owned());
        assert_eq!(why(&experiment, heap), None);
    }

    #[test]
    fn every_finding_can_be_answered_by_its_experiment() {
        let all: Vec<Experiment> = PRESETS.iter().map(|(name, _)| presets::load(name, None).unwrap()).collect();
        let all: Vec<&Experiment> = all.iter().collect();
        let mut short = Vec::new();
        for finding in STUDIES.iter().flat_map(|study| study.inventory().findings) {
            let Some(assertion) = finding.that.as_deref().map(|that| Assertion::parse(that).unwrap()) else { continue };
            // Only the studies measured these.
            if assertion.to_string().contains("lightstreamer") || finding.id == "idle-memory-200k" {
                continue;
            }
            // Only a server of the time has it, whose long polling stands for the study's polling.
            if finding.id == "socketio-polling-queues" {
                continue;
            }
            let own = all.iter().find(|one| Some(&one.name) == finding.experiment.as_ref()).unwrap();
            let subjects: Vec<String> = own.subjects.clone();
            let of_subject = |subject: &String| {
                let mut one = (*own).clone();
                one.subjects = vec![subject.clone()];
                unanswerable(&assertion, &one, &all).is_none()
            };
            if unanswerable(&assertion, own, &all).is_some() && !subjects.iter().any(of_subject) {
                short.push(format!("{}: {:?}", finding.id, unanswerable(&assertion, own, &all)));
            }
        }
        assert!(short.is_empty(), "{}", short.join("\n"));
    }

    #[test]
    fn what_a_study_found_of_series_that_are_not_there_is_counted_and_not_judged() {
        let of = |profile: Option<&str>| {
            let experiment = presets::load("cometd-load", profile).unwrap();
            let runs: Vec<RunValues> = experiment.cells().into_iter().map(RunValues::planned).collect();
            let source = Source { origin: Origin::Measured, tag: "", runs: &runs };
            let series = samples::series(&experiment, &[source]);
            let (own, elsewhere) = expectations(&experiment, &series.iter().collect::<Vec<_>>(), 1);
            let by_study = own.iter().filter(|one| !one.source.is_empty()).count();
            (by_study, own.len() - by_study, elsewhere)
        };
        let (all, ..) = of(None);
        assert!(all > 10);
        assert_eq!([of(None), of(Some("full"))], [(all, 0, 0), (0, 1, all as u32)], "they are about 9,000 clients");
    }

    fn at(experiment: &str, cpu: f64) -> Vec<RunValues> {
        let cells = presets::load(experiment, None).unwrap().cells();
        let is_wanted = |cell: &pushlab_experiment::cell::Cell| {
            (cell.subject.as_str(), cell.transport.name(), cell.clients) == ("node-bare", "sse", 300)
        };
        let cell = cells.into_iter().find(is_wanted).unwrap();
        let run = |repeat: u32| {
            let figures = [("cpu".to_owned(), cpu + f64::from(repeat) / 100.0)].into();
            RunValues { repeat, figures, ..RunValues::planned(cell.clone()) }
        };
        (1..=5).map(run).collect()
    }

    #[test]
    fn a_side_may_be_of_another_experiment() {
        let [chat, broadcast] = ["tangen-chat", "tangen-broadcast"].map(|name| presets::load(name, None).unwrap());
        let runs = [at("tangen-chat", 40.0), at("tangen-broadcast", 60.0)].concat();
        let sources = [Source { origin: Origin::Measured, tag: "", runs: &runs }];
        let series = [samples::series(&chat, &sources), samples::series(&broadcast, &sources)];
        let of = |text: &str, series: &[Vec<SeriesRuns<'_>>]| {
            let series: Vec<&SeriesRuns<'_>> = series.iter().flatten().collect();
            let mut judged = judged(&Assertion::parse(text).unwrap(), "tangen-chat", &series, 1);
            assert_eq!(judged.len(), 1, "{judged:?}");
            let Judged { subject, outcome, detail, .. } = judged.remove(0);
            (subject, outcome, detail)
        };
        let node = |outcome, detail: &str| ("node-bare".to_owned(), outcome, detail.to_owned());
        let less = "cpu(sse) < cpu(sse in tangen-broadcast)";
        assert_eq!(of(less, &series), node(Agreement::Confirmed, "confirmed at 300"));
        let more = "cpu(sse in tangen-chat) > cpu(sse in tangen-broadcast) at 300";
        assert_eq!(of(more, &series), node(Agreement::Refuted, "refuted at 300"));
        let (_, outcome, detail) = of(less, &series[..1]);
        assert_eq!((outcome, detail.as_str()), (Agreement::Undecided, "tangen-broadcast is not among these results"));

        let why = |text: &str, all: &[&Experiment]| unanswerable(&Assertion::parse(text).unwrap(), &chat, all);
        assert!(why("cpu(sse, node-bare) < cpu(sse, node-bare in tangen-broadcast)", &[&broadcast]).is_none());
        let alone = why(less, &[]).unwrap_or_default();
        assert!(alone.contains("stands for several series") || alone.contains("is not measured beside"), "{alone}");
        let others = why("cpu(sse in tangen-broadcast) < 5", &[&broadcast]);
        assert_eq!(others.as_deref(), Some("no side of it is of tangen-chat"));
        let mut short = chat.clone();
        short.clients = vec![1, 50];
        let line = Assertion::parse("cpu(sse, node-bare) grows evenly").unwrap();
        let told = unanswerable(&line, &short, &[]).unwrap_or_default();
        assert_eq!(told, "it needs 3 places on the axis, and there is only 1, 50");
    }
}
