//! For an issue or a pull request: GitHub Flavored Markdown.

use super::card;
use super::tables::{self, Rows};
use pushlab_analysis::report::wording::place;
use pushlab_report::{DataTable, ExperimentReport, MetricInfo, Place, Ranking, Report, Tie, Unplaced, WhyLacking};
use std::fmt::Write as _;

/// The verdict, a table for each experiment with its judgements and rankings, the warnings, and the environment, folded.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    heading(&mut out, 2, &report.title);
    advice(&mut out, report);
    list(&mut out, &report.verdict);
    if let Some(comparison) = &report.comparison {
        heading(&mut out, 3, &tables::comparison_heading(comparison));
        if let Some(rows) = tables::changes(comparison) {
            table(&mut out, &rows);
        }
        list(&mut out, &tables::change_notes(comparison));
        list(&mut out, &comparison.missing);
    }
    scorecard(&mut out, report);
    if let Some(board) = &report.leaderboard {
        heading(&mut out, 3, "Leaderboard");
        tables::boards(board).iter().for_each(|rows| table(&mut out, rows));
        list(&mut out, &tables::board_notes(board));
    }
    report.experiments.iter().for_each(|one| experiment(&mut out, one, &report.metrics));
    section(&mut out, 3, "Not seen", &tables::unobserved(report));
    section(&mut out, 3, "Warnings", &tables::warnings(report));
    environment(&mut out, report);
    out
}

/// The answer alone, for the summary of a job: the verdict, the comparison or the scorecard, and what was asserted.
pub fn summary(report: &Report) -> String {
    let mut out = String::new();
    heading(&mut out, 2, &report.title);
    advice(&mut out, report);
    list(&mut out, &report.verdict);
    if let Some(rows) = report.comparison.as_ref().and_then(tables::changes) {
        table(&mut out, &rows);
    }
    scorecard(&mut out, report);
    report.experiments.iter().for_each(|experiment| match tables::expected_counts(experiment) {
        Some(counts) => {
            section(&mut out, 4, "Expected", &[counts]);
            asked(&mut out, experiment);
        }
        None => asserted(&mut out, experiment),
    });
    out
}

/// A row for each kind of application.
fn advice(out: &mut String, report: &Report) {
    let advice = report.card.iter().flat_map(|card| &card.advice);
    let mut rows = vec![vec!["for".to_owned(), "choose".to_owned()]];
    rows.extend(advice.map(|one| vec![one.workload.title().to_owned(), one.text.clone()]));
    if rows.len() > 1 {
        table_with(out, &rows, "---|");
    }
}

fn scorecard(out: &mut String, report: &Report) {
    if let Some(card) = &report.card {
        heading(out, 3, "Scorecard");
        table(out, &card::rows(card));
        for (title, rows) in card::narrowed(card) {
            let _ = writeln!(out, "\n{}:\n", escaped(&title));
            table(out, &rows);
        }
        list(out, &card::legend(card));
    }
}

/// What was expected of an experiment, and what was to raise an alarm.
fn asserted(out: &mut String, experiment: &ExperimentReport) {
    let judged = |outcome, text: &str| format!("**{}**: {}", tables::word(outcome), escaped(text));
    let expected = experiment.expectations.iter().flat_map(tables::expected);
    let expected = expected.map(|(outcome, what)| judged(outcome, &what)).chain(tables::findings_elsewhere(experiment));
    ready_section(out, "Expected", expected.collect());
    asked(out, experiment);
}

fn asked(out: &mut String, experiment: &ExperimentReport) {
    let judged = |outcome, text: &str| format!("**{}**: {}", tables::word(outcome), escaped(text));
    let asked = experiment.alarms.iter();
    let asked = asked.map(|alarm| judged(alarm.outcome, &format!("{} ({})", alarm.assertion, alarm.detail)));
    ready_section(out, "Fail if", asked.collect());
}

fn experiment(out: &mut String, experiment: &ExperimentReport, metrics: &[MetricInfo]) {
    heading(out, 3, &tables::heading(experiment));
    list(out, tables::network(experiment).as_slice());
    list(out, tables::clocks(experiment).as_slice());
    table(out, &tables::results(experiment, metrics));
    list(out, &tables::without_figures(experiment));
    list(out, &[tables::INTERVALS]);
    asserted(out, experiment);
    section(out, 4, "Rankings", &experiment.rankings.iter().map(|one| ranking(one, experiment)).collect::<Vec<_>>());
    tables::data_tables(experiment).for_each(|table| data_table(out, table));
}

/// `latency_median at 300 clients, load: 1= websocket 0.12 ±0.01, 1= sse 0.13 ±0.02, 3. polling 251`.
fn ranking(ranking: &Ranking, experiment: &ExperimentReport) -> String {
    let place_of = |place: &Place| {
        let is_tied = ranking.places.iter().filter(|other| other.rank == place.rank).count() > 1;
        let sign = match place.tie {
            Some(Tie::Undecided) => "?",
            Some(Tie::Equivalent) => "=",
            None if is_tied => "=",
            None => ".",
        };
        format!("{}{sign} {} {}", place.rank, place.label, tables::figure(Some(place.figure)))
    };
    let unplaced = ranking.unplaced.iter().map(|Unplaced { label, lacking, .. }| match lacking.why {
        WhyLacking::Failed => format!("last {label} failed ({})", lacking.detail),
        why => format!("{label} {}", why.words()),
    });
    let places: Vec<String> = ranking.places.iter().map(place_of).chain(unplaced).collect();
    let among = if ranking.among.is_empty() { String::new() } else { format!(" among {}", ranking.among) };
    let (at, regime) = (place(&experiment.axis, ranking.x), tables::regime(ranking.regime));
    format!("{}{among} at {at}, {regime}: {}", ranking.metric, places.join(", "))
}

fn data_table(out: &mut String, data: &DataTable) {
    heading(out, 4, &data.title);
    table(out, &tables::data(data));
    list(out, tables::data_note(data).as_slice());
}

fn environment(out: &mut String, report: &Report) {
    let fact = |label: &str, value: &str| vec![label.to_owned(), value.to_owned()];
    let mut rows = vec![fact("what", "value")];
    rows.extend(report.environment.iter().map(|one| fact(&one.label, &one.value)));
    rows.extend(report.repeat.commands.iter().map(|command| fact("again", command)));
    out.push_str("<details>\n<summary>Environment</summary>\n\n");
    table_with(out, &rows, "---|");
    out.push_str("</details>\n");
}

fn heading(out: &mut String, level: usize, title: &str) {
    let _ = writeln!(out, "{} {}\n", "#".repeat(level), escaped(title));
}

/// A list under a heading; nothing where it is empty.
fn section(out: &mut String, level: usize, title: &str, all: &[String]) {
    if !all.is_empty() {
        heading(out, level, title);
        list(out, all);
    }
}

/// The same of what is escaped already.
fn ready_section(out: &mut String, title: &str, all: Vec<String>) {
    if !all.is_empty() {
        heading(out, 4, title);
        items(out, &all);
    }
}

fn list(out: &mut String, all: &[impl AsRef<str>]) {
    items(out, &all.iter().map(|text| escaped(text.as_ref())).collect::<Vec<_>>());
}

fn items(out: &mut String, all: &[String]) {
    if all.is_empty() {
        return;
    }
    for item in all {
        let _ = writeln!(out, "- {item}");
    }
    out.push('\n');
}

/// The first column to the left, the others to the right.
fn table(out: &mut String, rows: &Rows) {
    table_with(out, rows, "---:|");
}

fn table_with(out: &mut String, rows: &Rows, others: &str) {
    let Some((headings, rows)) = rows.split_first() else { return };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out.push_str(&line(headings));
    let _ = writeln!(out, "|---|{}", others.repeat(headings.len().saturating_sub(1)));
    rows.iter().for_each(|row| out.push_str(&line(row)));
    out.push('\n');
}

/// Text as it is meant, on one line. Within a word an underscore means nothing, and names of metrics have many.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_in_word = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '_' if is_in_word => out.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => out.extend(['\\', c]),
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{compared, hostile, limited, report};

    /// The cells of each row of each table.
    fn tables_of(text: &str) -> Vec<Vec<Vec<String>>> {
        let mut tables = vec![Vec::new()];
        for line in text.lines() {
            match line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
                // What is escaped within a cell is no border.
                Some(row) => {
                    tables.last_mut().unwrap().push(row.replace("\\|", "\0").split('|').map(str::to_owned).collect())
                }
                None => tables.push(Vec::new()),
            }
        }
        tables.retain(|table: &Vec<Vec<String>>| !table.is_empty());
        tables
    }

    #[test]
    fn rows_have_as_many_cells_as_their_headings() {
        for (report, count) in [(report(), 2), (hostile(), 2), (compared(), 3)] {
            let text = text(&report);
            let tables = tables_of(&text);
            assert_eq!(tables.len(), count, "{text}");
            for rows in tables {
                assert!(rows.len() > 2 && rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
            }
        }
    }

    #[test]
    fn it_has_the_columns_of_the_terminal_and_the_judgements() {
        let text = text(&report());
        assert!(text.starts_with("## Drill\n\n- Found it.\n- Drill at 2 clients: websocket has the lowest"), "{text}");
        for part in [
            "\n### drill · Drill\n\n- network: loopback\n\n| transport | clients | ",
            "\n| websocket | 2 | ",
            "\n- failed: polling at 2, repeat 1: it died\n",
            "\n#### Expected\n\n- **confirmed**: latency(websocket) \\< latency(sse), pushlab (confirmed at 2)\n- **refuted**: ",
            "\n#### Fail if\n\n- **confirmed**: latency(sse) \\> 1 ms (confirmed at 2)\n",
            "\n#### Rankings\n\n- latency_median at 2 clients, load: 1. websocket 1.02 ±",
            "\n### Not seen\n\n- pushlab: CPU cannot be read: it is far\n",
            "\n### Warnings\n\n- long-turns (3 runs): ",
            "\n<details>\n<summary>Environment</summary>\n\n| what | value |\n|---|---|\n| pushlab | 1.2.3 |\n",
            "\n| again | pushlab run --seed 7 |\n\n</details>\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_rate_of_the_load_is_a_lower_bound_and_who_failed_comes_last() {
        let text = text(&limited());
        let ranking = "- delivered at 2 clients, load: 1? websocket 902 ±2.48, 1? sse ≥ 502 ±2.48, last polling failed (it died)\n";
        assert!(text.contains(ranking), "{text}");
        let row = text.lines().find(|line| line.starts_with("| sse | 2 |")).unwrap();
        assert!(row.contains("| ≥ 502 ±2.48 |"), "{row}");
    }

    #[test]
    fn what_changed_comes_before_the_figures() {
        let text = text(&compared());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        assert!(at("### after against before\n\n| cell | metric |") < at("- after: drill · sse · 2 clients: it died"));
        assert!(at("- after: drill · sse · 2 clients: it died") < at("### drill · Drill"));
    }

    #[test]
    fn names_are_shown_as_they_are() {
        let text = text(&hostile());
        let name = "a\\|\\<b\\>\\&\"q\" \\`c\\` ";
        assert!(text.starts_with(&format!("## {name}\n")), "{text}");
        assert!(text.contains(&format!("\n| {name} | {name} |\n")), "{text}");
        assert_eq!(
            escaped("latency_p99 *_x_* [a](b) 5$ ~~c~~"),
            "latency_p99 \\*\\_x\\_\\* \\[a\\](b) 5\\$ \\~\\~c\\~\\~"
        );
    }
}
