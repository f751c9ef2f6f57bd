//! Ranking with exact ties, near ties and noise.

use crate::draw::{Shape, share};
use fastrand::Rng;
use pushlab_stats::rank;

fn ranks(entries: &[(usize, Vec<f64>)]) -> Vec<u32> {
    let mut places = rank(entries, 0.95, 1).unwrap();
    places.sort_by_key(|place| place.key);
    places.iter().map(|place| place.rank).collect()
}

#[test]
fn exact_and_near_ties_share_a_rank_whatever_the_number_of_runs() {
    for figure in [0.1f64, 0.3, 1.0 / 3.0, 1e-9 / 7.0, 1e15 / 7.0] {
        for (n, m) in [(2, 3), (3, 20), (7, 8), (8, 9), (10, 20), (50, 9)] {
            let next = f64::from_bits(figure.to_bits() + 1);
            let entries = [(0, vec![figure; n]), (1, vec![figure; m]), (2, vec![next; n]), (3, vec![2.0 * figure; m])];
            assert_eq!(ranks(&entries), [1, 1, 1, 4], "{n} and {m} times {figure}");
        }
    }
}

/// No correction is made, and the first and the last of a ranking are its most different pair: the studentized range
/// of four groups exceeds what 5 % of pairs exceed in 20 % of cases.
#[test]
fn equals_mostly_tie_and_halves_never_do() {
    for shape in [Shape::Normal(0.05), Shape::LogNormal(0.3)] {
        for n in [3, 5, 10] {
            let mut rng = Rng::with_seed(n as u64);
            let apart = share(300, |_| {
                let entries: Vec<_> = (0..4).map(|key| (key, shape.runs(&mut rng, n, 1.0))).collect();
                ranks(&entries) != [1; 4]
            });
            println!("{shape:?}, {n} runs: equals set apart in {apart:.3}");
            assert!((0.05..=0.27).contains(&apart), "{shape:?}, {n} runs: {apart}");
        }
    }
    let mut rng = Rng::with_seed(1);
    for _ in 0..300 {
        let shape = Shape::Normal(0.05);
        let entries = [(0, shape.runs(&mut rng, 5, 1.0)), (1, shape.runs(&mut rng, 5, 0.5))];
        assert_eq!(ranks(&entries), [2, 1], "{entries:?}");
    }
}
