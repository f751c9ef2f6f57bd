//! What is pooled over several machines: figures of each together, and whether they agree.

use crate::report::results::ResultRuns;
use crate::report::run_values::RunValues;
use crate::report::samples::{figure, values};
use crate::report::wording::join;
use pushlab_report::{CardRow, Estimate, Scorecard};
use pushlab_stats::best::{BLOCKS_MIN, Conclusion, Machines, Row};
use pushlab_stats::mean;
use pushlab_store::Bound;
use std::collections::{BTreeMap, BTreeSet};

/// Options of a row that are named where machines differ in them; the others are counted.
const NAMED_MAX: usize = 4;

/// A row's blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Logarithms by block and option.
    pub values: Vec<Vec<Option<f64>>>,
    /// The machine of each block.
    pub machines: Vec<u32>,
}

impl Blocks {
    /// As a row to be compared.
    pub fn row(&self, margin: f64) -> Row<'_> {
        Row { blocks: &self.values, machines: &self.machines, margin }
    }

    /// The same without some options.
    pub fn without(&self, options: &[usize]) -> Self {
        let value = |(at, value): (usize, &Option<f64>)| value.filter(|_| !options.contains(&at));
        let block = |block: &Vec<Option<f64>>| block.iter().enumerate().map(value).collect();
        Self { values: self.values.iter().map(block).collect(), machines: self.machines.clone() }
    }
}

/// A figure of runs of one machine; of several, the mean of theirs, all runs counting alike. Its interval is made of
/// theirs (Zou and Donner, "Construction of confidence limits about effect measures", *Statistics in Medicine* 27, 2008), so
/// that how far machines are from one another does not widen it.
pub fn estimate_over_machines(runs: &[&RunValues], metric: &str, seed: u64) -> Option<Estimate> {
    let mut by_machine: BTreeMap<u32, Vec<&RunValues>> = BTreeMap::new();
    runs.iter().for_each(|run| by_machine.entry(run.machine).or_default().push(run));
    if by_machine.len() < 2 {
        return figure(runs, metric, seed);
    }
    let of = |own: &Vec<&RunValues>| Some((values(own, metric).len() as f64, figure(own, metric, seed)?));
    let figures: Vec<(f64, Estimate)> = by_machine.values().filter_map(of).collect();
    let all: f64 = figures.iter().map(|(count, _)| count).sum();
    let sum = |of: &dyn Fn(&Estimate) -> f64, power: i32| -> f64 {
        figures.iter().map(|(count, one)| (count / all).powi(power) * of(one)).sum()
    };
    let value = sum(&|one| one.value, 1);
    let (below, above) =
        (sum(&|one| (one.value - one.low).powi(2), 2).sqrt(), sum(&|one| (one.high - one.value).powi(2), 2).sqrt());
    let bound = figures.iter().any(|(_, one)| one.is_lower_bound()).then_some(Bound::Min);
    let runs = figures.iter().map(|(_, one)| one.runs).sum();
    (!figures.is_empty()).then_some(Estimate { value, low: value - below, high: value + above, runs, bound })
}

/// What several machines say of a card's differences, in sentences; nothing where all is of one.
pub fn notes(card: &Scorecard, blocks: &[Blocks], results: &[ResultRuns]) -> Vec<String> {
    let mut named: BTreeMap<u32, String> = BTreeMap::new();
    let mut described = Vec::new();
    for result in results {
        let machine = result.runs.first().map_or(0, |run| run.machine);
        if machine > 0 && named.insert(machine, result.tag.clone()).is_none() {
            described.push(format!("{} ({})", result.tag, result.header.machine_words()));
        }
    }
    if named.len() < 2 {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "Pooled over {} machines, on each of which options were compared by themselves: {}.",
        named.len(),
        described.join("; ")
    )];
    notes.extend(agreement(card));
    for (row, blocks) in card.rows.iter().zip(blocks) {
        notes.extend(disagreement(card, row, blocks, &named));
    }
    notes.extend(too_few(blocks, &named));
    notes
}

/// How many differences each machine shows.
fn agreement(card: &Scorecard) -> Option<String> {
    let cells = || card.rows.iter().filter(|row| !row.works).flat_map(|row| row.cells.iter().flatten());
    let shown = cells().filter(|cell| cell.against.conclusion == Conclusion::Different);
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in shown {
        let words = match cell.against.machines? {
            Machines::Each => "shown by each machine alone",
            Machines::Differ => "shown by each machine alone, by factors that differ",
            Machines::Together => "shown only by all machines together",
        };
        *count.entry(words).or_default() += 1;
    }
    let counts: Vec<String> = count.iter().map(|(words, count)| format!("{count} {words}")).collect();
    (!counts.is_empty()).then(|| format!("Differences: {}.", counts.join(", ")))
}

/// In which options of a row machines differ.
fn disagreement(card: &Scorecard, row: &CardRow, blocks: &Blocks, named: &BTreeMap<u32, String>) -> Option<String> {
    let found: Vec<(usize, &_)> =
        row.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, &cell.as_ref()?.against))).collect();
    let (best, _) = found.iter().min_by(|a, b| a.1.factor.total_cmp(&b.1.factor))?;
    let differing: Vec<usize> =
        found.iter().filter(|(_, one)| one.machines == Some(Machines::Differ)).map(|(at, _)| *at).collect();
    let label = |at: usize| card.options[at].label.as_str();
    let option = |at: &usize| {
        let factors = named.iter().filter_map(|(machine, name)| {
            Some(format!("{:.2} × on {name}", distance(blocks, *machine, *at, *best)?.exp()))
        });
        format!("{} {}", label(*at), join(&factors.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let mut options: Vec<String> = differing.iter().take(NAMED_MAX).map(option).collect();
    let more = differing.len().saturating_sub(NAMED_MAX);
    options.extend((more > 0).then(|| format!("and {more} more")));
    let against = label(*best);
    (!options.is_empty())
        .then(|| format!("Machines differ in {}, against {against}: {}.", row.title, options.join("; ")))
}

/// Mean logarithm of an option's values over another's, in the blocks of a machine that have both.
fn distance(blocks: &Blocks, machine: u32, option: usize, other: usize) -> Option<f64> {
    let own = blocks.values.iter().zip(&blocks.machines).filter(|(_, of)| **of == machine);
    mean(&own.filter_map(|(values, _)| Some(values[option]? - values[other]?)).collect::<Vec<_>>())
}

/// Of which machines nothing is compared in some row.
fn too_few(blocks: &[Blocks], named: &BTreeMap<u32, String>) -> Option<String> {
    let is_thin = |machine: &u32| {
        let count = |row: &Blocks| row.machines.iter().filter(|of| *of == machine).count();
        blocks.iter().filter(|row| !row.values.is_empty()).any(|row| count(row) < BLOCKS_MIN)
    };
    let thin: BTreeSet<&str> =
        named.iter().filter(|(machine, _)| is_thin(machine)).map(|(_, name)| name.as_str()).collect();
    let names: Vec<&str> = thin.into_iter().collect();
    (!names.is_empty())
        .then(|| format!("Fewer than {BLOCKS_MIN} blocks of a row are of {}: they are not compared.", join(&names)))
}
