//! Who is told what happens in a run, and may end it.

use pushlab_watch::Usage;
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::Phase;
use std::time::Duration;

/// How long to listen to the worker before looking after everything else.
pub(crate) const LISTEN: Duration = Duration::from_millis(50);

/// What to tell while a run goes on.
pub trait RunObserver {
    /// A phase began.
    fn phase(&mut self, phase: Phase);
    /// The generator told how far it is: once a second.
    fn progress(&mut self, progress: &Progress);
    /// What both sides have used: at least every 50 ms.
    fn usage(&mut self, subject: Usage, generator: Usage);
    /// There are too few workers yet: who is there, and who cannot be used.
    fn waits(&mut self, line: &str);
    /// Whether to stop now.
    fn is_interrupted(&mut self) -> bool;
}
