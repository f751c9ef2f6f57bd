//! A report as text.

use pushlab_analysis::report::model::{
    Agreement, Change, Comparison, Completeness, DataCell, DataTable, ExperimentReport, Figure, Leaderboard,
    LeaderboardColumn, MetricInfo, Origin, Point, Report, Standing,
};
use pushlab_store::Bound;
use std::fmt::Write as _;

/// Metrics in a table: more do not fit a terminal, and the page has them all.
const METRICS_MAX: usize = 6;
/// Rows of a comparison that changed nothing are counted, not listed; of the others at most so many are listed.
const CHANGES_MAX: usize = 40;
/// A column of the leaderboard that is left to the page: where the generator's CPU matters, rows are marked with it.
const NOT_SHOWN: &str = "generator_cpu";

/// The verdict, a table for each experiment, what was expected, and the doubts.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for experiment in &report.experiments {
        results(&mut out, experiment, &report.metrics);
        expectations(&mut out, experiment);
        experiment.tables.iter().filter(|table| table.rows.len() <= 40).for_each(|table| data_table(&mut out, table));
    }
    if let Some(board) = &report.leaderboard {
        leaderboard(&mut out, board);
    }
    if let Some(comparison) = &report.comparison {
        compared(&mut out, comparison);
    }
    out.push_str("\nVerdict\n");
    for sentence in &report.verdict {
        let _ = writeln!(out, "  {sentence}");
    }
    if !report.doubts.is_empty() {
        out.push_str("\nDoubts\n");
        for doubt in &report.doubts {
            let _ = writeln!(out, "  {} ({} runs): {}", doubt.code, doubt.count, doubt.message);
        }
    }
    out
}

fn results(out: &mut String, experiment: &ExperimentReport, metrics: &[MetricInfo]) {
    let partial = match experiment.completeness {
        Completeness::Complete => String::new(),
        Completeness::Partial => format!(" (partial: {} of {} runs)", experiment.runs_done, experiment.runs_planned),
    };
    let _ = writeln!(out, "\n{} · {}{partial}", experiment.name, experiment.title);
    let shown: Vec<&MetricInfo> = experiment
        .charts
        .iter()
        .filter_map(|name| metrics.iter().find(|metric| metric.name == *name))
        .take(METRICS_MAX)
        .collect();
    let mut headings = vec!["transport".to_owned(), experiment.axis.name.clone()];
    headings.extend(shown.iter().map(|metric| format!("{} {}", metric.name, metric.unit).trim_end().to_owned()));
    headings.extend(["lost dup reord".to_owned(), String::new()]);
    let mut rows = vec![headings];
    for series in experiment.series.iter().filter(|series| series.origin == Origin::Measured) {
        rows.extend(series.points.iter().map(|point| row(&series.label, point, &shown)));
    }
    aligned(out, &rows);
    for series in &experiment.series {
        for point in &series.points {
            let reasons =
                point.failures.iter().map(|why| ("failed", why)).chain(point.voids.iter().map(|why| ("void", why)));
            for (what, why) in reasons {
                let _ = writeln!(out, "  {what}: {} at {}, {why}", series.label, point.x);
            }
        }
    }
    out.push_str("  ± is half of the 95 % interval; a value without it rests on one run.\n");
}

/// The first column to the left, the others to the right.
fn aligned(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    for row in rows {
        let mut line = format!("  {:<1$}", row[0], widths[0]);
        for (cell, width) in row[1..].iter().zip(&widths[1..]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn row(label: &str, point: &Point, shown: &[&MetricInfo]) -> Vec<String> {
    let regime = point.regime.map_or(String::new(), |r| format!("{r:?}").to_lowercase());
    let mut notes = vec![regime];
    for (count, what) in [(point.failures.len(), "failed"), (point.voids.len(), "void")] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    let mut row = vec![label.to_owned(), point.x.to_string()];
    row.extend(shown.iter().map(|metric| figure(point.figures.get(&metric.name).copied())));
    row.extend([format!("{} {} {}", point.lost, point.duplicated, point.reordered), notes.join(" ")]);
    row
}

fn expectations(out: &mut String, experiment: &ExperimentReport) {
    if experiment.expectations.is_empty() {
        return;
    }
    out.push_str("\n  Expected\n");
    for expectation in &experiment.expectations {
        let word = |agreement: Agreement| format!("{agreement:?}").to_lowercase();
        let published =
            expectation.published.map_or(String::new(), |p| format!("; by the study's numbers {}", word(p)));
        let _ = writeln!(
            out,
            "  {:<9}  {} ({}{published})",
            word(expectation.outcome),
            expectation.statement,
            expectation.detail
        );
    }
}

fn data_table(out: &mut String, table: &DataTable) {
    let heading = |title: &str, unit: &str| if unit.is_empty() { title.to_owned() } else { format!("{title} {unit}") };
    let _ = writeln!(out, "\n  {}", table.title);
    let mut rows = vec![table.columns.iter().map(|c| heading(&c.title, &c.unit)).collect::<Vec<_>>()];
    // Parts of a whole are many columns: with their intervals they would not fit a terminal.
    let parts: Vec<usize> =
        table.stack.iter().flat_map(|stack| &stack.parts).map(|part| part.column as usize).collect();
    rows.extend(table.rows.iter().map(|row| {
        let text = |(at, cell): (usize, &DataCell)| match cell {
            DataCell::Text(text) => text.clone(),
            DataCell::Figure(value) if parts.contains(&at) => digits(value.value),
            DataCell::Figure(value) => figure(Some(*value)),
            DataCell::Nothing(()) => "–".to_owned(),
        };
        row.iter().enumerate().map(text).collect()
    }));
    aligned(out, &rows);
    if !parts.is_empty() {
        out.push_str("  Parts are shown without their intervals.\n");
    }
}

/// A table for each transport: ranks among all transports together are on the page.
fn leaderboard(out: &mut String, board: &Leaderboard) {
    out.push_str("\nLeaderboard\n");
    let mut transports: Vec<&str> = Vec::new();
    let shown = || board.columns.iter().enumerate().filter(|(_, column)| column.metric != NOT_SHOWN);
    for row in &board.rows {
        if !transports.contains(&row.transport.as_str()) {
            transports.push(&row.transport);
        }
    }
    for transport in transports {
        let mut rows = vec![vec![transport.to_owned()]];
        rows[0].extend(shown().map(|(_, column)| board_heading(column)));
        rows[0].push(String::new());
        rows.extend(board.rows.iter().filter(|row| row.transport == transport).map(|row| {
            let standing = |at: usize| row.standings.get(at).copied().flatten();
            let name = if row.is_ours { format!("{} *", row.subject) } else { row.subject.clone() };
            let cells = shown().map(|(at, column)| board_cell(column, standing(at)));
            let marks = row.doubts.iter().map(|code| mark(code)).collect();
            std::iter::once(name).chain(cells).chain([marks]).collect()
        }));
        aligned(out, &rows);
        out.push('\n');
    }
    out.push_str(
        "  1= is a rank that others share, since the intervals cannot separate them; * is ours. k is 1,000.\n",
    );
    out.push_str("  CPU and bytes are shown without their intervals.\n");
    if let Some(share) = board.columns.iter().find_map(|column| column.share) {
        let share = share_text(share);
        let _ = writeln!(
            out,
            "  ms at {share}: at {share} of what the same server delivered; that rate, “at k/s”, differs from row to row."
        );
    }
    for doubt in &board.doubts {
        let _ = writeln!(out, "  {} {}: {}", mark(&doubt.code), doubt.code, doubt.meaning);
    }
    for left in &board.left_out {
        let _ = writeln!(out, "  left out: {}, {}", left.subject, left.reason);
    }
}

/// A doubt in one letter.
fn mark(code: &str) -> String {
    code.chars().take(1).flat_map(char::to_uppercase).collect()
}

fn share_text(share: f64) -> String {
    if share == 0.5 { "½".to_owned() } else { format!("{} %", digits(share * 1e2)) }
}

/// Short enough for eight columns in a terminal.
fn board_heading(column: &LeaderboardColumn) -> String {
    let at = column.share.map_or(String::new(), |share| format!(" at {}", share_text(share)));
    match column.metric.as_str() {
        "delivered" => "deliv. k/s".to_owned(),
        "due" => "at k/s".to_owned(),
        "latency_median" => format!("median ms{at}"),
        "latency_p99" => format!("p99 ms{at}"),
        "memory_per_client" => "KiB per client".to_owned(),
        "cpu_per_delivery" => "CPU ms/k".to_owned(),
        "bytes_per_delivery" => "bytes".to_owned(),
        _ => format!("{} {}", column.title, column.unit),
    }
}

fn board_cell(column: &LeaderboardColumn, standing: Option<Standing>) -> String {
    let Some(standing) = standing else { return "–".to_owned() };
    let Figure { value, low, high, .. } = standing.figure;
    let shown = match column.metric.as_str() {
        "due" => digits(value / 1e3),
        "delivered" => figure(Some(Figure { value: value / 1e3, low: low / 1e3, high: high / 1e3, ..standing.figure })),
        "bytes_per_delivery" | "cpu_per_delivery" => digits(value),
        _ => figure(Some(standing.figure)),
    };
    match standing.of_transport {
        Some(rank) => format!("{}{} {shown}", rank.rank, if rank.is_tied { "=" } else { "." }),
        None => shown,
    }
}

fn compared(out: &mut String, comparison: &Comparison) {
    let changed: Vec<_> = comparison.rows.iter().filter(|row| row.change != Change::Same).collect();
    let _ = writeln!(out, "\n{} against {}", comparison.candidates.join(", "), comparison.baseline);
    let headings = ["cell", "metric", "baseline", "value", "change", "p", ""];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(changed.iter().take(CHANGES_MAX).map(|row| {
        vec![
            row.cell.clone(),
            row.metric.clone(),
            figure(Some(row.baseline)),
            figure(Some(row.value)),
            row.relative_percent.map_or("–".to_owned(), |percent| format!("{percent:+.1} %")),
            row.p_value.map_or("–".to_owned(), |p| format!("{p:.3}")),
            format!("{:?}", row.change).to_lowercase(),
        ]
    }));
    if !changed.is_empty() {
        aligned(out, &rows);
    }
    if changed.len() > CHANGES_MAX {
        let _ = writeln!(out, "  and {} more", changed.len() - CHANGES_MAX);
    }
    let _ = writeln!(out, "  {} of {} figures the same", comparison.rows.len() - changed.len(), comparison.rows.len());
}

fn figure(figure: Option<Figure>) -> String {
    let Some(figure) = figure else { return "–".to_owned() };
    let value = digits(figure.value);
    match figure.bound {
        Some(Bound::About) => return format!("≈ {value}"),
        Some(Bound::Below) => return format!("< {value}"),
        Some(Bound::Max) => return format!("≤ {value}"),
        Some(Bound::Range) => return format!("{}–{}", digits(figure.low), digits(figure.high)),
        None => {}
    }
    if figure.runs < 2 {
        return value;
    }
    format!("{value} ±{}", digits(figure.high - figure.value))
}

/// Three significant digits up to thousands, whole numbers beyond.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_analysis::report::model::{Column, LeaderboardDoubt, LeaderboardRow, LeftOut, Rank, Stack, StackPart};
    use pushlab_experiment::metric::Better;

    #[test]
    fn intervals_are_shown_where_there_are_any() {
        let one = Figure { value: 0.123, low: 0.123, high: 0.123, runs: 1, bound: None };
        let three = Figure { value: 12.34, low: 11.0, high: 13.0, runs: 3, bound: None };
        assert_eq!([figure(None), figure(Some(one)), figure(Some(three))], ["–", "0.12", "12.3 ±0.66"]);
    }

    fn board_doubts() -> Vec<LeaderboardDoubt> {
        let codes = ["loss", "duplication", "reordering", "overloaded", "generator-bound", "unstable"];
        let doubt = |code: &str| LeaderboardDoubt { code: code.to_owned(), meaning: "what it means".to_owned() };
        codes.map(doubt).to_vec()
    }

    fn board() -> Leaderboard {
        let column = |(metric, better): (&str, Better)| LeaderboardColumn {
            metric: metric.to_owned(),
            title: "Title".to_owned(),
            unit: "ms".to_owned(),
            better,
            experiment: "busy".to_owned(),
            share: ["due", "latency_median", "latency_p99"].contains(&metric).then_some(0.5),
        };
        let standing = |value: f64, rank| {
            let place = Some(Rank { rank, is_tied: rank == 10 });
            let figure = Figure { value, low: value * 0.87, high: value * 1.13, runs: 5, bound: None };
            Some(Standing { figure, overall: place, of_transport: place })
        };
        let row = |subject: &str, transport: &str, rank| LeaderboardRow {
            subject: subject.to_owned(),
            transport: transport.to_owned(),
            is_ours: subject == "pushlab",
            doubts: match subject {
                "pushlab" => Vec::new(),
                _ => board_doubts().into_iter().map(|doubt| doubt.code).collect(),
            },
            standings: vec![
                standing(412_345.0, rank),
                Some(Standing { overall: None, of_transport: None, ..standing(206_172.0, rank).unwrap() }),
                standing(12.34, rank),
                standing(98.7, rank),
                standing(12.34, rank),
                standing(12.34, rank),
                standing(1234.5, rank),
                Some(Standing { overall: None, of_transport: None, ..standing(98.7, rank).unwrap() }),
            ],
        };
        let metrics = ["delivered", "due", "latency_median", "latency_p99", "memory_per_client", "cpu_per_delivery"];
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
            doubts: board_doubts(),
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
        assert!(out.contains("\n  ms at ½: at ½ of what the same server delivered;"), "{out}");
        assert!(out.contains("\n  G generator-bound: what it means\n"), "{out}");
        assert!(lines[3].contains("10= 412 ±53.6") && lines[4].contains("12. 412"), "{out}");
        assert!(lines[4].starts_with("  pushlab *  "), "{out}");
        assert!(lines[6].starts_with("  sse  "), "{out}");
        assert_eq!(lines.last(), Some(&"  left out: cometd, java is missing"));
    }

    #[test]
    fn parts_of_a_whole_are_shown_without_intervals() {
        let column = |title: &str| Column { title: title.to_owned(), unit: String::new() };
        let value = DataCell::Figure(Figure { value: 12.34, low: 11.0, high: 13.0, runs: 3, bound: None });
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
