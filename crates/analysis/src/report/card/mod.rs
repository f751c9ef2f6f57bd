//! The scorecard of a report: rows that its experiments fill, everything in them judged against the best of its row.

mod advice;
mod choice;
mod machines;
mod narrowed;
mod practical;

use super::CONFIDENCE;
use super::quantiles::{failure_of_all, lacking};
use super::results::{ResultRuns, series_of};
use super::run_values::RunValues;
use super::samples::{SeriesRuns, values};
use machines::{Blocks, estimate_over_machines};
use pushlab_experiment::margins::margin;
use pushlab_experiment::metric::{Better, Metric};
use pushlab_experiment::{CardRow as Wanted, Experiment};
use pushlab_report::{CardCell, CardOption, CardRow, Lacking, Origin, Scorecard, WhyLacking};
use pushlab_stats::best::{Against, Conclusion, Row, against_best};
use pushlab_stats::mean;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the messages, per cent, from which on a way through a proxy counts as one that works: what was under way when
/// a short load ended may be missing.
const WORKS_PERCENT_MIN: f64 = 90.0;

/// The card of these experiments; `None` where none of them fills a row.
pub fn scorecard(experiments: &[&Experiment], results: &[ResultRuns], seed: u64) -> Option<Scorecard> {
    let mut options: Vec<CardOption> = Vec::new();
    let mut filled: Vec<Filled<'_>> = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for &experiment in experiments {
        let series = series_of(experiment, results, &[]);
        for wanted in &experiment.card {
            match Filled::of(experiment, wanted, &series, &mut options) {
                Ok(row) => filled.push(row),
                Err(why) => missing.push(format!("{}{why}", wanted.title)),
            }
        }
    }
    if filled.is_empty() {
        return None;
    }
    let blocks: Vec<Blocks> = filled.iter().map(|row| row.blocks(options.len())).collect();
    let margin = |row: &Filled<'_>| margin(&row.experiment.margins, row.metric).ln_1p();
    let compared: Vec<Row<'_>> = filled.iter().zip(&blocks).map(|(row, blocks)| blocks.row(margin(row))).collect();
    let judged = against_best(&compared, CONFIDENCE);
    let rows: Vec<CardRow> =
        filled.iter().zip(judged).map(|(row, against)| row.judged(&against, &options, seed)).collect();
    let options = labelled(options, experiments);
    let mut card = Scorecard { options, rows, narrowed: Vec::new(), advice: Vec::new(), notes: Vec::new() };
    let judged_without = |late: &[usize], rows: &[usize]| {
        let blocks: Vec<Blocks> = rows.iter().map(|row| blocks[*row].without(late)).collect();
        let compared = rows.iter().zip(&blocks).map(|(at, blocks)| blocks.row(margin(&filled[*at])));
        let judged = against_best(&compared.collect::<Vec<_>>(), CONFIDENCE);
        rows.iter().zip(judged).map(|(at, against)| filled[*at].judged(&against, &card.options, seed)).collect()
    };
    card.narrowed = narrowed::narrowed(&card, judged_without);
    card.advice = advice::advice(&card);
    card.notes = advice::decided(&card).into_iter().collect();
    card.notes.extend(machines::notes(&card, &blocks, results));
    card.notes.extend((!missing.is_empty()).then(|| format!("Not measured: {}.", missing.join("; "))));
    let left_out = results.iter().flat_map(|result| &result.header.left_out);
    card.notes.extend(left_out.map(|out| format!("Left out: {}, because {}.", out.subject, out.reason)));
    Some(card)
}

/// A row with the runs of each option that is in it.
struct Filled<'a> {
    experiment: &'a Experiment,
    wanted: &'a Wanted,
    metric: &'static Metric,
    /// By the option's place among all.
    entries: BTreeMap<usize, Vec<&'a RunValues>>,
    /// Why options do not work, likewise.
    failures: BTreeMap<usize, String>,
    /// Why options that were measured have no figure, likewise.
    lacking: BTreeMap<usize, Lacking>,
}

impl<'a> Filled<'a> {
    /// Fills a row, and adds options that are not known yet.
    ///
    /// # Errors
    /// None has anything in it; in brackets why, if it was measured.
    fn of(
        experiment: &'a Experiment,
        wanted: &'a Wanted,
        series: &[SeriesRuns<'a>],
        options: &mut Vec<CardOption>,
    ) -> Result<Self, String> {
        let metric = Metric::find(&wanted.metric).ok_or_else(String::new)?;
        let (mut failures, mut lacks) = (BTreeMap::new(), BTreeMap::new());
        let mut entries: BTreeMap<usize, Vec<&RunValues>> = BTreeMap::new();
        let bears = |series: &SeriesRuns<'_>| wanted.words.iter().all(|word| series.words.contains(word));
        for one in series.iter().filter(|one| one.origin == Origin::Measured && bears(one)) {
            let place = wanted.at.or_else(|| one.cells.keys().next().copied());
            let Some(runs) = place.and_then(|place| one.cells.get(&place)) else { continue };
            let (failure, lack) = (failure(runs, wanted), lacking(runs, metric.name));
            if failure.is_none() && lack.is_none() && values(runs, metric.name).is_empty() {
                continue;
            }
            let option = option(one, &wanted.words);
            let at = options.iter().position(|known| known.key == option.key).unwrap_or_else(|| {
                options.push(option);
                options.len() - 1
            });
            let on_machine =
                |why: String| machine_of(one).map_or(why.clone(), |machine| format!("on {machine}: {why}"));
            match (failure, lack) {
                (Some(why), _) => drop(failures.insert(at, on_machine(why))),
                (None, Some(Lacking { why, detail })) => {
                    drop(lacks.insert(at, Lacking { why, detail: on_machine(detail) }))
                }
                (None, None) if machine_of(one).is_some() => entries.entry(at).or_default().extend(runs),
                (None, None) => drop(entries.insert(at, runs.clone())),
            }
        }
        // What fails on one of several machines does not work, and what lacks a figure on one has none over all.
        lacks.retain(|at, _| !failures.contains_key(at));
        entries.retain(|at, _| !failures.contains_key(at) && !lacks.contains_key(at));
        // One that nobody reached says something of all of them; one with too little measured says nothing.
        let is_told = |lack: &Lacking| lack.why == WhyLacking::NotReached;
        if entries.is_empty() && failures.is_empty() && !lacks.values().any(is_told) {
            return Err(lacks.values().next().map_or(String::new(), |lack| format!(" ({lack})")));
        }
        Ok(Self { experiment, wanted, metric, entries, failures, lacking: lacks })
    }

    /// Logarithms by block and option, lower being better: of each block the mean of its runs.
    fn blocks(&self, options: usize) -> Blocks {
        // What works or does not needs no test.
        if self.wanted.works {
            return Blocks::default();
        }
        let of = |run: &RunValues| (run.machine, self.experiment.block_of(run.repeat));
        let blocks: BTreeSet<(u32, u32)> = self.entries.values().flatten().map(|run| of(run)).collect();
        let sign = if self.metric.better == Better::Higher { -1.0 } else { 1.0 };
        let value = |block: (u32, u32), option: usize| {
            let own = self.entries.get(&option)?.iter().filter(|run| run.counts() && of(run) == block);
            let values = own.filter_map(|run| run.figures.get(self.metric.name).copied().filter(|value| *value > 0.0));
            mean(&values.map(|value| sign * value.ln()).collect::<Vec<_>>())
        };
        let values_of = |block: &(u32, u32)| (0..options).map(|option| value(*block, option)).collect();
        Blocks {
            values: blocks.iter().map(values_of).collect(),
            machines: blocks.iter().map(|block| block.0).collect(),
        }
    }

    fn judged(&self, against: &[Option<Against>], options: &[CardOption], seed: u64) -> CardRow {
        let key = |(at, why): (&usize, &String)| (options[*at].key.clone(), why.clone());
        CardRow {
            title: self.wanted.title.clone(),
            note: self.wanted.note.clone(),
            when: self.wanted.when.clone(),
            metric: self.metric.name.to_owned(),
            unit: self.metric.unit.to_owned(),
            better: self.metric.better,
            experiment: self.experiment.name.clone(),
            margin_percent: margin(&self.experiment.margins, self.metric) * 100.0,
            workloads: self.wanted.workloads.clone(),
            works: self.wanted.works,
            cells: (0..options.len()).map(|at| self.cell(at, against.get(at).copied().flatten(), seed)).collect(),
            failures: self.failures.iter().map(key).collect(),
            lacking: self.lacking.iter().map(|(at, lack)| (options[*at].key.clone(), lack.clone())).collect(),
        }
    }

    fn cell(&self, at: usize, against: Option<Against>, seed: u64) -> Option<CardCell> {
        let runs = self.entries.get(&at)?;
        let estimate = estimate_over_machines(runs, self.metric.name, seed)?;
        if self.wanted.works {
            let conclusion = Conclusion::Equivalent;
            let against = Against { factor: 1.0, low: 1.0, high: 1.0, conclusion, machines: None };
            return Some(CardCell { estimate, is_lower_bound: false, against });
        }
        let mut against = against?;
        let is_lower_bound = estimate.is_lower_bound();
        // It might do better than it could show, so nothing says that it is behind.
        if is_lower_bound && against.conclusion == Conclusion::Different {
            against = Against { low: 1.0, conclusion: Conclusion::Undecided, machines: None, ..against };
        }
        Some(CardCell { estimate, is_lower_bound, against })
    }
}

/// Why an option does not work, if it does not: every run failed, or hardly anything arrived where it was to be shown
/// that it does.
fn failure(runs: &[&RunValues], wanted: &Wanted) -> Option<String> {
    if let Some(reason) = failure_of_all(runs) {
        return Some(reason);
    }
    let share = mean(&values(runs, &wanted.metric)).filter(|share| wanted.works && *share < WORKS_PERCENT_MIN)?;
    Some(format!("{share:.0} % of the messages arrived"))
}

/// What a series is called after, where it is of one of several machines whose results are pooled.
fn machine_of<'a>(series: &'a SeriesRuns<'_>) -> Option<&'a str> {
    let is_pooled = series.cells.values().flatten().any(|run| run.machine > 0);
    is_pooled.then_some(series.tag.as_str())
}

/// What a series stands for: subject, transport, variant and result, but for what its row asked for. Its network and
/// machine are none of it, since nobody chooses these.
fn option(series: &SeriesRuns<'_>, asked: &[String]) -> CardOption {
    let is_own = |word: &&str| !word.is_empty() && !asked.iter().any(|asked| asked == word);
    let variant = Some(series.variant.as_str()).filter(is_own).unwrap_or_default();
    let tag = if machine_of(series).is_some() { "" } else { &series.tag };
    let parts = [series.subject.as_str(), &series.transport, variant, tag];
    CardOption {
        key: parts.into_iter().filter(is_own).collect::<Vec<_>>().join("/"),
        label: tag.to_owned(),
        subject: series.subject.clone(),
        transport: series.transport.clone(),
        variant: variant.to_owned(),
    }
}

/// Options with what distinguishes them for a label: the subject where there are several, and the variant unless it is
/// the experiment as it is.
fn labelled(mut options: Vec<CardOption>, experiments: &[&Experiment]) -> Vec<CardOption> {
    let are_several = options.iter().any(|option| option.subject != options[0].subject);
    let mut variants = experiments.iter().flat_map(|experiment| &experiment.variants);
    let plain: Vec<String> =
        variants.by_ref().filter(|variant| variant.changes_nothing()).map(|variant| variant.name.clone()).collect();
    for option in &mut options {
        let subject = if are_several { option.subject.as_str() } else { "" };
        let variant = if plain.contains(&option.variant) { "" } else { option.variant.as_str() };
        let parts = [subject, &option.transport, variant, &option.label];
        option.label = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::Workload;
    use pushlab_experiment::cell::Cell;
    use pushlab_stats::{Warning, WarningCode};
    use pushlab_wire::transport::Transport;

    /// CPU per delivery over each transport, with which every block and every run have to do as well.
    fn runs(experiment: &Experiment, metric: &str, of: impl Fn(&Cell) -> f64) -> Vec<RunValues> {
        let mut state = 11u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let blocks: Vec<f64> = (0..=experiment.repeats).map(|_| 1.0 + random()).collect();
        let cells = experiment.cells();
        let planned = (1..=experiment.repeats).flat_map(|repeat| cells.iter().map(move |cell| (repeat, cell.clone())));
        let measured = planned.map(|(repeat, cell)| {
            let value = of(&cell) * blocks[experiment.block_of(repeat) as usize] * (0.995 + 0.01 * random());
            RunValues { repeat, figures: [(metric.to_owned(), value)].into(), ..RunValues::planned(cell) }
        });
        measured.collect()
    }

    fn cost(cell: &Cell) -> f64 {
        match (cell.transport, cell.variant.as_deref()) {
            (Transport::WebSocket | Transport::Sse, Some("http1")) => 2.0,
            (Transport::LongPolling, _) => 8.0,
            _ => 3.0,
        }
    }

    fn card_of(experiment: Experiment, runs: Vec<RunValues>) -> Scorecard {
        let results = [presets::result(vec![experiment], runs)];
        let experiments: Vec<&Experiment> = results[0].header.experiments.iter().collect();
        scorecard(&experiments, &results, 1).unwrap()
    }

    fn cell<'a>(card: &'a Scorecard, row: usize, label: &str) -> &'a CardCell {
        let at = card.options.iter().position(|option| option.label == label).unwrap();
        card.rows[row].cells[at].as_ref().unwrap()
    }

    #[test]
    fn what_blocks_share_does_not_hide_who_is_better() {
        let experiment = presets::load("transports-broadcast", None).unwrap();
        let runs = runs(&experiment, "cpu_per_delivery", cost);
        let card = card_of(experiment, runs);
        assert_eq!((card.options.len(), card.rows.len()), (9, 1));
        let conclusion = |label: &str| cell(&card, 0, label).against.conclusion;
        assert_eq!(conclusion("websocket"), Conclusion::Equivalent);
        assert_eq!(conclusion("sse"), Conclusion::Equivalent);
        let against = cell(&card, 0, "long-polling").against;
        assert_eq!(against.conclusion, Conclusion::Different);
        assert!((against.factor - 4.0).abs() < 0.1 && against.low > 3.8 && against.high < 4.2, "{against:?}");
        let advice = &card.advice[0];
        assert_eq!((advice.workload, advice.choices.len()), (Workload::Broadcast, 2));
        assert_eq!(
            advice.text,
            "SSE. WebSocket is just as good in everything that counts; SSE is preferred because it has fewer moving parts."
        );
        assert_eq!(card.notes, ["All 8 comparisons with the best of a row are decided."]);
    }

    #[test]
    fn what_costs_little_and_comes_late_is_not_advised() {
        let broadcast = presets::load("transports-broadcast", Some("quick")).unwrap();
        let lan = presets::load("transports-lan", Some("quick")).unwrap();
        // Polling costs little, and its messages wait.
        let is_polling = |cell: &Cell| cell.transport.is_interval_driven();
        let mut all = runs(&broadcast, "cpu_per_delivery", |cell| if is_polling(cell) { 0.2 } else { cost(cell) });
        // What it costs varies so much that beside it nothing is known of the others.
        for run in all.iter_mut().filter(|run| is_polling(&run.cell)) {
            let factor = [0.5, 1.0, 1.6][run.repeat as usize % 3];
            run.figures.values_mut().for_each(|value| *value *= factor);
        }
        all.extend(runs(&lan, "latency_median", |cell| if is_polling(cell) { 250.0 } else { 2.0 }));
        let results = [presets::result(vec![broadcast, lan], all)];
        let experiments: Vec<&Experiment> = results[0].header.experiments.iter().collect();
        let card = scorecard(&experiments, &results, 1).unwrap();
        let text = &card.advice[0].text;
        assert!(text.starts_with("SSE. WebSocket is just as good in everything that counts"), "{text}");
        assert!(
            text.contains("olling over WebSocket is at least ") && text.contains("× better in CPU per delivery, but"),
            "{text}"
        );
        let [narrowed] = card.narrowed.as_slice() else { panic!("one set of late options: {:?}", card.narrowed) };
        assert_eq!(narrowed.late, ["pushlab/polling/http1", "pushlab/websocket-polling/http1"]);
        use Workload::{Broadcast, Chat, Dashboard, ManyIdle};
        assert_eq!(narrowed.workloads, [Broadcast, Chat, Dashboard, ManyIdle]);
        let against = |label: &str| {
            let at = card.options.iter().position(|option| option.label == label).unwrap();
            narrowed.rows[0].cells[at].as_ref().map(|cell| cell.against)
        };
        assert_eq!(against("polling"), None);
        assert_eq!(against("sse").unwrap().conclusion, Conclusion::Equivalent);
        let long = against("long-polling").unwrap();
        assert!(long.conclusion == Conclusion::Different && long.low > 3.8, "{long:?}");
        let notes = card.notes.join(" ");
        assert!(notes.contains("Not measured: Bytes per delivery, 173 B; Bytes per delivery, 2 KiB."), "{notes}");
    }

    #[test]
    fn a_lower_bound_is_not_called_worse() {
        let experiment = presets::load("transports-capacity", None).unwrap();
        let mut runs = runs(&experiment, "delivered", |cell| 1e6 / cost(cell));
        let bound = |run: &RunValues| run.cell.transport == Transport::HttpStreaming;
        for run in runs.iter_mut().filter(|run| bound(run)) {
            run.warnings = vec![Warning::new(WarningCode::GeneratorBound, "the load was full")];
        }
        let card = card_of(experiment, runs);
        let bounded = cell(&card, 0, "http-streaming");
        assert!(bounded.is_lower_bound && bounded.against.conclusion == Conclusion::Undecided, "{bounded:?}");
        let other = cell(&card, 0, "sse · http2");
        assert_eq!((other.is_lower_bound, other.against.conclusion), (false, Conclusion::Different));
        assert!((other.against.factor - 1.5).abs() < 0.05, "{other:?}");
        assert!(card.advice.is_empty(), "the row bears on nobody's choice");
    }

    #[test]
    fn two_blocks_decide_nothing() {
        let mut experiment = presets::load("transports-broadcast", Some("quick")).unwrap();
        (experiment.repeats, experiment.blocks) = (4, Some(2));
        let runs = runs(&experiment, "cpu_per_delivery", cost);
        let card = card_of(experiment, runs);
        assert!(card.rows[0].cells.iter().flatten().all(|cell| cell.against.conclusion == Conclusion::TooFew));
        assert!(card.notes[0].starts_with("8 of 8 comparisons"), "{:?}", card.notes);
        let text = &card.advice[0].text;
        assert!(text.contains(" seems just as good, though CPU per delivery is undecided; "), "{text}");
    }
}
