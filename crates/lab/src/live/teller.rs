//! The thread that tells a page how far a campaign is.

use super::error::LiveError;
use super::figures::{Shared, lock};
use super::state::{Activity, LiveState};
use crate::pinning::beside;
use pushlab_os::affinity::pin_to;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two tellings.
const INTERVAL: Duration = Duration::from_millis(250);

/// Tells until it is dropped, and then once more that the campaign has ended.
pub struct Teller {
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    /// Begins to tell as soon as the campaign begins.
    pub fn start(figures: Shared, mut tell: impl FnMut(LiveState) + Send + 'static) -> Result<Self, LiveError> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let cores = beside();
        let is_ended = is_ending.clone();
        let work = move || {
            // Where that is not allowed, the warning about shared cores says so.
            let _ = pin_to(&cores);
            while !is_ended.load(Ordering::Acquire) {
                let state = lock(&figures).state(Instant::now());
                if state.state == Activity::Running {
                    tell(state);
                }
                std::thread::park_timeout(INTERVAL);
            }
            let last = lock(&figures).state(Instant::now());
            tell(LiveState { state: Activity::Idle, run: None, ..last });
        };
        let thread = std::thread::Builder::new().name("pushlab-teller".into()).spawn(work);
        Ok(Self { is_ending, thread: Some(thread.map_err(LiveError::Thread)?) })
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been printed and must not become one here.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Live;
    use super::*;
    use crate::campaign::Observer;
    use pushlab_record::{PlannedRun, RunRecord};
    use pushlab_workload::plan::Phase;
    use std::sync::mpsc;

    struct Nobody;

    impl Observer for Nobody {
        fn begin(&mut self, _: &[PlannedRun], _: usize, _: i64) {}
        fn run(&mut self, _: &PlannedRun) {}
        fn phase(&mut self, _: Phase) {}
        fn recorded(&mut self, _: &RunRecord) {}
        fn is_interrupted(&mut self) -> bool {
            false
        }
    }

    #[test]
    fn it_tells_from_the_beginning_of_the_campaign_and_once_at_its_end() {
        let mut live = Live::new("some");
        let (sender, told) = mpsc::channel();
        live.tell(move |state| drop(sender.send(state))).unwrap();
        live.watch(&mut Nobody).begin(&[], 0, 7);
        let states = [told.recv().unwrap(), told.recv().unwrap()];
        assert!(states.iter().all(|state| state.state == Activity::Running && state.result == Some(7)), "{states:?}");
        drop(live);
        let after: Vec<LiveState> = told.iter().collect();
        let [.., last] = after.as_slice() else { panic!("nothing was told at the end") };
        assert_eq!((last.state, last.result, last.name.as_str()), (Activity::Idle, Some(7), "some"));
        assert!(after[..after.len() - 1].iter().all(|state| state.state == Activity::Running), "{after:?}");
    }
}
