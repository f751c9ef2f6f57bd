//! The tables of a report as rows of text, the headings first, and the notes below them.

use pushlab_report::{
    Agreement, Change, Comparison, ComparisonRow, Completeness, DataCell, DataTable, Estimate, Expectation,
    ExperimentReport, Judged, Lacking, Leaderboard, LeaderboardColumn, LeaderboardRow, MetricInfo, Origin, Point,
    Report, Standing, WarningReport, WhyLacking,
};
use pushlab_stats::Regime;
use pushlab_store::Bound;
use std::collections::BTreeSet;

/// Metrics in a table: more do not fit a terminal, and the page has them all.
const METRICS_MAX: usize = 6;
/// Rows of a comparison that changed nothing are counted, not listed; of the others at most so many are listed.
const CHANGES_MAX: usize = 40;
/// Rows of a table beside the charts: longer ones are left to the page.
const DATA_ROWS_MAX: usize = 40;
/// A column of the leaderboard that is left to the page: where the generator's CPU matters, rows are marked with it.
pub const NOT_SHOWN: &str = "generator_cpu";
/// What stands below every table of results.
pub const INTERVALS: &str = "± is the distance to the upper end of the 95 % interval; a value without it rests on one run. \
                             ≥ marks a rate that the load generator limited: the subject may do better.";

/// Statements in a terminal or a summary: a study may make a hundred.
const EXPECTED_MAX: usize = 12;

/// A row for each cell of a table.
pub type Rows = Vec<Vec<String>>;

/// `tangen-chat · Chat (partial: 3 of 9 runs)`.
pub fn heading(experiment: &ExperimentReport) -> String {
    let partial = match experiment.completeness {
        Completeness::Complete => String::new(),
        Completeness::Partial => format!(" (partial: {} of {} runs)", experiment.runs_done, experiment.runs_planned),
    };
    format!("{} · {}{partial}", experiment.name, experiment.title)
}

/// What was measured at each point.
pub fn results(experiment: &ExperimentReport, metrics: &[MetricInfo]) -> Rows {
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
    rows
}

fn row(label: &str, point: &Point, shown: &[&MetricInfo]) -> Vec<String> {
    let mut notes = vec![point.regime.map_or(String::new(), |of| regime(of).to_owned())];
    let left_out = [&point.failures, &point.voids, &point.withheld].map(Vec::len);
    for (count, what) in left_out.into_iter().zip(["failed", "void", "without latency"]) {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    let mut row = vec![label.to_owned(), point.x.to_string()];
    row.extend(shown.iter().map(|metric| {
        let lacking = point.lacking.get(&metric.name).map(|lacking| lacking.why.words().to_owned());
        lacking.unwrap_or_else(|| figure(point.figures.get(&metric.name).copied()))
    }));
    let wrong = [point.lost, point.duplicated, point.reordered];
    let wrong = wrong.map(|count| count.map_or_else(|| "–".to_owned(), |count| count.to_string()));
    row.extend([wrong.join(" "), notes.join(" ")]);
    row
}

/// The runs without figures or without some of them, and why: a line for each failed or void run, and one for each reason
/// for which points lack a figure that the table or the charts show.
pub fn without_figures(experiment: &ExperimentReport) -> Vec<String> {
    let points = || experiment.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let mut lines = Vec::new();
    for (series, point) in points() {
        let failed = point.failures.iter().map(|why| ("failed", why));
        let reasons = failed.chain(point.voids.iter().map(|why| ("void", why)));
        lines.extend(reasons.map(|(what, why)| format!("{what}: {} at {}, {why}", series.label, point.x)));
        if let Some(why) = point.withheld.first() {
            let others = and_more(point.withheld.len() - 1, "run");
            lines.push(format!("without latency: {} at {}, {why}{others}", series.label, point.x));
        }
    }
    let is_shown = |metric: &String| experiment.columns.contains(metric) || experiment.charts.contains(metric);
    let mut lacking: Vec<(&String, &Lacking, Vec<String>)> = Vec::new();
    for (series, point) in points() {
        // What was withheld has been told by run.
        let told = point.lacking.iter().filter(|(metric, one)| is_shown(metric) && one.why != WhyLacking::Withheld);
        for (metric, one) in told {
            let place = format!("{} at {}", series.label, point.x);
            match lacking.iter_mut().find(|(other, of, _)| *other == metric && of.why == one.why) {
                Some((_, _, places)) => places.push(place),
                None => lacking.push((metric, one, vec![place])),
            }
        }
    }
    lines.extend(lacking.into_iter().map(|(metric, Lacking { why, detail }, places)| {
        let others = and_more(places.len() - 1, "point");
        format!("{}: {metric} of {}, {detail}{others}", why.words(), places[0])
    }));
    lines
}

/// `; and 5 more runs`.
fn and_more(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("; and one more {what}"),
        _ => format!("; and {count} more {what}s"),
    }
}

/// How the clocks of workers on other machines did.
pub fn clocks(experiment: &ExperimentReport) -> Option<String> {
    (!experiment.clocks.is_empty()).then(|| format!("clocks: {}", experiment.clocks.join("; ")))
}

/// What lay between clients and subjects.
pub fn network(experiment: &ExperimentReport) -> Option<String> {
    (!experiment.networks.is_empty()).then(|| format!("network: {}", experiment.networks.join("; ")))
}

/// A judgement in a word.
pub fn word(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Confirmed => "confirmed",
        Agreement::Refuted => "refuted",
        Agreement::Undecided => "undecided",
    }
}

/// What was expected, a line for each who says whether it holds, and where.
pub fn expected(expectation: &Expectation) -> Vec<(Agreement, String)> {
    let line = |judged: &Judged| {
        let leaning = match judged.leaning {
            Some(Agreement::Confirmed) => "; the means alone agree",
            Some(Agreement::Refuted) => "; the means alone contradict it",
            Some(Agreement::Undecided) | None => "",
        };
        (judged.outcome, format!("{} ({}{leaning})", asserted(expectation, judged), judged.detail))
    };
    expectation.judged.iter().map(line).collect()
}

/// An assertion and by whose figures it is judged: `cpu(sse) < 50, node-bare`.
pub fn asserted(expectation: &Expectation, judged: &Judged) -> String {
    let by = whose(judged);
    if by.is_empty() { expectation.assertion.clone() } else { format!("{}, {by}", expectation.assertion) }
}

/// By whose figures it is judged; empty where that is what was measured of all.
fn whose(judged: &Judged) -> String {
    match (judged.subject.as_str(), judged.origin) {
        (subject, Origin::Measured) => subject.to_owned(),
        ("", Origin::Published) => "as published".to_owned(),
        (subject, Origin::Published) => format!("{subject} as published"),
    }
}

/// How many findings of the study nothing here can judge.
pub fn findings_elsewhere(experiment: &ExperimentReport) -> Option<String> {
    match experiment.findings_elsewhere {
        0 => None,
        1 => Some("1 finding of the study is about series that are not among these results.".to_owned()),
        many => Some(format!("{many} findings of the study are about series that are not among these results.")),
    }
}

/// Of more statements than a terminal or a job's summary takes, how many hold by whose figures.
pub fn expected_counts(experiment: &ExperimentReport) -> Option<String> {
    let all = &experiment.expectations;
    if all.len() <= EXPECTED_MAX {
        return None;
    }
    let mut counts: Vec<(String, [usize; 3])> = Vec::new();
    for judged in all.iter().flat_map(|one| &one.judged) {
        let by = whose(judged);
        let at = counts.iter().position(|(known, _)| *known == by).unwrap_or_else(|| {
            counts.push((by, [0; 3]));
            counts.len() - 1
        });
        let place = match judged.outcome {
            Agreement::Confirmed => 0,
            Agreement::Refuted => 1,
            Agreement::Undecided => 2,
        };
        counts[at].1[place] += 1;
    }
    let told = |(by, [confirmed, refuted, undecided]): &(String, [usize; 3])| {
        let by = if by.is_empty() { "measured" } else { by };
        format!("{by}: {confirmed} confirmed, {refuted} refuted, {undecided} undecided")
    };
    let told: Vec<String> = counts.iter().map(told).collect();
    Some(format!("{} statements, each on the page and in Markdown. By {}", all.len(), told.join("; by ")))
}

/// Below one full core, or at it.
pub fn regime(regime: Regime) -> &'static str {
    match regime {
        Regime::Load => "load",
        Regime::Stress => "stress",
    }
}

/// The tables beside the charts that are short enough.
pub fn data_tables(experiment: &ExperimentReport) -> impl Iterator<Item = &DataTable> {
    experiment.tables.iter().filter(|table| table.rows.len() <= DATA_ROWS_MAX)
}

/// A table beside the charts.
pub fn data(table: &DataTable) -> Rows {
    let heading = |title: &str, unit: &str| if unit.is_empty() { title.to_owned() } else { format!("{title} {unit}") };
    let mut rows = vec![table.columns.iter().map(|c| heading(&c.title, &c.unit)).collect::<Vec<_>>()];
    // Parts of a whole are many columns: with their intervals they would not fit a terminal.
    let parts = parts(table);
    rows.extend(table.rows.iter().map(|row| {
        let text = |(at, cell): (usize, &DataCell)| match cell {
            DataCell::Text(text) => text.clone(),
            DataCell::Estimate(value) if parts.contains(&at) => format!("{}{}", bound_sign(value), digits(value.value)),
            DataCell::Estimate(value) => figure(Some(*value)),
            DataCell::Nothing(()) => "–".to_owned(),
        };
        row.iter().enumerate().map(text).collect()
    }));
    rows
}

/// What stands below it.
pub fn data_note(table: &DataTable) -> Option<&'static str> {
    (!parts(table).is_empty()).then_some("Parts are shown without their intervals.")
}

/// The columns that are parts of a whole.
fn parts(table: &DataTable) -> Vec<usize> {
    table.stack.iter().flat_map(|stack| &stack.parts).map(|part| part.column as usize).collect()
}

/// The leaderboard, a table for each transport: ranks among all transports together are on the page.
pub fn boards(board: &Leaderboard) -> Vec<Rows> {
    let mut transports: Vec<&str> = Vec::new();
    // A terminal has room for the first column of each metric.
    let is_first = |at: usize| {
        let metric = &board.columns[at].metric;
        metric != NOT_SHOWN && board.columns.iter().position(|column| column.metric == *metric) == Some(at)
    };
    let shown = || board.columns.iter().enumerate().filter(|(at, _)| is_first(*at));
    for row in &board.rows {
        if !transports.contains(&row.transport.as_str()) {
            transports.push(&row.transport);
        }
    }
    let table = |transport: &str| {
        let mut rows = vec![vec![transport.to_owned()]];
        rows[0].extend(shown().map(|(_, column)| board_heading(column)));
        rows[0].push(String::new());
        rows.extend(board.rows.iter().filter(|row| row.transport == transport).map(|row| {
            let standing = |at: usize| row.standings.get(at).copied().flatten();
            let name = if row.is_ours { format!("{} *", row.subject) } else { row.subject.clone() };
            let cells = shown().map(|(at, column)| board_cell(column, standing(at), row.lacking.get(&column.id)));
            let marks = row.warnings.iter().map(|code| mark(code)).collect();
            std::iter::once(name).chain(cells).chain([marks]).collect()
        }));
        rows
    };
    transports.into_iter().map(table).collect()
}

/// What stands below them.
pub fn board_notes(board: &Leaderboard) -> Vec<String> {
    let mut notes = vec![
        "1= is a shared rank: equivalent or undecided; * marks our server. k is 1,000.".to_owned(),
        "Deliveries in a closed loop and bytes are shown without their intervals.".to_owned(),
    ];
    for metric in ["cpu_per_delivery", "delivered"] {
        let mut own = board.columns.iter().filter(|column| column.metric == metric);
        notes.extend(own.next().map(|column| format!("{}: {}.", board_heading(column), column.title)));
        notes.extend(own.map(|column| format!("Only on the page: {}.", column.title)));
    }
    if let Some(share) = board.columns.iter().find_map(|column| column.share) {
        let share = share_text(share);
        notes.push(format!(
            "ms at {share}: latency at {share} of the rate that the same server delivered; “at k/s” is that rate, and \
             differs from row to row."
        ));
    }
    notes.extend(
        board.warnings.iter().map(|warning| format!("{} {}: {}", mark(&warning.code), warning.code, warning.meaning)),
    );
    notes.extend(board.rows.iter().flat_map(board_failures));
    notes.extend(board.rows.iter().flat_map(board_lacking));
    notes.extend(board.left_out.iter().map(|left| format!("left out: {}, {}", left.subject, left.reason)));
    notes
}

/// Why a row is the last in some columns: a line for each reason.
fn board_failures(row: &LeaderboardRow) -> Vec<String> {
    let failures = row.lacking.values().filter(|one| one.why == WhyLacking::Failed);
    let reasons: BTreeSet<&str> = failures.map(|one| one.detail.as_str()).collect();
    reasons.iter().map(|why| format!("{} over {} failed and comes last: {why}", row.subject, row.transport)).collect()
}

/// Why a row has no figure in columns for which it did not fail: a line for each.
fn board_lacking(row: &LeaderboardRow) -> Vec<String> {
    let is_told = |(id, one): &(&String, &Lacking)| one.why != WhyLacking::Failed && *id != NOT_SHOWN;
    let told = row.lacking.iter().filter(is_told);
    told.map(|(id, lacking)| format!("{id} of {} over {}, {lacking}", row.subject, row.transport)).collect()
}

/// A warning in one letter.
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
        "delivered" => "loop k/s".to_owned(),
        "due" => "at k/s".to_owned(),
        "latency_median" => format!("median ms{at}"),
        "latency_p99" => format!("p99 ms{at}"),
        "memory_per_client" => "KiB per client".to_owned(),
        "cpu_per_delivery" => "CPU ms/k".to_owned(),
        "bytes_per_delivery" => "bytes".to_owned(),
        _ => format!("{} {}", column.title, column.unit),
    }
}

/// A figure with its rank, or why there is none.
pub fn board_cell(column: &LeaderboardColumn, standing: Option<Standing>, lacking: Option<&Lacking>) -> String {
    let Some(standing) = standing else { return lacking.map_or("–", |one| one.why.words()).to_owned() };
    let (value, sign) = (standing.figure.value, bound_sign(&standing.figure));
    let shown = match column.metric.as_str() {
        "due" | "delivered" => format!("{sign}{}", digits(value / 1e3)),
        "bytes_per_delivery" => digits(value),
        _ => figure(Some(standing.figure)),
    };
    match standing.of_transport {
        Some(rank) => format!("{}{} {shown}", rank.rank, if rank.is_tied { "=" } else { "." }),
        None => shown,
    }
}

/// `new against old`.
pub fn comparison_heading(comparison: &Comparison) -> String {
    format!("{} against {}", comparison.candidates.join(", "), comparison.baseline)
}

/// What changed; nothing where nothing did.
pub fn changes(comparison: &Comparison) -> Option<Rows> {
    let headings = ["cell", "metric", "baseline", "value", "change", "p", ""];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(changed(comparison).take(CHANGES_MAX).map(|row| {
        vec![
            row.cell.clone(),
            row.metric.clone(),
            figure(Some(row.baseline)),
            figure(Some(row.value)),
            change_interval(row),
            row.p_value.map_or("–".to_owned(), |p| format!("{p:.3}")),
            change(row.change).to_owned(),
        ]
    }));
    (rows.len() > 1).then_some(rows)
}

/// How much of it is not in the table.
pub fn change_notes(comparison: &Comparison) -> Vec<String> {
    let (changed, all) = (changed(comparison).count(), comparison.rows.len());
    let more = changed.saturating_sub(CHANGES_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    let equivalent = match all - changed {
        1 => format!("1 of {all} figures is equivalent within its margin"),
        many => format!("{many} of {all} figures are equivalent within their margins"),
    };
    more.into_iter().chain([equivalent]).collect()
}

fn changed(comparison: &Comparison) -> impl Iterator<Item = &ComparisonRow> {
    comparison.rows.iter().filter(|row| row.change != Change::Equivalent)
}

fn change(change: Change) -> &'static str {
    match change {
        Change::Worse => "worse",
        Change::Better => "better",
        Change::Different => "different",
        Change::Undecided => "undecided",
        Change::Equivalent => "equivalent",
        Change::Unknown => "unknown",
    }
}

/// A change with its interval, where it has one.
pub fn change_interval(row: &ComparisonRow) -> String {
    let change = percent(row.relative_percent);
    let end = |factor: f64| (factor - 1.0) * 100.0;
    row.factor.map_or(change.clone(), |f| format!("{change} ({:+.1} to {:+.1})", end(f.low), end(f.high)))
}

/// A change as a share of what was before.
pub fn percent(relative: Option<f64>) -> String {
    relative.map_or("–".to_owned(), |percent| format!("{percent:+.1} %"))
}

/// What could not be seen, a line for each subject.
pub fn unobserved(report: &Report) -> Vec<String> {
    report.unobserved.iter().map(|one| format!("{}: {}", one.subject, one.reason)).collect()
}

/// What makes the result less certain, a line for each.
pub fn warnings(report: &Report) -> Vec<String> {
    let line = |warning: &WarningReport| format!("{} ({} runs): {}", warning.code, warning.count, warning.message);
    report.warnings.iter().map(line).collect()
}

/// A value with half of its interval.
pub fn figure(figure: Option<Estimate>) -> String {
    let Some(figure) = figure else { return "–".to_owned() };
    match figure.bound {
        Some(Bound::About) => return format!("≈ {}", printed(figure.value)),
        Some(Bound::Below) => return format!("< {}", printed(figure.value)),
        Some(Bound::Max) => return format!("≤ {}", printed(figure.value)),
        Some(Bound::Range) => return format!("{}–{}", printed(figure.low), printed(figure.high)),
        Some(Bound::Min) | None => {}
    }
    let value = format!("{}{}", bound_sign(&figure), digits(figure.value));
    if figure.runs < 2 {
        return value;
    }
    format!("{value} ±{}", digits(figure.high - figure.value))
}

/// What stands before a figure that is a lower bound.
fn bound_sign(figure: &Estimate) -> &'static str {
    if figure.is_lower_bound() { "≥ " } else { "" }
}

/// Three significant digits up to thousands, whole numbers beyond.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// As a study prints what it knows less of than a number: without decimals that say nothing.
fn printed(value: f64) -> String {
    let digits = digits(value);
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_study_prints_has_no_decimals_that_it_does_not_have() {
        let of = |value: f64, bound| Estimate { value, low: value, high: 2.0 * value, runs: 1, bound: Some(bound) };
        let bounds = [(50.0, Bound::About), (10.0, Bound::Below), (1500.0, Bound::Max), (2.0, Bound::Range)];
        let shown = bounds.map(|(value, bound)| figure(Some(of(value, bound))));
        assert_eq!(shown, ["≈ 50", "< 10", "≤ 1500", "2–4"]);
        assert_eq!(figure(Some(of(0.5, Bound::About))), "≈ 0.5");
    }

    #[test]
    fn intervals_are_shown_where_there_are_any() {
        let one = Estimate { value: 0.123, low: 0.123, high: 0.123, runs: 1, bound: None };
        let three = Estimate { value: 12.34, low: 11.0, high: 13.0, runs: 3, bound: None };
        assert_eq!([figure(None), figure(Some(one)), figure(Some(three))], ["–", "0.12", "12.3 ±0.66"]);
        let bounded = [one, three].map(|one| figure(Some(Estimate { bound: Some(Bound::Min), ..one })));
        assert_eq!(bounded, ["≥ 0.12", "≥ 12.3 ±0.66"], "a lower bound keeps its interval");
    }
}
