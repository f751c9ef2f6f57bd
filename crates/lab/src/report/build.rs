//! From a campaign's records to its report.

use super::figures;
use super::model::{Completeness, DoubtReport, ExperimentReport, Fact, Repeat, Report, Series};
use super::rankings::{SeriesRuns, rankings};
use super::timeline::timeline;
use super::verdict::verdict;
use crate::campaign::Tally;
use crate::experiment::{Experiment, SlowPolicy};
use crate::measure;
use crate::record::RunRecord;
use crate::results::Header;
use pushlab_stats::DoubtCode;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Version of the report's structure.
const REPORT_VERSION: u32 = 1;
/// Runs that a doubt lists by name.
const MAX_LISTED_RUNS: usize = 12;

/// Computes a report.
pub fn build(header: &Header, records: &[RunRecord]) -> Report {
    let experiments: Vec<ExperimentReport> =
        header.experiments.iter().map(|e| experiment(e, records, header.seed)).collect();
    let title = match header.experiments.as_slice() {
        [one] => one.title.clone(),
        _ => "Six transports under broadcast and chat".to_owned(),
    };
    Report {
        version: REPORT_VERSION,
        title,
        generated_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        verdict: verdict(&experiments, Tally::of(records)),
        experiments,
        doubts: doubts(records),
        environment: environment(header),
        repeat: repeat(header),
    }
}

fn experiment(experiment: &Experiment, records: &[RunRecord], seed: u64) -> ExperimentReport {
    let own: Vec<&RunRecord> = records.iter().filter(|r| r.planned.cell.experiment == experiment.name).collect();
    let series_runs = series_runs(experiment, &own);
    let series = series_runs.iter().map(|s| series(s, seed)).collect();
    let planned = experiment.runs() as u32;
    let done = own.len() as u32;
    ExperimentReport {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        description: experiment.description.clone(),
        completeness: if done < planned { Completeness::Partial } else { Completeness::Complete },
        runs_done: done,
        runs_planned: planned,
        series,
        rankings: rankings(&series_runs, seed),
    }
}

/// The records of each series, in the experiment's order.
fn series_runs<'a>(experiment: &Experiment, records: &[&'a RunRecord]) -> Vec<SeriesRuns<'a>> {
    let mut all = Vec::new();
    for subject in &experiment.subjects {
        for &transport in &experiment.transports {
            for &policy in &experiment.policies {
                let mut cells: BTreeMap<u32, Vec<&RunRecord>> = BTreeMap::new();
                let is_own = |r: &&&RunRecord| {
                    let cell = &r.planned.cell;
                    cell.subject == *subject && cell.transport == transport && cell.policy == policy
                };
                for record in records.iter().filter(is_own) {
                    cells.entry(record.planned.cell.clients).or_default().push(record);
                }
                let mut label = transport.name().to_owned();
                if experiment.policies.len() > 1 || policy != SlowPolicy::Close {
                    label = format!("{label} · {}", policy.name());
                }
                if experiment.subjects.len() > 1 {
                    label = format!("{subject} · {label}");
                }
                let key = format!("{subject}/{transport}/{}", policy.name());
                all.push(SeriesRuns { key, label, cells });
            }
        }
    }
    all
}

fn series(runs: &SeriesRuns<'_>, seed: u64) -> Series {
    let points = runs.cells.iter().map(|(&clients, runs)| {
        let mut point = figures::point(clients, runs, seed);
        point.timeline = representative(runs).and_then(timeline);
        point
    });
    let mut parts = runs.key.split('/');
    Series {
        key: runs.key.clone(),
        label: runs.label.clone(),
        subject: parts.next().unwrap_or_default().to_owned(),
        transport: parts.next().unwrap_or_default().to_owned(),
        points: points.collect(),
    }
}

/// The run in the middle by response time; without one that counts, any that measured something.
fn representative<'a>(runs: &[&'a RunRecord]) -> Option<&'a RunRecord> {
    let mut valid: Vec<&RunRecord> = runs.iter().copied().filter(|r| r.counts()).collect();
    let middle = |r: &RunRecord| measure::response_median(r).or_else(|| measure::latency_median(r)).unwrap_or(0.0);
    valid.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    valid.get(valid.len() / 2).copied().or_else(|| runs.iter().copied().find(|r| r.result.is_some()))
}

fn doubts(records: &[RunRecord]) -> Vec<DoubtReport> {
    let mut by_code: BTreeMap<DoubtCode, Vec<String>> = BTreeMap::new();
    for record in records {
        for doubt in &record.doubts {
            by_code.entry(doubt.code).or_default().push(format!("{}: {}", record.planned.label(), doubt.detail));
        }
    }
    let mut doubts: Vec<DoubtReport> = by_code
        .into_iter()
        .map(|(code, mut runs)| {
            let count = runs.len() as u32;
            runs.truncate(MAX_LISTED_RUNS);
            DoubtReport {
                code: code.to_string(),
                severity: code.severity(),
                message: code.message().to_owned(),
                runs,
                count,
            }
        })
        .collect();
    doubts.sort_by(|a, b| a.severity.cmp(&b.severity).then(b.count.cmp(&a.count)));
    doubts
}

fn environment(header: &Header) -> Vec<Fact> {
    let machine = &header.machine;
    let cores = |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unknown = || "unknown".to_owned();
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
    let facts = [
        ("pushlab", header.version.clone()),
        ("began", header.created_at.clone()),
        ("kernel", machine.kernel.clone().unwrap_or_else(unknown)),
        ("distribution", machine.distribution.clone().unwrap_or_else(unknown)),
        ("CPU", machine.cpu_model.clone().unwrap_or_else(unknown)),
        ("subject's cores", cores(&header.subject_cores)),
        ("load's cores", cores(&header.load_cores)),
        ("memory", machine.memory_bytes.map_or_else(unknown, gib)),
        ("descriptors of a process", machine.nofile_soft.map_or_else(unknown, |n| n.to_string())),
        ("somaxconn", machine.somaxconn.map_or_else(unknown, |n| n.to_string())),
        ("network", "loopback".to_owned()),
    ];
    facts.map(|(label, value)| Fact { label: label.to_owned(), value }).to_vec()
}

fn repeat(header: &Header) -> Repeat {
    let mut command = header.command.join(" ");
    if !command.contains("--seed") {
        command.push_str(&format!(" --seed {}", header.seed));
    }
    let toml = |e: &Experiment| toml::to_string_pretty(e).unwrap_or_else(|error| format!("# {error}"));
    let experiments = header.experiments.iter().map(|e| Fact { label: e.name.clone(), value: toml(e) }).collect();
    Repeat { commands: vec![command], seed: header.seed, experiments }
}
