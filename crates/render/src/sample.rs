//! Reports to render in tests.

use pushlab_analysis::header::Header;
use pushlab_analysis::report::{Asked, Contender, ResultRuns, RunValues, build, compare};
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::metric::Metric;
use pushlab_experiment::{Experiment, Written};
use pushlab_probe::machine::MachineFacts;
use pushlab_report::{Fact, Report};
use pushlab_stats::{Warning, WarningCode};
use std::collections::BTreeMap;

/// What somebody may call an experiment in a file that is imported.
pub const NAME: &str = "a|<b>&\"q\"\n`c`\u{1b}";

const EXPERIMENT: &str = r#"
name = "drill"
title = "Drill"
transports = ["websocket", "sse", "polling"]
clients = [2]
repeats = 3
scenario = { kind = "feed", interval_us = 5000, payload_bytes = 173 }
phases = { connect_ms = 1000, idle_ms = 100, warm_up_ms = 100, load_ms = 400, drain_ms = 1000, after_ms = 50 }
expect = [
    { that = "latency(websocket) < latency(sse)" },
    { that = "latency(websocket) > latency(sse)" },
    { that = "latency(websocket) < latency(polling)" },
]
"#;

/// Of three transports one is fast, one slow with a void run, and one failed and was void; nothing else is seen.
pub fn report() -> Report {
    of(&experiment(), "it died")
}

/// The same with a name that no form of a report takes as it is.
pub fn hostile() -> Report {
    let mut experiment = experiment();
    experiment.name = NAME.to_owned();
    experiment.title = NAME.to_owned();
    let mut report = of(&experiment, NAME);
    report.title = NAME.to_owned();
    report.environment.push(Fact { label: NAME.to_owned(), value: NAME.to_owned() });
    report
}

/// Two results against each other: one metric got worse, one better, and one cell has no figures any more.
pub fn compared() -> Report {
    let experiment = experiment();
    let before = runs(&experiment, "it died");
    let mut after = before.clone();
    for run in &mut after {
        run.figures.entry("latency_median".to_owned()).and_modify(|ms| *ms *= 3.0);
        run.figures.entry("cpu".to_owned()).and_modify(|percent| *percent /= 3.0);
        if run.cell.transport.name() == "sse" {
            run.failure = Some("it died".to_owned());
        }
    }
    let contender = |label: &str, runs: &[RunValues], campaign| Contender {
        label: label.to_owned(),
        runs: runs.to_vec(),
        campaign,
    };
    let metrics: Vec<&Metric> = ["latency_median", "cpu"].into_iter().filter_map(Metric::find).collect();
    let comparison = compare(
        &[contender("before", &before, 1), contender("after", &after, 2)],
        &metrics,
        &|_, metric| metric.kind().margin_percent() / 100.0,
        1,
    )
    .unwrap();
    let results = [before, after].map(|runs| result(&experiment, runs));
    build(&results, &[], Asked { comparison: Some(comparison), ..Asked::default() }, NOW.to_owned())
}

/// One transport has a rate of its own, one the load's, and one failed throughout.
pub fn limited() -> Report {
    let mut experiment = experiment();
    experiment.charts = vec!["delivered".to_owned()];
    let mut runs = runs(&experiment, "it died");
    for run in &mut runs {
        run.warnings.clear();
        let rate = match run.cell.transport.name() {
            "websocket" => 900.0,
            "sse" => {
                run.warnings.push(Warning::new(WarningCode::GeneratorBound, "a thread of the load was full"));
                500.0
            }
            _ => {
                run.failure = Some("it died".to_owned());
                continue;
            }
        };
        run.figures.insert("delivered".to_owned(), rate + f64::from(run.repeat));
    }
    build(&[result(&experiment, runs)], &[], Asked::default(), NOW.to_owned())
}

const NOW: &str = "2026-01-31T13:00:00Z";

fn experiment() -> Experiment {
    Experiment::believe(Written::read(EXPERIMENT, None, "drill").unwrap(), &|_| Ok(None))
}

fn runs(experiment: &Experiment, reason: &str) -> Vec<RunValues> {
    let mut runs = Vec::new();
    for cell in experiment.cells() {
        for repeat in 1..=3 {
            let spread = 1.0 + 0.01 * f64::from(repeat);
            let figures = |latency: f64| {
                [("latency_median", latency), ("cpu", 10.0)]
                    .map(|(name, value)| (name.to_owned(), value * spread))
                    .into()
            };
            let run = RunValues { repeat, took_ms: 1500, ..RunValues::planned(cell.clone()) };
            let void = Warning { code: WarningCode::LongTurns, detail: "p99 30 ms".to_owned() };
            runs.push(match (cell.transport.name(), repeat) {
                ("websocket", _) => RunValues { figures: figures(1.0), ..run },
                ("sse", 3) => RunValues { figures: figures(9.0), warnings: vec![void], ..run },
                ("sse", _) => RunValues { figures: figures(2.0), ..run },
                (_, 1) => RunValues { failure: Some(reason.to_owned()), ..run },
                _ => RunValues { warnings: vec![void], ..run },
            });
        }
    }
    runs
}

fn of(experiment: &Experiment, reason: &str) -> Report {
    let mut runs = runs(experiment, reason);
    runs[0].unobserved = Some("CPU cannot be read: it is far".to_owned());
    let fail_if =
        ["latency(sse) > 1", "latency(sse) > 9", "latency(polling) > 1"].map(|text| Assertion::parse(text).unwrap());
    let asked = Asked { fail_if: &fail_if, found: vec!["Found it.".to_owned()], ..Asked::default() };
    build(&[result(experiment, runs)], &[], asked, NOW.to_owned())
}

/// A result that was measured, of these runs.
fn result(experiment: &Experiment, runs: Vec<RunValues>) -> ResultRuns {
    let header = Header {
        name: "result".to_owned(),
        experiments: vec![experiment.clone()],
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
        fleet: Vec::new(),
        agents: Vec::new(),
    };
    ResultRuns { tag: String::new(), header, known: BTreeMap::new(), runs }
}
