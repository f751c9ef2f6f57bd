//! Rows whose blocks are of several machines: each machine is fitted by itself, and asked whether it agrees.

use super::fit::Fit;
use crate::comparison::holm;
use crate::heterogeneity::{Measured, heterogeneity_p};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What several machines say of a variant's distance from the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Machines {
    /// Each of them shows the difference by itself.
    Each,
    /// They show the difference together, and not each by itself.
    Together,
    /// They differ in it by more than the margin. The interval spans those of all of them.
    Differ,
}

/// Logarithms by block and variant.
type Blocks = Vec<Vec<Option<f64>>>;

/// The machines of a row, fitted one by one for the variants that all of them compare; none where they are not several.
pub struct Strata(Vec<Fit>);

impl Strata {
    /// What each machine says.
    pub fn fits(&self) -> &[Fit] {
        &self.0
    }

    /// How far a variant is from another on each of them.
    fn distances(&self, i: usize, j: usize) -> Vec<Measured> {
        let of = |part: &Fit| {
            let spread = part.spread(i, j);
            Measured { value: part.means[i] - part.means[j], error: spread.error, freedom: spread.freedom }
        };
        self.0.iter().map(of).collect()
    }
}

/// Every row with its machines, from its blocks and the machine of each. Of a machine on which too few blocks compare
/// anything nothing is used.
pub fn fits<'a>(rows: impl Iterator<Item = (&'a [Vec<Option<f64>>], &'a [u32])>) -> Vec<(Fit, Strata)> {
    let by_machine: Vec<Vec<Blocks>> = rows.map(|(blocks, machines)| blocks_by_machine(blocks, machines)).collect();
    let all: Vec<&[Vec<Option<f64>>]> = by_machine.iter().flatten().map(Vec::as_slice).collect();
    let mut fitted = Fit::of(&all).into_iter();
    let of_row = |parts: &Vec<Blocks>| whole(parts.iter().map(Vec::len).zip(fitted.by_ref()).collect());
    by_machine.iter().map(of_row).collect()
}

/// The whole of machines with so many blocks each.
fn whole(mut machines: Vec<(usize, Fit)>) -> (Fit, Strata) {
    if machines.len() > 1 {
        machines.retain(|(_, fit)| fit.variants.len() > 1);
    }
    if machines.len() == 1 {
        return (machines.remove(0).1, Strata(Vec::new()));
    }
    let all: usize = machines.iter().map(|(blocks, _)| blocks).sum();
    let shares: Vec<f64> = machines.iter().map(|(blocks, _)| *blocks as f64 / all as f64).collect();
    let parts: Vec<Fit> = machines.into_iter().map(|(_, fit)| fit).collect();
    let common = Fit::common(&parts);
    let parts: Vec<Fit> = parts.iter().map(|part| part.only(&common)).collect();
    (Fit::over(&shares.into_iter().zip(&parts).collect::<Vec<_>>()), Strata(parts))
}

/// A row's blocks, those of each machine together.
fn blocks_by_machine(blocks: &[Vec<Option<f64>>], machines: &[u32]) -> Vec<Blocks> {
    let known: BTreeSet<u32> = machines.iter().copied().collect();
    if known.len() < 2 {
        return vec![blocks.to_vec()];
    }
    let of = |machine: &u32| {
        let own = blocks.iter().zip(machines).filter(|(_, of)| *of == machine);
        own.map(|(block, _)| block.clone()).collect()
    };
    known.iter().map(of).collect()
}

/// Of which variants, by their place in the fit, machines differ in the distance from the best: by more than the margin
/// and, over all rows together, with an error of `alpha`.
pub fn differ(margins: &[f64], fits: &[(Fit, Strata)], alpha: f64) -> Vec<Vec<bool>> {
    let mut tested = Vec::new();
    for (at, (margin, (whole, strata))) in margins.iter().zip(fits).enumerate() {
        let Some(best) = (0..whole.means.len()).min_by(|a, b| whole.means[*a].total_cmp(&whole.means[*b])) else {
            continue;
        };
        let others = (0..whole.means.len()).filter(|variant| *variant != best);
        for variant in others.filter(|_| !strata.0.is_empty()) {
            let distances = strata.distances(variant, best);
            let values = || distances.iter().map(|one| one.value);
            let range = values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min);
            tested.push((at, variant, heterogeneity_p(&distances), range > *margin));
        }
    }
    let corrected = holm(&tested.iter().map(|(_, _, p, _)| *p).collect::<Vec<_>>());
    let mut differ: Vec<Vec<bool>> = fits.iter().map(|(whole, _)| vec![false; whole.means.len()]).collect();
    for ((row, variant, _, matters), p) in tested.into_iter().zip(corrected) {
        differ[row][variant] = matters && p <= alpha;
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::super::{Against, Conclusion, Row, against_best};
    use super::*;

    /// Two machines of so many blocks: on each the costs of variants, times what a block has in common, within 2 %.
    fn blocks(machines: [&[f64]; 2], each: usize) -> (Vec<Vec<Option<f64>>>, Vec<u32>) {
        let mut state = 5u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut blocks, mut of) = (Vec::new(), Vec::new());
        for (machine, costs) in machines.iter().enumerate() {
            for _ in 0..each {
                let shared = 1.0 + random();
                let value = |cost: &f64| Some((cost * shared * (0.99 + 0.02 * random())).ln());
                blocks.push(costs.iter().map(value).collect());
                of.push(machine as u32);
            }
        }
        (blocks, of)
    }

    fn judged((blocks, machines): &(Vec<Vec<Option<f64>>>, Vec<u32>)) -> Vec<Against> {
        let row = Row { blocks, machines, margin: 1.1f64.ln() };
        against_best(&[row], 0.95).remove(0).into_iter().flatten().collect()
    }

    fn conclusions(found: &[Against]) -> Vec<Conclusion> {
        found.iter().map(|against| against.conclusion).collect()
    }

    #[test]
    fn a_machine_that_is_twice_as_fast_changes_no_ratio() {
        let found = judged(&blocks([&[1.0, 1.5, 4.0], &[2.0, 3.0, 8.0]], 6));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Different, Conclusion::Different]);
        assert_eq!(
            found.iter().map(|one| one.machines).collect::<Vec<_>>(),
            [None, Some(Machines::Each), Some(Machines::Each)]
        );
        assert!((found[1].factor - 1.5).abs() < 0.02 && found[1].high < 1.6, "{found:?}");
    }

    #[test]
    fn an_order_that_is_reversed_decides_nothing_but_who_is_behind_on_each() {
        let found = judged(&blocks([&[1.0, 2.0, 8.0], &[2.0, 1.0, 8.0]], 6));
        assert_eq!(conclusions(&found), [Conclusion::Undecided, Conclusion::Undecided, Conclusion::Different]);
        let differing = found.iter().filter(|one| one.machines == Some(Machines::Differ)).count();
        assert!(differing >= 1 && found[2].machines.is_some(), "{found:?}");
        assert!(found[..2].iter().all(|one| one.low == 1.0 && one.high > 1.9), "both may be twice the best: {found:?}");
    }

    #[test]
    fn what_is_behind_everywhere_by_factors_that_differ_is_different_within_what_machines_span() {
        let found = judged(&blocks([&[1.0, 2.0], &[1.0, 4.0]], 6));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Different]);
        assert_eq!(found[1].machines, Some(Machines::Differ));
        assert!(found[1].low < 2.0 && found[1].low > 1.8 && found[1].high > 4.0 && found[1].high < 4.4, "{found:?}");
    }

    #[test]
    fn differences_that_do_not_matter_are_none_between_machines_either() {
        let found = judged(&blocks([&[1.0, 2.0], &[1.0, 2.1]], 8));
        assert_eq!(found[1].machines, Some(Machines::Each), "5 % with a margin of 10 %: {found:?}");
    }

    /// Deviations from the other machine's means would make the interval a hundred times as wide.
    #[test]
    fn deviations_are_those_from_the_own_machine() {
        let both = judged(&blocks([&[1.0, 2.0], &[1.0, 2.15]], 6));
        let one = judged(&(blocks([&[1.0, 2.0], &[1.0, 2.15]], 6).0[..6].to_vec(), vec![0; 6]));
        let width = |found: &[Against]| found[1].high / found[1].low;
        assert!(width(&both) < width(&one), "twice the blocks: {both:?} {one:?}");
        assert!((both[1].factor - (2.0f64 * 2.15).sqrt()).abs() < 0.02, "{both:?}");
    }

    #[test]
    fn a_machine_with_too_few_blocks_and_a_variant_that_one_machine_lacks_are_not_compared() {
        let (mut all, mut machines) = blocks([&[1.0, 2.0, 3.0], &[3.0, 1.0, 1.0]], 6);
        all.truncate(8);
        machines.truncate(8);
        let found = judged(&(all, machines));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Different, Conclusion::Different]);
        assert!(found.iter().all(|one| one.machines.is_none()), "two blocks say nothing of the second machine");
        let (mut all, machines) = blocks([&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]], 6);
        all[6..].iter_mut().for_each(|block| block[2] = None);
        let found = judged(&(all, machines));
        assert_eq!(conclusions(&found), [Conclusion::Best, Conclusion::Different, Conclusion::TooFew]);
    }

    #[test]
    fn counts_that_do_not_vary_are_compared_with_those_of_the_other_machine() {
        let exact = |costs: [[f64; 2]; 2]| {
            let blocks: Vec<Vec<Option<f64>>> =
                costs.iter().flat_map(|own| vec![own.iter().map(|cost| Some(cost.ln())).collect(); 3]).collect();
            judged(&(blocks, vec![0, 0, 0, 1, 1, 1]))
        };
        let same = exact([[45.0, 90.0], [45.0, 90.0]]);
        assert_eq!((same[1].conclusion, same[1].machines), (Conclusion::Different, Some(Machines::Each)));
        let other = exact([[45.0, 90.0], [45.0, 30.0]]);
        assert_eq!(conclusions(&other), [Conclusion::Undecided, Conclusion::Undecided]);
    }

    /// One of twenty families may say that machines differ whose ratios are the same, and one claim a difference that is
    /// none: of eighty hardly more than eight.
    #[test]
    fn equal_machines_differ_as_rarely_as_promised() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let (mut differing, mut wrong) = (0, 0);
        let families = 80;
        for _ in 0..families {
            let mut block = |spread: f64| {
                let shared = normal();
                (0..3).map(|_| Some(shared + spread * normal())).collect::<Vec<Option<f64>>>()
            };
            let all: Vec<Vec<Option<f64>>> = (0..10).map(|at| block(if at < 5 { 0.05 } else { 0.15 })).collect();
            let machines: Vec<u32> = (0..10).map(|at| u32::from(at >= 5)).collect();
            let row = Row { blocks: &all, machines: &machines, margin: 0.01 };
            let found = against_best(&[row], 0.95).remove(0);
            differing += usize::from(found.iter().flatten().any(|one| one.machines == Some(Machines::Differ)));
            let is_claimed = |one: &Against| matches!(one.conclusion, Conclusion::Different | Conclusion::Best);
            wrong += usize::from(found.iter().flatten().any(is_claimed));
        }
        assert!(differing * 10 <= families, "{differing} of {families}");
        assert!(wrong * 10 <= families, "{wrong} of {families}");
    }
}
