//! A report as text.

use pushlab_lab::report::model::{
    Agreement, Change, Comparison, Completeness, DataCell, DataTable, ExperimentReport, Figure, MetricInfo, Origin,
    Point, Report,
};
use pushlab_store::Bound;
use std::fmt::Write as _;

/// Metrics in a table: more do not fit a terminal, and the page has them all.
const METRICS_MAX: usize = 6;
/// Rows of a comparison that changed nothing are counted, not listed; of the others at most so many are listed.
const CHANGES_MAX: usize = 40;

/// The verdict, a table for each experiment, what was expected, and the doubts.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for experiment in &report.experiments {
        results(&mut out, experiment, &report.metrics);
        expectations(&mut out, experiment);
        experiment.tables.iter().filter(|table| table.rows.len() <= 40).for_each(|table| data_table(&mut out, table));
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
    use pushlab_lab::report::model::{Column, Stack, StackPart};

    #[test]
    fn intervals_are_shown_where_there_are_any() {
        let one = Figure { value: 0.123, low: 0.123, high: 0.123, runs: 1, bound: None };
        let three = Figure { value: 12.34, low: 11.0, high: 13.0, runs: 3, bound: None };
        assert_eq!([figure(None), figure(Some(one)), figure(Some(three))], ["–", "0.12", "12.3 ±0.66"]);
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
