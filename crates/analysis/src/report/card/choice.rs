//! Which options of a card suit a workload: a choice by quantities, from the factors and intervals of the card alone.

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
    /// The row in which it is furthest behind, of those of which this is so.
    fn furthest(&self, wanted: impl Fn(&CardRow, Against) -> bool) -> Option<(&'a CardRow, Against)> {
        let among = self.cells.iter().filter(|(row, against)| wanted(row, *against));
        among.max_by(|a, b| a.1.factor.total_cmp(&b.1.factor)).copied()
    }

    /// The row in which it is furthest behind, as measured; it has one at least.
    pub fn worst(&self) -> Option<(&'a CardRow, Against)> {
        self.furthest(|_, _| true)
    }

    /// The same of the rows in which it was shown to be behind by more than the margin.
    pub fn shown(&self) -> Option<(&'a CardRow, Against)> {
        self.furthest(is_behind)
    }

    /// The rows in which it is not known whether it is.
    pub fn open(&self) -> impl Iterator<Item = (&'a CardRow, Against)> {
        let is_near = |against: Against| matches!(against.conclusion, Conclusion::Best | Conclusion::Equivalent);
        let cells = self.cells.iter().filter(move |(row, against)| !is_near(*against) && !is_behind(row, *against));
        cells.copied()
    }

    fn worst_factor(&self) -> f64 {
        self.worst().map_or(1.0, |(_, against)| against.factor)
    }
}

/// What to choose among options, the least behind first; those that are as good as each other as the card has them.
#[derive(Default)]
pub struct Choice<'a> {
    /// In every row the best, or as good.
    pub firm: Vec<Standing<'a>>,
    /// In no row shown to be behind by more than the margin, and in some it may be.
    pub open: Vec<Standing<'a>>,
    /// Where all are behind in something: the one that is least behind where it is worst.
    pub compromise: Option<Standing<'a>>,
    /// Of which it is not known whether they are a worse compromise.
    pub near: Vec<Standing<'a>>,
    /// All others: each was shown to be behind by more than a margin.
    pub behind: Vec<Standing<'a>>,
}

impl<'a> Choice<'a> {
    /// Chooses among these by rows in which each of them has a figure.
    pub fn among(rows: &[&'a CardRow], options: &[usize]) -> Self {
        let relative: Vec<Vec<Against>> = rows.iter().map(|row| against_best_of(row, options)).collect();
        let standing = |(at, option): (usize, &usize)| Standing {
            option: *option,
            cells: rows.iter().copied().zip(relative.iter().map(|row| row[at])).collect(),
        };
        let mut all: Vec<Standing<'_>> = options.iter().enumerate().map(standing).collect();
        all.sort_by(|a, b| a.worst_factor().total_cmp(&b.worst_factor()));
        let (behind, good): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.shown().is_some());
        let (open, mut firm): (Vec<_>, Vec<_>) = good.into_iter().partition(|one| one.open().next().is_some());
        // Which of them measured best is chance.
        firm.sort_by_key(|one| one.option);
        let mut choice = Self { firm, open, behind, ..Self::default() };
        if choice.firm.is_empty() && choice.open.is_empty() && !choice.behind.is_empty() {
            let best = choice.behind.remove(0);
            let is_near = |one: &Standing<'_>| one.worst().is_some_and(|(_, own)| own.low <= best.worst_factor());
            (choice.near, choice.behind) = choice.behind.into_iter().partition(is_near);
            choice.compromise = Some(best);
        }
        choice
    }

    /// Those to be chosen.
    pub fn chosen(&self) -> impl Iterator<Item = &Standing<'a>> {
        self.firm.iter().chain(&self.open).chain(&self.compromise)
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

/// Whether it was shown to be behind by more than what does not matter.
fn is_behind(row: &CardRow, against: Against) -> bool {
    against.conclusion == Conclusion::Different && against.low > 1.0 + row.margin_percent / 100.0
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
            () if high <= 1.0 + row.margin_percent / 100.0 => Conclusion::Equivalent,
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

/// By what factor `other` is better than the best of these at least, in the row where that is most; `None` where no row
/// shows it to be better by more than its margin.
pub fn gain<'a>(rows: &[&'a CardRow], chosen: &[usize], other: usize) -> Option<(&'a CardRow, f64)> {
    let of_row = |row: &&'a CardRow| {
        let against = |option: usize| {
            let against = row.cells[option].as_ref()?.against;
            (against.conclusion != Conclusion::TooFew).then_some(against)
        };
        let lows = chosen.iter().filter_map(|option| Some(against(*option)?.low));
        let gained = lows.reduce(f64::min)? / against(other)?.high;
        (gained > 1.0 + row.margin_percent / 100.0).then_some((*row, gained))
    };
    rows.iter().filter_map(of_row).max_by(|a, b| a.1.total_cmp(&b.1))
}
