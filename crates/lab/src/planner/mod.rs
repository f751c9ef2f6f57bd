//! Planners: which runs come next, from what was measured so far.
//!
//! A planner knows the experiments and says what to do; it starts nothing, stores nothing and remembers nothing but what
//! it was made of. So a campaign that was interrupted goes on by asking again, with the runs that the store has.
//! Interleaving, retries, storage and going on are the campaign's, whatever the planner.

mod matrix;
mod rates;
pub mod search;

pub use matrix::Matrix;
use pushlab_analysis::report::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_record::PlannedRun;
use pushlab_workload::turns::Turns;
use std::collections::HashMap;

/// A run that is to be done.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Which.
    pub run: PlannedRun,
    /// The experiment as it is for this run, or why it cannot be done.
    pub experiment: Result<Experiment, String>,
    /// Its place, where it goes side by side with the runs before or after it.
    pub side: Option<Side>,
}

/// The place of a run among those that go side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The order of the first of them, which tells one group from another.
    pub group: u32,
    /// Which of them it is, from 0.
    pub own: u32,
    /// How many there are.
    pub of: u32,
    /// How long a turn is, ms; `None` where all have their load at once.
    pub turns_ms: Option<u64>,
}

impl Side {
    /// Its turns, where they take turns.
    pub fn turns(self) -> Option<Turns> {
        let Self { own, of, turns_ms, .. } = self;
        turns_ms.map(|length_ms| Turns { own, of, length_ms })
    }
}

/// Says what is to be measured.
pub trait Planner {
    /// The runs that come next, in their order: those of a block that are not done yet. They do not depend on each other;
    /// what comes after the block may depend on them. `None` when nothing is left to be done.
    fn block(&self, so_far: &[RunValues]) -> Option<Vec<Planned>>;

    /// Every run that is known to be needed by now, done or not, in their order.
    fn known(&self, so_far: &[RunValues]) -> Vec<PlannedRun>;

    /// The experiments whose runs these are: what a report goes by.
    fn experiments(&self, so_far: &[RunValues]) -> Vec<Experiment>;
}

/// What was measured, by the cell and the repeat of which it is.
struct Done<'a>(HashMap<(&'a Cell, u32), &'a RunValues>);

impl<'a> Done<'a> {
    fn of(so_far: &'a [RunValues]) -> Self {
        Self(so_far.iter().map(|run| ((&run.cell, run.repeat), run)).collect())
    }

    /// What was measured in a planned run, if it was done.
    fn find(&self, run: &PlannedRun) -> Option<&'a RunValues> {
        self.at(&run.cell, run.repeat)
    }

    /// What was measured of a cell in a repeat, if it was.
    fn at(&self, cell: &Cell, repeat: u32) -> Option<&'a RunValues> {
        self.0.get(&(cell, repeat)).copied()
    }
}

/// Runs of these cells in their order, numbered from the one given, each with a seed of its own.
fn numbered(cells: Vec<(Cell, u32)>, first: u32, random: &mut fastrand::Rng) -> Vec<PlannedRun> {
    let mut run = |(order, (cell, repeat))| PlannedRun { order, cell, repeat, seed: random.u64(..1 << 48) };
    (first..).zip(cells).map(&mut run).collect()
}
