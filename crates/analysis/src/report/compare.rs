//! Results against each other: what changed, by how much, and whether chance explains it.

use super::CONFIDENCE;
use super::quantiles::lacking;
use super::run_values::RunValues;
use super::samples::values;
use pushlab_experiment::metric::{Better, Metric};
use pushlab_report::{Change, Comparison, ComparisonRow, Estimate, WhyLacking};
use pushlab_stats::{Family, Interval, Pair, Verdict, compare_family, interval_of_mean};
use std::collections::BTreeMap;

/// A change smaller than this share of the baseline does not matter, whatever its significance.
pub const RELEVANT_CHANGE: f64 = 0.02;
/// What is compared when nothing is said: few enough that the correction for their number leaves power.
pub const COMPARED_METRICS: [&str; 5] = ["cpu_per_delivery", "latency_median", "latency_p99", "delivered", "memory"];

/// One side of a comparison.
#[derive(Debug)]
pub struct Contender {
    /// How it is called.
    pub label: String,
    /// Its runs.
    pub runs: Vec<RunValues>,
    /// Which campaign they belong to: runs of the same one were interleaved, so that they are compared block by block.
    pub campaign: i64,
}

/// A comparison that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Less than two sides.
    #[error("there is nothing to compare with: name two results, or one that measured several subjects")]
    One,
    /// A margin that is none.
    #[error("{0}")]
    Margin(String),
    /// No common cell.
    #[error("{0} and {1} have no cell and metric in common that both measured in a run that counts")]
    NothingInCommon(String, String),
    /// See there.
    #[error("the figures cannot be compared: {0}")]
    Statistics(#[from] pushlab_stats::FamilyError),
}

struct Entry<'a> {
    candidate: &'a Contender,
    cell: String,
    metric: &'static Metric,
    figures: [Estimate; 2],
    samples: [Vec<f64>; 2],
    is_paired: bool,
    margin: f64,
}

/// The margin of a metric in the experiment of this name, as a share.
pub type MarginOf<'a> = &'a dyn Fn(&str, &Metric) -> f64;

/// Compares each of the others with the first.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(
    contenders: &[Contender],
    metrics: &[&'static Metric],
    margin_of: MarginOf<'_>,
    seed: u64,
) -> Result<Comparison, CompareError> {
    let [baseline, candidates @ ..] = contenders else { return Err(CompareError::One) };
    if candidates.is_empty() {
        return Err(CompareError::One);
    }
    let mut entries = Vec::new();
    let mut missing_cells = Vec::new();
    for candidate in candidates {
        let before = entries.len();
        entries.extend(common(baseline, candidate, metrics, margin_of, seed));
        missing_cells.extend(missing(baseline, candidate));
        missing_cells.extend(not_reached(baseline, candidate, metrics));
        if entries.len() == before && missing_cells.is_empty() {
            return Err(CompareError::NothingInCommon(baseline.label.clone(), candidate.label.clone()));
        }
    }
    let pairs: Vec<Pair<'_>> = entries
        .iter()
        .map(|e| Pair { a: &e.samples[1], b: &e.samples[0], is_paired: e.is_paired, margin: e.margin })
        .collect();
    let family = Family { confidence: CONFIDENCE, relevant_change: RELEVANT_CHANGE, seed };
    let found = compare_family(&pairs, &family)?;
    let mut rows: Vec<ComparisonRow> = entries.iter().zip(&found).map(|(entry, found)| row(entry, found)).collect();
    rows.sort_by(|a, b| a.change.cmp(&b.change).then(b.effect.abs().total_cmp(&a.effect.abs())));
    Ok(Comparison {
        baseline: baseline.label.clone(),
        candidates: candidates.iter().map(|c| c.label.clone()).collect(),
        summary: summary(baseline, candidates, &rows, &missing_cells),
        missing: missing_cells,
        rows,
    })
}

/// Cells that the baseline measured and a candidate ran without one run that counts, and why: the worst change of
/// all, and one that has no figures.
fn missing(baseline: &Contender, candidate: &Contender) -> Vec<String> {
    let measured = by_cell(candidate, RunValues::counts);
    let tried = by_cell(candidate, |run| !run.counts());
    let lacks = |cell: &&String| !measured.contains_key(*cell) && tried.contains_key(*cell);
    let why = |cell: &String| {
        let failed = tried[cell].iter().find_map(|run| run.failure.clone());
        failed.unwrap_or_else(|| "every run is void".to_owned())
    };
    let before = by_cell(baseline, RunValues::counts);
    before.keys().filter(lacks).map(|cell| format!("{}: {cell}: {}", candidate.label, why(cell))).collect()
}

/// Quantiles that the baseline reached and a candidate does not: they got worse by more than anybody can tell.
fn not_reached(baseline: &Contender, candidate: &Contender, metrics: &[&'static Metric]) -> Vec<String> {
    let before = by_cell(baseline, RunValues::counts);
    let mut found = Vec::new();
    for (cell, runs) in by_cell(candidate, RunValues::counts) {
        let Some(earlier) = before.get(&cell) else { continue };
        let was_reached = |metric: &&&Metric| !values(earlier, metric.name).is_empty();
        for metric in metrics.iter().filter(was_reached) {
            let lack = lacking(&runs, metric.name).filter(|lack| lack.why == WhyLacking::NotReached);
            found.extend(lack.map(|lack| format!("{}: {cell}: {}: {lack}", candidate.label, metric.name)));
        }
    }
    found
}

/// The runs of a kind by cell. The subject is left out of account where a side has one alone: it is what differs.
fn by_cell(contender: &Contender, is_wanted: impl Fn(&RunValues) -> bool) -> BTreeMap<String, Vec<&RunValues>> {
    let has_one = contender.runs.windows(2).all(|pair| pair[0].cell.subject == pair[1].cell.subject);
    let mut cells: BTreeMap<String, Vec<&RunValues>> = BTreeMap::new();
    for run in contender.runs.iter().filter(|run| is_wanted(run)) {
        let mut cell = run.cell.clone();
        if has_one {
            cell.subject = "pushlab".to_owned();
        }
        cells.entry(cell.label()).or_default().push(run);
    }
    cells
}

fn common<'a>(
    baseline: &Contender,
    candidate: &'a Contender,
    metrics: &[&'static Metric],
    margin_of: MarginOf<'_>,
    seed: u64,
) -> Vec<Entry<'a>> {
    let before = by_cell(baseline, RunValues::counts);
    let mut entries = Vec::new();
    for (cell, runs) in by_cell(candidate, RunValues::counts) {
        let Some(earlier) = before.get(&cell) else { continue };
        let has_figure = |metric: &&&Metric| [earlier, &runs].iter().all(|side| lacking(side, metric.name).is_none());
        for &metric in metrics.iter().filter(has_figure) {
            let is_same_campaign = baseline.campaign == candidate.campaign;
            let blocks = is_same_campaign.then(|| blocks(earlier, &runs, metric.name)).filter(|b| !b.is_empty());
            let is_paired = blocks.is_some();
            let samples = match blocks {
                Some(blocks) => [blocks.iter().map(|b| b.0).collect(), blocks.iter().map(|b| b.1).collect()],
                None => [values(earlier, metric.name), values(&runs, metric.name)],
            };
            // Of the same runs as the difference: with a void run in a pair, those of all runs would not fit it.
            let figures = figure_of(&samples[0], seed).zip(figure_of(&samples[1], seed));
            let Some((a, b)) = figures else { continue };
            let margin = runs.first().map_or(0.0, |run| margin_of(&run.cell.experiment, metric));
            entries.push(Entry { candidate, cell: cell.clone(), metric, figures: [a, b], samples, is_paired, margin });
        }
    }
    entries
}

fn figure_of(samples: &[f64], seed: u64) -> Option<Estimate> {
    let Interval { value, low, high, runs, .. } = interval_of_mean(samples, CONFIDENCE, seed).ok()?;
    Some(Estimate { value, low, high, runs, bound: None })
}

/// Pairs of values of the same repeat.
fn blocks(baseline: &[&RunValues], candidate: &[&RunValues], metric: &str) -> Vec<(f64, f64)> {
    let of = |runs: &[&RunValues], repeat| {
        runs.iter().find(|run| run.repeat == repeat).and_then(|run| run.figures.get(metric).copied())
    };
    candidate.iter().filter_map(|run| Some((of(baseline, run.repeat)?, of(candidate, run.repeat)?))).collect()
}

fn row(entry: &Entry<'_>, found: &pushlab_stats::Comparison) -> ComparisonRow {
    let change = match (found.verdict, entry.metric.better) {
        (Verdict::TooFew, _) => Change::Unknown,
        (Verdict::Equivalent, _) => Change::Equivalent,
        (Verdict::Undecided, _) => Change::Undecided,
        (_, Better::Neither) => Change::Different,
        (Verdict::Higher, Better::Lower) | (Verdict::Lower, Better::Higher) => Change::Worse,
        (Verdict::Higher, Better::Higher) | (Verdict::Lower, Better::Lower) => Change::Better,
    };
    let Interval { value, low, high, runs, .. } = found.difference;
    let magnitude = found.effect.as_ref().map(|effect| format!("{:?}", effect.magnitude).to_lowercase());
    ComparisonRow {
        candidate: entry.candidate.label.clone(),
        cell: entry.cell.clone(),
        metric: entry.metric.name.to_owned(),
        baseline: entry.figures[0],
        value: entry.figures[1],
        difference: Estimate { value, low, high, runs, bound: None },
        relative_percent: found.change.map(|change| change * 100.0),
        factor: found.factor,
        margin_percent: Some(entry.margin * 100.0),
        effect: found.effect.as_ref().map_or(0.0, |effect| effect.delta),
        magnitude: magnitude.unwrap_or_else(|| "unknown".to_owned()),
        p_value: found.significance.as_ref().map(|significance| significance.p_corrected),
        change,
    }
}

/// By how many per cent it changed at least, where its interval says so.
fn least_change(row: &ComparisonRow) -> Option<f64> {
    let factor = row.factor?;
    let end = [factor.low, factor.high].into_iter().min_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))?;
    ((factor.low > 1.0) == (factor.high > 1.0)).then_some((end - 1.0) * 100.0)
}

fn summary(baseline: &Contender, candidates: &[Contender], rows: &[ComparisonRow], missing: &[String]) -> String {
    let count = |wanted: Change| rows.iter().filter(|row| row.change == wanted).count();
    let [worse, better, other, unknown] =
        [Change::Worse, Change::Better, Change::Different, Change::Unknown].map(count);
    let [equivalent, undecided] = [Change::Equivalent, Change::Undecided].map(count);
    let names: Vec<&str> = candidates.iter().map(|c| c.label.as_str()).collect();
    let against = format!("{} against {}", names.join(", "), baseline.label);
    let is_interleaved = candidates.iter().all(|c| c.campaign == baseline.campaign);
    let how = if is_interleaved {
        "their runs were interleaved"
    } else {
        "they were measured at different times, so a change of the machine would show as a change of theirs"
    };
    let what = match rows.iter().find(|row| row.change == Change::Worse) {
        _ if rows.is_empty() => "nothing is left to compare".to_owned(),
        _ if unknown == rows.len() => "too few runs to tell anything apart; three a side are the least".to_owned(),
        None if better + other == 0 => format!("no change was shown in {} figures", rows.len()),
        worst => {
            let worst = worst.and_then(|row| {
                let change = row.relative_percent?;
                let least = least_change(row).map_or(String::new(), |least| format!(", at least {least:+.1} %"));
                Some(format!("; the clearest: {} of {} by {change:+.0} %{least}", row.metric, row.cell))
            });
            format!("{worse} of {} figures got worse, {better} better{}", rows.len(), worst.unwrap_or_default())
        }
    };
    let rest = match equivalent + undecided {
        0 => String::new(),
        _ => format!("; {equivalent} are as good as before within their margins, {undecided} undecided"),
    };
    let lost = match missing {
        [] => String::new(),
        [one] => format!("a cell has no run that counts any more, or no such figure ({one}); "),
        [one, ..] => {
            format!("{} cells have no run that counts any more, or no such figure (the first: {one}); ", missing.len())
        }
    };
    format!(
        "{against}: {lost}{what}{rest}; {how}. False alarms of all rows together are held at 5 %, and so is what is wrongly \
         called as good."
    )
}
