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
/// compared within those of one result. Of several machines each is a result of its own, `machine 1`, `machine 2` …, since
/// their figures are no repeats of one another; what is compared within blocks is compared on each and put together.
pub fn pool(results: &mut [ResultRuns]) {
    let mut machines: Vec<usize> = Vec::new();
    let mut of = Vec::new();
    for at in 0..results.len() {
        let is_known = |first: &usize| results[*first].header.is_same_machine(&results[at].header);
        of.push(machines.iter().position(is_known).unwrap_or_else(|| {
            machines.push(at);
            machines.len() - 1
        }));
    }
    let mut before: BTreeMap<(usize, String), u32> = BTreeMap::new();
    for (result, machine) in results.iter_mut().zip(of) {
        // Without tags, equal series of several results are one.
        result.tag.clear();
        if machines.len() > 1 {
            result.tag = format!("machine {}", machine + 1);
            result.runs.iter_mut().for_each(|run| run.machine = machine as u32 + 1);
        }
        let mut last: BTreeMap<String, u32> = BTreeMap::new();
        for run in &mut result.runs {
            let name = &run.cell.experiment;
            let own = last.entry(name.clone()).or_default();
            *own = run.repeat.max(*own);
            run.repeat += before.get(&(machine, name.clone())).copied().unwrap_or(0);
        }
        for (name, own) in last {
            // The next result begins with a block of its own, even if the last of this one is not whole.
            let of_block =
                result.header.experiments.iter().find(|one| one.name == name).map_or(1, |one| one.repeats_of_a_block());
            *before.entry((machine, name)).or_default() += own.next_multiple_of(of_block);
        }
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
    use pushlab_report::{Agreement, DataCell, Origin};
    use pushlab_stats::best::{Against, Conclusion, Machines};
    use pushlab_wire::transport::Transport;

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
        for (change, what) in [
            ((|header| header.build = Some(7)) as fn(&mut Header), "build"),
            (|header| header.version = "0.0.9".to_owned(), "build"),
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
        let third = [result("a", |_| ()), result("b", |_| ()), result("c", |header| header.build = Some(7))];
        assert_eq!(unlike(&third), Some("a and c differ in build".to_owned()));
        // Another machine has other cores and limits; it is a stratum of its own, but of the same build.
        let elsewhere = |header: &mut Header| {
            another_machine(header);
            header.subject_cores.push(9);
            header.machine.as_mut().unwrap().somaxconn = Some(7);
        };
        assert_eq!(changed(elsewhere), None);
        let built = |header: &mut Header| {
            another_machine(header);
            header.build = Some(7);
        };
        assert_eq!(changed(built), Some("a and b differ in build".to_owned()));
    }

    #[test]
    fn each_number_of_a_study_at_its_own_size_is_charted_and_stands_beside_a_measured_one() {
        for (name, rows) in [("cometd-load", 12), ("cometd-idle", 3)] {
            let mut result = result(name, |header| {
                header.experiments = vec![experiments::load(name, Some("full")).unwrap()];
            });
            let run = |cell| {
                let metrics = ["latency_median", "latency_p99", "memory_idle"];
                let figures = metrics.map(|metric| (metric.to_owned(), 1.0)).into();
                RunValues { figures, ..RunValues::planned(cell) }
            };
            result.runs = result.header.experiments[0].cells().into_iter().map(run).collect();
            let report = report_of(&[result], Asked::default()).unwrap();
            let own = &report.experiments[0];
            let table = own.tables.iter().find(|table| table.title == "Published beside measured").unwrap();
            assert_eq!(table.rows.len(), rows, "{:#?}", table.rows);
            let printed: Vec<_> = own.series.iter().filter(|series| series.origin == Origin::Published).collect();
            assert!(
                printed.iter().flat_map(|series| &series.points).all(|point| point.runs == 1),
                "ranges are no runs"
            );
            for (metric, figure) in printed.iter().flat_map(|series| &series.points).flat_map(|point| &point.figures) {
                assert!(own.charts.contains(metric), "{metric} is not among {:?}", own.charts);
                let is_there = |row: &Vec<DataCell>| row[3] == DataCell::Estimate(*figure);
                assert!(table.rows.iter().any(is_there), "{metric} {figure:?}");
            }
        }
    }

    fn another_machine(header: &mut Header) {
        header.machine.as_mut().unwrap().cpu_model = Some("another".to_owned());
    }

    #[test]
    fn the_blocks_of_pooled_results_are_not_each_others() {
        let mut results = [result("a", |_| ()), result("b", |_| ())];
        pool(&mut results);
        let repeats: Vec<u32> = results.iter().flat_map(|result| &result.runs).map(|run| run.repeat).collect();
        assert_eq!(repeats, [1, 2, 3, 4]);
        assert!(results.iter().all(|result| result.tag.is_empty() && result.runs.iter().all(|run| run.machine == 0)));
        // A block of four of which two were done: the next result does not fill it up.
        let blocks = |header: &mut Header| (header.experiments[0].repeats, header.experiments[0].blocks) = (8, Some(2));
        let mut results = [result("a", blocks), result("b", blocks)];
        pool(&mut results);
        let experiment = &results[0].header.experiments[0];
        let of: Vec<u32> =
            results.iter().flat_map(|result| &result.runs).map(|run| experiment.block_of(run.repeat)).collect();
        assert_eq!(of, [1, 1, 2, 2]);
    }

    #[test]
    fn each_machine_of_pooled_results_is_a_result_of_its_own() {
        let mut results = [result("a", |_| ()), result("b", another_machine), result("c", |_| ())];
        pool(&mut results);
        let tags: Vec<&str> = results.iter().map(|result| result.tag.as_str()).collect();
        assert_eq!(tags, ["machine 1", "machine 2", "machine 1"]);
        let runs: Vec<(u32, u32)> =
            results.iter().flat_map(|result| &result.runs).map(|run| (run.machine, run.repeat)).collect();
        assert_eq!(runs, [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (1, 4)]);
    }

    /// The report of a broadcast by two machines, pooled: what a delivery over a transport costs on the first machine and
    /// on the second, times what its block has in common, within 2 %.
    fn pooled(cost: impl Fn(Transport, bool) -> f64) -> Report {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut measured = |name: &str, is_other: bool| {
            let mut result = result(name, |header| {
                header.experiments = vec![experiments::load("transports-broadcast", Some("quick")).unwrap()];
                header.experiments[0].variants.clear();
                header.experiments[0].transports = vec![Transport::WebSocket, Transport::Sse, Transport::LongPolling];
                if is_other {
                    another_machine(header);
                }
            });
            let experiment = &result.header.experiments[0];
            result.runs.clear();
            for repeat in 1..=experiment.repeats {
                let shared = 1.0 + random();
                for cell in experiment.cells() {
                    let value = cost(cell.transport, is_other) * shared * (0.99 + 0.02 * random());
                    let figures = [("cpu_per_delivery".to_owned(), value)].into();
                    result.runs.push(RunValues { repeat, figures, ..RunValues::planned(cell) });
                }
            }
            result
        };
        let mut results = [measured("a", false), measured("b", true)];
        assert_eq!(unlike(&results), None);
        pool(&mut results);
        report_of(&results, Asked::default()).unwrap()
    }

    fn conclusions(report: &Report) -> Vec<(&str, Conclusion, Option<Machines>)> {
        let card = report.card.as_ref().unwrap();
        let cells = card.options.iter().zip(&card.rows[0].cells);
        let of = |(option, cell): (&'static str, Against)| (option, cell.conclusion, cell.machines);
        let name = |label: &str| match label {
            "websocket" => "websocket",
            "sse" => "sse",
            other => panic!("{other} should be one of two"),
        };
        let known = cells.filter(|(option, _)| option.label != "long-polling");
        known.map(|(option, cell)| of((name(&option.label), cell.as_ref().unwrap().against))).collect()
    }

    #[test]
    fn a_machine_that_is_twice_as_fast_agrees_on_every_ratio() {
        let report = pooled(|transport, is_other| {
            let cost = if transport == Transport::WebSocket { 4.0 } else { 6.0 };
            if is_other { cost / 2.0 } else { cost }
        });
        assert!(report.title.ends_with(", 2 results of 2 machines pooled"), "{}", report.title);
        let found = conclusions(&report);
        assert_eq!(found[0], ("websocket", Conclusion::Best, None));
        assert_eq!(found[1], ("sse", Conclusion::Different, Some(Machines::Each)));
        let card = report.card.as_ref().unwrap();
        let sse = card.rows[0].cells[1].as_ref().unwrap();
        assert!((sse.against.factor - 1.5).abs() < 0.02 && sse.against.high < 1.6, "{sse:?}");
        // How far the machines are from each other, a factor of two, is no uncertainty of their mean.
        assert!(sse.estimate.low > 4.0 && sse.estimate.high < 10.0 && sse.estimate.runs == 10, "{sse:?}");
        let note = "Pooled over 2 machines, on each of which options were compared by themselves: machine 1 (";
        assert!(card.notes[1].starts_with(note) && card.notes[1].contains("; machine 2 (another"), "{:?}", card.notes);
        assert_eq!(card.notes[2], "Differences: 2 shown by each machine alone.");
        let rankings = &report.experiments[0].rankings;
        assert!(rankings.iter().all(|ranking| ranking.among.starts_with("machine ")), "machines do not compete");
    }

    #[test]
    fn an_order_that_is_the_other_way_round_on_another_machine_is_told_and_decides_nothing() {
        let report = pooled(|transport, is_other| match transport {
            Transport::LongPolling => 20.0,
            Transport::WebSocket => {
                if is_other {
                    8.0
                } else {
                    4.0
                }
            }
            _ => {
                if is_other {
                    4.0
                } else {
                    8.0
                }
            }
        });
        let found = conclusions(&report);
        assert!(found.iter().all(|(_, conclusion, _)| *conclusion == Conclusion::Undecided), "{found:?}");
        assert!(found.iter().any(|(_, _, machines)| *machines == Some(Machines::Differ)), "{found:?}");
        let card = report.card.as_ref().unwrap();
        let last = card.rows[0].cells[2].as_ref().unwrap().against;
        assert_eq!(last.conclusion, Conclusion::Different, "it is behind on both");
        let told = card.notes.iter().find(|note| note.starts_with("Machines differ in CPU per delivery, against "));
        let told = told.unwrap_or_else(|| panic!("{:?}", card.notes));
        assert!(told.contains("sse 1.99 × on machine 1 and 0.50 × on machine 2"), "{told}");
    }

    #[test]
    fn an_assertion_holds_over_machines_where_it_holds_on_each() {
        let judged = |costs: [f64; 2]| {
            let mut results = [result("a", |_| ()), result("b", another_machine)];
            for (result, cost) in results.iter_mut().zip(costs) {
                let experiment = &mut result.header.experiments[0];
                experiment.expect.truncate(1);
                experiment.expect[0].that = "cpu(websocket) < 10".to_owned();
                experiment.clients = vec![1];
                let cell = experiment.cells().remove(0);
                let run = |repeat| {
                    let figures = [("cpu".to_owned(), cost + f64::from(repeat) / 100.0)].into();
                    RunValues { repeat, figures, ..RunValues::planned(cell.clone()) }
                };
                result.runs = (1..=5).map(run).collect();
            }
            pool(&mut results);
            let report = report_of(&results, Asked::default()).unwrap();
            let judged = &report.experiments[0].expectations[0].judged[0];
            (judged.outcome, judged.detail.clone())
        };
        let (outcome, detail) = judged([5.0, 2.0]);
        assert_eq!(outcome, Agreement::Confirmed);
        assert!(detail.starts_with("machine 1: confirmed") && detail.contains("; machine 2: confirmed"), "{detail}");
        assert_eq!(judged([5.0, 20.0]).0, Agreement::Undecided, "machines disagree");
        assert_eq!(judged([50.0, 20.0]).0, Agreement::Refuted);
    }
}
