//! For whoever sits at the terminal.

use super::card;
use super::tables::{self, Rows};
use pushlab_report::{DataTable, ExperimentReport, Leaderboard, MetricInfo, Report};
use std::fmt::Write as _;

/// A table for each experiment, what was expected, the verdict, what could not be seen, and the warnings; what to choose
/// is apart.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    report.experiments.iter().for_each(|one| experiment(&mut out, one, &report.metrics));
    if let Some(board) = &report.leaderboard {
        leaderboard(&mut out, board);
    }
    if let Some(card) = &report.card {
        out.push_str("\nScorecard\n");
        aligned(&mut out, &card::rows(card));
        for (title, rows) in card::narrowed(card) {
            let _ = writeln!(out, "  {}", on_one_line(&title));
            aligned(&mut out, &rows);
        }
        lines(&mut out, &card::legend(card));
    }
    if let Some(comparison) = &report.comparison {
        let _ = writeln!(out, "\n{}", on_one_line(&tables::comparison_heading(comparison)));
        if let Some(rows) = tables::changes(comparison) {
            aligned(&mut out, &rows);
        }
        lines(&mut out, &tables::change_notes(comparison));
    }
    section(&mut out, "Verdict", &report.verdict);
    section(&mut out, "Not seen", &tables::unobserved(report));
    section(&mut out, "Warnings", &tables::warnings(report));
    out
}

/// Characters of a line of a paragraph.
const WIDTH: usize = 96;

/// What to choose: what whoever asked wants to read, and so the last on the screen; nothing without a scorecard.
pub fn advice(report: &Report) -> String {
    let mut out = String::new();
    let advice = report.card.iter().flat_map(|card| &card.advice);
    advice.for_each(|one| {
        out.push_str(if out.is_empty() { "\nWhat to choose\n" } else { "" });
        let _ = writeln!(out, "  For {}", one.workload.title());
        wrapped(&mut out, &one.text);
    });
    out
}

fn wrapped(out: &mut String, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() > WIDTH {
            let _ = writeln!(out, "   {}", std::mem::take(&mut line));
        }
        line = format!("{line} {}", on_one_line(word));
    }
    let _ = writeln!(out, "   {line}");
}

/// Where it was measured, and how to repeat it.
pub fn environment(report: &Report) -> String {
    let mut out = String::new();
    let facts: Vec<String> = report.environment.iter().map(|fact| format!("{}: {}", fact.label, fact.value)).collect();
    section(&mut out, "Environment", &facts);
    section(&mut out, "Again", &report.repeat.commands);
    out
}

fn experiment(out: &mut String, experiment: &ExperimentReport, metrics: &[MetricInfo]) {
    let _ = writeln!(out, "\n{}", on_one_line(&tables::heading(experiment)));
    lines(out, tables::network(experiment).as_slice());
    lines(out, tables::clocks(experiment).as_slice());
    aligned(out, &tables::results(experiment, metrics));
    lines(out, &tables::without_figures(experiment));
    lines(out, &[tables::INTERVALS]);
    let elsewhere = tables::findings_elsewhere(experiment);
    if !experiment.expectations.is_empty() || elsewhere.is_some() {
        out.push_str("\n  Expected\n");
    }
    match tables::expected_counts(experiment) {
        Some(counts) => lines(out, &[counts]),
        None => {
            for (outcome, what) in experiment.expectations.iter().flat_map(tables::expected) {
                lines(out, &[format!("{:<9}  {what}", tables::word(outcome))]);
            }
        }
    }
    lines(out, elsewhere.as_slice());
    tables::data_tables(experiment).for_each(|table| data_table(out, table));
}

fn data_table(out: &mut String, table: &DataTable) {
    let _ = writeln!(out, "\n  {}", on_one_line(&table.title));
    aligned(out, &tables::data(table));
    lines(out, tables::data_note(table).as_slice());
}

fn leaderboard(out: &mut String, board: &Leaderboard) {
    out.push_str("\nLeaderboard\n");
    for rows in tables::boards(board) {
        aligned(out, &rows);
        out.push('\n');
    }
    lines(out, &tables::board_notes(board));
}

/// Lines under a title; nothing where there are none.
fn section(out: &mut String, title: &str, all: &[String]) {
    if !all.is_empty() {
        let _ = writeln!(out, "\n{title}");
        lines(out, all);
    }
}

fn lines(out: &mut String, all: &[impl AsRef<str>]) {
    for line in all {
        let own: Vec<String> = line.as_ref().lines().map(on_one_line).collect();
        let _ = writeln!(out, "  {}", own.join("\n    "));
    }
}

/// Names and reasons come from elsewhere: they neither end a line nor steer the terminal.
fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The first column to the left, the others to the right.
fn aligned(out: &mut String, rows: &Rows) {
    let rows: Rows = rows.iter().map(|row| row.iter().map(|cell| on_one_line(cell)).collect()).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    for row in &rows {
        let mut line = format!("  {:<1$}", row[0], widths[0]);
        for (cell, width) in row[1..].iter().zip(&widths[1..]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{NAME, hostile, limited, report};
    use pushlab_experiment::Workload;
    use pushlab_experiment::metric::Better;
    use pushlab_report::{
        Advice, Column, DataCell, Estimate, Lacking, LeaderboardColumn, LeaderboardRow, LeaderboardWarning, LeftOut,
        Point, Rank, Scorecard, Stack, StackPart, Standing, WhyLacking,
    };
    use pushlab_store::Bound;

    #[test]
    fn a_report_ends_with_its_verdict_and_what_makes_it_less_certain() {
        let text = text(&report());
        let places =
            ["\ndrill · Drill\n  network: loopback\n  transport ", "\n  Expected\n  confirmed  latency", "\nVerdict\n"];
        let places =
            places.into_iter().chain(["\nNot seen\n  pushlab: CPU cannot be read: it is far\n", "\nWarnings\n"]);
        let at: Vec<Option<usize>> = places.map(|part| text.find(part)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}{text}");
        assert!(text.contains("\n  failed: polling at 2, repeat 1: it died\n"), "{text}");
        let environment = environment(&report());
        assert!(environment.starts_with("\nEnvironment\n  pushlab: 1.2.3\n"), "{environment}");
        assert!(environment.ends_with("\nAgain\n  pushlab run --seed 7\n"), "{environment}");
    }

    #[test]
    fn what_to_choose_is_told_by_use_in_lines_of_a_terminal() {
        let mut report = report();
        assert_eq!(advice(&report), "");
        let one = |workload, text: String| Advice { workload, choices: Vec::new(), text };
        let advices = vec![one(Workload::Chat, "SSE. ".repeat(40)), one(Workload::Mobile, "\x1b[2J".to_owned())];
        report.card = Some(Scorecard {
            options: Vec::new(),
            rows: Vec::new(),
            narrowed: Vec::new(),
            advice: advices,
            notes: Vec::new(),
        });
        let text = advice(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["", "What to choose", "  For chat"]);
        assert!(lines[3].len() == 98 && lines[3].starts_with("    SSE. SSE."), "{text}");
        assert_eq!(lines[lines.len() - 2..], ["  For mobile networks", "     [2J"], "{text}");
        assert_eq!(text.matches("SSE.").count(), 40);
        assert!(crate::markdown::summary(&report).contains("\n| chat | SSE. "));
    }

    #[test]
    fn clocks_of_other_machines_are_one_line_in_every_form() {
        let mut report = report();
        assert!(!text(&report).contains("clocks: "));
        report.experiments[0].clocks = vec!["worker 2 was late".to_owned(), "worker 3 was early".to_owned()];
        let line = "clocks: worker 2 was late; worker 3 was early\n";
        assert!(text(&report).contains(&format!("\n  {line}")), "{}", text(&report));
        assert!(crate::markdown::text(&report).contains(&format!("\n- {line}")));
    }

    #[test]
    fn statements_about_other_series_are_counted_in_every_form() {
        let mut report = report();
        report.experiments[0].expectations.clear();
        assert!(!text(&report).contains("Expected") && !crate::markdown::text(&report).contains("Expected"));
        for (count, line) in [(1, "1 finding of the study is about series"), (14, "14 findings of the study are about")]
        {
            report.experiments[0].findings_elsewhere = count;
            assert!(text(&report).contains(&format!("\n  Expected\n  {line}")), "{}", text(&report));
            assert!(crate::markdown::text(&report).contains(&format!("\n- {line}")));
        }
    }

    #[test]
    fn what_several_points_lack_for_one_reason_is_one_line() {
        let mut report = report();
        let experiment = &mut report.experiments[0];
        let (shown, other) = (experiment.columns[0].clone(), "cpu_idle".to_owned());
        assert!(!experiment.columns.contains(&other) && !experiment.charts.contains(&other));
        let points: Vec<&mut Point> = experiment.series.iter_mut().flat_map(|series| &mut series.points).collect();
        let count = points.len();
        for (at, point) in points.into_iter().enumerate() {
            let lacking = Lacking { why: WhyLacking::TooFew, detail: format!("there were {at}") };
            point.lacking = [&shown, &other].map(|metric| (metric.clone(), lacking.clone())).into();
            point.withheld = vec!["repeat 1: late".to_owned(); at];
        }
        let lines = tables::without_figures(experiment);
        let few: Vec<&String> = lines.iter().filter(|line| line.starts_with("too few: ")).collect();
        assert!(count > 2 && few.len() == 1, "{lines:#?}");
        assert!(few[0].ends_with(&format!("there were 0; and {} more points", count - 1)), "{}", few[0]);
        let withheld: Vec<&String> = lines.iter().filter(|line| line.starts_with("without latency: ")).collect();
        assert_eq!(withheld.len(), count - 1);
        assert!(withheld[0].ends_with("repeat 1: late") && withheld[1].ends_with("; and one more run"), "{withheld:?}");
    }

    #[test]
    fn a_name_neither_ends_a_line_nor_steers_the_terminal() {
        let text = text(&hostile());
        assert!(text.contains(&format!("· {}\n", on_one_line(NAME))), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(text.lines().all(|line| !line.starts_with("`c`")), "{text}");
    }

    #[test]
    fn a_rate_of_the_load_is_a_lower_bound_in_every_table() {
        let text = text(&limited());
        assert!(text.contains("  ≥ 502 ±2.48  ") && !text.contains("≥ 902"), "{text}");
        let column = LeaderboardColumn {
            id: "delivered".to_owned(),
            metric: "delivered".to_owned(),
            title: String::new(),
            unit: "/s".to_owned(),
            better: Better::Higher,
            experiment: String::new(),
            share: None,
        };
        let figure = Estimate { value: 412_345.0, low: 4e5, high: 42e4, runs: 5, bound: Some(Bound::Min) };
        let standing = Standing { figure, overall: None, of_transport: Some(Rank { rank: 1, is_tied: true }) };
        assert_eq!(tables::board_cell(&column, Some(standing), None), "1= ≥ 412");
        for why in [WhyLacking::NotReached, WhyLacking::TooFew, WhyLacking::Withheld, WhyLacking::Failed] {
            let lacking = Lacking { why, detail: "why".to_owned() };
            assert_eq!(tables::board_cell(&column, None, Some(&lacking)), why.words());
        }
        assert_eq!(tables::board_cell(&column, None, None), "–");
    }

    fn board_warnings() -> Vec<LeaderboardWarning> {
        let codes = ["loss", "duplication", "reordering", "overloaded", "generator-bound", "unstable"];
        let warning = |code: &str| LeaderboardWarning { code: code.to_owned(), meaning: "what it means".to_owned() };
        codes.map(warning).to_vec()
    }

    fn board() -> Leaderboard {
        let column = |(metric, better): (&str, Better)| LeaderboardColumn {
            id: metric.to_owned(),
            metric: metric.to_owned(),
            title: "Title".to_owned(),
            unit: "ms".to_owned(),
            better,
            experiment: "busy".to_owned(),
            share: ["due", "latency_median", "latency_p99"].contains(&metric).then_some(0.5),
        };
        let standing = |value: f64, rank| {
            let place = Some(Rank { rank, is_tied: rank == 10 });
            let figure = Estimate { value, low: value * 0.87, high: value * 1.13, runs: 5, bound: None };
            Some(Standing { figure, overall: place, of_transport: place })
        };
        let lacking = |(metric, why, detail): (&str, WhyLacking, &str)| {
            (metric.to_owned(), Lacking { why, detail: detail.to_owned() })
        };
        let row = |subject: &str, transport: &str, rank| LeaderboardRow {
            subject: subject.to_owned(),
            transport: transport.to_owned(),
            is_ours: subject == "pushlab",
            lacking: match (subject, transport) {
                ("pushlab", "sse") => [
                    ("latency_median", WhyLacking::Failed, "it hung"),
                    ("latency_p99", WhyLacking::Failed, "it hung"),
                    ("memory_per_client", WhyLacking::TooFew, "one alone"),
                    (tables::NOT_SHOWN, WhyLacking::TooFew, "one alone"),
                ]
                .map(lacking)
                .into(),
                _ => Default::default(),
            },
            warnings: match subject {
                "pushlab" => Vec::new(),
                _ => board_warnings().into_iter().map(|warning| warning.code).collect(),
            },
            standings: vec![
                standing(12.34, rank),
                standing(412_345.0, rank),
                Some(Standing { overall: None, of_transport: None, ..standing(206_172.0, rank).unwrap() }),
                standing(12.34, rank),
                standing(98.7, rank),
                standing(12.34, rank),
                standing(1234.5, rank),
                Some(Standing { overall: None, of_transport: None, ..standing(98.7, rank).unwrap() }),
            ],
        };
        let metrics = ["cpu_per_delivery", "delivered", "due", "latency_median", "latency_p99", "memory_per_client"];
        let mut columns: Vec<(&str, Better)> = metrics.map(|metric| (metric, Better::Lower)).to_vec();
        columns.extend([("bytes_per_delivery", Better::Lower), ("generator_cpu", Better::Neither)]);
        Leaderboard {
            note: String::new(),
            experiments: vec!["busy".to_owned()],
            columns: columns.into_iter().map(column).collect(),
            rows: vec![
                row("node-bare-cluster", "websocket", 10),
                row("pushlab", "sse", 1),
                row("pushlab", "websocket", 12),
            ],
            warnings: board_warnings(),
            subjects: Vec::new(),
            left_out: vec![LeftOut { subject: "cometd".to_owned(), reason: "java is missing".to_owned() }],
        }
    }

    #[test]
    fn a_leaderboard_is_told_by_transport_and_fits_a_terminal() {
        let mut out = String::new();
        leaderboard(&mut out, &board());
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 120), "{out}");
        assert!(lines[2].starts_with("  websocket  ") && lines[3].starts_with("  node-bare-cluster  "), "{out}");
        assert!(lines[2].contains("at k/s  median ms at ½     p99 ms at ½"), "{out}");
        assert!(lines[3].contains("   206  10= 12.3 ±1.60") && lines[3].ends_with("10= 1234  LDROGU"), "{out}");
        assert!(lines[4].ends_with("12. 1234"), "not marked: {out}");
        assert!(out.contains("\n  ms at ½: latency at ½ of the rate that the same server delivered;"), "{out}");
        assert!(out.contains("\n  G generator-bound: what it means\n"), "{out}");
        assert!(lines[3].contains("  10= 12.3 ±1.60   10= 412     206"), "the first figure has its interval: {out}");
        assert!(out.contains("\n  CPU ms/k: Title.\n") && out.contains("\n  loop k/s: Title.\n"), "{out}");
        assert!(lines[4].starts_with("  pushlab *  "), "{out}");
        assert!(lines[6].starts_with("  sse  "), "{out}");
        assert_eq!(lines.last(), Some(&"  left out: cometd, java is missing"));
        assert_eq!(out.matches("it hung").count(), 1, "{out}");
        assert!(out.contains("\n  pushlab over sse failed and comes last: it hung\n"), "{out}");
        assert_eq!(out.matches("one alone").count(), 1, "what is not shown needs no reason: {out}");
        assert!(out.contains("\n  memory_per_client of pushlab over sse, too few: one alone\n"), "{out}");
    }

    #[test]
    fn parts_of_a_whole_are_shown_without_intervals() {
        let column = |title: &str| Column { title: title.to_owned(), unit: String::new() };
        let value = DataCell::Estimate(Estimate { value: 12.34, low: 11.0, high: 13.0, runs: 3, bound: None });
        let mut table = DataTable {
            title: "Bytes".to_owned(),
            note: String::new(),
            columns: ["Series", "Part", "Whole"].map(column).to_vec(),
            rows: vec![vec![DataCell::Text("sse".to_owned()), value.clone(), value]],
            stack: Some(Stack {
                group: None,
                parts: vec![StackPart { name: "part".to_owned(), column: 1 }],
                wholes: vec![2],
            }),
        };
        let shown = |table: &DataTable| {
            let mut out = String::new();
            data_table(&mut out, table);
            out
        };
        let text = shown(&table);
        assert!(text.contains("sse     12.3  12.3 ±0.66\n") && text.contains("without their intervals"), "{text}");
        table.stack = None;
        let text = shown(&table);
        assert!(text.contains("12.3 ±0.66  12.3 ±0.66") && !text.contains("without"), "{text}");
    }
}
