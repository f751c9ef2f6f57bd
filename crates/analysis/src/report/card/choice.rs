//! Which options of a card suit a workload: a choice by quantities, from the factors and intervals of the card alone.

use super::practical::{self, Practical};
use pushlab_report::{CardRow, Scorecard};
use pushlab_stats::best::{Against, Conclusion};

/// Delay beyond the best, ms, from which on an option is no choice for anybody who waits for messages: what takes less
/// than a tenth of a second seems to happen at once (Miller, "Response time in man-computer conversational transactions",
/// *AFIPS Fall Joint Computer Conference* 33, 1968).
const LATE_MS: f64 = 100.0;

/// An option among those that come into question, compared with the best of these in each row.
pub struct Standing<'a> {
    /// Its place among the options of the card.
    pub option: usize,
    /// By row.
    pub cells: Vec<(&'a CardRow, Against)>,
}

impl<'a> Standing<'a> {
    /// The row in which it is furthest behind, as measured.
    pub fn worst(&self) -> Option<(&'a CardRow, Against)> {
        self.cells.iter().copied().max_by(|a, b| beyond(*a).total_cmp(&beyond(*b)))
    }

    /// How far beyond the margins it is behind where it is worst, as measured; 1 where it is behind nowhere.
    pub fn loss(&self) -> f64 {
        self.worst().map_or(1.0, |worst| beyond(worst).max(1.0))
    }

    /// Whether it was measured to be as good as the other, within the margins, in every row.
    fn is_near(&self, other: &Self) -> bool {
        let pairs = self.cells.iter().zip(&other.cells);
        pairs.into_iter().all(|((row, own), (_, other))| own.factor <= other.factor * allowed(row))
    }

    /// Whether that was shown of it and the best of every row.
    pub fn is_shown_good(&self) -> bool {
        let is_good = |against: Against| matches!(against.conclusion, Conclusion::Best | Conclusion::Equivalent);
        self.cells.iter().all(|(_, against)| is_good(*against))
    }
}

/// The factor up to which a difference does not matter.
fn allowed(row: &CardRow) -> f64 {
    1.0 + row.margin_percent / 100.0
}

fn beyond((row, against): (&CardRow, Against)) -> f64 {
    against.factor / allowed(row)
}

/// What to choose among options, and what comes next.
pub struct Choice<'a> {
    pub best: Standing<'a>,
    pub runner_up: Option<Standing<'a>>,
    /// Why the best is preferred to its runner-up, where that was measured to be as good.
    pub tie_broken_by: Option<Practical>,
}

impl<'a> Choice<'a> {
    /// Chooses among these by rows in which each of them has a figure: what is least behind where it is worst. What was
    /// measured to be as good in every row is tied with it, and the practical order decides. The runner-up is over another
    /// transport or on another server, if there is one: of those tied, one that has some other advantage, if any has.
    pub fn among(card: &Scorecard, rows: &[&'a CardRow], options: &[usize]) -> Option<Self> {
        let relative: Vec<Vec<Against>> = rows.iter().map(|row| against_best_of(row, options)).collect();
        let standing = |(at, option): (usize, &usize)| Standing {
            option: *option,
            cells: rows.iter().copied().zip(relative.iter().map(|row| row[at])).collect(),
        };
        let mut all: Vec<Standing<'_>> = options.iter().enumerate().map(standing).collect();
        all.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
        let near: Vec<bool> = all.iter().map(|one| one.is_near(&all[0])).collect();
        let (mut tied, mut others) = (Vec::new(), Vec::new());
        for (one, is_near) in all.into_iter().zip(near) {
            if is_near { &mut tied } else { &mut others }.push(one);
        }
        tied.sort_by(|a, b| practical::order(card, a.option, b.option));
        if tied.is_empty() {
            return None;
        }
        let best = tied.remove(0);
        let every: Vec<&CardRow> = card.rows.iter().collect();
        tied.sort_by_key(|one| gain(&every, best.option, one.option).is_none());
        let ties = tied.len();
        let mut next: Vec<Standing<'_>> = tied.into_iter().chain(others).collect();
        let key = |option: usize| (&card.options[option].subject, &card.options[option].transport);
        let at = next.iter().position(|one| key(one.option) != key(best.option)).unwrap_or(0);
        let tie_broken_by = (at < ties).then(|| practical::reason(card, best.option, next[at].option));
        let runner_up = (!next.is_empty()).then(|| next.swap_remove(at));
        Some(Self { best, runner_up, tie_broken_by })
    }
}

/// Options that have a figure in each of these rows, and the others that have one in some or fail.
pub fn with_figures(card: &Scorecard, rows: &[&CardRow]) -> (Vec<usize>, Vec<usize>) {
    let known = |option: &usize| {
        let key = &card.options[*option].key;
        rows.iter().any(|row| row.cells[*option].is_some() || row.failures.contains_key(key))
    };
    (0..card.options.len()).filter(known).partition(|option| rows.iter().all(|row| row.cells[*option].is_some()))
}

/// How much later than the best messages come at least, ms, where that is too much; of rows that tell latency.
pub fn late_ms(rows: &[&CardRow], option: usize) -> Option<f64> {
    let latencies = rows.iter().filter(|row| row.metric.starts_with("latency") && row.unit == "ms");
    let late = latencies.filter_map(|row| {
        let cell = row.cells[option].as_ref()?;
        let best_ms = cell.estimate.value / cell.against.factor;
        (cell.against.conclusion == Conclusion::Different).then_some((cell.against.low - 1.0) * best_ms)
    });
    late.filter(|ms| *ms >= LATE_MS).max_by(f64::total_cmp)
}

/// Whether more blocks would tell.
pub fn is_open(against: Against) -> bool {
    matches!(against.conclusion, Conclusion::Undecided | Conclusion::TooFew)
}

/// How far options that have a figure in a row are behind the best of *these*. The row's intervals are of the distances
/// from the best of all, and hold together; so the distance between two options is within what the ends of their
/// intervals leave open. Nothing is shown here that the row does not imply.
fn against_best_of(row: &CardRow, options: &[usize]) -> Vec<Against> {
    let found: Vec<Against> = options.iter().filter_map(|at| Some(row.cells[*at].as_ref()?.against)).collect();
    let of_all = row.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.as_ref()?.against)));
    let mut plausible = of_all.filter(|(_, against)| may_be_best(*against)).peekable();
    if plausible.peek().is_some() && plausible.all(|(at, _)| options.contains(&at)) {
        return found;
    }
    let least = found.iter().map(|against| against.factor).fold(f64::INFINITY, f64::min);
    let is_compared = |against: &&Against| against.conclusion != Conclusion::TooFew;
    let least_high = found.iter().filter(is_compared).map(|against| against.high).fold(f64::INFINITY, f64::min);
    let relative = |(at, own): (usize, &Against)| {
        let factor = own.factor / least;
        if own.conclusion == Conclusion::TooFew || least_high.is_infinite() {
            let conclusion = Conclusion::TooFew;
            return Against { factor, low: factor, high: factor, conclusion, machines: None };
        }
        let others = found.iter().enumerate().filter(|(other, against)| *other != at && is_compared(against));
        let least_low = others.map(|(_, against)| against.low).fold(own.high, f64::min);
        let (low, high) = ((own.low / least_high).max(1.0).min(factor), (own.high / least_low).max(factor));
        let conclusion = match () {
            () if high <= allowed(row) => Conclusion::Equivalent,
            () if low > 1.0 => Conclusion::Different,
            () => Conclusion::Undecided,
        };
        Against { factor, low, high, conclusion, machines: None }
    };
    found.iter().enumerate().map(relative).collect()
}

fn may_be_best(against: Against) -> bool {
    match against.conclusion {
        Conclusion::Best => true,
        Conclusion::Equivalent | Conclusion::Undecided => against.low <= 1.0,
        Conclusion::Different | Conclusion::TooFew => false,
    }
}

/// By what factor `other` is better than `best` at least, in the row where that is most; `None` where no row shows it to
/// be better by more than its margin.
pub fn gain<'a>(rows: &[&'a CardRow], best: usize, other: usize) -> Option<(&'a CardRow, f64)> {
    let of_row = |row: &&'a CardRow| {
        let against = |option: usize| {
            let against = row.cells[option].as_ref()?.against;
            (!row.works && against.conclusion != Conclusion::TooFew).then_some(against)
        };
        let gained = against(best)?.low / against(other)?.high;
        (gained > allowed(row)).then_some((*row, gained))
    };
    rows.iter().filter_map(of_row).max_by(|a, b| a.1.total_cmp(&b.1))
}
