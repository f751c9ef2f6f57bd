//! Families of rows whose truth is known: how often conclusions are wrong, and intervals miss.
//!
//! A row is measured as a scorecard measures: blocks, in each of them segments of every variant in random order, in each
//! segment publications whose deliveries share most of their fate. The machine drifts by a line and by a random walk, and
//! some segments go astray. Variants vary by 0.5 to 8 % from block to block.

use super::fit::Fit;
use super::{Conclusion, Row, against_best};
use crate::distribution::student_t_quantile;
use fastrand::Rng;

const SEGMENTS: usize = 6;
const PUBLICATIONS: usize = 8;
const ROWS: usize = 8;

type Blocks = Vec<Vec<Option<f64>>>;

/// A row, and the logarithms around which its variants lie.
struct Simulated {
    blocks: Blocks,
    truth: Vec<f64>,
}

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (2.0 * std::f64::consts::PI * rng.f64()).cos()
}

fn margin() -> f64 {
    1.1f64.ln()
}

/// What is true: some are as good as the best, some just beyond the margin, others anywhere.
fn truth(rng: &mut Rng, variants: usize) -> Vec<f64> {
    let best = rng.usize(..variants);
    let of = |variant: usize, rng: &mut Rng| match rng.u32(..4) {
        _ if variant == best => 0.0,
        0 => 0.0,
        1 => margin() * 1.001,
        2 => 0.2 * rng.f64(),
        _ => rng.f64(),
    };
    (0..variants).map(|variant| of(variant, rng)).collect()
}

/// What a segment adds to its variant's level: publications share their deliveries' fate.
fn segment(rng: &mut Rng, noise: f64) -> f64 {
    let shared: f64 = (0..PUBLICATIONS).map(|_| normal(rng)).sum::<f64>() / (PUBLICATIONS as f64).sqrt();
    let astray = if rng.f64() < 0.03 { (1.2 + 0.6 * rng.f64()).ln() } else { 0.0 };
    noise * shared + astray
}

fn simulate(rng: &mut Rng, blocks: usize, variants: usize) -> Simulated {
    let truth = truth(rng, variants);
    // From block to block a variant varies by its own, too: what a start of the server settles for it.
    let spreads: Vec<f64> = (0..variants).map(|_| 0.005 * 16f64.powf(rng.f64())).collect();
    let (slope, step) = (0.02 * normal(rng), 0.004 * rng.f64());
    let (mut walk, mut time) = (0.0, 0.0);
    let mut block = |rng: &mut Rng| {
        let start = 0.1 * normal(rng);
        let own: Vec<f64> = spreads.iter().map(|spread| 0.8 * spread * normal(rng)).collect();
        let mut sums = vec![0.0; variants];
        for _ in 0..SEGMENTS {
            let mut order: Vec<usize> = (0..variants).collect();
            rng.shuffle(&mut order);
            for variant in order {
                walk += step * normal(rng);
                time += 1.0 / (SEGMENTS * variants) as f64;
                let noise = 0.6 * spreads[variant] * (SEGMENTS as f64).sqrt();
                sums[variant] += start + slope * time + walk + segment(rng, noise);
            }
        }
        let value = |((sum, own), truth): ((&f64, &f64), &f64)| Some(truth + own + sum / SEGMENTS as f64);
        sums.iter().zip(&own).zip(&truth).map(value).collect()
    };
    let blocks = (0..blocks).map(|_| block(rng)).collect();
    Simulated { blocks, truth }
}

/// Of how many families something was wrong, and of how many intervals of plain contrasts.
#[derive(Debug, Default)]
struct Tally {
    wrongly_different: u32,
    wrongly_equivalent: u32,
    /// Families of which an interval misses.
    missed: u32,
    contrasts: u32,
    missed_contrasts: u32,
    undecided: u32,
    cells: u32,
}

impl Tally {
    fn of(families: u32, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut tally = Self::default();
        for _ in 0..families {
            let (blocks, variants) = (rng.usize(4..=8), rng.usize(3..=7));
            let rows: Vec<Simulated> = (0..ROWS).map(|_| simulate(&mut rng, blocks, variants)).collect();
            tally.conclusions(&rows);
            tally.plain_contrasts(&rows);
        }
        tally
    }

    fn conclusions(&mut self, rows: &[Simulated]) {
        let asked: Vec<Row<'_>> =
            rows.iter().map(|row| Row { blocks: &row.blocks, machines: &[], margin: margin() }).collect();
        let (mut different, mut equivalent, mut missed) = (false, false, false);
        for (row, found) in rows.iter().zip(against_best(&asked, 0.95)) {
            let best = row.truth.iter().copied().fold(f64::INFINITY, f64::min);
            for (truth, against) in row.truth.iter().zip(found) {
                let (above, against) = (truth - best, against.unwrap());
                match against.conclusion {
                    Conclusion::Best => different |= above > 0.0,
                    Conclusion::Different => different |= above <= 0.0,
                    Conclusion::Equivalent => equivalent |= above > margin(),
                    Conclusion::Undecided => self.undecided += 1,
                    Conclusion::TooFew => panic!("four blocks are enough"),
                }
                missed |= against.low.ln() > above + 1e-9 || against.high.ln() < above - 1e-9;
                self.cells += 1;
            }
        }
        self.wrongly_different += u32::from(different);
        self.wrongly_equivalent += u32::from(equivalent);
        self.missed += u32::from(missed);
    }

    fn plain_contrasts(&mut self, rows: &[Simulated]) {
        let blocks: Vec<&[Vec<Option<f64>>]> = rows.iter().map(|row| row.blocks.as_slice()).collect();
        for (row, fit) in rows.iter().zip(Fit::of(&blocks)) {
            for i in 0..fit.means.len() {
                for j in 0..i {
                    let spread = fit.spread(i, j);
                    let off = (fit.means[i] - fit.means[j] - (row.truth[i] - row.truth[j])).abs();
                    self.contrasts += 1;
                    self.missed_contrasts += u32::from(off > student_t_quantile(0.025, spread.freedom) * spread.error);
                }
            }
        }
    }

    fn share(count: u32, of: u32) -> f64 {
        f64::from(count) / f64::from(of)
    }
}

#[test]
fn conclusions_are_rarely_wrong() {
    let tally = Tally::of(40, 1);
    assert!(tally.wrongly_different <= 5 && tally.wrongly_equivalent <= 5 && tally.missed <= 5, "{tally:?}");
    let covered = 1.0 - Tally::share(tally.missed_contrasts, tally.contrasts);
    assert!((0.92..=0.975).contains(&covered), "{covered} {tally:?}");
    assert!(tally.undecided * 5 < tally.cells * 3, "what decides nothing is never wrong: {tally:?}");
}

/// A thousand families: at most 65 with a wrong "different", at most 65 with a wrong "equivalent" (the 50 that are meant, and
/// two standard deviations of chance), all intervals of a family at once in 95 % of families, and each plain contrast of
/// two variants alone in 92 to 97 %.
#[test]
fn a_thousand_families_keep_what_is_promised() {
    let tally = Tally::of(1_000, 2);
    assert!(tally.wrongly_different <= 65 && tally.wrongly_equivalent <= 65 && tally.missed <= 65, "{tally:?}");
    let covered = 1.0 - Tally::share(tally.missed_contrasts, tally.contrasts);
    assert!((0.92..=0.97).contains(&covered), "{covered} {tally:?}");
}

/// How many of `tries` comparisons of two builds over ten blocks find that one takes 5 % more.
fn found(tries: u32, more: f64, spread: f64) -> u32 {
    let mut rng = Rng::with_seed(3);
    let mut finds = 0;
    for _ in 0..tries {
        let block = |rng: &mut Rng| {
            let start = 0.05 * normal(rng);
            [0.0, more].map(|level| Some(level + start + spread * normal(rng))).to_vec()
        };
        let blocks: Blocks = (0..10).map(|_| block(&mut rng)).collect();
        let against = against_best(&[Row { blocks: &blocks, machines: &[], margin: 1.02f64.ln() }], 0.95).remove(0);
        finds += u32::from(against[1].is_some_and(|against| against.conclusion == Conclusion::Different));
    }
    finds
}

#[test]
fn ten_blocks_find_five_per_cent() {
    // With values that vary by 3 % from block to block, 90 % of tries; by 5 %, half.
    let share = f64::from(found(300, 1.05f64.ln(), 0.03)) / 300.0;
    assert!((0.85..=1.0).contains(&share), "{share}");
    assert!(f64::from(found(300, 0.0, 0.03)) / 300.0 <= 0.05);
}

/// Scorecards of eleven rows and nine options over six blocks, whose values vary by 3 % from block to block, somewhat more
/// for some options than for others: a quiet machine's. Their margin is a quarter.
#[test]
fn six_blocks_of_a_quiet_machine_decide_nine_of_ten() {
    const CARDS: usize = 20;
    let mut rng = Rng::with_seed(4);
    let mut undecided = 0;
    for _ in 0..CARDS {
        let row = |rng: &mut Rng| {
            let levels: [f64; 9] = std::array::from_fn(|_| 1.4 * rng.f64() * rng.f64());
            let spreads: [f64; 9] = std::array::from_fn(|_| 0.03 * 1.5f64.powf(normal(rng)));
            let block = |rng: &mut Rng| {
                let start = 0.1 * normal(rng);
                (0..9).map(|option| Some(levels[option] + start + spreads[option] * normal(rng))).collect()
            };
            (0..6).map(|_| block(rng)).collect::<Blocks>()
        };
        let rows: Vec<Blocks> = (0..11).map(|_| row(&mut rng)).collect();
        let asked: Vec<Row<'_>> =
            rows.iter().map(|blocks| Row { blocks, machines: &[], margin: 1.25f64.ln() }).collect();
        let found = against_best(&asked, 0.95);
        let is_undecided = |against: &&Option<super::Against>| against.unwrap().conclusion == Conclusion::Undecided;
        undecided += found.iter().flatten().filter(is_undecided).count();
    }
    let share = undecided as f64 / (CARDS * 11 * 9) as f64;
    assert!(share < 0.1, "{share}");
}
