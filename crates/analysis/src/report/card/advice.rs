//! What to choose, in sentences that follow from the card.

use crate::report::model::{Advice, CardRow, Scorecard};
use crate::report::wording::{digits, join};
use pushlab_experiment::Workload;
use pushlab_stats::best::{Against, Conclusion};
use std::collections::BTreeSet;

/// Options that a sentence names for one row.
const COSTS_MAX: usize = 3;

/// What speaks for and against one option, over the rows that bear on a workload.
struct Candidate<'a> {
    label: &'a str,
    key: &'a str,
    /// The row in which it is furthest behind the best.
    worst: (&'a CardRow, Against),
    /// The same of the rows in which it was shown to be behind.
    shown: Option<(&'a CardRow, Against)>,
    /// Titles of the rows in which it is not known whether it is behind.
    open: BTreeSet<&'a str>,
}

impl<'a> Candidate<'a> {
    /// An option that has a figure in each of these rows.
    fn of(card: &'a Scorecard, rows: &[&'a CardRow], option: usize) -> Option<Self> {
        let cells: Option<Vec<(&CardRow, Against)>> =
            rows.iter().map(|row| Some((*row, row.cells[option].as_ref()?.against))).collect();
        let cells = cells?;
        let furthest = |wanted: &dyn Fn(Conclusion) -> bool| {
            let among = cells.iter().filter(|(_, against)| wanted(against.conclusion));
            among.max_by(|a, b| a.1.factor.total_cmp(&b.1.factor)).copied()
        };
        Some(Self {
            label: &card.options[option].label,
            key: &card.options[option].key,
            worst: furthest(&|_| true)?,
            shown: furthest(&|conclusion| conclusion == Conclusion::Different),
            open: cells.iter().filter(|(_, against)| is_open(*against)).map(|(row, _)| row.title.as_str()).collect(),
        })
    }
}

/// For each kind of application on whose choice some row bears: what to choose, and what it costs to choose otherwise.
pub fn advice(card: &Scorecard) -> Vec<Advice> {
    Workload::ALL.into_iter().filter_map(|workload| for_workload(card, workload)).collect()
}

/// Whether a row tells options apart: where nobody has a figure it speaks for none of them.
fn bears(row: &CardRow) -> bool {
    row.cells.iter().any(Option::is_some)
}

fn for_workload(card: &Scorecard, workload: Workload) -> Option<Advice> {
    let rows: Vec<&CardRow> = card.rows.iter().filter(|row| row.workloads.contains(&workload) && bears(row)).collect();
    let mut candidates: Vec<Candidate<'_>> =
        (0..card.options.len()).filter_map(|option| Candidate::of(card, &rows, option)).collect();
    candidates.sort_by(|a, b| a.worst.1.factor.total_cmp(&b.worst.1.factor));
    let (behind, good): (Vec<_>, Vec<_>) = candidates.iter().partition(|one| one.shown.is_some());
    let (open, firm): (Vec<_>, Vec<_>) = good.into_iter().partition(|one| !one.open.is_empty());
    let title = workload.title();
    let compromise = behind.first().filter(|_| open.is_empty() && firm.is_empty());
    let choices: Vec<&Candidate<'_>> = firm.iter().chain(&open).chain(compromise).copied().collect();
    let mut text = match (compromise, firm.is_empty()) {
        (Some(best), _) => {
            let (row, against) = best.worst;
            let (label, times) = (best.label, digits(against.factor));
            format!(
                "For {title}: {label} is the best compromise. Nothing is best in all that counts; {label} is at most {times} \
                 times the best ({}).",
                row.title
            )
        }
        (None, false) => {
            let are_several = if firm.len() > 1 { ", which are equivalent" } else { "" };
            let maybe = match open.as_slice() {
                [] => String::new(),
                open => format!(" Perhaps also {}: undecided in {}.", names(open), open_rows(open)),
            };
            format!("For {title}: {}{are_several}.{maybe}", names(&firm))
        }
        (None, true) if open.is_empty() => return None,
        (None, true) => {
            format!("For {title}: {}. Nothing was shown to be better; undecided in {}.", names(&open), open_rows(&open))
        }
    };
    let others = behind.iter().filter(|one| choices.iter().all(|choice| choice.key != one.key));
    let costs = costs(others);
    if !costs.is_empty() {
        text.push_str(&format!(" Other choices are behind the best by at least this much: {costs}."));
    }
    let failing = failing(card, &rows);
    if !failing.is_empty() {
        text.push_str(&format!(" Does not work: {failing}."));
    }
    Some(Advice { workload, choices: choices.iter().map(|choice| choice.key.to_owned()).collect(), text })
}

fn names(of: &[&Candidate<'_>]) -> String {
    join(&of.iter().map(|one| one.label).collect::<Vec<_>>())
}

/// What does not work, by the row: `websocket through nginx as it is`.
fn failing(card: &Scorecard, rows: &[&CardRow]) -> String {
    let of_row = |row: &&CardRow| {
        let fails = card.options.iter().filter(|option| row.failures.contains_key(&option.key));
        let labels: Vec<&str> = fails.map(|option| option.label.as_str()).collect();
        (!labels.is_empty()).then(|| format!("{} in {}", join(&labels), row.title))
    };
    rows.iter().filter_map(of_row).collect::<Vec<_>>().join("; ")
}

/// What it costs at least to choose these, by the row in which each is at its worst: `CPU per delivery (polling
/// 1.5 ×, long-polling 4.0 ×); Latency, office network (websocket-polling 320 ×)`.
fn costs<'a>(others: impl Iterator<Item = &'a &'a Candidate<'a>>) -> String {
    let mut by_row: Vec<(&str, Vec<String>)> = Vec::new();
    for (one, (row, against)) in others.filter_map(|one| Some((one, one.shown?))) {
        let cost = format!("{} {} ×", one.label, digits(against.low));
        match by_row.iter_mut().find(|(title, _)| *title == row.title) {
            Some((_, costs)) => costs.push(cost),
            None => by_row.push((&row.title, vec![cost])),
        }
    }
    let told = |(title, costs): &(&str, Vec<String>)| {
        let unnamed = costs.len().saturating_sub(COSTS_MAX);
        let unnamed = if unnamed > 0 { format!(", and {unnamed} that are further behind") } else { String::new() };
        let named = costs.iter().take(COSTS_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{title} ({named}{unnamed})")
    };
    by_row.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// Titles of the rows that are open for some of these.
fn open_rows(candidates: &[&Candidate<'_>]) -> String {
    let rows: BTreeSet<&str> = candidates.iter().flat_map(|one| one.open.iter().copied()).collect();
    join(&rows.into_iter().collect::<Vec<_>>())
}

/// How much of the card is decided, and what is not; `None` where nothing is compared.
pub fn decided(card: &Scorecard) -> Option<String> {
    let compared = || card.rows.iter().filter(|row| !row.works);
    let contrasts: usize = compared().map(|row| row.cells.iter().flatten().count().saturating_sub(1)).sum();
    if contrasts == 0 {
        return None;
    }
    // Where several may be the best, the one that seems to be is what the others are compared with.
    let open = |row: &CardRow| {
        let cells = row.cells.iter().flatten();
        cells.filter(|cell| is_open(cell.against) && cell.against.factor > 1.0).count()
    };
    let undecided: Vec<(&str, usize)> =
        compared().map(|row| (row.title.as_str(), open(row))).filter(|(_, open)| *open > 0).collect();
    let count: usize = undecided.iter().map(|(_, open)| open).sum();
    if count == 0 {
        return Some(format!("All {contrasts} comparisons with the best of a row are decided."));
    }
    let listed: Vec<String> = undecided.iter().map(|(row, open)| format!("{row} ({open})")).collect();
    let listed = listed.join(", ");
    Some(format!("{count} of {contrasts} comparisons with the best of a row are undecided: {listed}."))
}

fn is_open(against: Against) -> bool {
    matches!(against.conclusion, Conclusion::Undecided | Conclusion::TooFew)
}
