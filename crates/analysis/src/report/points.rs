//! A cell's figures over its repeats.

use super::published_seconds;
use super::quantiles::lacking;
use super::run_values::RunValues;
use super::samples::{SeriesRuns, figure};
use pushlab_experiment::metric::Metric;
use pushlab_report::{Estimate, Point, Series, Timeline};
use pushlab_stats::{Band, Regime, Severity, Warning};
use pushlab_store::Bound;
use std::collections::BTreeMap;

/// A series with all its points. `metrics` are those of the whole report.
pub fn series(runs: &SeriesRuns<'_>, metrics: &[&Metric], seed: u64) -> Series {
    let regimes = runs.regimes();
    Series {
        key: runs.key.clone(),
        label: runs.label.clone(),
        subject: runs.subject.clone(),
        transport: runs.transport.clone(),
        origin: runs.origin,
        points: runs.cells.iter().map(|(x, cell)| point(*x, cell, regimes.get(x).copied(), metrics, seed)).collect(),
    }
}

fn point(x: u32, runs: &[&RunValues], regime: Option<Regime>, metrics: &[&Metric], seed: u64) -> Point {
    let figures: BTreeMap<String, Estimate> =
        metrics.iter().filter_map(|metric| Some((metric.name.to_owned(), figure(runs, metric.name, seed)?))).collect();
    let lacking = |metric: &&Metric| Some((metric.name.to_owned(), lacking(runs, metric.name)?));
    let response = figure(runs, "response_median", seed).or_else(|| figure(runs, "response_mean", seed));
    let wrong = |which: usize| sum(runs.iter().filter(|run| run.counts()).map(|run| run.wrong[which]));
    let mut warnings: Vec<String> = runs.iter().flat_map(|run| &run.warnings).map(|d| d.code.to_string()).collect();
    warnings.sort();
    warnings.dedup();
    let failure = |run: &&RunValues| Some(format!("repeat {}: {}", run.repeat, run.failure.as_ref()?));
    Point {
        x: f64::from(x),
        clients: runs.first().map_or(0, |run| run.cell.clients),
        runs: counted(runs, &figures),
        failures: runs.iter().filter_map(failure).collect(),
        voids: runs.iter().filter(|run| run.is_void()).map(|run| void(run)).collect(),
        withheld: runs.iter().filter_map(|run| withheld(run)).collect(),
        regime,
        band: response.map(|figure| Band::of_response_ms(figure.value)),
        figures,
        lacking: metrics.iter().filter_map(lacking).collect(),
        lost: wrong(0),
        duplicated: wrong(1),
        reordered: wrong(2),
        warnings,
        timeline: representative(runs),
        published_seconds: published_seconds::mean(runs),
        took_ms: runs.iter().map(|run| run.took_ms).sum(),
    }
}

/// The sum of counts; nothing where those that are known are 0 and others are not known.
fn sum(counts: impl Iterator<Item = Option<u64>> + Clone) -> Option<u64> {
    let known = counts.clone().flatten().sum();
    (known > 0 || counts.clone().all(|count| count.is_some())).then_some(known)
}

/// Runs that count; the ends of a range that was printed are no two.
fn counted(runs: &[&RunValues], figures: &BTreeMap<String, Estimate>) -> u32 {
    let is_range = runs.iter().flat_map(|run| run.bounds.values()).any(|bound| *bound == Bound::Range);
    match is_range {
        true => figures.values().map(|figure| figure.runs).max().unwrap_or(0),
        false => runs.iter().filter(|run| run.counts()).count() as u32,
    }
}

fn void(run: &RunValues) -> String {
    because(run, Severity::Void)
}

/// Why a run that counts lacks some figures, if it does.
fn withheld(run: &RunValues) -> Option<String> {
    let lacks_some = run.warnings.iter().any(|warning| warning.code.severity() == Severity::Withheld);
    (lacks_some && run.counts()).then(|| because(run, Severity::Withheld))
}

fn because(run: &RunValues, severity: Severity) -> String {
    let own = run.warnings.iter().filter(|warning| warning.code.severity() == severity);
    let reasons: Vec<String> = own.map(|Warning { code, detail, .. }| format!("{code}: {detail}")).collect();
    format!("repeat {}: {}", run.repeat, reasons.join("; "))
}

/// That of the run in the middle by response time; without one that counts, any that there is.
fn representative(runs: &[&RunValues]) -> Option<Timeline> {
    let measured: Vec<&RunValues> = runs.iter().copied().filter(|run| run.timeline.is_some()).collect();
    let mut valid: Vec<&RunValues> = measured.iter().copied().filter(|run| run.counts()).collect();
    let middle = |run: &RunValues| {
        let of = |name: &str| run.figures.get(name).copied();
        of("response_median").or_else(|| of("latency_median")).unwrap_or(0.0)
    };
    valid.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    valid.get(valid.len() / 2).or(measured.first())?.timeline.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_stats::WarningCode;

    #[test]
    fn a_point_says_of_each_run_why_it_lacks_figures_or_does_not_count() {
        let cell = presets::load("transports-4g", None).unwrap().cells().remove(0);
        let run = |repeat: u32, code: Option<WarningCode>, failure: Option<&str>| RunValues {
            repeat,
            warnings: code.map(|code| Warning::new(code, "98 %")).into_iter().collect(),
            failure: failure.map(str::to_owned),
            ..RunValues::planned(cell.clone())
        };
        let runs = [
            run(1, None, None),
            run(2, Some(WarningCode::GeneratorSaturated), None),
            run(3, Some(WarningCode::Lateness), None),
            run(4, Some(WarningCode::NoisyNeighbour), None),
            run(5, Some(WarningCode::GeneratorSaturated), Some("it hung")),
        ];
        let point = point(20, &runs.iter().collect::<Vec<_>>(), None, &[], 1);
        assert_eq!(point.withheld, ["repeat 2: generator-saturated: 98 %"]);
        assert_eq!(point.voids, ["repeat 3: lateness: 98 %"]);
        assert_eq!((point.failures, point.runs), (vec!["repeat 5: it hung".to_owned()], 3));
    }
}
