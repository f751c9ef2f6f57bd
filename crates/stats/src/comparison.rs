//! Many comparisons at once, without an alarm for every twentieth of them.

use crate::contrast::{Welch, difference, rounded_difference};
use crate::distribution::{student_t_quantile, student_t_tail};
use crate::interval::{EffectSize, Interval, IntervalError, check, effect_size, interval_of_mean};
use crate::rank_test::{mann_whitney, signed_rank};
use crate::summary::{mean, median, variance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Runs that each side needs for a verdict. Two runs have one degree of freedom, with which next to nothing is found.
pub const RUNS_MIN: usize = 3;
/// A rank test is used when its smallest p value is this many times below what the family asks of a single
/// comparison, so that two pairs of runs in the wrong order do not hide a difference.
const RANK_RESERVE: f64 = 4.0;

/// Why a family could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum FamilyError {
    /// A pair has no runs, a figure that is not finite, or the confidence is wrong.
    #[error("comparison {index}: {cause}")]
    Pair {
        /// Position in the slice.
        index: usize,
        /// What is wrong.
        #[source]
        cause: IntervalError,
    },
    /// Paired sides differ in length.
    #[error("comparison {index} is paired, but has {a} and {b} runs: give the runs of complete blocks only")]
    Unequal {
        /// Position in the slice.
        index: usize,
        /// Runs of a.
        a: usize,
        /// Runs of b.
        b: usize,
    },
    /// The smallest relevant change is negative, infinite or not a number.
    #[error("the smallest relevant change {0} is not a share of 0 or more, e.g. 0.05 for 5 %")]
    RelevantChange(f64),
}

/// Two sets of runs to compare, one figure for each run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<'a> {
    /// What is judged, e.g. the new build.
    pub a: &'a [f64],
    /// What it is compared with.
    pub b: &'a [f64],
    /// Whether `a[i]` and `b[i]` were measured in one block, one after the other. Then only differences within blocks
    /// count, and a drift of the machine over the blocks does not. Without a drift it finds a little less.
    pub is_paired: bool,
    /// Share up to which a is as good as b, fixed before the data: 0.1 is from b / 1.1 to b · 1.1. 0 where nothing counts
    /// as equivalent but figures that are equal to the last digit.
    pub margin: f64,
}

/// What a whole family of comparisons shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// Chance that a family without any difference raises no alarm at all, e.g. 0.95.
    pub confidence: f64,
    /// Smallest change that matters, as a share of `b`: 0.05 is 5 %. 0 lets any change count.
    pub relevant_change: f64,
    /// Seed of the bootstraps behind [`Comparison::difference`].
    pub seed: u64,
}

/// What a comparison found about a.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// a is higher than b, by a change that matters.
    Higher,
    /// a is lower than b, by a change that matters.
    Lower,
    /// a is b within the margin: two one-sided tests showed it.
    Equivalent,
    /// Neither was shown: more runs would decide.
    Undecided,
    /// Fewer than [`RUNS_MIN`] runs on a side.
    TooFew,
}

/// How a p value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// Welch's t.
    Welch,
    /// Mann and Whitney's rank sum, exact.
    MannWhitney,
    /// Student's t over the logarithms of blocks' ratios, or their differences where a figure is not above 0.
    PairedT,
    /// Wilcoxon's signed ranks over the differences of blocks, exact.
    SignedRank,
}

/// The chance of so large a difference between equals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Significance {
    /// Two-sided p value of this comparison alone.
    pub p: f64,
    /// The same after Holm's correction: at most 1 − confidence is significant.
    pub p_corrected: f64,
    /// How it was found.
    pub test: TestKind,
}

/// How many times b's figure a has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Ratio of the geometric means; of a's and b's runs of a block where they are paired.
    pub value: f64,
    /// Lower end of its interval by t.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One comparison of a family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What came out.
    pub verdict: Verdict,
    /// By how much a is above b (Hodges and Lehmann: the median of all differences between a run of a and one of b;
    /// paired, of all means of two blocks' differences), in the unit of the figures. One run gone astray hardly moves
    /// it.
    pub shift: f64,
    /// `shift` as a share of b's median; `None` when that is 0.
    pub change: Option<f64>,
    /// Mean of a − mean of b at the family's confidence. For this comparison alone: over many, more than 5 % of such
    /// intervals miss, so the verdict does not follow from it.
    pub difference: Interval,
    /// a over b, so wide that those of all comparisons of the family hold together; `None` with too few runs, and where a
    /// figure is not above 0.
    pub factor: Option<Factor>,
    /// Chance of figures so near each other if they differed by the margin or more, after Holm's correction over the
    /// family: at most 1 − confidence shows equivalence. `None` as for `factor`.
    pub p_equivalent: Option<f64>,
    /// Cliff's delta of a over b.
    pub effect: Option<EffectSize>,
    /// The test; `None` with too few runs.
    pub significance: Option<Significance>,
}

/// Compares every pair, at a family-wise error of 1 − confidence (Holm, "A simple sequentially rejective multiple test
/// procedure", *Scandinavian Journal of Statistics* 6, 1979): without a single difference, at most that share of
/// families raises any alarm. Verdicts are in the order of `pairs`.
///
/// A difference is reported when its corrected p value is at most 1 − confidence *and* [`Comparison::change`] is at
/// least the relevant one (any change from 0 is). The second condition is on the estimate, not on the whole interval:
/// with an interval beyond 5 % a real change of 6 % would need dozens of runs. Failing that, equivalence is reported when
/// two one-sided t tests of the logarithms show it (Schuirmann, *Journal of Pharmacokinetics and Biopharmaceutics* 15,
/// 1987); wrong equivalences of the family are held at 1 − confidence for themselves. A change that was shown goes first:
/// who compares two builds wants to hear of it, small as it may be. That no difference was shown is never more than
/// "undecided".
///
/// The paired t is of the logarithms of ratios where figures are above 0, since what disturbs a block disturbs its figures
/// by a factor.
///
/// The test depends on numbers of runs only, so choosing it costs no error. Rank tests, exact for any shape, are used
/// when the family leaves them room: with ten comparisons at 95 %, from 7 runs a side (paired: 11). If one
/// run in twenty takes twice as long or more, 7 and 10 runs then show a change of 20 % in 70 and 92 % of families, t in
/// 50 and 36 %. With fewer runs no rank test can be
/// significant (5 against 5 has 252 ways, so p ≥ 0.008, and Holm asks for 0.005); there it is Welch's t, or the paired
/// t, which with skewed or stray figures raises fewer false alarms than allowed, and finds less. Three figures that
/// are equal to the last digit have no spread to t, and count as certain: a deterministic figure such as bytes for
/// each message is, a coarsely rounded one is not, so do not round before.
///
/// # Errors
/// [`FamilyError`], which names the comparison.
pub fn compare_family(pairs: &[Pair<'_>], family: &Family) -> Result<Vec<Comparison>, FamilyError> {
    if !(family.relevant_change >= 0.0 && family.relevant_change.is_finite()) {
        return Err(FamilyError::RelevantChange(family.relevant_change));
    }
    let alpha = 1.0 - family.confidence;
    let is_tested = |pair: &Pair<'_>| pair.a.len() >= RUNS_MIN && pair.b.len() >= RUNS_MIN;
    let tests = pairs.iter().filter(|pair| is_tested(pair)).count();
    let mut found = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let blame = |cause| FamilyError::Pair { index, cause };
        check(pair.a, family.confidence).and_then(|()| check(pair.b, family.confidence)).map_err(blame)?;
        if pair.is_paired && pair.a.len() != pair.b.len() {
            return Err(FamilyError::Unequal { index, a: pair.a.len(), b: pair.b.len() });
        }
        let mut comparison = describe(pair, family).map_err(blame)?;
        if is_tested(pair) {
            let level = alpha / tests as f64;
            comparison.significance = Some(test(pair, level));
            if let Some(relative) = Relative::of(pair) {
                comparison.factor = Some(relative.factor(level));
                comparison.p_equivalent = Some(relative.p_equivalent(pair.margin));
            }
        }
        found.push(comparison);
    }
    let alone: Vec<f64> = found.iter().filter_map(|comparison| comparison.p_equivalent).collect();
    let corrected = holm(&alone);
    found.iter_mut().filter_map(|comparison| comparison.p_equivalent.as_mut()).zip(corrected).for_each(|(p, q)| *p = q);
    let alone: Vec<f64> = found.iter().filter_map(|comparison| Some(comparison.significance?.p)).collect();
    let mut corrected = holm(&alone).into_iter();
    for (comparison, pair) in found.iter_mut().zip(pairs) {
        let Some(significance) = &mut comparison.significance else { continue };
        significance.p_corrected = corrected.next().unwrap_or(1.0);
        let is_relevant = comparison.change.is_none_or(|change| change.abs() >= family.relevant_change);
        let is_equivalent = comparison.p_equivalent.is_some_and(|p| p <= alpha) || are_all_equal(pair);
        comparison.verdict = match comparison.shift {
            shift if significance.p_corrected <= alpha && is_relevant && shift > 0.0 => Verdict::Higher,
            shift if significance.p_corrected <= alpha && is_relevant && shift < 0.0 => Verdict::Lower,
            _ if is_equivalent => Verdict::Equivalent,
            _ => Verdict::Undecided,
        };
    }
    Ok(found)
}

/// Holm's corrected p values, in the order given: the smallest times the number of them, the next times one less,
/// and so on, never below a smaller one's and at most 1. Values outside 0..=1 give values without meaning.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| p[*i].total_cmp(&p[*j]));
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max((p.len() - place) as f64 * p[index]).min(1.0);
        corrected[index] = largest;
    }
    corrected
}

/// Everything about a pair but its test.
fn describe(pair: &Pair<'_>, family: &Family) -> Result<Comparison, IntervalError> {
    let (shifts, difference) = if pair.is_paired {
        let blocks = blocks(pair);
        let with_later = |(i, x): (usize, &f64)| blocks[i..].iter().map(|y| 0.5 * (x + y)).collect::<Vec<_>>();
        let averages: Vec<f64> = blocks.iter().enumerate().flat_map(with_later).collect();
        (averages, interval_of_mean(&blocks, family.confidence, family.seed)?)
    } else {
        let against = |a: &f64| pair.b.iter().map(|b| rounded_difference(*a, *b, 1)).collect::<Vec<_>>();
        let all: Vec<f64> = pair.a.iter().flat_map(against).collect();
        (all, difference(pair.a, pair.b, family.confidence, family.seed)?)
    };
    let shift = median(&shifts).ok_or(IntervalError::Empty)?;
    let base = median(pair.b).ok_or(IntervalError::Empty)?.abs();
    Ok(Comparison {
        verdict: Verdict::TooFew,
        shift,
        change: (base > 0.0).then(|| shift / base),
        difference,
        factor: None,
        p_equivalent: None,
        effect: effect_size(pair.a, pair.b),
        significance: None,
    })
}

fn blocks(pair: &Pair<'_>) -> Vec<f64> {
    pair.a.iter().zip(pair.b).map(|(a, b)| rounded_difference(*a, *b, 1)).collect()
}

/// What a paired test is of: logarithms of ratios where there are such, differences otherwise.
fn changes_of_blocks(pair: &Pair<'_>) -> Vec<f64> {
    let differences = blocks(pair);
    if pair.a.iter().chain(pair.b).any(|value| *value <= 0.0) {
        return differences;
    }
    // A difference that is 0 but for rounding is a ratio of 1.
    let change = |((a, b), difference): ((&f64, &f64), &f64)| if *difference == 0.0 { 0.0 } else { (a / b).ln() };
    pair.a.iter().zip(pair.b).zip(&differences).map(change).collect()
}

/// Whether all figures of both sides are one and the same number, but for rounding.
fn are_all_equal(pair: &Pair<'_>) -> bool {
    pair.b
        .first()
        .is_some_and(|first| pair.a.iter().chain(pair.b).all(|value| rounded_difference(*value, *first, 1) == 0.0))
}

/// The logarithm of a's figure over b's, and how well it is known.
struct Relative {
    value: f64,
    error: f64,
    freedom: f64,
}

impl Relative {
    /// `None` with a figure that has no logarithm, or one run on a side.
    fn of(pair: &Pair<'_>) -> Option<Self> {
        if pair.a.iter().chain(pair.b).any(|value| *value <= 0.0) {
            return None;
        }
        if pair.is_paired {
            let ratios = changes_of_blocks(pair);
            let n = ratios.len() as f64;
            return Some(Self { value: mean(&ratios)?, error: (variance(&ratios)? / n).sqrt(), freedom: n - 1.0 });
        }
        let [a, b] = [pair.a, pair.b].map(|side| side.iter().map(|value| value.ln()).collect::<Vec<f64>>());
        let Welch { error, freedom } = Welch::of(&a, 1.0, &b)?;
        Some(Self { value: mean(&a)? - mean(&b)?, error, freedom })
    }

    fn factor(&self, level: f64) -> Factor {
        let half = if self.error > 0.0 { student_t_quantile(level / 2.0, self.freedom) * self.error } else { 0.0 };
        Factor { value: self.value.exp(), low: (self.value - half).exp(), high: (self.value + half).exp() }
    }

    /// The larger p value of two one-sided tests: that a is at most b / (1 + margin), and at least b · (1 + margin).
    fn p_equivalent(&self, margin: f64) -> f64 {
        let margin = margin.ln_1p();
        if margin.is_nan() || margin <= 0.0 {
            return 1.0;
        }
        // What is nearer to its end of the margin decides.
        let room = margin - self.value.abs();
        match self.error {
            error if error > 0.0 && room >= 0.0 => student_t_tail(room / error, self.freedom),
            error if error > 0.0 => 1.0 - student_t_tail(-room / error, self.freedom),
            _ if room >= 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// The test of a pair whose p value must reach `level`, not yet corrected.
fn test(pair: &Pair<'_>, level: f64) -> Significance {
    let n = pair.a.len();
    let ways = if pair.is_paired { 2f64.powi(n as i32) } else { choose(n + pair.b.len(), n) };
    let has_room = RANK_RESERVE * 2.0 / ways <= level;
    let (test, p) = match (pair.is_paired, has_room) {
        (false, true) => (TestKind::MannWhitney, mann_whitney(pair.a, pair.b)),
        (false, false) => (TestKind::Welch, welch_p(pair.a, pair.b)),
        (true, true) => (TestKind::SignedRank, signed_rank(&blocks(pair))),
        (true, false) => (TestKind::PairedT, paired_p(&changes_of_blocks(pair))),
    };
    Significance { p, p_corrected: 1.0, test }
}

/// Ways to choose `k` of `n`; infinite when there are more than a double can count.
fn choose(n: usize, k: usize) -> f64 {
    (1..=k.min(n - k)).fold(1.0, |ways, i| ways * (n - i + 1) as f64 / i as f64)
}

fn welch_p(a: &[f64], b: &[f64]) -> f64 {
    let (Some(welch), Some(x), Some(y)) = (Welch::of(a, 1.0, b), mean(a), mean(b)) else { return 1.0 };
    two_sided(rounded_difference(x, y, a.len().max(b.len())), welch.error, welch.freedom)
}

fn paired_p(differences: &[f64]) -> f64 {
    let (Some(centre), Some(spread)) = (mean(differences), variance(differences)) else { return 1.0 };
    let n = differences.len() as f64;
    two_sided(centre, (spread / n).sqrt(), n - 1.0)
}

fn two_sided(value: f64, error: f64, freedom: f64) -> f64 {
    if value == 0.0 {
        return 1.0;
    }
    // Without spread, t is infinite and p is 0.
    2.0 * if error > 0.0 { student_t_tail((value / error).abs(), freedom) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family { confidence: 0.95, relevant_change: 0.05, seed: 1 };

    fn pair<'a>(a: &'a [f64], b: &'a [f64]) -> Pair<'a> {
        Pair { a, b, is_paired: false, margin: 0.1 }
    }

    fn verdict(a: &[f64], b: &[f64]) -> Verdict {
        compare_family(&[pair(a, b)], &FAMILY).unwrap()[0].verdict
    }

    #[test]
    fn verdicts() {
        let base = [10.0, 10.2, 9.8, 10.1];
        assert_eq!(verdict(&[12.0, 12.3, 11.9, 12.1], &base), Verdict::Higher);
        assert_eq!(verdict(&[8.0, 8.3, 7.9, 8.1], &base), Verdict::Lower);
        assert_eq!(verdict(&[10.05, 10.15, 9.9, 10.0], &base), Verdict::Equivalent);
        assert_eq!(verdict(&[10.05, 12.15, 8.9, 10.0], &base), Verdict::Undecided);
        assert_eq!(verdict(&[12.0, 12.3], &base), Verdict::TooFew);
        // Told apart without warning, and too small to matter.
        let found = compare_family(&[pair(&[10.41, 10.4, 10.42], &[10.0, 10.01, 9.99])], &FAMILY).unwrap()[0];
        assert!(found.significance.unwrap().p < 1e-4 && found.difference.excludes_zero());
        assert_eq!(found.verdict, Verdict::Equivalent);
        assert!((found.change.unwrap() - 0.041).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_same_p_counts_less_in_a_larger_family() {
        let (a, b) = ([11.5, 12.2, 10.9, 11.4], [10.0, 10.6, 9.7, 10.3]);
        let found = |pairs: usize| compare_family(&vec![pair(&a, &b); pairs], &FAMILY).unwrap()[0];
        let (alone, of_many) = (found(1), found(50));
        assert_eq!((alone.verdict, of_many.verdict), (Verdict::Higher, Verdict::Undecided));
        let (alone, of_many) = (alone.significance.unwrap(), of_many.significance.unwrap());
        assert_eq!((alone.p, alone.p_corrected), (of_many.p, of_many.p));
        assert_eq!(of_many.p_corrected, (50.0 * of_many.p).min(1.0));
    }

    #[test]
    fn pairs_with_too_few_runs_cost_the_others_nothing() {
        let (a, b) = ([11.5, 12.2, 10.9, 11.4], [10.0, 10.6, 9.7, 10.3]);
        let found = compare_family(&[pair(&a[..1], &b), pair(&a, &b), pair(&a, &b[..2])], &FAMILY).unwrap();
        let verdicts: Vec<Verdict> = found.iter().map(|comparison| comparison.verdict).collect();
        assert_eq!(verdicts, [Verdict::TooFew, Verdict::Higher, Verdict::TooFew]);
        assert_eq!(found[0].significance, None);
        assert!(compare_family(&[], &FAMILY).unwrap().is_empty());
    }

    #[test]
    fn the_test_follows_from_the_number_of_runs() {
        let runs: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i * 7 % 20)).collect();
        let chosen = |n: usize, pairs: usize, is_paired: bool| {
            let pair = Pair { a: &runs[..n], b: &runs[20 - n..], is_paired, margin: 0.1 };
            compare_family(&vec![pair; pairs], &FAMILY).unwrap()[0].significance.unwrap().test
        };
        assert_eq!([chosen(4, 1, false), chosen(5, 1, false)], [TestKind::Welch, TestKind::MannWhitney]);
        assert_eq!([chosen(6, 10, false), chosen(7, 10, false)], [TestKind::Welch, TestKind::MannWhitney]);
        assert_eq!([chosen(10, 10, true), chosen(11, 10, true)], [TestKind::PairedT, TestKind::SignedRank]);
    }

    #[test]
    fn figures_without_spread_are_certain_and_zero_is_a_base() {
        assert_eq!(verdict(&[0.2; 3], &[0.1; 4]), Verdict::Higher);
        assert_eq!(verdict(&[0.1; 3], &[0.1; 20]), Verdict::Equivalent);
        let any = Family { relevant_change: 0.0, ..FAMILY };
        let computed = compare_family(&[pair(&[0.1 + 0.2; 9], &[0.3; 9])], &any).unwrap()[0];
        assert_eq!((computed.verdict, computed.shift), (Verdict::Equivalent, 0.0));
        let found = compare_family(&[pair(&[3.0, 3.1, 2.9], &[0.0; 3]), pair(&[0.0; 3], &[0.0; 3])], &FAMILY).unwrap();
        assert_eq!((found[0].verdict, found[0].change), (Verdict::Higher, None));
        assert_eq!(found[1].verdict, Verdict::Equivalent);
    }

    #[test]
    fn a_margin_is_a_factor_to_either_side() {
        let around = |centre: f64| [centre * 0.995, centre * 1.005, centre, centre * 1.002, centre * 0.998];
        let base = around(100.0);
        let found = |centre: f64, margin: f64| {
            let a = around(centre);
            let pair = Pair { a: &a, b: &base, is_paired: false, margin };
            compare_family(&[pair], &Family { relevant_change: 0.5, ..FAMILY }).unwrap()[0]
        };
        let verdicts = |centre: f64| [0.1, 0.2].map(|margin| found(centre, margin).verdict);
        assert_eq!(verdicts(108.0), [Verdict::Equivalent; 2]);
        assert_eq!(verdicts(115.0), [Verdict::Undecided, Verdict::Equivalent]);
        // 1 / 1.1 is 9.1 % less, not 10.
        assert_eq!(verdicts(100.0 / 1.09), [Verdict::Equivalent; 2]);
        assert_eq!(verdicts(100.0 / 1.11), [Verdict::Undecided, Verdict::Equivalent]);
        assert_eq!(found(100.0, 0.0).verdict, Verdict::Undecided, "without a margin nothing is equivalent");
        let factor = found(115.0, 0.1).factor.unwrap();
        assert!(factor.low > 1.13 && factor.low < 1.15 && factor.high < 1.17, "{factor:?}");
    }

    #[test]
    fn equivalence_is_corrected_for_the_family_too() {
        let (a, b) = ([10.0, 10.6, 9.7, 10.3], [10.1, 10.5, 9.7, 10.2]);
        let found = |pairs: usize| compare_family(&vec![pair(&a, &b); pairs], &FAMILY).unwrap()[0];
        assert_eq!([found(1).verdict, found(40).verdict], [Verdict::Equivalent, Verdict::Undecided]);
        assert!(found(40).p_equivalent.unwrap() > found(1).p_equivalent.unwrap());
    }

    #[test]
    fn blocks_are_compared_by_ratios() {
        // Blocks a hundred times as slow as each other: differences drown in the slow one, ratios agree.
        let b = [1.0, 100.0, 10.0, 3.0];
        let a = [1.101, 109.9, 11.0, 3.302];
        let pair = Pair { a: &a, b: &b, is_paired: true, margin: 0.2 };
        let found = compare_family(&[pair], &FAMILY).unwrap()[0];
        assert_eq!(found.verdict, Verdict::Higher, "{found:?}");
        let factor = found.factor.unwrap();
        assert!((factor.value - 1.1).abs() < 1e-3 && factor.low > 1.09 && factor.high < 1.11, "{factor:?}");
    }

    #[test]
    fn holm_matches_a_worked_example() {
        // By hand: 4·0.005, 3·0.01, 2·0.03 and 1·0.04, of which the last may not be below the third.
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-15, "{found} != {expected}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let good: &[f64] = &[1.0, 2.0, 3.0];
        let found = compare_family(&[pair(good, good), pair(good, &[])], &FAMILY);
        assert_eq!(found, Err(FamilyError::Pair { index: 1, cause: IntervalError::Empty }));
        let uneven = Pair { a: good, b: &good[..2], is_paired: true, margin: 0.1 };
        assert_eq!(compare_family(&[uneven], &FAMILY), Err(FamilyError::Unequal { index: 0, a: 3, b: 2 }));
        let family = Family { relevant_change: -0.1, ..FAMILY };
        assert_eq!(compare_family(&[pair(good, good)], &family), Err(FamilyError::RelevantChange(-0.1)));
        let family = Family { confidence: 95.0, ..FAMILY };
        let cause = IntervalError::Confidence(95.0);
        assert_eq!(compare_family(&[pair(good, good)], &family), Err(FamilyError::Pair { index: 0, cause }));
    }
}
