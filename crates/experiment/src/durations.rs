//! How long the runs of an experiment take.

use crate::written::{WARM_UP_TESTED_MIN_MS, Written};
use pushlab_workload::plan::Phases;

/// Starting, connecting and stopping, per run, beside its phases, ms, where clients are few.
const RUN_OVERHEAD_MS: u64 = 700;

impl Written {
    /// Length of the load phase, ms.
    pub(crate) fn load_ms(&self) -> u64 {
        self.load_ms_of(&self.phases)
    }

    fn load_ms_of(&self, phases: &Phases) -> u64 {
        self.soak_minutes.map_or(phases.load_ms, |minutes| u64::from(minutes) * 60_000)
    }

    /// Length of the first warm-up, ms.
    pub fn warm_up_ms(&self) -> u64 {
        self.warm_up_ms_of(&self.phases)
    }

    fn warm_up_ms_of(&self, phases: &Phases) -> u64 {
        let own = phases.warm_up_ms;
        if self.is_steady_after(own) { own.max(WARM_UP_TESTED_MIN_MS) } else { own }
    }

    /// Whether a warm-up may be longer than the shortest.
    pub fn is_warmed_until_steady(&self) -> bool {
        self.is_steady_after(self.phases.warm_up_ms)
    }

    fn is_steady_after(&self, shortest_ms: u64) -> bool {
        self.warm_up_max_ms.is_some_and(|longest_ms| longest_ms > shortest_ms)
    }

    /// Planned length of one run, in ms, starting and stopping not counted; with the shortest warm-up.
    pub fn run_ms(&self) -> u64 {
        self.run_ms_of(&self.phases)
    }

    fn run_ms_of(&self, phases: &Phases) -> u64 {
        self.baseline_ms + phases.idle_ms + self.warm_up_ms_of(phases) + self.load_ms_of(phases) + phases.after_ms
    }

    /// How long a run with these phases and so many clients takes about, its subject's start and end and the connecting
    /// included, ms.
    pub(crate) fn whole_run_ms(&self, phases: &Phases, clients: u32) -> u64 {
        let connecting_ms = u64::from(clients) * 1_000 / u64::from(self.connect_rate.max(1));
        self.run_ms_of(phases) + RUN_OVERHEAD_MS.max(connecting_ms)
    }
}
