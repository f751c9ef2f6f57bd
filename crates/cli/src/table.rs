//! A report as text.

use pushlab_lab::report::model::{Completeness, ExperimentReport, Figure, Point, Report};
use std::fmt::Write as _;

const HEADINGS: [&str; 10] = [
    "transport",
    "clients",
    "response ms",
    "latency ms",
    "p99 ms",
    "CPU %",
    "memory MiB",
    "deliveries/s",
    "lost dup reord",
    "",
];

/// The verdict, a table for each experiment, and the doubts.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for experiment in &report.experiments {
        table(&mut out, experiment);
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

fn table(out: &mut String, experiment: &ExperimentReport) {
    let partial = match experiment.completeness {
        Completeness::Complete => String::new(),
        Completeness::Partial => format!(" (partial: {} of {} runs)", experiment.runs_done, experiment.runs_planned),
    };
    let _ = writeln!(out, "\n{} · {}{partial}", experiment.name, experiment.title);
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for series in &experiment.series {
        rows.extend(series.points.iter().map(|point| row(&series.label, point)));
    }
    let widths: Vec<usize> =
        (0..HEADINGS.len()).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    for row in rows {
        let mut line = format!("  {:<1$}", row[0], widths[0]);
        for (cell, width) in row[1..].iter().zip(&widths[1..]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push_str("  ± is half of the 95 % interval; a value without it rests on one run.\n");
}

fn row(label: &str, point: &Point) -> [String; 10] {
    let regime = point.regime.map_or(String::new(), |r| format!("{r:?}").to_lowercase());
    let mut notes = vec![regime];
    for (count, what) in [(point.failures.len(), "failed"), (point.voids.len(), "void")] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    [
        label.to_owned(),
        point.clients.to_string(),
        figure(point.response_median),
        figure(point.latency_median),
        figure(point.latency_p99),
        figure(point.cpu),
        figure(point.memory),
        figure(point.delivered),
        format!("{} {} {}", point.lost, point.duplicated, point.reordered),
        notes.join(" "),
    ]
}

fn figure(figure: Option<Figure>) -> String {
    let Some(figure) = figure else { return "–".to_owned() };
    let value = digits(figure.value);
    if figure.runs < 2 {
        return value;
    }
    format!("{value} ±{}", digits((figure.high - figure.low) / 2.0))
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

    #[test]
    fn intervals_are_shown_where_there_are_any() {
        let one = Figure { value: 0.123, low: 0.123, high: 0.123, runs: 1 };
        let three = Figure { value: 12.34, low: 11.0, high: 13.0, runs: 3 };
        assert_eq!([figure(None), figure(Some(one)), figure(Some(three))], ["–", "0.12", "12.3 ±1.00"]);
    }
}
