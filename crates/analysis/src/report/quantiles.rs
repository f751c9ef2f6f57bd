//! Quantiles of a cell: of what all its runs together expected, or why there is none.

use super::run_values::RunValues;
use pushlab_record::measure::{is_withheld, quantile_of};
use pushlab_report::{Lacking, WhyLacking};
use pushlab_stats::{Arrivals, Lack, Quantile, Warning};

/// A quantile of a cell: the times of all runs that have them.
pub struct CellQuantile<'a> {
    quantile: Quantile,
    parts: Vec<&'a Arrivals>,
}

impl<'a> CellQuantile<'a> {
    /// `None` where the figure is no quantile, or where its runs are known by bare figures.
    pub fn of(runs: &[&'a RunValues], metric: &str) -> Option<Self> {
        let (times, quantile) = quantile_of(metric)?;
        let counting = || runs.iter().filter(|run| run.counts() && !is_withheld(metric, &run.warnings));
        let parts: Vec<&Arrivals> = counting().filter_map(|run| run.times.get(&times)).collect();
        let is_bare = |run: &&&RunValues| run.figures.contains_key(metric) && !run.times.contains_key(&times);
        (!parts.is_empty() && !counting().any(|run| is_bare(&run))).then_some(Self { quantile, parts })
    }

    /// Its value over all runs, ms.
    pub fn value_ms(&self) -> Option<f64> {
        Arrivals::merged(self.parts.iter().copied()).quantile_ms(self.quantile)
    }

    /// Why there is none. A run that did not reach it has no value that could be within an interval, so the cell has none
    /// either, even where the others have so much that the whole would reach it.
    fn lack(&self) -> Option<(WhyLacking, String)> {
        let (runs, needed) = (self.parts.len(), self.quantile.independent_min());
        let whole = Arrivals::counts_of(self.parts.iter().copied()).lack(self.quantile, needed);
        if let Some(lack @ Lack::NotReached { .. }) = whole {
            return Some((WhyLacking::NotReached, lack.to_string()));
        }
        let unreached: Vec<Lack> = self.parts.iter().filter_map(|part| part.lack(self.quantile, 0)).collect();
        if let Some(first) = unreached.first() {
            return Some((WhyLacking::NotReached, format!("in {} of {runs} runs: {first}", unreached.len())));
        }
        whole.map(|lack| (WhyLacking::TooFew, lack.to_string()))
    }
}

/// Why a cell has no such figure though it was measured: what was expected did not come, it is too little, or warnings take
/// it away in every run that counts.
pub fn lacking(runs: &[&RunValues], metric: &str) -> Option<Lacking> {
    if let Some(quantile) = CellQuantile::of(runs, metric) {
        return quantile.lack().map(|(why, detail)| Lacking { why, detail });
    }
    let mut counting = runs.iter().filter(|run| run.counts()).peekable();
    let first = *counting.peek()?;
    let is_withheld = counting.all(|run| is_withheld(metric, &run.warnings));
    let takes = |warning: &&Warning| is_withheld_by(metric, warning);
    let warning = first.warnings.iter().find(takes).filter(|_| is_withheld)?;
    Some(Lacking { why: WhyLacking::Withheld, detail: format!("{}: {}", warning.code, warning.detail) })
}

/// The same of a cell that was tried: that all of its runs failed is a reason too, and comes before all others.
pub fn lacking_or_failed(runs: &[&RunValues], metric: &str) -> Option<Lacking> {
    let failed = failure_of_all(runs).map(|detail| Lacking { why: WhyLacking::Failed, detail });
    failed.or_else(|| lacking(runs, metric))
}

/// Why all runs of a cell failed, if they did: the reason of the first.
pub fn failure_of_all(runs: &[&RunValues]) -> Option<String> {
    runs.iter().all(|run| run.failure.is_some()).then(|| runs.first()?.failure.clone())?
}

fn is_withheld_by(metric: &str, warning: &Warning) -> bool {
    is_withheld(metric, std::slice::from_ref(warning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::samples::figure;
    use crate::report::{Asked, build};
    use pushlab_experiment::Experiment;
    use pushlab_experiment::cell::Cell;
    use pushlab_record::measure::Times;
    use pushlab_report::Point;
    use pushlab_stats::{Histogram, WarningCode};
    use pushlab_wire::transport::Transport;

    /// A run of so many publications, of which the slowest `missing` never came: times of 1 to 10 ms, times `factor`.
    fn run(cell: &Cell, repeat: u32, publications: u64, missing: u64, factor: u64) -> RunValues {
        let mut came = Histogram::new();
        (0..publications - missing).for_each(|k| came.record(factor * (1_000_000 + 9_000_000 * k / publications)));
        let times = Arrivals::new(&came, publications, publications);
        let own = |quantile: Quantile| {
            let is_there = times.lack(quantile, quantile.independent_min_of_block()).is_none();
            times.quantile_ms(quantile).filter(|_| is_there)
        };
        let quantiles = [("latency_median", own(Quantile::MEDIAN)), ("latency_p99", own(Quantile::P99))];
        let figures = quantiles.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let figures = figures.chain([("cpu".to_owned(), 10.0)]).collect();
        RunValues { repeat, figures, times: [(Times::Deliveries, times)].into(), ..RunValues::planned(cell.clone()) }
    }

    fn cell() -> Cell {
        presets::load("transports-4g", None).unwrap().cells().remove(0)
    }

    fn of(runs: &[RunValues], metric: &str) -> (Option<f64>, Option<WhyLacking>) {
        let runs: Vec<&RunValues> = runs.iter().collect();
        let shown = figure(&runs, metric, 1);
        assert!(shown.is_none_or(|shown| (shown.low..=shown.high).contains(&shown.value)), "{shown:?}");
        (shown.map(|shown| shown.value), lacking(&runs, metric).map(|lacking| lacking.why))
    }

    #[test]
    fn a_cell_shows_the_quantile_of_all_its_runs() {
        // Half as many at ten times the time: the mean of the three p99 would be 40 ms, and that of all is one of the slow.
        let runs = [(1, 1_000, 1), (2, 1_000, 1), (3, 1_000, 10)].map(|(at, n, factor)| run(&cell(), at, n, 0, factor));
        let (p99, why) = of(&runs, "latency_p99");
        assert!(why.is_none() && p99.is_some_and(|ms| (96.0..98.0).contains(&ms)), "{p99:?}");
        let mut all = Histogram::new();
        for factor in [1, 1, 10] {
            (0..1_000).for_each(|k| all.record(factor * (1_000_000 + 9_000_000 * k / 1_000)));
        }
        assert_eq!(p99, all.quantile_ms(0.99));
        assert_eq!(of(&runs, "latency_median").0, all.quantile_ms(0.5));
    }

    #[test]
    fn publications_of_all_runs_count_together() {
        let runs =
            |count: u32, publications| (1..=count).map(|at| run(&cell(), at, publications, 0, 1)).collect::<Vec<_>>();
        let (p99, why) = of(&runs(3, 375), "latency_p99");
        assert!(p99.is_some() && why.is_none());
        assert_eq!(of(&runs(2, 375), "latency_p99"), (None, Some(WhyLacking::TooFew)));
        assert!(of(&runs(2, 375), "latency_median").0.is_some());
        // Enough together, and none by itself for an interval.
        let thin = runs(11, 99);
        let shown = figure(&thin.iter().collect::<Vec<_>>(), "latency_p99", 1).unwrap();
        assert_eq!((shown.runs, shown.low, shown.high), (1, shown.value, shown.value));
    }

    #[test]
    fn what_one_run_did_not_reach_the_cell_did_not() {
        let mut runs: Vec<RunValues> = (1..=9).map(|at| run(&cell(), at, 1_000, 0, 1)).collect();
        runs.push(run(&cell(), 10, 1_000, 20, 1));
        assert_eq!(of(&runs, "latency_p99"), (None, Some(WhyLacking::NotReached)));
        let told = lacking(&runs.iter().collect::<Vec<_>>(), "latency_p99").unwrap().to_string();
        assert!(told.starts_with("not reached: in 1 of 10 runs: 20 of 1000 never came, 2.0 %"), "{told}");
        runs[9].warnings = vec![Warning::new(WarningCode::GeneratorShare, "much")];
        assert!(of(&runs, "latency_p99").0.is_some(), "a run whose latency is withheld says nothing of it");
        runs.iter_mut().for_each(|run| run.warnings = vec![Warning::new(WarningCode::GeneratorShare, "much")]);
        runs.iter_mut().for_each(|run| run.figures.clear());
        assert_eq!(of(&runs, "latency_p99"), (None, Some(WhyLacking::Withheld)));
    }

    /// Of the 4G experiment, in which polling loses a fiftieth and long polling publishes too little.
    fn runs_of(experiment: &Experiment) -> Vec<RunValues> {
        let cells = experiment.cells();
        let planned = (1..=experiment.repeats).flat_map(|repeat| cells.iter().map(move |cell| (repeat, cell)));
        let measured = planned.map(|(repeat, cell)| match cell.transport {
            Transport::Polling => run(cell, repeat, 1_000, 20, 1),
            Transport::LongPolling => run(cell, repeat, 100, 0, 2),
            _ => run(cell, repeat, 1_000, 0, 3),
        });
        measured.collect()
    }

    #[test]
    fn a_report_tells_why_there_is_no_figure_and_ranks_what_was_not_reached_last() {
        let experiment = presets::load("transports-4g", Some("quick")).unwrap();
        let runs = runs_of(&experiment);
        let report = build(&[presets::result(vec![experiment], runs)], &[], Asked::default(), String::new());
        let own = &report.experiments[0];
        let point = |transport: &str| -> &Point {
            &own.series.iter().find(|series| series.transport == transport).unwrap().points[0]
        };
        let why = |transport: &str| point(transport).lacking.get("latency_p99").map(|lacking| lacking.why);
        assert_eq!(
            [why("polling"), why("long-polling"), why("websocket")],
            [Some(WhyLacking::NotReached), Some(WhyLacking::TooFew), None]
        );
        assert!(!point("polling").figures.contains_key("latency_p99"));
        let ranking = own.rankings.iter().find(|one| one.metric == "latency_p99" && !one.unplaced.is_empty()).unwrap();
        let placed: Vec<&str> = ranking.places.iter().map(|place| place.label.as_str()).collect();
        let unplaced: Vec<(&str, WhyLacking)> =
            ranking.unplaced.iter().map(|one| (one.label.as_str(), one.lacking.why)).collect();
        assert_eq!(
            unplaced,
            [("polling · http1", WhyLacking::NotReached), ("long-polling · http1", WhyLacking::TooFew)],
            "what is known to be behind before what is not known: {ranking:?}"
        );
        assert!(!placed.is_empty(), "{ranking:?}");
        assert!(!placed.iter().any(|label| label.contains("polling") && !label.contains("websocket")), "{placed:?}");

        let card = report.card.unwrap();
        let [median, p99] =
            ["latency_median", "latency_p99"].map(|metric| card.rows.iter().find(|row| row.metric == metric).unwrap());
        assert_eq!((median.lacking.len(), p99.lacking.len()), (0, 2), "{:?}", p99.lacking);
        let at = card.options.iter().position(|option| option.transport == "polling").unwrap();
        assert!(median.cells[at].is_some() && p99.cells[at].is_none());
        let choices = card.advice.iter().flat_map(|advice| &advice.choices);
        assert!(choices.clone().count() > 0 && !choices.clone().any(|key| *key == card.options[at].key));
    }

    #[test]
    fn a_row_of_which_too_little_was_measured_is_said_to_be_missing() {
        let experiment = presets::load("transports-4g", Some("quick")).unwrap();
        let cells = experiment.cells();
        let runs = cells.iter().map(|cell| run(cell, 1, 300, 0, 1)).collect();
        let report = build(&[presets::result(vec![experiment], runs)], &[], Asked::default(), String::new());
        let card = report.card.unwrap();
        assert!(card.rows.iter().all(|row| row.metric != "latency_p99"));
        let note = card.notes.iter().find(|note| note.starts_with("Not measured: ")).unwrap();
        assert!(
            note.contains("Latency, 4G, p99 (too few: a p99 needs 1000 independent measurements, and there were 300)"),
            "{note}"
        );
    }
}
