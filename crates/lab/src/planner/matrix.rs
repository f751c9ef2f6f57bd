//! The whole matrix of some experiments, repeat by repeat.

use super::rates::Rates;
use super::{Done, Planned, Planner, Side, numbered};
use pushlab_analysis::report::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_record::PlannedRun;

/// Plans every cell of all experiments as often as each asks for.
///
/// Every repeat has the cells of all experiments, so that an interruption leaves whole repeats. Experiments come in random
/// order, and so do the cells of each, one after the other: what is compared is measured within seconds, and a machine
/// that drifts in minutes does so alike for all of it. Cells whose load follows from what others of the repeat measured
/// come after those.
pub struct Matrix {
    experiments: Vec<Experiment>,
    runs: Vec<PlannedRun>,
}

impl Matrix {
    /// Of these experiments, in an order that the seed gives.
    pub fn new(experiments: &[Experiment], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut runs: Vec<PlannedRun> = Vec::new();
        let repeats = experiments.iter().map(|experiment| experiment.repeats).max().unwrap_or(0);
        for repeat in 1..=repeats {
            let mut asking: Vec<&Experiment> = experiments.iter().filter(|asking| asking.repeats >= repeat).collect();
            random.shuffle(&mut asking);
            let mut cells: Vec<(Cell, u32)> = Vec::new();
            for experiment in asking {
                let mut own = experiment.cells();
                random.shuffle(&mut own);
                // Those that go side by side are done where the first of them is.
                let all = own.clone();
                own.sort_by_cached_key(|cell| {
                    let place = experiment.beside(cell);
                    let goes_beside =
                        |first: &Cell| first == cell || place.is_some() && experiment.beside(first) == place;
                    all.iter().position(goes_beside)
                });
                cells.extend(own.into_iter().map(|cell| (cell, repeat)));
            }
            cells.sort_by_key(|(cell, _)| follows_others(cell, experiments));
            runs.extend(numbered(cells, runs.len() as u32 + 1, &mut random));
        }
        Self { experiments: experiments.to_vec(), runs }
    }

    fn planned(&self, run: &PlannedRun, rates: &Rates) -> Planned {
        let named = self.experiments.iter().find(|experiment| experiment.name == run.cell.experiment);
        let side = named.and_then(|experiment| self.side(run, experiment));
        let experiment = named.ok_or_else(|| format!("there is no experiment {}", run.cell.experiment));
        let mut experiment =
            experiment.and_then(|experiment| rates.apply(experiment.at(&run.cell), &run.cell, run.repeat));
        if let (Ok(experiment), Some(Side { of, turns_ms: Some(_), .. })) = (&mut experiment, side) {
            experiment.give_turns_to(of);
        }
        Planned { run: run.clone(), experiment, side }
    }

    /// Its place among all that it was planned beside, whether they are done or not; `None` where it is alone.
    fn side(&self, run: &PlannedRun, experiment: &Experiment) -> Option<Side> {
        let place = experiment.beside(&run.cell)?;
        let is_beside = |other: &&PlannedRun| {
            let is_same = other.repeat == run.repeat && other.cell.experiment == run.cell.experiment;
            is_same && experiment.beside(&other.cell) == Some(place)
        };
        let beside = self.runs.iter().filter(is_beside);
        let group = beside.clone().next()?.order;
        let own = beside.clone().take_while(|other| other.order < run.order).count() as u32;
        let of = beside.count() as u32;
        (of > 1).then_some(Side { group, own, of, turns_ms: experiment.turns_ms })
    }
}

/// Whether a cell's load follows from what other runs of the same repeat measured.
fn follows_others(cell: &Cell, experiments: &[Experiment]) -> bool {
    experiments.iter().any(|experiment| experiment.name == cell.experiment && experiment.capacity_share.is_some())
}

impl Planner for Matrix {
    fn block(&self, so_far: &[RunValues]) -> Option<Vec<Planned>> {
        let done = Done::of(so_far);
        let mut left = self.runs.iter().filter(|run| done.find(run).is_none()).peekable();
        let first = *left.peek()?;
        let place = |run: &PlannedRun| (run.repeat, follows_others(&run.cell, &self.experiments));
        let rates = Rates::of(so_far);
        Some(left.take_while(|run| place(run) == place(first)).map(|run| self.planned(run, &rates)).collect())
    }

    fn known(&self, _: &[RunValues]) -> Vec<PlannedRun> {
        self.runs.clone()
    }

    fn experiments(&self, _: &[RunValues]) -> Vec<Experiment> {
        self.experiments.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use std::collections::HashSet;

    fn runs(name: &str, profile: Option<&str>, seed: u64) -> Matrix {
        Matrix::new(&experiments::load_all(name, profile).unwrap().1, seed)
    }

    fn measured(run: &PlannedRun, delivered: f64) -> RunValues {
        let figures = [("delivered".to_owned(), delivered)].into();
        RunValues { repeat: run.repeat, figures, ..RunValues::planned(run.cell.clone()) }
    }

    #[test]
    fn every_cell_comes_once_in_every_repeat_in_an_order_that_the_seed_gives() {
        let matrix = runs("johannessen-directions", Some("quick"), 7);
        let cells: usize = matrix.experiments.iter().map(|e| e.runs() / e.repeats as usize).sum();
        let planned = matrix.known(&[]);
        assert!(planned.len() > cells && planned.len().is_multiple_of(cells));
        assert!(planned.iter().map(|run| run.order).eq(1..=planned.len() as u32));
        for block in planned.chunks(cells) {
            assert_eq!(block.iter().map(|run| run.cell.clone()).collect::<HashSet<_>>().len(), cells);
        }
        assert_eq!(runs("johannessen-directions", Some("quick"), 7).known(&[]), planned);
        assert_ne!(runs("johannessen-directions", Some("quick"), 8).known(&[]), planned);
    }

    #[test]
    fn what_is_compared_is_measured_one_after_the_other() {
        let matrix = runs("transports", Some("quick"), 7);
        let planned = matrix.known(&[]);
        let mut orders = HashSet::new();
        for repeat in planned.chunk_by(|a, b| a.repeat == b.repeat) {
            let parts: Vec<&str> = repeat
                .chunk_by(|a, b| a.cell.experiment == b.cell.experiment)
                .map(|part| &*part[0].cell.experiment)
                .collect();
            assert_eq!(parts.iter().collect::<HashSet<_>>().len(), parts.len(), "{parts:?}");
            orders.insert(parts);
        }
        assert!(orders.len() > 2, "their order is not always the same: {orders:?}");
    }

    /// Those that take turns stand together, each with a turn of its own, in an order that is not always the same. A run
    /// that is left of them keeps its turn.
    #[test]
    fn what_takes_turns_goes_together() {
        let mut taking_turns = experiments::load_all("transports", Some("quick")).unwrap().1;
        for experiment in &mut taking_turns {
            experiment.turns_ms = (experiment.name == "transports-broadcast").then_some(50);
            experiment.repeats = 3;
        }
        let matrix = Matrix::new(&taking_turns, 7);
        let mut orders = HashSet::new();
        let mut so_far = Vec::new();
        while let Some(block) = matrix.block(&so_far) {
            let together: Vec<&Planned> =
                block.iter().filter(|planned| planned.run.cell.experiment == "transports-broadcast").collect();
            let first = together[0].run.order;
            let sides: Vec<Side> = together.iter().filter_map(|planned| planned.side).collect();
            let side = |own| Side { group: first, own, of: 9, turns_ms: Some(50) };
            let expected: Vec<Side> = (0..9).map(side).collect();
            assert_eq!(sides, expected);
            assert!(together.iter().map(|planned| planned.run.order).eq(first..first + 9));
            orders.insert(together.iter().map(|planned| planned.run.cell.label()).collect::<Vec<_>>());
            let mut but_one: Vec<RunValues> = so_far.clone();
            but_one.extend(block.iter().filter(|one| one.run.order != first + 3).map(|one| measured(&one.run, 1.0)));
            let left = matrix.block(&but_one).unwrap();
            assert!(left[0].run.order == first + 3 && left[0].side == Some(expected[3]));
            so_far.extend(block.iter().map(|planned| measured(&planned.run, 1_000.0)));
        }
        assert!(orders.len() > 2, "{orders:?}");
        let other = runs("tangen-chat", Some("quick"), 7).block(&[]).unwrap();
        assert!(other.iter().all(|planned| planned.side.is_none()));
    }

    /// Those that differ only in transport go at once, whether they poll or not; each variant and each server by itself.
    #[test]
    fn what_goes_at_once_is_one_server_over_all_its_transports() {
        let matrix = runs("polling-study", Some("quick"), 7);
        let block = matrix.block(&[]).unwrap();
        let groups: Vec<&[Planned]> = block
            .chunk_by(|one, next| one.side.map(|side| side.group) == next.side.map(|side| side.group))
            .filter(|group| group[0].run.repeat == 1)
            .collect();
        assert_eq!(groups.len(), 9, "three tests of three servers");
        for group in groups {
            let sides: Vec<u32> = group.iter().map(|planned| planned.side.unwrap().own).collect();
            assert_eq!(sides, [0, 1, 2, 3]);
            let [first, rest @ ..] = group else { panic!("nobody") };
            let place = |planned: &Planned| (planned.run.cell.subject.clone(), planned.run.cell.variant.clone());
            assert!(rest.iter().all(|planned| place(planned) == place(first)));
            assert!(group.iter().all(|planned| planned.side.unwrap().turns().is_none()));
        }
    }

    /// What needs the results of others is in a block of its own, after theirs, with a rate that follows from them.
    #[test]
    fn followers_come_after_what_they_follow() {
        let matrix = runs("peers", Some("quick"), 7);
        let mut so_far = Vec::new();
        let mut blocks = Vec::new();
        while let Some(block) = matrix.block(&so_far) {
            so_far.extend(block.iter().map(|planned| measured(&planned.run, 1_000.0)));
            blocks.push(block);
        }
        assert_eq!(so_far.len(), matrix.runs.len());
        let follows = |planned: &Planned| follows_others(&planned.run.cell, &matrix.experiments);
        for (index, block) in blocks.iter().enumerate() {
            let repeat = index as u32 / 2 + 1;
            assert!(block.iter().all(|planned| planned.run.repeat == repeat && follows(planned) == (index % 2 == 1)));
            assert!(block.iter().all(|planned| planned.experiment.is_ok()));
        }
        let nothing = |run: &PlannedRun| measured(run, 0.0);
        let so_far: Vec<RunValues> = blocks[0].iter().map(|planned| nothing(&planned.run)).collect();
        let followers = matrix.block(&so_far).unwrap();
        assert!(followers.iter().all(|planned| planned.experiment.is_err()), "nothing was measured to follow from");
    }

    #[test]
    fn what_is_done_is_not_planned_again() {
        let matrix = runs("tangen-chat", Some("quick"), 3);
        let all = matrix.known(&[]);
        let (second, last) = (all[1].clone(), all.last().unwrap().clone());
        let block = matrix.block(&[measured(&second, 1.0)]).unwrap();
        let repeat = all.iter().filter(|run| run.repeat == 1).count();
        assert_eq!((block[0].run.order, block[1].run.order, block.len()), (1, 3, repeat - 1));
        let so_far: Vec<RunValues> = all[..all.len() - 1].iter().map(|run| measured(run, 1.0)).collect();
        let block = matrix.block(&so_far).unwrap();
        assert_eq!(block.iter().map(|planned| &planned.run).collect::<Vec<_>>(), [&last]);
        let so_far: Vec<RunValues> = all.iter().map(|run| measured(run, 1.0)).collect();
        assert!(matrix.block(&so_far).is_none());
    }
}
