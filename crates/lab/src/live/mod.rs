//! Live figures of a campaign, for Prometheus to read while it lasts.
//!
//! What the observer of a campaign is told goes into [`Figures`]; a thread of its own shows them at `/metrics`
//! ([`listener`]). It is pinned like the generator, away from the subject's core.

mod figures;
mod listener;

pub use listener::{Live, LiveError};

use crate::campaign::Observer;
use crate::record::{PlannedRun, RunRecord};
use crate::run::Usage;
use figures::Figures;
use pushlab_load::plan::{Phase, Progress};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The figures, shared by the campaign and the listener.
type Shared = Arc<Mutex<Figures>>;

fn lock(figures: &Shared) -> MutexGuard<'_, Figures> {
    // Whoever panicked left numbers behind, which cannot be half written.
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An observer that notes what it is told and tells it on.
pub struct Watched<'a> {
    figures: Shared,
    next: &'a mut dyn Observer,
}

impl Observer for Watched<'_> {
    fn begin(&mut self, planned: &[PlannedRun], done: usize, id: i64) {
        lock(&self.figures).begin(planned.len(), done);
        self.next.begin(planned, done, id);
    }

    fn run(&mut self, planned: &PlannedRun) {
        lock(&self.figures).run(planned);
        self.next.run(planned);
    }

    fn phase(&mut self, phase: Phase) {
        lock(&self.figures).phase(phase);
        self.next.phase(phase);
    }

    fn progress(&mut self, progress: &Progress) {
        lock(&self.figures).progress(progress);
        self.next.progress(progress);
    }

    fn usage(&mut self, subject: Usage, generator: Usage) {
        lock(&self.figures).usage(subject, generator);
        self.next.usage(subject, generator);
    }

    fn recorded(&mut self, record: &RunRecord) {
        lock(&self.figures).recorded(record);
        self.next.recorded(record);
    }

    fn is_interrupted(&mut self) -> bool {
        self.next.is_interrupted()
    }
}
