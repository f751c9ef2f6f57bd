//! The runs of a campaign that are still to be done, and those that are put off.

use pushlab_analysis::record::PlannedRun;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use std::collections::VecDeque;

/// A run to be done, and how often it was tried before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Which.
    pub planned: PlannedRun,
    /// Tries so far.
    pub attempts: u32,
}

/// Runs in the order in which they are done.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    waiting: VecDeque<Waiting>,
    experiments: &'a [Experiment],
}

/// Whether a cell's load follows from what other runs of the same block measured, so that it comes after them.
pub(crate) fn follows_others(cell: &Cell, experiments: &[Experiment]) -> bool {
    experiments.iter().any(|experiment| experiment.name == cell.experiment && experiment.capacity_share.is_some())
}

impl<'a> Queue<'a> {
    /// Runs that were never tried.
    pub fn new(runs: impl Iterator<Item = PlannedRun>, experiments: &'a [Experiment]) -> Self {
        Self { waiting: runs.map(|planned| Waiting { planned, attempts: 0 }).collect(), experiments }
    }

    /// Takes out the next.
    pub fn next(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// Puts a run behind those of its block that do not follow from others: later, when the machine may be in another
    /// mood, but before whatever needs its result.
    pub fn put_off(&mut self, run: Waiting) {
        let follows = follows_others(&run.planned.cell, self.experiments);
        let is_after = |other: &Waiting| {
            other.planned.repeat > run.planned.repeat
                || follows_others(&other.planned.cell, self.experiments) && !follows
        };
        let place = self.waiting.iter().position(is_after).unwrap_or(self.waiting.len());
        self.waiting.insert(place, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::order;
    use crate::experiments;

    #[test]
    fn what_is_put_off_stays_in_its_block_and_before_what_needs_it() {
        let (_, experiments) = experiments::load_all("peers", Some("quick")).unwrap();
        let runs = order(&experiments, 7);
        let mut queue = Queue::new(runs.iter().cloned(), &experiments);
        let first = queue.next().unwrap();
        assert_eq!((&first.planned, first.attempts), (&runs[0], 0));
        queue.put_off(Waiting { attempts: 1, ..first.clone() });
        let rest: Vec<Waiting> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(rest.len(), runs.len());
        let place = rest.iter().position(|run| run.planned == first.planned).unwrap();
        assert_eq!(rest[place].attempts, 1);
        let follower = rest.iter().position(|run| follows_others(&run.planned.cell, &experiments)).unwrap();
        assert_eq!(place + 1, follower, "behind the block's others");
        assert!(rest[..place].iter().all(|run| run.planned.repeat == 1));

        // One that follows from others, and one of the last block.
        let mut queue = Queue::new(rest[follower..].iter().map(|run| run.planned.clone()), &experiments);
        let late = queue.next().unwrap();
        queue.put_off(late.clone());
        let rest: Vec<Waiting> = std::iter::from_fn(|| queue.next()).collect();
        let place = rest.iter().position(|run| *run == late).unwrap();
        assert_eq!((rest[place - 1].planned.repeat, rest[place + 1].planned.repeat), (1, 2));
        let mut queue = Queue::new(rest[place + 1..].iter().map(|run| run.planned.clone()), &experiments);
        while let Some(run) = queue.next() {
            if queue.waiting.is_empty() {
                queue.put_off(run.clone());
                assert_eq!(queue.next(), Some(run), "the very last comes again at once");
            }
        }
    }
}
