//! Cards for kinds of application to which some options bring messages too late.
//!
//! What is too late is no choice, however cheap it is; and beside it nothing can be told of the others: polling twice a
//! second costs a fifth of any push, and varies so much that all pushes may be as good as each other beside it.

use super::choice::{late_ms, with_figures};
use pushlab_experiment::Workload;
use pushlab_report::{CardRow, NarrowedCard, Scorecard};

/// A narrowed card for each set of options that are too late, with the kinds of application for which it is these.
/// `judged_without` judges rows, given by their places, without such options.
pub fn narrowed(card: &Scorecard, judged_without: impl Fn(&[usize], &[usize]) -> Vec<CardRow>) -> Vec<NarrowedCard> {
    let mut groups: Vec<(Vec<usize>, Vec<Workload>)> = Vec::new();
    for workload in Workload::ALL {
        let rows: Vec<&CardRow> = card.rows.iter().filter(|row| row.bears_on(workload)).collect();
        let (candidates, _) = with_figures(card, &rows);
        let late: Vec<usize> = candidates.iter().copied().filter(|option| late_ms(&rows, *option).is_some()).collect();
        if late.is_empty() || late.len() == candidates.len() {
            continue;
        }
        match groups.iter_mut().find(|(other, _)| *other == late) {
            Some((_, workloads)) => workloads.push(workload),
            None => groups.push((late, vec![workload])),
        }
    }
    let card_of = |(late, workloads): (Vec<usize>, Vec<Workload>)| {
        let bears = |row: &usize| workloads.iter().any(|workload| card.rows[*row].bears_on(*workload));
        let rows: Vec<usize> = (0..card.rows.len()).filter(bears).collect();
        let rows = judged_without(&late, &rows);
        NarrowedCard { workloads, late: late.iter().map(|at| card.options[*at].key.clone()).collect(), rows }
    };
    groups.into_iter().map(card_of).collect()
}
