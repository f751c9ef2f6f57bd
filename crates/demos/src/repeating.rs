//! Work that is done again and again in a thread of its own.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that works once every interval, and whenever it is woken. Dropping this ends it, and waits until it has
/// ended.
pub struct Repeating {
    /// Has room for one call; that it is gone ends the thread.
    waker: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Repeating {
    /// Starts the thread; the first time is one interval from now. A time that passed while the thread did not run is
    /// left out, not made up for.
    pub fn start(name: &str, interval: Duration, mut work: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (waker, calls) = mpsc::sync_channel(1);
        let run = move || {
            let mut due = Instant::now() + interval;
            loop {
                match calls.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    // What is due stays due: many calls must not put it off.
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => due = (due + interval).max(Instant::now()),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                work();
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { waker: Some(waker), thread: Some(thread) })
    }

    /// Has the work done at once, or again if it is under way.
    pub fn wake(&self) {
        if let Some(waker) = &self.waker {
            // Where there is no room it has been called already and has not yet begun.
            let _ = waker.try_send(());
        }
    }
}

impl Drop for Repeating {
    fn drop(&mut self) {
        self.waker = None;
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != std::thread::current().id()) {
            // A panic of the work stands in the output already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn works_until_it_is_dropped() {
        let (sender, receiver) = mpsc::channel();
        let alive = Arc::new(());
        let held = alive.clone();
        let work = move || {
            let _ = sender.send(Arc::strong_count(&held));
        };
        let repeating = Repeating::start("test", Duration::from_millis(1), work).unwrap();
        for _ in 0..3 {
            assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(2));
        }
        drop(repeating);
        assert_eq!(Arc::strong_count(&alive), 1, "the thread and what it held are gone");
    }

    #[test]
    fn a_long_wait_does_not_hold_up_the_end() {
        let begun = Instant::now();
        drop(Repeating::start("test", Duration::from_secs(3600), || {}).unwrap());
        assert!(begun.elapsed() < Duration::from_secs(1800));
    }

    #[test]
    fn works_when_it_is_woken() {
        let (sender, receiver) = mpsc::channel();
        let work = move || sender.send(()).unwrap();
        let repeating = Repeating::start("test", Duration::from_secs(3600), work).unwrap();
        for _ in 0..3 {
            repeating.wake();
            receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        }
    }

    /// Each call that put the interval off would put it off by a second here: more than this test waits.
    #[test]
    fn calls_do_not_put_off_what_is_due() {
        let (sender, receiver) = mpsc::channel();
        let work = move || sender.send(()).unwrap();
        let repeating = Repeating::start("test", Duration::from_secs(1), work).unwrap();
        for _ in 0..60 {
            repeating.wake();
            receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
