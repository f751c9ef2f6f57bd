//! Every subject over every transport in one table, ranked.
//!
//! A leaderboard belongs to a report and not to one experiment, since what it shows is measured in several: how much a
//! server can do needs a closed loop, which keeps it busy, what a delivery costs and how late it is say something only
//! below that, on a schedule, and what an idle client costs takes more of them than can be served at once.
//! So each experiment that asks for the table `leaderboard` feeds the columns that its kind of scenario can answer
//! ([`columns`]): CPU time comes from a schedule that is the same for all, latency from one that is a share of what each
//! can do, either from the other where there is no such; capacity, bytes and the generator's CPU come from closed loops,
//! memory from scenario `idle`. All figures of a column are of one experiment, and columns without any are left out.
//! Where the schedule is a share of what each server can do, no two rows had the same rate: it stands in a column that
//! is not ranked, and latencies are headed by the share. A server that did not keep up with a schedule keeps its mark and
//! its figures, but has no rank for what was measured on that schedule.
//!
//! A rank says nothing of what was lost on the way to it. So rows are marked with the warnings that bear on it
//! ([`columns::MARKS`]).
//!
//! A row is a subject over a transport. The experiments have one cell for each
//! ([`Experiment::check`] sees to it); where imported or merged results have more, the first series and its highest
//! place on the axis count. Ranks are those of [`super::rankings`], once among all rows and once among those of the
//! same transport: both are computed here, because ties cannot be read off intervals. Whose runs all failed comes last in
//! the columns of that experiment; it says so, as it does of any figure that was tried for and is not there. A row without figures because its runs are void is left out, as that
//! says nothing of the subject.

mod columns;
mod entries;
mod headings;
pub mod sentences;

use super::command_line::command_line;
use super::rankings::order;
use super::results::{KnownSubject, ResultRuns};
use super::samples::{figure, values};
use columns::{Kind, MARKS};
use entries::{Column, Entry, columns, entries};
use headings::{heading, note};
use pushlab_experiment::metric::Better;
use pushlab_experiment::subject::OURS;
use pushlab_experiment::{Derived, Experiment};
use pushlab_report::{
    Leaderboard, LeaderboardRow, LeaderboardSubject, LeaderboardWarning, LeftOut, Rank, Standing, WhyLacking,
};
use pushlab_stats::WarningCode;

/// The leaderboard of a report; `None` where no experiment asks for one.
pub fn leaderboard(experiments: &[&Experiment], results: &[ResultRuns], seed: u64) -> Option<Leaderboard> {
    let asking: Vec<&Experiment> =
        experiments.iter().copied().filter(|e| e.tables.contains(&Derived::Leaderboard)).collect();
    if asking.is_empty() {
        return None;
    }
    let entries = entries(&asking, results);
    let columns = columns(&asking, &entries);
    let (entries, silent): (Vec<Entry<'_>>, Vec<Entry<'_>>) =
        entries.into_iter().partition(|entry| columns.iter().any(|column| entry.answers(column)));
    let cores = cores(results);
    let by_column: Vec<Vec<Option<Standing>>> =
        columns.iter().map(|column| standings(&entries, column, seed)).collect();
    let mut rows: Vec<LeaderboardRow> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| LeaderboardRow {
            subject: entry.name(),
            transport: entry.transport.clone(),
            is_ours: entry.subject == OURS,
            standings: by_column.iter().map(|standings| standings[at]).collect(),
            lacking: columns.iter().filter_map(|column| entry.lacking(column)).collect(),
            warnings: entry.marks().iter().map(ToString::to_string).collect(),
        })
        .collect();
    if let Some(at) = columns.iter().position(|column| column.metric.better != Better::Neither) {
        sort(&mut rows, at, &columns[at]);
    }
    let silent = silent.iter().map(|entry| LeftOut { subject: entry.name(), reason: entry.reason() });
    let mut left_out: Vec<LeftOut> = Vec::new();
    for one in results.iter().flat_map(|result| result.header.left_out.clone()).chain(silent) {
        if !left_out.contains(&one) {
            left_out.push(one);
        }
    }
    let subjects = subjects(&entries, results);
    let warms_up = entries.iter().filter_map(|entry| known(entry, results)).any(|known| known.warms_up);
    Some(Leaderboard {
        note: note(&asking, cores, warms_up),
        experiments: asking.iter().map(|experiment| experiment.name.clone()).collect(),
        columns: columns.iter().map(|column| heading(column, &columns, cores)).collect(),
        subjects,
        warnings: warnings(&rows),
        rows,
        left_out,
    })
}

/// What the marks of these rows mean.
fn warnings(rows: &[LeaderboardRow]) -> Vec<LeaderboardWarning> {
    let known = MARKS.iter().map(|(code, meaning)| (code.to_string(), *meaning));
    let occurring = known.filter(|(code, _)| rows.iter().any(|row| row.warnings.contains(code)));
    occurring.map(|(code, meaning)| LeaderboardWarning { code, meaning: meaning.to_owned() }).collect()
}

/// A column's figures and ranks, one place for each entry.
fn standings(entries: &[Entry<'_>], column: &Column<'_>, seed: u64) -> Vec<Option<Standing>> {
    let (name, better) = (column.kind.metric, column.metric.better);
    let mut standings: Vec<Option<Standing>> = entries
        .iter()
        .map(|entry| {
            Some(Standing { figure: figure(entry.runs(column)?, name, seed)?, overall: None, of_transport: None })
        })
        .collect();
    if better == Better::Neither {
        return standings;
    }
    let samples = |of: &dyn Fn(&Entry<'_>) -> bool| -> Vec<(usize, Vec<f64>)> {
        let is_scheduled = Kind::of(column.source).is_scheduled();
        let is_ranked = |entry: &Entry<'_>| !is_scheduled || !entry.raises_in(column, WarningCode::Overloaded);
        let own = entries.iter().enumerate().filter(|(_, entry)| of(entry) && is_ranked(entry));
        own.filter_map(|(at, entry)| Some((at, values(entry.runs(column)?, name)))).collect()
    };
    let bounded: Vec<bool> =
        standings.iter().map(|standing| standing.is_some_and(|one| one.figure.is_lower_bound())).collect();
    let is_bounded = |at: usize| bounded[at];
    for place in order(samples(&|_| true), better, &is_bounded, seed).unwrap_or_default() {
        if let Some(standing) = &mut standings[place.key] {
            standing.overall = Some(Rank { rank: place.rank, is_tied: place.tied });
        }
    }
    let mut transports: Vec<&str> = entries.iter().map(|entry| entry.transport.as_str()).collect();
    transports.sort_unstable();
    transports.dedup();
    for transport in transports {
        let own = samples(&|entry| entry.transport == transport);
        for place in order(own, better, &is_bounded, seed).unwrap_or_default() {
            if let Some(standing) = &mut standings[place.key] {
                standing.of_transport = Some(Rank { rank: place.rank, is_tied: place.tied });
            }
        }
    }
    standings
}

/// By a column and its place, the best first. Rows without a figure there follow in the order of their reasons, those of
/// which nothing is said among the ones of which nothing is known.
fn sort(rows: &mut [LeaderboardRow], at: usize, column: &Column<'_>) {
    let value = |row: &LeaderboardRow| row.standings[at].map(|standing| standing.figure.value);
    let why = |row: &LeaderboardRow| row.lacking.get(&column.id).map_or(WhyLacking::Withheld, |one| one.why);
    rows.sort_by(|a, b| match (value(a), value(b)) {
        (Some(a), Some(b)) if column.metric.better == Better::Higher => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (None, None) => why(a).cmp(&why(b)),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
}

/// Who was measured: version and command lines, ours first, then by name.
fn subjects(entries: &[Entry<'_>], results: &[ResultRuns]) -> Vec<LeaderboardSubject> {
    let mut subjects: Vec<LeaderboardSubject> = Vec::new();
    for entry in entries {
        let name = entry.name();
        let at = subjects.iter().position(|subject| subject.name == name).unwrap_or_else(|| {
            let (title, platform) =
                known(entry, results).map(|known| (known.title.clone(), known.platform.clone())).unzip();
            let version = version(entry, results);
            subjects.push(LeaderboardSubject { name, title, platform, version, commands: Vec::new() });
            subjects.len() - 1
        });
        for (_, runs) in &entry.cells {
            let Some(command) = runs.iter().map(|run| &run.command).find(|command| !command.is_empty()) else {
                continue;
            };
            let line = command_line(command);
            if !subjects[at].commands.contains(&line) {
                subjects[at].commands.push(line);
            }
        }
    }
    let is_other = |subject: &LeaderboardSubject| subject.name.split(" · ").next() != Some(OURS);
    subjects.sort_by(|a, b| is_other(a).cmp(&is_other(b)).then_with(|| a.name.cmp(&b.name)));
    subjects
}

/// What is known of its subject.
fn known<'a>(entry: &Entry<'_>, results: &'a [ResultRuns]) -> Option<&'a KnownSubject> {
    let mut own = results.iter().filter(|result| result.tag == entry.tag);
    own.find_map(|result| result.known.get(&entry.subject))
}

fn version(entry: &Entry<'_>, results: &[ResultRuns]) -> Option<String> {
    let mut own = results.iter().filter(|result| result.tag == entry.tag).map(|result| &result.header);
    own.find_map(|header| match entry.subject.as_str() {
        OURS => Some(header.version.clone()).filter(|version| !version.is_empty()),
        name => header.versions.get(name).cloned(),
    })
}

/// To how many cores the subjects were pinned, where that is known and the same everywhere.
fn cores(results: &[ResultRuns]) -> Option<usize> {
    let first = results.first()?.header.subject_cores.len();
    (first > 0 && results.iter().all(|result| result.header.subject_cores.len() == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::headings::part;
    use super::sentences::sentences;
    use super::*;
    use crate::header::Header;
    use crate::presets;
    use crate::report::run_values::RunValues;
    use crate::warnings::WARM_UP_SEEN_MS;
    use pushlab_experiment::CapacityShare;
    use pushlab_report::LeaderboardColumn;
    use pushlab_stats::Warning;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::plan::Sockets;
    use pushlab_workload::scenario::{FeedBy, Scenario};
    use serde_json::json;
    use std::collections::BTreeMap;

    fn experiments() -> Vec<Experiment> {
        let base = presets::load("tangen-chat", None).unwrap();
        let named = |name: &str, scenario: Scenario| {
            let mut experiment = base.clone();
            experiment.name = name.to_owned();
            experiment.title = name.to_owned();
            experiment.subjects = ["fast", "pushlab", "twin", "slow"].map(str::to_owned).to_vec();
            experiment.transports = vec![Transport::WebSocket, Transport::Sse];
            experiment.clients = vec![1000];
            experiment.tables = vec![Derived::Leaderboard];
            experiment.study = None;
            experiment.scenario = scenario;
            experiment
        };
        let fan_out = named("busy", Scenario::FanOut { publishers: 4, payload_bytes: 50 });
        let mut half = named("half", base.scenario.clone());
        half.capacity_share = Some(CapacityShare { of: "busy".to_owned(), share: 0.5, at_most: None });
        let even = Scenario::Feed {
            interval_us: 50_000,
            payload_bytes: 50,
            by: FeedBy::Publisher,
            upstream_interval_ms: None,
        };
        vec![fan_out, half, named("silent", Scenario::Idle), named("even", even)]
    }

    /// Three runs of each cell; figures by experiment, subject and transport.
    fn results(of: impl Fn(&str, &str, &str) -> Vec<(&'static str, f64)>) -> ResultRuns {
        let experiments = experiments();
        let mut runs = Vec::new();
        for cell in experiments.iter().flat_map(Experiment::cells) {
            for repeat in 1..=3 {
                let spread = 1.0 + f64::from(repeat) * 0.001;
                let figures = of(&cell.experiment, &cell.subject, cell.transport.name());
                let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value * spread)).collect();
                let command = vec![cell.subject.clone(), "--say".to_owned(), "two words".to_owned()];
                runs.push(RunValues { repeat, figures, command, ..RunValues::planned(cell.clone()) });
            }
        }
        let header = Header {
            name: "peers".to_owned(),
            experiments,
            search: None,
            seed: 1,
            command: Vec::new(),
            version: "1.2.3".to_owned(),
            created_at: String::new(),
            subject_cores: vec![0],
            load_cores: vec![1],
            prober_core: None,
            build: None,
            versions: BTreeMap::from([("fast".to_owned(), "9.9".to_owned())]),
            runtimes: BTreeMap::new(),
            left_out: vec![LeftOut { subject: "absent".to_owned(), reason: "java is missing".to_owned() }],
            machine: None,
            fleet: Vec::new(),
            agents: Vec::new(),
        };
        ResultRuns { tag: String::new(), header, known: BTreeMap::new(), runs }
    }

    /// Ours and a twin are alike, one is faster and one slower; over sse all do half of it.
    fn usual(experiment: &str, subject: &str, transport: &str) -> Vec<(&'static str, f64)> {
        let speed = match subject {
            "fast" => 2.0,
            "slow" => 0.1,
            _ => 1.0,
        };
        let share = if transport == "sse" { 0.5 } else { 1.0 };
        match experiment {
            "busy" => vec![("delivered", 1e5 * speed * share), ("latency_median", 77.0), ("cpu_per_delivery", 98.0)],
            "even" => vec![("cpu_per_delivery", 8.0 / speed / share), ("latency_median", 76.0), ("delivered", 7.0)],
            "silent" => vec![("delivered", 6.0), ("latency_median", 78.0), ("memory_per_client", speed)],
            _ => vec![("due", 5.0), ("latency_median", 1.0 / speed), ("memory_per_client", 99.0)],
        }
    }

    fn board_of(result: ResultRuns) -> Leaderboard {
        let results = [result];
        let experiments: Vec<&Experiment> = results[0].header.experiments.iter().collect();
        leaderboard(&experiments, &results, 1).unwrap()
    }

    fn row<'a>(board: &'a Leaderboard, subject: &str, transport: &str) -> &'a LeaderboardRow {
        board.rows.iter().find(|row| row.subject == subject && row.transport == transport).unwrap()
    }

    #[test]
    fn each_column_comes_from_the_kind_of_experiment_that_can_answer_it() {
        let board = board_of(results(usual));
        let of = |c: &LeaderboardColumn| (c.metric.clone(), c.experiment.clone());
        let columns: Vec<(String, String)> = board.columns.iter().map(of).collect();
        let expected = [
            ("cpu_per_delivery", "even"),
            ("due", "half"),
            ("latency_median", "half"),
            ("memory_per_client", "silent"),
            ("delivered", "busy"),
        ];
        assert_eq!(columns, expected.map(|(id, experiment)| (id.to_owned(), experiment.to_owned())));
        let slow = row(&board, "slow", "websocket");
        let is_about = |at: usize, value: f64| (slow.standings[at].unwrap().figure.value / value - 1.0).abs() < 0.01;
        assert!(is_about(0, 80.0) && is_about(1, 5.0) && is_about(2, 10.0) && is_about(3, 0.1), "{slow:?}");
        assert!(is_about(4, 1e4), "{slow:?}");
        assert!(board.note.starts_with("CPU time is that of “even”: each schedule"), "{}", board.note);
        assert!(board.note.contains("“busy”") && board.note.contains("one core"), "{}", board.note);
        assert!(board.note.contains("Latency is that of “half”, at half"), "{}", board.note);
        assert!(board.note.ends_with("Memory is that of “silent”."), "{}", board.note);
    }

    #[test]
    fn each_variant_of_a_schedule_has_a_column_with_what_is_its_own() {
        let mut result = results(usual);
        let even = result.header.experiments.iter_mut().find(|experiment| experiment.name == "even").unwrap();
        let variant = |name: &str, interval_us: u32, payload_bytes: u32, shape: &str| {
            let scenario = json!({
                "kind": "feed", "interval_us": interval_us, "payload_bytes": payload_bytes, "by": "publisher",
            });
            serde_json::from_value(json!({ "name": name, "scenario": scenario, "shape": { "kind": shape } })).unwrap()
        };
        even.variants = vec![
            variant("slow", 250_000, 64, "steady"),
            variant("large", 50_000, 1024, "steady"),
            variant("random", 50_000, 64, "poisson"),
        ];
        even.variants[1].sockets = Some(Sockets { tls: true, ..even.sockets.clone() });
        let cells: Vec<_> = even.cells();
        result.runs.retain(|run| run.cell.experiment != "even");
        for (cell, repeat) in cells.into_iter().flat_map(|cell| [1, 2, 3].map(|repeat| (cell.clone(), repeat))) {
            let cost = if cell.variant.as_deref() == Some("large") { 9.0 } else { 3.0 };
            let figures = [("cpu_per_delivery".to_owned(), cost + f64::from(repeat) * 0.001)].into();
            let failure =
                (cell.variant.as_deref() == Some("random") && cell.subject == "slow").then(|| "it hung".to_owned());
            result.runs.push(RunValues { repeat, figures, failure, ..RunValues::planned(cell) });
        }
        let board = board_of(result);
        let of = |column: &LeaderboardColumn| (column.id.clone(), column.title.clone());
        let cost = "CPU time per 1,000 deliveries";
        let expected = [
            ("cpu_per_delivery", format!("{cost}, at 4000 /s, 64 B")),
            ("cpu_per_delivery even large", format!("{cost}, at 20000 /s, 1024 B, over TLS")),
            ("cpu_per_delivery even random", format!("{cost}, at 20000 /s, random instants, 64 B")),
        ];
        assert_eq!(
            board.columns.iter().take(3).map(of).collect::<Vec<_>>(),
            expected.map(|(id, title)| (id.to_owned(), title))
        );
        let slow = row(&board, "slow", "sse");
        assert!((slow.standings[1].unwrap().figure.value - 9.0).abs() < 0.01 && slow.standings[2].is_none());
        assert_eq!(slow.lacking.keys().collect::<Vec<_>>(), ["cpu_per_delivery even random"]);
    }

    #[test]
    fn latency_at_a_share_of_each_rate_is_headed_so_and_stands_beside_that_rate_which_is_not_ranked() {
        let mut result = results(usual);
        let title = |board: &Leaderboard, id: &str| board.columns.iter().find(|c| c.metric == id).unwrap().clone();
        let even = board_of(results(usual));
        assert_eq!(title(&even, "latency_median").title, "Latency, median, at half its own rate");
        assert_eq!(title(&even, "cpu_per_delivery").title, "CPU time per 1,000 deliveries, at 20000 /s");
        assert_eq!(title(&even, "delivered").title, "Deliveries in a closed loop, on one core");
        result.header.experiments[1].capacity_share =
            Some(CapacityShare { of: "busy".to_owned(), share: 0.5, at_most: Some(100_000) });
        let board = board_of(result);
        let latency = title(&board, "latency_median");
        assert_eq!(
            (latency.title.as_str(), latency.share),
            ("Latency, median, at half its own rate, or 100000 /s", Some(0.5))
        );
        assert!(board.note.contains("at half what the same server delivered"), "{}", board.note);
        let rate = title(&board, "due");
        assert_eq!(rate.unit, "deliveries/s");
        assert_eq!((rate.better, title(&board, "delivered").share), (Better::Neither, None));
        assert!(board.rows.iter().all(|row| row.standings[1].is_some_and(|one| one.overall.is_none())));
        assert_eq!((part(0.5).as_str(), part(0.3).as_str()), ("half", "30 % of"));
    }

    /// The order is that of the first column that is ranked.
    #[test]
    fn what_only_one_schedule_measured_is_of_that_one() {
        let mut result = results(usual);
        result.header.experiments.retain(|experiment| ["half", "silent"].contains(&experiment.name.as_str()));
        let board = board_of(result);
        assert_eq!((board.columns[0].metric.as_str(), board.rows[0].subject.as_str()), ("due", "fast"));
        assert!(sentences(&board)[0].starts_with("websocket, latency, median"), "{:?}", sentences(&board));
        let mut result = results(usual);
        result.header.experiments.retain(|experiment| experiment.name == "even");
        let board = board_of(result);
        let titles: Vec<&str> = board.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["CPU time per 1,000 deliveries, at 20000 /s", "Latency, median, at 20000 /s"]);
        assert!(board.note.starts_with("CPU time and latency are those of “even”"), "{}", board.note);
    }

    #[test]
    fn rows_are_marked_with_what_went_wrong_in_the_runs_behind_them() {
        let mut result = results(usual);
        for run in &mut result.runs {
            let (subject, is_busy) = (run.cell.subject.as_str(), run.cell.experiment == "busy");
            let is_last = run.repeat == 3 && run.cell.transport == Transport::WebSocket;
            let raised: &[WarningCode] = match subject {
                "fast" if is_last && is_busy => &[WarningCode::GeneratorBound],
                "fast" if is_last => &[WarningCode::Loss],
                "twin" => &[WarningCode::NoisyNeighbour, WarningCode::ProbeGaps, WarningCode::FewSamples],
                // What is void is not behind a figure.
                "slow" if is_last => &[WarningCode::Lateness, WarningCode::Reordering],
                _ => &[],
            };
            run.warnings.extend(raised.iter().map(|code| Warning::new(*code, "numbers")));
        }
        let board = board_of(result);
        assert_eq!(row(&board, "fast", "websocket").warnings, ["loss", "generator-bound"]);
        let marked: Vec<&str> =
            board.rows.iter().filter(|row| !row.warnings.is_empty()).map(|row| row.subject.as_str()).collect();
        assert_eq!(marked, ["fast"]);
        let codes: Vec<&str> = board.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["loss", "generator-bound"], "only those that occur are explained");
        let said = sentences(&board);
        assert!(
            said[0].contains("pushlab is second") && said[0].ends_with("; with warnings: fast (loss)."),
            "{}",
            said[0]
        );
        assert!(!said[2].contains("warnings"), "{}", said[2]);
        let board = {
            let mut result = results(usual);
            let busy = |run: &&mut RunValues| run.cell.subject == OURS && run.cell.experiment == "busy";
            result
                .runs
                .iter_mut()
                .filter(busy)
                .for_each(|run| run.warnings.push(Warning::new(WarningCode::GeneratorBound, "")));
            // Without a schedule the closed loop is told first.
            result.header.experiments.retain(|experiment| ["busy", "silent"].contains(&experiment.name.as_str()));
            board_of(result)
        };
        let said = sentences(&board);
        assert!(said[0].contains("deliveries in a closed loop") && said[0].contains("pushlab (generator-bound)"));
        assert!(said[0].contains(" with at least ") && !said[0].contains("behind"), "{}", said[0]);
        for transport in ["websocket", "sse"] {
            let ours = row(&board, OURS, transport).standings[1].unwrap();
            assert!(ours.figure.is_lower_bound(), "{ours:?}");
            let [overall, own] = [ours.overall, ours.of_transport].map(Option::unwrap);
            assert_eq!([(overall.rank, overall.is_tied), (own.rank, own.is_tied)], [(1, true); 2], "behind nobody");
        }
        assert!(row(&board, "slow", "websocket").standings[1].unwrap().overall.unwrap().rank > 1, "it is behind ours");
        assert!(
            said[1].contains("memory") && said[1].contains("pushlab") && !said[1].contains("warnings"),
            "{}",
            said[1]
        );
    }

    #[test]
    fn who_did_not_keep_up_with_its_schedule_has_no_rank_for_its_latency() {
        let mut result = results(usual);
        let mut late = result.runs.iter_mut().filter(|run| {
            (run.cell.subject.as_str(), run.cell.experiment.as_str(), run.cell.transport)
                == ("fast", "half", Transport::Sse)
        });
        late.next().unwrap().warnings.push(Warning::new(WarningCode::Overloaded, "90 of 100"));
        let board = board_of(result);
        let standings = &row(&board, "fast", "sse").standings;
        // What was measured on another schedule keeps its rank.
        assert!(standings[0].unwrap().overall.is_some() && standings[3].unwrap().overall.is_some());
        let latency = standings[2].unwrap();
        assert!(latency.figure.value > 0.0 && latency.overall.is_none() && latency.of_transport.is_none());
        assert_eq!(row(&board, "fast", "sse").warnings, ["overloaded"]);
        assert_eq!(row(&board, "pushlab", "sse").standings[2].unwrap().of_transport.unwrap().rank, 1);
    }

    #[test]
    fn load_phases_too_short_to_show_a_warm_up_are_said_to_be_where_java_is_among_the_servers() {
        let mut experiments = experiments();
        let note = |experiments: &[Experiment], has_java| note(&experiments.iter().collect::<Vec<_>>(), None, has_java);
        for (load_ms, has_java, is_said) in
            [(WARM_UP_SEEN_MS - 1, true, true), (WARM_UP_SEEN_MS - 1, false, false), (WARM_UP_SEEN_MS, true, false)]
        {
            experiments.iter_mut().for_each(|experiment| experiment.phases.load_ms = load_ms);
            assert_eq!(note(&experiments, has_java).contains("warmed up"), is_said, "{load_ms} {has_java}");
        }
    }

    #[test]
    fn ranks_are_shared_where_nothing_separates_and_counted_anew_for_each_transport() {
        let board = board_of(results(usual));
        let order: Vec<(&str, &str)> =
            board.rows.iter().map(|row| (row.subject.as_str(), row.transport.as_str())).collect();
        assert_eq!((order[0], order[7]), (("fast", "websocket"), ("slow", "sse")));
        let ranks = |subject: &str, transport: &str, at: usize| {
            let standing = row(&board, subject, transport).standings[at].unwrap();
            let of = |rank: Option<Rank>| rank.map(|rank| (rank.rank, rank.is_tied)).unwrap();
            (of(standing.overall), of(standing.of_transport))
        };
        // Over sse the fast one does what ours does over websocket.
        assert_eq!(ranks("fast", "sse", 0), ((2, true), (1, false)));
        assert_eq!(ranks("pushlab", "websocket", 0), ((2, true), (2, true)));
        assert_eq!(ranks("twin", "sse", 0), ((5, true), (2, true)));
        assert_eq!(ranks("slow", "sse", 0), ((8, false), (4, false)));
        assert_eq!(ranks("slow", "websocket", 3), ((1, true), (1, false)), "less memory is better");
    }

    #[test]
    fn the_verdict_names_the_leader_and_ours_wherever_it_stands() {
        let said = sentences(&board_of(results(usual)));
        assert_eq!(said.len(), 4, "{said:?}");
        let first = "websocket, CPU time per 1,000 deliveries, at 20000 /s: fast leads with 4.01 ms";
        assert!(said[0].starts_with(first), "{}", said[0]);
        assert!(said[0].ends_with("; pushlab is second with 2.0 times that."), "{}", said[0]);
        assert!(said[1].contains("slow leads with 0.100 KiB"), "{}", said[1]);
        assert!(said[1].ends_with("; pushlab is second with 10.0 times that."), "{}", said[1]);
        let last = |_: &str, subject: &str, _: &str| {
            vec![(
                "delivered",
                match subject {
                    "pushlab" => 96.0,
                    "fast" => 150.0,
                    _ => 100.0,
                },
            )]
        };
        let said = sentences(&board_of(results(last)));
        assert!(said[0].contains("twin is second, 33 % behind; pushlab is fourth, 36 % behind."), "{}", said[0]);
        let near =
            |_: &str, subject: &str, _: &str| vec![("delivered", if subject == "pushlab" { 99.95 } else { 100.0 })];
        let said = sentences(&board_of(results(near)));
        assert!(said[0].contains("twin is second, less than 1 % behind (tie)"), "{}", said[0]);
        assert!(said[0].ends_with("; pushlab is fourth, less than 1 % behind (tie)."), "{}", said[0]);
    }

    #[test]
    fn one_run_each_is_no_ranking() {
        let mut result = results(usual);
        result.runs.retain(|run| run.repeat == 1);
        let board = board_of(result);
        assert!(sentences(&board).iter().all(|said| said.contains("(tie)") && said.ends_with("no ranking.")));
        assert!(board.rows.iter().all(|row| row.standings[0].unwrap().overall.unwrap().rank == 1));
    }

    #[test]
    fn who_has_no_run_that_counts_is_left_out_with_the_reason_and_who_failed_comes_last() {
        let mut result = results(usual);
        for run in result.runs.iter_mut().filter(|run| ["fast", "slow"].contains(&run.cell.subject.as_str())) {
            let is_fast = run.cell.subject == "fast";
            match run.cell.transport {
                Transport::Sse if is_fast => run.failure = Some("it ended with signal 9".to_owned()),
                Transport::Sse => run.warnings.push(Warning::new(WarningCode::LongTurns, "98 ms")),
                _ if is_fast && run.cell.experiment == "busy" => run.failure = Some("it hung".to_owned()),
                _ if is_fast => {}
                _ if run.cell.experiment == "half" => run.warnings.push(Warning::new(WarningCode::LongTurns, "98 ms")),
                _ => {}
            }
        }
        let board = board_of(result);
        assert_eq!(board.rows.len(), 7);
        let standings = &row(&board, "slow", "websocket").standings;
        let has: Vec<bool> = standings.iter().map(Option::is_some).collect();
        assert_eq!(has, [true, false, false, true, true]);
        let left: Vec<(&str, &str)> =
            board.left_out.iter().map(|left| (left.subject.as_str(), left.reason.as_str())).collect();
        let reason = "sse: no run counts; long-turns: 98 ms";
        assert_eq!(left, [("absent", "java is missing"), ("slow", reason)]);
        let failures = |row: &LeaderboardRow| -> Vec<(String, String)> {
            row.lacking.iter().map(|(metric, one)| (metric.clone(), one.to_string())).collect()
        };
        let last = board.rows.last().unwrap();
        assert_eq!((last.subject.as_str(), last.transport.as_str()), ("fast", "sse"));
        assert!(last.standings.iter().all(Option::is_none) && failures(last).len() == board.columns.len(), "{last:?}");
        let partly = row(&board, "fast", "websocket");
        assert_eq!(
            failures(partly),
            [("delivered".to_owned(), "failed: it hung".to_owned())],
            "it did what else was asked"
        );
        assert!(partly.standings[0].is_some() && partly.standings[4].is_none());
    }

    #[test]
    fn who_has_no_figure_that_can_be_shown_stays_in_the_table_and_says_why() {
        let mut result = results(usual);
        let own = |run: &&mut RunValues| (run.cell.subject.as_str(), run.cell.transport) == ("fast", Transport::Sse);
        for run in result.runs.iter_mut().filter(own) {
            match run.cell.experiment.as_str() {
                "half" => run.warnings.push(Warning::new(WarningCode::GeneratorSaturated, "98 %")),
                _ => run.figures.clear(),
            }
        }
        for run in result.runs.iter_mut().filter(|run| run.cell.subject == "slow") {
            run.failure = Some("it hung".to_owned());
        }
        let board = board_of(result);
        let fast = row(&board, "fast", "sse");
        let at = board.columns.iter().position(|column| column.metric == "latency_median").unwrap();
        assert!(fast.standings[at].is_none(), "{fast:?}");
        assert_eq!(fast.lacking["latency_median"].why, WhyLacking::Withheld);
        let tail: Vec<&str> = board.rows[5..].iter().map(|row| row.subject.as_str()).collect();
        assert_eq!(tail, ["fast", "slow", "slow"], "and only those that failed come after it");
    }

    #[test]
    fn it_is_told_how_each_was_started() {
        let board = board_of(results(usual));
        let names: Vec<&str> = board.subjects.iter().map(|subject| subject.name.as_str()).collect();
        assert_eq!(names, ["pushlab", "fast", "slow", "twin"]);
        let versions: Vec<Option<&str>> = board.subjects.iter().map(|subject| subject.version.as_deref()).collect();
        assert_eq!(versions, [Some("1.2.3"), Some("9.9"), None, None]);
        assert_eq!(board.subjects[1].commands, ["fast --say 'two words'"]);
        let mut result = results(usual);
        let known = KnownSubject { title: "Fast".to_owned(), platform: "Go".to_owned(), warms_up: false };
        result.known.insert("fast".to_owned(), known);
        let told = |subject: &LeaderboardSubject| (subject.title.clone(), subject.platform.clone());
        let subjects = board_of(result).subjects;
        assert_eq!(told(&subjects[1]), (Some("Fast".to_owned()), Some("Go".to_owned())));
        assert_eq!(told(&subjects[2]), (None, None));
    }

    #[test]
    fn nobody_asks_and_there_is_none() {
        let mut result = results(usual);
        result.header.experiments.iter_mut().for_each(|experiment| experiment.tables.clear());
        let experiments: Vec<&Experiment> = result.header.experiments.iter().collect();
        assert!(leaderboard(&experiments, std::slice::from_ref(&result), 1).is_none());
    }
}
