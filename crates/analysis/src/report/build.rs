//! From runs to a report.

use super::card::scorecard;
use super::clocks::clocks;
use super::command_line::command_line;
use super::expectations::{alarms, expectations};
use super::leaderboard::leaderboard;
use super::networks::networks;
use super::points;
use super::rankings::rankings;
use super::results::{ResultRuns, series_of};
use super::run_values::RunValues;
use super::samples::{self, SeriesRuns};
use super::tables::tables;
use super::verdict::verdict;
use crate::header::Header;
use pushlab_experiment::Experiment;
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::metric::{METRICS, Metric};
use pushlab_experiment::studies;
use pushlab_report::{
    Comparison, Completeness, ExperimentReport, Fact, MetricInfo, Origin, Repeat, Report, Unobserved, WarningReport,
};
use pushlab_stats::WarningCode;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the report's structure.
const REPORT_VERSION: u32 = 4;
/// Runs that a warning lists by name.
const MAX_LISTED_RUNS: usize = 12;
/// Ranked beside what is charted.
const ALWAYS_RANKED: &str = "cpu_per_delivery";

/// What a report is asked beside what its experiments ask.
#[derive(Debug, Default)]
pub struct Asked<'a> {
    /// What the results differ in.
    pub comparison: Option<Comparison>,
    /// Assertions that are to raise an alarm.
    pub fail_if: &'a [Assertion],
    /// What a search found, in sentences: the verdict begins with them.
    pub found: Vec<String>,
}

/// Computes a report of one result, or of several laid over each other. `published` are the runs of studies, `now` is
/// the wall-clock time, RFC 3339, UTC.
pub fn build(results: &[ResultRuns], published: &[RunValues], asked: Asked<'_>, now: String) -> Report {
    let Asked { comparison, fail_if, found } = asked;
    let seed = results.first().map_or(1, |result| result.header.seed);
    let mut experiments: Vec<&Experiment> = Vec::new();
    for experiment in results.iter().flat_map(|result| &result.header.experiments) {
        if experiments.iter().all(|known| known.name != experiment.name) {
            experiments.push(experiment);
        }
    }
    let mut metrics: Vec<MetricInfo> = Vec::new();
    let mut reports = Vec::new();
    let series: Vec<Vec<SeriesRuns<'_>>> =
        experiments.iter().map(|experiment| series_of(experiment, results, published)).collect();
    let beside = Beside { experiments: &experiments, series: series.iter().flatten().collect() };
    for (experiment, own) in experiments.iter().zip(&series) {
        let (report, used) = report_of(experiment, own, &beside, results, fail_if, seed);
        reports.push(report);
        metrics.extend(used.iter().map(|metric| MetricInfo::of(metric)));
    }
    metrics.extend(
        comparison.iter().flat_map(|c| &c.rows).filter_map(|row| Some(MetricInfo::of(Metric::find(&row.metric)?))),
    );
    metrics.sort_by_key(|info| METRICS.iter().position(|metric| metric.name == info.name));
    metrics.dedup();
    let runs: Vec<&RunValues> = results.iter().flat_map(|result| &result.runs).collect();
    let leaderboard = leaderboard(&experiments, results, seed);
    let card = scorecard(&experiments, results, seed);
    let mut sentences = verdict(&reports, card.as_ref(), leaderboard.as_ref(), &runs);
    if let Some(comparison) = &comparison {
        // Who won is beside the point; how certain all is, the last sentence, is not.
        sentences = std::iter::once(comparison.summary.clone()).chain(sentences.pop()).collect();
    }
    sentences.splice(0..0, found);
    Report {
        version: REPORT_VERSION,
        title: title(results, comparison.as_ref()),
        generated_at: now,
        verdict: sentences,
        metrics,
        comparison,
        card,
        leaderboard,
        experiments: reports,
        warnings: warnings(&runs),
        unobserved: unobserved(&runs),
        environment: environment(results),
        repeat: repeat(results),
    }
}

fn title(results: &[ResultRuns], comparison: Option<&Comparison>) -> String {
    if let Some(comparison) = comparison {
        return format!("{} against {}", comparison.candidates.join(", "), comparison.baseline);
    }
    match results {
        [one] => one.header.title(),
        [first, ..] if first.tag.is_empty() => format!("{}, {} results pooled", first.header.title(), results.len()),
        [first, ..] if first.runs.iter().any(|run| run.machine > 0) => {
            let machines: BTreeSet<&str> = results.iter().map(|result| result.tag.as_str()).collect();
            format!("{}, {} results of {} machines pooled", first.header.title(), results.len(), machines.len())
        }
        many => {
            let tags: Vec<&str> = many.iter().map(|result| result.tag.as_str()).collect();
            format!("{} beside each other", tags.join(", "))
        }
    }
}

/// Everything that an assertion of one experiment may name.
struct Beside<'a> {
    experiments: &'a [&'a Experiment],
    series: Vec<&'a SeriesRuns<'a>>,
}

fn report_of(
    experiment: &Experiment,
    series: &[SeriesRuns<'_>],
    beside: &Beside<'_>,
    results: &[ResultRuns],
    fail_if: &[Assertion],
    seed: u64,
) -> (ExperimentReport, Vec<&'static Metric>) {
    let used = samples::metrics_in(series);
    let names = |metrics: &[&Metric]| metrics.iter().map(|metric| metric.name.to_owned()).collect();
    let charted = charted(experiment, series, &used);
    let mut ranked: Vec<&Metric> = charted.iter().copied().take(3).collect();
    ranked.extend(
        present(&[ALWAYS_RANKED.to_owned()], &used).iter().filter(|m| !charted[..charted.len().min(3)].contains(m)),
    );
    let done_of = |result: &ResultRuns| result.runs.iter().filter(|r| r.cell.experiment == experiment.name).count();
    let planned_of = |result: &ResultRuns| match result.header.machine {
        Some(_) => result.header.experiments.iter().filter(|e| e.name == experiment.name).map(Experiment::runs).sum(),
        // Bare figures are all there are: nobody knows how many were planned.
        None => done_of(result),
    };
    let planned: usize = results.iter().map(planned_of).sum();
    let done: usize = results.iter().map(done_of).sum();
    let (expectations, findings_elsewhere) = expectations(experiment, &beside.series, seed);
    let report = ExperimentReport {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        description: experiment.description.clone(),
        study: experiment.study.as_deref().and_then(studies::find).map(|study| study.citation.to_owned()),
        completeness: if done < planned && results.iter().any(|r| r.header.machine.is_some()) {
            Completeness::Partial
        } else {
            Completeness::Complete
        },
        runs_done: done as u32,
        runs_planned: planned as u32,
        axis: experiment.sweep().axis(),
        charts: names(&charted),
        columns: names(&columns(experiment, &charted, &used)),
        series: series.iter().map(|s| points::series(s, &used, seed)).collect(),
        rankings: rankings(series, &ranked, &experiment.margins, seed),
        networks: networks(&experiment.name, results),
        clocks: clocks(&experiment.name, results),
        expectations,
        findings_elsewhere,
        alarms: alarms(fail_if, experiment, beside.experiments, &beside.series, seed),
        tables: tables(experiment, series, &columns(experiment, &charted, &used), seed),
    };
    (report, used)
}

/// The metrics that an experiment charts. Of what its study printed and it shows nowhere, where it was measured too, are charts
/// as well, behind the last that has printed figures: a report that repeats a study leaves none of its curves out.
fn charted(experiment: &Experiment, series: &[SeriesRuns<'_>], used: &[&'static Metric]) -> Vec<&'static Metric> {
    let own = experiment.charts();
    let mut charted = present(&own, used);
    let has = |origin: Origin, metric: &Metric| series.iter().any(|s| s.origin == origin && s.has(metric.name));
    let is_printed = |metric: &&Metric| has(Origin::Published, metric);
    let is_shown = |metric: &Metric| own.iter().chain(&experiment.columns).any(|name| name == metric.name);
    let is_left_out = |metric: &&Metric| !is_shown(metric) && is_printed(metric) && has(Origin::Measured, metric);
    let place = charted.iter().rposition(is_printed).map_or(charted.len(), |last| last + 1);
    charted.splice(place..place, used.iter().copied().filter(is_left_out));
    charted
}

/// The named metrics that occur; by default those of the scenario.
fn present(names: &[String], used: &[&'static Metric]) -> Vec<&'static Metric> {
    names
        .iter()
        .filter_map(|name| Metric::find(name))
        .filter(|metric| used.iter().any(|u| u.name == metric.name))
        .collect()
}

fn columns(experiment: &Experiment, charted: &[&'static Metric], used: &[&'static Metric]) -> Vec<&'static Metric> {
    let is_chosen = !experiment.columns.is_empty();
    let mut columns = if is_chosen { present(&experiment.columns, used) } else { charted.to_vec() };
    // What is charted because the study printed it.
    let chosen = experiment.charts();
    columns.extend(charted.iter().filter(|metric| is_chosen && chosen.iter().all(|name| *name != metric.name)));
    let usual = ["cpu_per_delivery", "bytes_per_delivery", "generator_cpu"].into_iter().filter(|_| !is_chosen);
    // Where there is an error of clocks, it stands beside the latencies that have it.
    for name in usual.chain(["clock_error"]) {
        columns.extend(used.iter().find(|m| m.name == name && columns.iter().all(|c| c.name != name)));
    }
    columns
}

fn warnings(runs: &[&RunValues]) -> Vec<WarningReport> {
    let mut by_code: BTreeMap<WarningCode, Vec<String>> = BTreeMap::new();
    for run in runs {
        let mut details: BTreeMap<WarningCode, Vec<&str>> = BTreeMap::new();
        run.warnings.iter().for_each(|warning| details.entry(warning.code).or_default().push(&warning.detail));
        for (code, details) in details {
            let text = format!("{} · repeat {}: {}", run.cell.label(), run.repeat, details.join("; "));
            by_code.entry(code).or_default().push(text);
        }
    }
    let mut warnings: Vec<WarningReport> = by_code
        .into_iter()
        .map(|(code, mut runs)| {
            let count = runs.len() as u32;
            runs.truncate(MAX_LISTED_RUNS);
            WarningReport {
                code: code.to_string(),
                severity: code.severity(),
                message: code.message().to_owned(),
                runs,
                count,
            }
        })
        .collect();
    warnings.sort_by(|a, b| a.severity.cmp(&b.severity).then(b.count.cmp(&a.count)));
    warnings
}

fn unobserved(runs: &[&RunValues]) -> Vec<Unobserved> {
    let mut all: Vec<Unobserved> = Vec::new();
    for run in runs {
        let one = |reason: &String| Unobserved { subject: run.cell.subject.clone(), reason: reason.clone() };
        all.extend(run.unobserved.as_ref().map(one).filter(|one| !all.contains(one)));
    }
    all
}

fn environment(results: &[ResultRuns]) -> Vec<Fact> {
    let fact = |tag: &str, (label, value): (String, String)| {
        let label = if tag.is_empty() { label } else { format!("{tag}: {label}") };
        Fact { label, value }
    };
    results.iter().flat_map(|r| r.header.facts().into_iter().map(move |f| fact(&r.tag, f))).collect()
}

fn repeat(results: &[ResultRuns]) -> Repeat {
    let command = |header: &Header| {
        let mut command = command_line(&header.command);
        if !command.contains("--seed") {
            command.push_str(&format!(" --seed {}", header.seed));
        }
        command
    };
    let toml = |e: &Experiment| toml::to_string_pretty(e).unwrap_or_else(|error| format!("# {error}"));
    let experiments = results.iter().flat_map(|r| &r.header.experiments);
    Repeat {
        commands: results.iter().map(|r| &r.header).filter(|header| !header.command.is_empty()).map(command).collect(),
        seed: results.first().map_or(0, |result| result.header.seed),
        experiments: experiments.map(|e| Fact { label: e.name.clone(), value: toml(e) }).collect(),
    }
}
