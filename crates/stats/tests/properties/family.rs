//! Families of comparisons: false alarms and what is found.

use crate::draw::{Shape, normal, share};
use fastrand::Rng;
use pushlab_stats::{Family, Pair, Verdict, compare_family};

const FIGURES: usize = 10;
const FAMILY: Family = Family { confidence: 0.95, relevant_change: 0.05, seed: 1 };
const SHAPES: [Shape; 3] = [Shape::Normal(0.05), Shape::LogNormal(0.3), Shape::Outliers(0.05)];

/// Ten figures of two builds, `n` repeats each; the first figure of the second build is `slower` times as large.
/// Verdicts about the second build. With `drift`, each block of the two has a level of its own.
fn verdicts(rng: &mut Rng, shape: Shape, n: usize, slower: f64, drift: f64, family: (&Family, bool)) -> Vec<Verdict> {
    let blocks: Vec<f64> = (0..n).map(|_| 1.0 + drift * normal(rng)).collect();
    let mut side = |level: f64| -> Vec<f64> {
        shape.runs(rng, n, level).iter().zip(&blocks).map(|(figure, block)| figure * block).collect()
    };
    let sides: Vec<(Vec<f64>, Vec<f64>)> =
        (0..FIGURES).map(|i| (side(if i == 0 { slower } else { 1.0 }), side(1.0))).collect();
    let (family, is_paired) = family;
    let pairs: Vec<Pair<'_>> = sides.iter().map(|(a, b)| Pair { a, b, is_paired, margin: 0.1 }).collect();
    compare_family(&pairs, family).unwrap().iter().map(|comparison| comparison.verdict).collect()
}

fn alarms(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Higher | Verdict::Lower)).count()
}

#[test]
fn a_build_is_seldom_different_from_itself() {
    let mut table =
        "families of ten equal figures with an alarm, and with two, by repeats; any change counts\n".to_owned();
    let any = Family { relevant_change: 0.0, ..FAMILY };
    for is_paired in [false, true] {
        for shape in SHAPES {
            let mut row = format!("{:<18} paired {is_paired:<5}", format!("{shape:?}"));
            for n in [3, 5, 7, 10] {
                let mut rng = Rng::with_seed(n as u64);
                let (mut one, mut two) = (0, 0);
                let trials = if n < 8 { 500 } else { 60 };
                for _ in 0..trials {
                    let found = alarms(&verdicts(&mut rng, shape, n, 1.0, 0.0, (&any, is_paired)));
                    one += u32::from(found > 0);
                    two += u32::from(found > 1);
                }
                let [one, two] = [one, two].map(|count| f64::from(count) / f64::from(trials));
                row.push_str(&format!("  {one:.3} {two:.3}"));
                // Three standard deviations of a share of 5 % in as many trials.
                let slack = 3.0 * (0.05 * 0.95 / f64::from(trials)).sqrt();
                assert!(one <= 0.05 + slack && two <= 0.02, "{shape:?}, {n} repeats: {one} {two}");
            }
            table.push_str(&(row + "\n"));
        }
    }
    print!("{table}");
}

#[test]
fn a_fifth_slower_is_found_among_ten_figures() {
    let mut table = "share of families in which the one figure that is 20 % larger is found, by repeats\n".to_owned();
    // At least this share with 5, 7 and 10 repeats.
    let wanted = [
        (Shape::Normal(0.05), [0.8, 0.97, 0.99]),
        (Shape::LogNormal(0.05), [0.8, 0.97, 0.99]),
        (Shape::Outliers(0.05), [0.4, 0.6, 0.9]),
    ];
    for (shape, least) in wanted {
        let mut row = format!("{:<18}", format!("{shape:?}"));
        for (n, least) in [5, 7, 10].into_iter().zip(least) {
            let mut rng = Rng::with_seed(n as u64);
            let trials = if n < 8 { 300 } else { 60 };
            let is_found = |_| verdicts(&mut rng, shape, n, 1.2, 0.0, (&FAMILY, false))[0] == Verdict::Higher;
            let found = share(trials, is_found);
            row.push_str(&format!("  {found:.3}"));
            assert!(found >= least, "{shape:?}, {n} repeats: {found}");
        }
        table.push_str(&(row + "\n"));
    }
    print!("{table}");
}

/// A machine whose speed wanders by 15 % from block to block hides a fifth from unpaired tests.
#[test]
fn pairing_sees_through_drift() {
    let mut found = [false, true].map(|is_paired| {
        let mut rng = Rng::with_seed(9);
        share(300, |_| {
            verdicts(&mut rng, Shape::Normal(0.03), 7, 1.2, 0.15, (&FAMILY, is_paired))[0] == Verdict::Higher
        })
    });
    println!("a fifth under drift: found {:.3} unpaired, {:.3} paired", found[0], found[1]);
    assert!(found[0] < 0.4 && found[1] > 0.9, "{found:?}");
    // And drift alone is no difference.
    found[0] = share(300, |trial| {
        let mut rng = Rng::with_seed(u64::from(trial));
        alarms(&verdicts(&mut rng, Shape::Normal(0.03), 7, 1.0, 0.15, (&FAMILY, true))) > 0
    });
    assert!(found[0] <= 0.08, "{found:?}");
}

/// A build that takes 5 % more for a delivery, in blocks of which each has its own level: 30 tries of ten blocks, ten
/// figures each, find it 24 times or more where values vary by 2 % within a block. A build is worse or better than itself in
/// 3 of 20 tries at most.
#[test]
fn ten_blocks_find_a_twentieth() {
    let family = Family { relevant_change: 0.02, ..FAMILY };
    let mut rng = Rng::with_seed(12);
    let mut tries = |slower: f64, tries: usize| {
        let is_alarmed =
            |_: &usize| alarms(&verdicts(&mut rng, Shape::Normal(0.02), 10, slower, 0.1, (&family, true))) > 0;
        (0..tries).filter(is_alarmed).count()
    };
    let (found, invented) = (tries(1.05, 30), tries(1.0, 20));
    println!("a twentieth in ten blocks: found {found} of 30; invented {invented} of 20");
    assert!(found >= 24 && invented <= 3, "{found} {invented}");
}
