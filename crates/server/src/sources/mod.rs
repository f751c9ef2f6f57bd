//! Publications that the server brings in by itself: from a back end, or on a timer. Each source is a thread beside the
//! event loops that publishes like anybody else.

mod feed;
mod tick;

use crate::config::Config;
use crate::distributor::{Distributor, PublishError};
use crate::stats::{Counters, add};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a source waits before it tries again to publish what an event loop that is behind did not take.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(1);

/// The sources of a server, once they run.
#[derive(Default)]
pub struct Sources {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
}

/// Tells sources to end, wherever they wait.
#[derive(Default)]
struct Stop {
    state: Mutex<StopState>,
    changed: Condvar,
}

#[derive(Default)]
struct StopState {
    is_stopping: bool,
    /// The socket that a source reads from.
    socket: Option<TcpStream>,
}

/// What a source publishes with.
struct Source {
    distributor: Arc<Distributor>,
    counters: Arc<Counters>,
    stop: Arc<Stop>,
}

impl Sources {
    /// How many there are of a configuration: as many counters they need.
    pub fn count(config: &Config) -> usize {
        usize::from(config.feed.is_some()) + usize::from(config.tick.is_some())
    }

    /// Starts them, each with counters of its own.
    ///
    /// # Errors
    /// When there can be no more threads; those that run end when this is dropped.
    pub fn start(
        &mut self,
        config: &Config,
        distributor: &Arc<Distributor>,
        counters: &[Arc<Counters>],
    ) -> io::Result<()> {
        let mut counters = counters.iter().cloned();
        let mut source = || {
            let counters = counters.next().expect("there are counters for each source");
            Source { distributor: distributor.clone(), counters, stop: self.stop.clone() }
        };
        if let Some(feed) = config.feed.clone() {
            let (source, limits) = (source(), config.limits.clone());
            let thread = std::thread::Builder::new().name("pushlab-feed".to_owned());
            self.threads.push(thread.spawn(move || feed::run(&feed, &limits, &source))?);
        }
        if let Some(tick) = config.tick.clone() {
            let source = source();
            let thread = std::thread::Builder::new().name("pushlab-tick".to_owned());
            self.threads.push(thread.spawn(move || tick::run(&tick, &source))?);
        }
        Ok(())
    }

    /// Asks them to end.
    pub fn stop(&self) {
        let mut state = self.stop.lock();
        state.is_stopping = true;
        if let Some(socket) = state.socket.take() {
            // Whoever has gone already need not be told.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.stop.changed.notify_all();
    }

    /// Waits until they have ended.
    pub fn join(self) {
        self.stop();
        for thread in self.threads {
            // A source has nothing that panics.
            let _ = thread.join();
        }
    }
}

impl Stop {
    fn lock(&self) -> MutexGuard<'_, StopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an instant; says whether the source is to end.
    fn wait_until(&self, until: Instant) -> bool {
        let mut state = self.lock();
        while !state.is_stopping {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_stopping
    }

    /// Waits for a while; says whether the source is to end.
    fn wait(&self, pause: Duration) -> bool {
        self.wait_until(Instant::now() + pause)
    }

    /// Remembers the socket that is read from, so that reading ends when the source is to.
    ///
    /// # Errors
    /// When the source is to end already, or there is no descriptor left.
    fn watch(&self, socket: &TcpStream) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_stopping {
            return Err(io::ErrorKind::Interrupted.into());
        }
        state.socket = Some(socket.try_clone()?);
        Ok(())
    }

    /// Forgets that socket.
    fn forget(&self) {
        self.lock().socket = None;
    }
}

impl Source {
    /// Publishes one line of JSON.
    fn publish(&self, channel: &str, data: &str) -> Result<(), PublishError> {
        self.distributor.publish(channel, data, Instant::now())?;
        add(&self.counters.received, 1);
        Ok(())
    }
}
