//! Live figures of a campaign, for whoever watches while it lasts.
//!
//! What the observer of a campaign is told goes into [`Figures`]. A thread of its own shows them to Prometheus at
//! `/metrics` ([`listener`]), another tells them to a page ([`teller`]). Both are pinned like the generator, away from
//! the subject's core.

mod error;
mod figures;
mod listener;
mod state;
mod teller;

pub use error::LiveError;
pub use state::{Activity, LiveRun, LiveState};

use crate::campaign::Observer;
use figures::{Figures, Shared, lock};
use listener::Listener;
use pushlab_record::{PlannedRun, RunRecord};
use pushlab_session::site::Site;
use pushlab_watch::Usage;
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::Phase;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use teller::Teller;

/// The figures of a campaign, and who is shown them until this is dropped.
pub struct Live {
    figures: Shared,
    listener: Option<Listener>,
    tellers: Vec<Teller>,
}

impl Live {
    /// Of the campaign of this name, shown to nobody yet.
    pub fn new(name: &str) -> Self {
        Self { figures: Arc::new(Mutex::new(Figures::of(name))), listener: None, tellers: Vec::new() }
    }

    /// Shows them to Prometheus at `/metrics`, from now on; gives the address. Pages of other sites, and requests to a
    /// host name that `site` does not have, get nothing. Call before the campaign pins the calling thread: the cores of
    /// whoever shows are found from those of the caller.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn serve_metrics(&mut self, address: SocketAddr, site: Site) -> Result<SocketAddr, LiveError> {
        Ok(self.listener.insert(Listener::listen(address, site, self.figures.clone())?).address())
    }

    /// Gives them to `tell` four times a second while the campaign lasts, and once at its end. Call before the campaign
    /// pins the calling thread.
    ///
    /// # Errors
    /// [`LiveError::Thread`].
    pub fn tell(&mut self, tell: impl FnMut(LiveState) + Send + 'static) -> Result<(), LiveError> {
        self.tellers.push(Teller::start(self.figures.clone(), tell)?);
        Ok(())
    }

    /// An observer that notes the figures and tells everything on to `next`.
    pub fn watch<'a>(&self, next: &'a mut dyn Observer) -> Watched<'a> {
        Watched { figures: self.figures.clone(), next }
    }
}

/// An observer that notes what it is told and tells it on.
pub struct Watched<'a> {
    figures: Shared,
    next: &'a mut dyn Observer,
}

impl Observer for Watched<'_> {
    fn begin(&mut self, planned: &[PlannedRun], done: usize, id: i64) {
        lock(&self.figures).begin(planned.len(), done, id);
        self.next.begin(planned, done, id);
    }

    fn run(&mut self, planned: &PlannedRun) {
        lock(&self.figures).run(planned, Instant::now());
        self.next.run(planned);
    }

    fn phase(&mut self, phase: Phase) {
        lock(&self.figures).phase(phase, Instant::now());
        self.next.phase(phase);
    }

    fn progress(&mut self, progress: &Progress) {
        lock(&self.figures).progress(progress, Instant::now());
        self.next.progress(progress);
    }

    fn usage(&mut self, subject: Usage, generator: Usage) {
        lock(&self.figures).usage(subject, generator, Instant::now());
        self.next.usage(subject, generator);
    }

    fn recorded(&mut self, record: &RunRecord) {
        lock(&self.figures).recorded(record);
        self.next.recorded(record);
    }

    fn waits(&mut self, line: &str) {
        self.next.waits(line);
    }

    fn is_interrupted(&mut self) -> bool {
        self.next.is_interrupted()
    }
}
