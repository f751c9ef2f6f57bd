//! Comparison with the best of a row, over randomized blocks.
//!
//! A row is one quantity, such as CPU per delivery, of several variants, such as transports. Each block (one start of a
//! server) has one value of every variant. How much worse is each variant than the best, which nobody knows?
//!
//! **Intervals.** By Edwards and Hsu ("Multiple comparisons with the best treatment", *Journal of the American
//! Statistical Association* 78, 1983): a variant is a *plausible best* when Dunnett's intervals show no other to be better.
//! The interval of a variant is the union of Dunnett's intervals of its distance from each plausible best. It holds
//! whichever of them is the best, and for all variants of the row at once. Values are logarithms, so distances are factors.
//! That a variant is as good as the best is claimed by its upper end alone, as two one-sided tests would, so by Dunnett's
//! one-sided value: whatever else is true, such a claim is wrong only if the best looks too bad beside another (Hsu,
//! "Constrained simultaneous confidence intervals for multiple comparisons with the best", *Annals of Statistics* 12, 1984).
//!
//! **Model.** A value is its block's share, plus its variant's, plus a deviation. What disturbs a whole block cancels.
//! Deviations of some variants are larger than those of others, so that each variant has its own variance, drawn towards
//! the middle of the row as far as all rows show variances to be alike. Degrees of freedom are Satterthwaite's.
//!
//! **Families.** All rows of a call share the error 1 − confidence, for wrong "different" and wrong "equivalent" each.
//! Every row has an equal share of it; a row of which *all* claims of a kind were made hands its share on to the others
//! (Holm's procedure with rows for hypotheses; Dmitrienko and Tamhane, "Mixtures of multiple testing procedures for
//! gatekeeping applications", *Statistics in Medicine* 30, 2011). A row of which one claim is open keeps its share: what is
//! not claimed may be a true null, and still be claimed wrongly. Intervals have two sides and the equal share, so that all
//! of all rows hold together. Where a claim goes beyond its interval, the interval ends at the claim's boundary: at 1, or
//! at the margin.
//!
//! Rows that do not vary, such as bytes, need no test and take no share.
//!
//! **Machines.** Blocks of several machines are strata: each machine has means and variances of its own, and the row's are
//! the means of theirs, blocks counting alike. Where Cochran's Q shows that a variant's distance from the best depends on
//! the machine by more than the margin, the row says no more than what every machine says by itself.

mod fit;
mod machines;
mod matrix;
#[cfg(test)]
mod simulated;
mod spread;

use crate::dunnett::{Sides, dunnett_quantile};
use fit::Fit;
use machines::Strata;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use fit::BLOCKS_MIN;
pub use machines::Machines;

/// Step in 1 / degrees of freedom between the critical values that are integrated; between them the logarithm is taken
/// from a straight line, which lies above the curve by less than a thousandth.
const CRITICAL_STEP: f64 = 0.01;

/// One quantity of several variants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// `blocks[b][v]`: the natural logarithm of block b's value of variant v, lower is better (the caller turns the sign
    /// of others around); `None` where it is missing.
    pub blocks: &'a [Vec<Option<f64>>],
    /// The machine that each block was measured on; empty where all are of one.
    pub machines: &'a [u32],
    /// Logarithm of the factor up to which a variant is as good as the best, fixed before the data: ln 1.1 for 10 %.
    pub margin: f64,
}

/// What was shown about a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// It is the best: every other was shown to be worse.
    Best,
    /// It is worse than the best, by the factor `low` at least.
    Different,
    /// It is as good as the best within the margin. It may be known to be a little worse.
    Equivalent,
    /// Neither was shown: more blocks would decide.
    Undecided,
    /// It has values in fewer than [`BLOCKS_MIN`] blocks that it shares with others.
    TooFew,
}

/// A variant against the best of its row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// How many times the best value it has; at least 1.
    pub factor: f64,
    /// Lower end of its interval; above 1, or at it where a share that was handed on showed it to be worse.
    pub low: f64,
    /// Upper end. With [`Conclusion::TooFew`] there is no interval, and both ends are the factor.
    pub high: f64,
    /// What was shown.
    pub conclusion: Conclusion,
    /// What machines say of it one by one; absent where all blocks are of one, and where no difference was shown, neither
    /// of it nor of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<Machines>,
}

/// Every variant of every row against the best of its row: in the order of `rows`, then of the variants; `None` for a
/// variant without a value. Variants with too few blocks are compared with the best of those that have enough.
///
/// `confidence`, e.g. 0.95, is the chance that no variant of any row is wrongly called different (or best), and that none is
/// wrongly called equivalent.
pub fn against_best(rows: &[Row<'_>], confidence: f64) -> Vec<Vec<Option<Against>>> {
    let alpha = 1.0 - confidence;
    let mut critical = Critical::default();
    let fitted = machines::fits(rows.iter().map(|row| (row.blocks, row.machines)));
    let margins: Vec<f64> = rows.iter().map(|row| row.margin).collect();
    let differ = machines::differ(&margins, &fitted, alpha);
    let (fits, strata): (Vec<Fit>, Vec<Strata>) = fitted.into_iter().unzip();
    let rows: Vec<(Row<'_>, Fit)> = rows.iter().copied().zip(fits).collect();
    let tested: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].1.is_tested()).collect();
    let level = alpha / tested.len().max(1) as f64;
    let mut bounds: Vec<Vec<Bounds>> =
        rows.iter().map(|(_, fit)| bounds(fit, level, Sides::Two, &mut critical)).collect();

    let is_different = |_: usize, found: &[Bounds]| are_all_worse_but_one(found);
    for (row, claimed) in claims(&rows, &tested, alpha, Sides::Two, &mut critical, is_different) {
        for (shown, claimed) in bounds[row].iter_mut().zip(claimed) {
            shown.is_worse = claimed.is_worse;
        }
    }
    let is_equivalent = |row: usize, found: &[Bounds]| found.iter().all(|bounds| bounds.high <= rows[row].0.margin);
    for (row, claimed) in claims(&rows, &tested, alpha, Sides::One, &mut critical, is_equivalent) {
        for (shown, claimed) in bounds[row].iter_mut().zip(claimed) {
            if claimed.high <= rows[row].0.margin {
                shown.high = shown.high.min(rows[row].0.margin);
            }
        }
    }
    let mut found: Vec<Vec<Option<Against>>> =
        rows.iter().zip(&bounds).map(|((row, fit), bounds)| conclusions(row, fit, bounds)).collect();
    for (row, strata) in strata.iter().enumerate().filter(|(_, strata)| !strata.fits().is_empty()) {
        let of = |fit: &Fit| self::bounds(fit, level, Sides::Two, &mut critical);
        let by_machine: Vec<Vec<Bounds>> = strata.fits().iter().map(of).collect();
        tell(&mut found[row], &rows[row].1, &by_machine, &differ[row]);
    }
    found
}

/// The logarithms between which a variant lies above the best.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    low: f64,
    high: f64,
    /// Whether every plausible best was shown to be better.
    is_worse: bool,
}

/// Whether one variant of a row was shown to be better than every other.
fn are_all_worse_but_one(bounds: &[Bounds]) -> bool {
    bounds.iter().filter(|bounds| !bounds.is_worse).count() == 1
}

/// Edwards and Hsu's intervals of a row at `level`; of one side, their upper ends.
fn bounds(fit: &Fit, level: f64, sides: Sides, critical: &mut Critical) -> Vec<Bounds> {
    let count = fit.means.len();
    let mut width = |i: usize, j: usize| {
        let spread = fit.spread(i, j);
        if spread.error > 0.0 { critical.at(level, count - 1, spread.freedom, sides) * spread.error } else { 0.0 }
    };
    let reach: Vec<Vec<f64>> = (0..count).map(|i| (0..count).map(|j| width(i, j)).collect()).collect();
    let above = |i: usize, j: usize| fit.means[i] - fit.means[j];
    // What rounding leaves between equal values is no difference.
    let is_plausible = |j: usize| (0..count).all(|i| above(j, i) <= reach[j][i] + fit::ROUNDING);
    let plausible: Vec<usize> = (0..count).filter(|j| is_plausible(*j)).collect();
    let of = |i: usize| {
        let others = || plausible.iter().copied().filter(move |j| *j != i);
        let low = others().map(|j| above(i, j) - reach[i][j]).fold(f64::INFINITY, f64::min);
        // Not to be plausible is not enough: a variant may be worse than one plausible best and as good as another.
        let is_worse = !plausible.contains(&i) && low > fit::ROUNDING;
        Bounds {
            low: if is_worse { low } else { 0.0 },
            high: others().map(|j| above(i, j) + reach[i][j]).fold(0.0, f64::max),
            is_worse,
        }
    };
    (0..count).map(of).collect()
}

/// What may be claimed of each tested row, by its equal share of the error and what others handed on to it because all
/// claims about them were made.
fn claims(
    rows: &[(Row<'_>, Fit)],
    tested: &[usize],
    alpha: f64,
    sides: Sides,
    critical: &mut Critical,
    is_complete: impl Fn(usize, &[Bounds]) -> bool,
) -> BTreeMap<usize, Vec<Bounds>> {
    let mut claims = BTreeMap::new();
    let mut open = tested.to_vec();
    while !open.is_empty() {
        let level = alpha / open.len() as f64;
        claims.extend(open.iter().map(|row| (*row, bounds(&rows[*row].1, level, sides, critical))));
        let before = open.len();
        open.retain(|row| !is_complete(*row, &claims[row]));
        if open.len() == before {
            break;
        }
    }
    claims
}

fn conclusions(row: &Row<'_>, fit: &Fit, bounds: &[Bounds]) -> Vec<Option<Against>> {
    let lowest = fit.means.iter().copied().fold(f64::INFINITY, f64::min);
    let has_best = are_all_worse_but_one(bounds);
    let width = row.blocks.iter().map(Vec::len).max().unwrap_or(0);
    let of = |variant: usize| {
        let Some(place) = fit.place_of(variant) else {
            let factor = unfitted(row.blocks, variant, fit)?.max(0.0).exp();
            let conclusion = Conclusion::TooFew;
            return Some(Against { factor, low: factor, high: factor, conclusion, machines: None });
        };
        let (factor, found) = ((fit.means[place] - lowest).exp(), bounds[place]);
        let conclusion = match found {
            found if !found.is_worse && has_best => Conclusion::Best,
            found if found.high <= row.margin => Conclusion::Equivalent,
            found if found.is_worse => Conclusion::Different,
            _ => Conclusion::Undecided,
        };
        let high = if conclusion == Conclusion::Best { 0.0 } else { found.high };
        let (low, high) = (found.low.exp().min(factor), high.exp().max(factor));
        Some(Against { factor, low, high, conclusion, machines: None })
    };
    (0..width).map(of).collect()
}

/// Says of a row what its machines say of it; `by_machine` are the bounds of each. Where they differ in a variant that is
/// not behind on all of them, who is the best depends on the machine: then only what each of them shows is a conclusion.
fn tell(found: &mut [Option<Against>], whole: &Fit, by_machine: &[Vec<Bounds>], differ: &[bool]) {
    let is_behind_on_each = |place: usize| by_machine.iter().all(|bounds| bounds[place].is_worse);
    let is_contested = (0..differ.len()).any(|place| differ[place] && !is_behind_on_each(place));
    for (place, variant) in whole.variants.iter().enumerate() {
        let Some(against) = &mut found[*variant] else { continue };
        if is_contested {
            let conclusion = if is_behind_on_each(place) { Conclusion::Different } else { Conclusion::Undecided };
            against.conclusion = conclusion;
        }
        if is_contested || differ[place] {
            let ends = by_machine.iter().map(|bounds| (bounds[place].low.exp(), bounds[place].high.exp()));
            let (low, high) = ends.fold((f64::MAX, 1.0f64), |(low, high), own| (own.0.min(low), own.1.max(high)));
            (against.low, against.high) = (low.min(against.factor), high.max(against.factor));
        }
        against.machines = match against.conclusion {
            _ if differ[place] => Some(Machines::Differ),
            Conclusion::Different if is_behind_on_each(place) => Some(Machines::Each),
            Conclusion::Different => Some(Machines::Together),
            _ => None,
        };
    }
}

/// By how much a variant that was not fitted lies above the best of those that were, or of all where none was.
fn unfitted(blocks: &[Vec<Option<f64>>], variant: usize, fit: &Fit) -> Option<f64> {
    let value = |block: &Vec<Option<f64>>, v: usize| (*block.get(v)?).filter(|value| value.is_finite());
    let own: Vec<f64> = blocks.iter().filter_map(|block| value(block, variant)).collect();
    let own = crate::summary::mean(&own)?;
    let lowest = fit.means.iter().copied().fold(f64::INFINITY, f64::min);
    let best = fit.variants.iter().zip(&fit.means).find(|(_, mean)| **mean <= lowest).map(|(best, _)| *best);
    let others = match best {
        Some(best) => blocks.iter().filter_map(|block| value(block, best)).collect::<Vec<_>>(),
        None => {
            let width = blocks.iter().map(Vec::len).max().unwrap_or(0);
            let mean_of =
                |v| crate::summary::mean(&blocks.iter().filter_map(|block| value(block, v)).collect::<Vec<_>>());
            (0..width).filter_map(mean_of).reduce(f64::min).into_iter().collect()
        }
    };
    Some(own - crate::summary::mean(&others)?)
}

/// Critical values that were integrated already.
#[derive(Debug, Default)]
struct Critical {
    /// By level, number of comparisons and sides, at multiples of [`CRITICAL_STEP`].
    logarithms: BTreeMap<(u64, usize, Sides, u32), f64>,
}

impl Critical {
    fn at(&mut self, level: f64, comparisons: usize, freedom: f64, sides: Sides) -> f64 {
        let place = 1.0 / freedom / CRITICAL_STEP;
        let (below, share) = (place.floor(), place.fract());
        let low = self.node(level, comparisons, sides, below as u32);
        let high = if share > 0.0 { self.node(level, comparisons, sides, below as u32 + 1) } else { low };
        (low + share * (high - low)).exp()
    }

    fn node(&mut self, level: f64, comparisons: usize, sides: Sides, place: u32) -> f64 {
        // With a million degrees of freedom t is normal to six digits.
        let freedom = if place == 0 { 1e6 } else { 1.0 / (f64::from(place) * CRITICAL_STEP) };
        let integrated = || dunnett_quantile(level, comparisons, freedom, sides).ln();
        *self.logarithms.entry((level.to_bits(), comparisons, sides, place)).or_insert_with(integrated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.095_310_179_804_324_87;

    /// Blocks of `values` (not yet logarithms), each times what its block has in common.
    fn blocks(values: &[&[f64]]) -> Vec<Vec<Option<f64>>> {
        let shared = [1.0, 3.0, 0.4, 1.7, 0.9, 2.2, 1.1, 0.6];
        let block = |(row, shared): (&&[f64], f64)| row.iter().map(|value| Some((value * shared).ln())).collect();
        values.iter().zip(shared).map(block).collect()
    }

    fn one(blocks: &[Vec<Option<f64>>]) -> Vec<Option<Against>> {
        against_best(&[Row { blocks, machines: &[], margin: MARGIN }], 0.95).remove(0)
    }

    fn conclusions(found: &[Option<Against>]) -> Vec<Conclusion> {
        found.iter().map(|against| against.unwrap().conclusion).collect()
    }

    const CLEAR: [&[f64]; 5] =
        [&[1.0, 1.5, 3.0], &[1.01, 1.49, 3.05], &[0.99, 1.52, 3.02], &[1.0, 1.5, 2.97], &[1.005, 1.49, 2.99]];

    #[test]
    fn what_blocks_share_cancels() {
        let found = one(&blocks(&CLEAR));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Different, Conclusion::Different]);
        let [best, middle, worst] = [0, 1, 2].map(|variant: usize| found[variant].unwrap());
        assert_eq!((best.factor, best.low, best.high), (1.0, 1.0, 1.0));
        assert!((middle.factor - 1.5).abs() < 0.01 && middle.low > 1.4 && middle.high < 1.6, "{middle:?}");
        assert!((worst.factor - 3.0).abs() < 0.02 && worst.low > 2.8 && worst.high < 3.2, "{worst:?}");
    }

    #[test]
    fn near_values_are_equivalent_and_noisy_ones_undecided() {
        let near = [[1.0, 1.01, 1.3], [1.01, 1.0, 1.31], [0.99, 1.0, 1.29], [1.0, 1.01, 1.3], [1.005, 1.0, 1.3]];
        let found = one(&blocks(&near.each_ref().map(|row| row.as_slice())));
        assert_eq!(conclusions(&found), [Conclusion::Equivalent, Conclusion::Equivalent, Conclusion::Different]);
        let noisy = [[1.0, 1.1], [1.1, 0.9], [0.9, 1.1], [1.0, 1.0], [1.2, 1.15]];
        let found = one(&blocks(&noisy.each_ref().map(|row| row.as_slice())));
        assert_eq!(conclusions(&found), [Conclusion::Undecided, Conclusion::Undecided]);
        assert!(found.iter().all(|against| against.unwrap().low == 1.0 && against.unwrap().high > 1.1), "{found:?}");
    }

    #[test]
    fn a_small_difference_that_is_certain_is_equivalent() {
        let found = one(&blocks(&[&[1.0, 1.03], &[1.001, 1.031], &[0.999, 1.03], &[1.0, 1.031]]));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Equivalent]);
        assert!(found[1].unwrap().low > 1.02, "{found:?}");
    }

    #[test]
    fn values_that_do_not_vary_need_no_test_and_take_no_share() {
        let exact = blocks(&[[45.0, 45.0, 45.5, 60.0].as_slice(); 3]);
        let found = one(&exact);
        let expected = [Conclusion::Equivalent, Conclusion::Equivalent, Conclusion::Equivalent, Conclusion::Different];
        assert_eq!(conclusions(&found), expected);
        let last = found[3].unwrap();
        assert!((last.low - 60.0 / 45.0).abs() < 1e-9 && (last.high - 60.0 / 45.0).abs() < 1e-9, "{last:?}");
        let varying = blocks(&CLEAR);
        let (varying, exact) = (
            Row { blocks: &varying, machines: &[], margin: MARGIN },
            Row { blocks: &exact, machines: &[], margin: MARGIN },
        );
        let found = against_best(&[exact, varying, exact], 0.95);
        assert_eq!(found[1], against_best(&[varying], 0.95)[0]);
    }

    #[test]
    fn missing_values_are_not_zero_and_too_few_are_said() {
        let mut blocks = blocks(&CLEAR);
        // The slowest block lacks the best variant; a mean over what is there would make it better still.
        blocks[1][0] = None;
        blocks.iter_mut().for_each(|block| block.push(None));
        (blocks[0][3], blocks[2][3]) = (Some(0.1), Some(0.1));
        blocks.iter_mut().for_each(|block| block.push(None));
        let found = one(&blocks);
        let middle = found[1].unwrap();
        assert!((middle.factor - 1.5).abs() < 0.01 && middle.conclusion == Conclusion::Different, "{middle:?}");
        let few = found[3].unwrap();
        assert_eq!((few.conclusion, few.low, few.high), (Conclusion::TooFew, few.factor, few.factor));
        assert_eq!(found[4], None);
    }

    #[test]
    fn two_blocks_and_no_blocks_conclude_nothing() {
        let found = one(&blocks(&CLEAR[..2]));
        assert_eq!(conclusions(&found), [Conclusion::TooFew; 3]);
        assert!((found[1].unwrap().factor - 1.495).abs() < 0.01, "{found:?}");
        assert!(one(&[]).is_empty() && one(&[vec![None, None]]) == [None, None]);
        assert!(against_best(&[], 0.95).is_empty());
        let alone = one(&[vec![Some(1.0)], vec![Some(1.1)], vec![Some(0.9)]]);
        assert_eq!(conclusions(&alone), [Conclusion::TooFew]);
    }

    #[test]
    fn variants_that_share_no_block_are_not_compared() {
        let (a, b) =
            (|x: f64| vec![Some(x), Some(x + 1.0), None, None], |x: f64| vec![None, None, Some(x), Some(x + 2.0)]);
        let found = one(&[a(0.0), b(0.0), a(0.1), b(0.1), a(0.2), b(0.2)]);
        let expected = [Conclusion::Best, Conclusion::Different, Conclusion::TooFew, Conclusion::TooFew];
        assert_eq!(conclusions(&found), expected);
    }

    #[test]
    fn a_variant_that_is_as_good_as_a_plausible_best_is_not_different() {
        // The second is far from the first, and near the third, of which too little is known to leave it out.
        let found = one(&blocks(&[
            &[1.0, 1.2, 1.05],
            &[1.001, 1.201, 1.4],
            &[0.999, 1.199, 0.9],
            &[1.0, 1.2, 1.3],
            &[1.0, 1.2, 0.95],
        ]));
        assert!(found[1].unwrap().low == 1.0 && found[1].unwrap().conclusion == Conclusion::Undecided, "{found:?}");
    }

    #[test]
    fn a_row_shares_the_error_with_rows_that_are_open() {
        let (clear, open) = (
            blocks(&CLEAR),
            blocks(&[&[1.0, 1.1, 1.4], &[1.1, 0.9, 1.5], &[0.9, 1.1, 1.3], &[1.0, 1.0, 1.4], &[1.2, 1.15, 1.5]]),
        );
        let (clear, open) = (
            Row { blocks: &clear, machines: &[], margin: MARGIN },
            Row { blocks: &open, machines: &[], margin: MARGIN },
        );
        let alone = against_best(&[clear], 0.95)[0][1].unwrap();
        let shared = against_best(&[clear, open, open], 0.95);
        assert!(shared[0][1].unwrap().low < alone.low, "{shared:?} {alone:?}");
        assert_eq!(shared[1], shared[2]);
    }
}
