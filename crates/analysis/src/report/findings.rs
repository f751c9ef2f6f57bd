//! What a study found, one thing after the other, and what everybody's figures say of it.

use super::expectations::judged;
use super::run_values::RunValues;
use super::samples::{self, SeriesRuns, Source};
use pushlab_experiment::Experiment;
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::findings::{By, Finding};
use pushlab_experiment::studies::Study;
use pushlab_report::{Agreement, Judged, Origin};
use pushlab_wire::transport::Transport;
use std::fmt;

/// A finding, and by whose figures it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedFinding {
    /// The finding.
    pub finding: Finding,
    /// What each subject says that was measured, and each server of the study; empty where no assertion judges it.
    pub judged: Vec<Judged>,
    /// What servers of the study's time say that were measured, by the names of today's.
    pub of_period: Vec<Judged>,
}

/// What was measured, to judge findings by.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Of each series what has most repeats, however short its loads are.
    pub any_length: &'a [RunValues],
    /// The same of what has loads as long as the study's.
    pub full_length: &'a [RunValues],
}

/// Judges all that a study found, by what was measured of these experiments and by what the study printed.
pub fn findings(
    study: &Study,
    experiments: &[Experiment],
    measured: Measured<'_>,
    printed: &[RunValues],
    seed: u64,
) -> Vec<JudgedFinding> {
    let inventory = study.inventory().findings;
    let (full_length, others) = inventory.iter().cloned().partition(|finding| finding.full_length);
    // A profile may have variants that its experiment has not: other conditions than what a finding is about.
    let is_of = |experiment: &Experiment, cell: &Cell| {
        let has = |name: &String| experiment.variants.iter().any(|variant| variant.name == *name);
        experiment.name == cell.experiment && cell.variant.as_ref().is_none_or(has)
    };
    let judge = |findings, runs: &[RunValues]| {
        let is_known = |run: &&RunValues| experiments.iter().any(|experiment| is_of(experiment, &run.cell));
        let known: Vec<RunValues> = runs.iter().filter(is_known).cloned().collect();
        judged_by(findings, experiments, &known, printed, seed)
    };
    let mut all = judge(others, measured.any_length);
    all.extend(judge(full_length, measured.full_length));
    let place = |one: &JudgedFinding| inventory.iter().position(|finding| finding.id == one.finding.id);
    all.sort_by_key(place);
    all
}

fn judged_by(
    findings: Vec<Finding>,
    experiments: &[Experiment],
    measured: &[RunValues],
    printed: &[RunValues],
    seed: u64,
) -> Vec<JudgedFinding> {
    let (period, today) = by_period(measured);
    let source = |origin, runs| Source { origin, tag: "", runs };
    let sources = [source(Origin::Measured, today.as_slice()), source(Origin::Published, printed)];
    let of_period = [source(Origin::Measured, period.as_slice())];
    let [series, of_period] = [&sources[..], &of_period[..]].map(|sources| -> Vec<SeriesRuns<'_>> {
        experiments.iter().flat_map(|experiment| samples::series(experiment, sources)).collect()
    });
    let [series, of_period] = [&series, &of_period].map(|all| all.iter().collect::<Vec<&SeriesRuns<'_>>>());
    let judge = |finding: &Finding| {
        let assertion = Assertion::parse(finding.that.as_deref()?).ok()?;
        let name = finding.experiment.as_deref()?;
        let is_known = experiments.iter().any(|experiment| experiment.name == name);
        is_known.then(|| (judged(&assertion, name, &series, seed), judged(&assertion, name, &of_period, seed)))
    };
    let of = |finding| {
        let (judged, of_period) = judge(&finding).unwrap_or_default();
        JudgedFinding { finding, judged, of_period }
    };
    findings.into_iter().map(of).collect()
}

/// Subjects that are servers of the studies' time, the subject that is the same kind of server today, and the transport
/// that a study calls what they have under another name.
const PERIOD_SUBJECTS: [(&str, &str, Option<Transport>); 6] = [
    ("cometd-2011", "cometd", None),
    ("node-2014", "node-bare", None),
    ("node-2017", "node-bare", None),
    ("socketio-2014", "socketio", None),
    // Johannessen's polling of Socket.IO: held, like its long polling.
    ("socketio-2014:jsonp-polling", "socketio", Some(Transport::Polling)),
    ("sockjs-2014", "sockjs", None),
];

/// The runs of servers of the studies' time, by the names that assertions have for them, and all others.
fn by_period(measured: &[RunValues]) -> (Vec<RunValues>, Vec<RunValues>) {
    let (mut period, mut today) = (Vec::new(), Vec::new());
    for run in measured {
        let mut run = run.clone();
        let Some((_, name, transport)) = PERIOD_SUBJECTS.iter().find(|(known, ..)| *known == run.cell.subject) else {
            today.push(run);
            continue;
        };
        run.cell.subject = (*name).to_owned();
        run.cell.transport = transport.unwrap_or(run.cell.transport);
        period.push(run);
    }
    (period, today)
}

/// Whose figures a column of the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Published,
    PeriodServer,
    TodaysServer,
    Ours,
}

fn whose(judged: &Judged) -> Whose {
    match (judged.origin, judged.subject.as_str()) {
        (Origin::Published, _) => Whose::Published,
        (Origin::Measured, "pushlab") => Whose::Ours,
        (Origin::Measured, _) => Whose::TodaysServer,
    }
}

/// The tables of a page on a study, in Markdown: what it found and what it had expected, each judged by everybody's figures,
/// and what was not judged, with the reason.
pub fn documented(findings: &[JudgedFinding]) -> String {
    const HEAD: &str = "| what the study says | where | published data | period server | today's server | Pushlab |\n\
                        |---|---|---|---|---|---|\n";
    let [mut found, mut expected] = [HEAD, HEAD].map(String::from);
    let mut unjudged = String::from("| what the study says | where | why it is not judged |\n|---|---|---|\n");
    let mut tally = Tally::default();
    for one in findings {
        let finding = &one.finding;
        match &finding.unjudged {
            Some(why) => {
                unjudged.push_str(&format!("| {} | {} | {} |\n", told(finding), in_cell(&finding.place), in_cell(why)));
            }
            None => {
                let columns = [Whose::Published, Whose::PeriodServer, Whose::TodaysServer, Whose::Ours];
                tally.count(one);
                let cells = columns.map(|column| cell(one, column)).join(" | ");
                let (rows, text) = match finding.by {
                    By::Hypothesis => (&mut expected, said(finding)),
                    _ => (&mut found, told(finding)),
                };
                rows.push_str(&format!("| {text} | {} | {cells} |\n", in_cell(&finding.place)));
            }
        }
    }
    let counts = format!("{} of {} statements have an assertion. {tally}\n", tally.asserted, findings.len());
    let mut out = format!("{counts}\n{found}");
    if expected != HEAD {
        out.push_str(&format!("\n### What it expected\n\n{expected}"));
    }
    if findings.iter().any(|one| one.finding.unjudged.is_some()) {
        out.push_str(&format!("\n### Not judged\n\n{unjudged}"));
    }
    out
}

/// How many statements have an assertion, and what the published data say of them.
#[derive(Debug, Default)]
struct Tally {
    asserted: usize,
    /// Without a verdict in any column.
    open: usize,
    confirmed: usize,
    refuted: usize,
    undecided: usize,
    /// Of the undecided, those whose means alone agree, and those whose contradict.
    leaning: [usize; 2],
    silent: usize,
}

impl Tally {
    fn count(&mut self, finding: &JudgedFinding) {
        let JudgedFinding { judged, of_period, .. } = finding;
        self.asserted += 1;
        self.open += usize::from(!judged.iter().chain(of_period).any(has_said));
        let is_printed = |one: &&Judged| whose(one) == Whose::Published && has_said(one);
        let printed: Vec<&Judged> = judged.iter().filter(is_printed).collect();
        let is_any = |wanted| printed.iter().any(|one| one.outcome == wanted);
        let leans = |wanted| printed.iter().any(|one| one.leaning == Some(wanted));
        let place = match printed.as_slice() {
            [] => &mut self.silent,
            _ if is_any(Agreement::Refuted) => &mut self.refuted,
            _ if is_any(Agreement::Undecided) => {
                if leans(Agreement::Refuted) {
                    self.leaning[1] += 1;
                } else if leans(Agreement::Confirmed) {
                    self.leaning[0] += 1;
                }
                &mut self.undecided
            }
            _ => &mut self.confirmed,
        };
        *place += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { confirmed, refuted, undecided, leaning: [agree, contradict], silent, open, .. } = self;
        write!(
            f,
            "The study's own published data confirm {confirmed} of these, refute {refuted} and leave {undecided} \
             undecided, of which the means alone agree with {agree} and contradict {contradict}. For {silent} there are \
             no published data."
        )?;
        match open {
            0 => write!(f, " Each has a verdict in at least one column."),
            _ => write!(f, " {open} have no verdict at all, for lack of published or stored data to judge them by."),
        }
    }
}

/// What is said, and what it is if no finding.
fn told(finding: &Finding) -> String {
    match finding.by {
        By::Finding => said(finding),
        by => format!("*{}:* {}", by.heading(), said(finding)),
    }
}

/// The claim, where it applies, and what is to be said of it.
fn said(finding: &Finding) -> String {
    let mut text = in_cell(&finding.claim);
    if let Some(on) = &finding.on {
        text.push_str(&format!(" ({})", in_cell(on)));
    }
    if let Some(note) = &finding.note {
        text.push_str(&format!(" *{}*", in_cell(note)));
    }
    text
}

fn cell(finding: &JudgedFinding, column: Whose) -> String {
    let own: Vec<&Judged> = match column {
        Whose::PeriodServer => finding.of_period.iter().filter(|one| has_said(one)).collect(),
        _ => finding.judged.iter().filter(|one| whose(one) == column && has_said(one)).collect(),
    };
    let words = |one: &Judged| match (one.outcome, one.leaning) {
        (Agreement::Confirmed, _) => "confirmed",
        (Agreement::Refuted, _) => "refuted",
        (Agreement::Undecided, Some(Agreement::Confirmed)) => "undecided, means agree",
        (Agreement::Undecided, Some(Agreement::Refuted)) => "undecided, means contradict",
        (Agreement::Undecided, _) => "undecided",
    };
    match own.as_slice() {
        [] => "–".to_owned(),
        [one] => words(one).to_owned(),
        many => many.iter().map(|one| format!("{}: {}", one.subject, words(one))).collect::<Vec<_>>().join("; "),
    }
}

/// Whether there were figures of both sides: without any, nobody has said anything.
fn has_said(judged: &Judged) -> bool {
    !judged.figures.is_empty()
}

/// Text that may stand in a cell of a table.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::studies;

    fn of_any_length(runs: &[RunValues]) -> Measured<'_> {
        Measured { any_length: runs, full_length: &[] }
    }

    #[test]
    fn every_finding_stands_in_one_table_with_what_each_server_says() {
        let experiment = presets::load("tangen-chat", None).unwrap();
        let run = |subject: &str, transport: &str, repeat: u32, cpu: f64| {
            let is_wanted = |cell: &&Cell| {
                (cell.subject.as_str(), cell.transport.name(), cell.clients) == (subject, transport, 100)
            };
            let cell = experiment.cells().iter().find(is_wanted).unwrap().clone();
            let figures = [("cpu".to_owned(), cpu + f64::from(repeat) / 100.0)].into();
            RunValues { repeat, figures, ..RunValues::planned(cell) }
        };
        let measured: Vec<RunValues> = (1..=5)
            .flat_map(|repeat| {
                [
                    run("pushlab", "websocket", repeat, 5.0),
                    run("pushlab", "sse", repeat, 4.0),
                    run("node-2014", "websocket", repeat, 30.0),
                    run("node-2014", "sse", repeat, 40.0),
                ]
            })
            .collect();
        let study = studies::find("tangen-2015").unwrap();
        let all = findings(study, &[experiment], of_any_length(&measured), &[], 1);
        assert_eq!(all.len(), study.inventory().findings.len());
        let wanted = "cpu(sse) < cpu(websocket) under load";
        let of = |one: &&JudgedFinding| {
            one.finding.that.as_deref() == Some(wanted) && one.finding.experiment.as_deref() == Some("tangen-chat")
        };
        let one = all.iter().find(of).unwrap_or_else(|| panic!("no finding has {wanted}"));
        let cells = [Whose::Published, Whose::PeriodServer, Whose::TodaysServer, Whose::Ours];
        assert_eq!(cells.map(|column| cell(one, column)), ["–", "refuted", "–", "confirmed"]);
        let text = documented(&all);
        let rows = text.lines().filter(|line| line.starts_with("| ") && !line.contains("what the study says")).count();
        assert_eq!(rows, all.len(), "{text}");
        assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| {
            let cells = line.replace("\\|", "").matches('|').count();
            cells == 7 || cells == 4
        }));
    }

    /// Servers of the studies' time are judged under the names of today's, so an assertion that named one of them would
    /// never be judged.
    #[test]
    fn no_finding_names_a_server_of_the_studies_time() {
        for study in studies::STUDIES {
            for finding in study.inventory().findings {
                let that = finding.that.unwrap_or_default();
                let named = PERIOD_SUBJECTS.iter().find(|(subject, ..)| that.contains(subject));
                assert_eq!(named, None, "{}, {}: {that}", study.id, finding.id);
            }
        }
    }

    /// A backlog grows while a load lasts: short loads say nothing about how far.
    #[test]
    fn what_is_about_a_backlog_is_judged_by_loads_of_the_full_length() {
        let experiment = presets::load("tangen-broadcast", None).unwrap();
        let loaded = |transport: &str, repeat: u32, memory: f64| {
            let is_wanted = |cell: &&Cell| {
                (cell.subject.as_str(), cell.transport.name(), cell.clients) == ("node-2014", transport, 500)
            };
            let cell = experiment.cells().iter().find(is_wanted).unwrap().clone();
            let figures = [("memory_loaded".to_owned(), memory + f64::from(repeat))].into();
            RunValues { repeat, figures, ..RunValues::planned(cell) }
        };
        let runs = |websocket: f64| -> Vec<RunValues> {
            (1..=5)
                .flat_map(|repeat| [loaded("websocket", repeat, websocket), loaded("long-polling", repeat, 70.0)])
                .collect()
        };
        let [short, long] = [runs(90.0), runs(1_200.0)];
        let study = studies::find("tangen-2015").unwrap();
        let on_the_period_server = |measured: Measured<'_>| {
            let all = findings(study, std::slice::from_ref(&experiment), measured, &[], 1);
            assert!(
                all.iter().map(|one| &one.finding.id).eq(study.inventory().findings.iter().map(|finding| &finding.id))
            );
            let one = all.iter().find(|one| one.finding.id == "broadcast-memory-10-times-websocket").unwrap();
            cell(one, Whose::PeriodServer)
        };
        assert_eq!(on_the_period_server(of_any_length(&short)), "–");
        assert_eq!(on_the_period_server(Measured { any_length: &short, full_length: &long }), "confirmed");
    }

    /// Frameworks are named by the study; what was measured of them as they were then stands in a column of its own.
    #[test]
    fn servers_of_the_time_stand_for_the_frameworks_that_a_finding_names() {
        let experiment = presets::load("johannessen-load", None).unwrap();
        let first = experiment.cells()[0].clone();
        let runs = |(subject, transport, own): (&str, Transport, f64)| -> Vec<RunValues> {
            let run = |repeat: u32| {
                let variant = Some("broadcast".to_owned());
                let cell = Cell { subject: subject.to_owned(), transport, variant, ..first.clone() };
                let figures = [("latency_own_mean".to_owned(), own + f64::from(repeat) / 100.0)].into();
                RunValues { repeat, figures, ..RunValues::planned(cell) }
            };
            (1..=3).map(run).collect()
        };
        let measured: Vec<RunValues> = [
            ("socketio", Transport::WebSocket, 2.0),
            ("sockjs", Transport::WebSocket, 1.0),
            ("socketio-2014", Transport::WebSocket, 3.0),
            ("sockjs-2014", Transport::WebSocket, 9.0),
            ("socketio-2014:jsonp-polling", Transport::LongPolling, 8.0),
        ]
        .into_iter()
        .flat_map(runs)
        .collect();
        let study = studies::find("johannessen-2014").unwrap();
        let all = findings(study, &[experiment], of_any_length(&measured), &[], 1);
        let cells = |that: &str| {
            let one = all.iter().find(|one| one.finding.that.as_deref() == Some(that)).unwrap();
            [Whose::Published, Whose::PeriodServer, Whose::TodaysServer, Whose::Ours].map(|column| cell(one, column))
        };
        let faster = "own(socketio, websocket, broadcast) < own(sockjs, websocket, broadcast)";
        assert_eq!(cells(faster), ["–", "confirmed", "refuted", "–"]);
        assert_eq!(cells("own(websocket, broadcast) < own(polling, broadcast)"), ["–", "confirmed", "–", "–"]);
        assert_eq!(cells("own(websocket, broadcast) < own(long-polling, broadcast)"), ["–", "–", "–", "–"]);
    }
}
