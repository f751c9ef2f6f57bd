//! What every source has: somewhere to publish to, and somebody who tells it to end.

use crate::distributor::Distributor;
use crate::stats::{Counters, add};
use pushlab_application::PublishError;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a source waits before it tries again to publish what an event loop that is behind did not take.
pub const OVERLOAD_PAUSE: Duration = Duration::from_millis(1);

/// Tells sources to end, wherever they wait.
#[derive(Default)]
pub struct Stop {
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
pub struct Source {
    pub distributor: Arc<Distributor>,
    pub counters: Arc<Counters>,
    pub stop: Arc<Stop>,
}

impl Stop {
    /// Tells it.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopping = true;
        if let Some(socket) = state.socket.take() {
            // Whoever has gone already need not be told.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an instant; says whether the source is to end.
    pub fn wait_until(&self, until: Instant) -> bool {
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
    pub fn wait(&self, pause: Duration) -> bool {
        self.wait_until(Instant::now() + pause)
    }

    /// Remembers the socket that is read from, so that reading ends when the source is to.
    ///
    /// # Errors
    /// When the source is to end already, or there is no descriptor left.
    pub fn watch(&self, socket: &TcpStream) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_stopping {
            return Err(io::ErrorKind::Interrupted.into());
        }
        state.socket = Some(socket.try_clone()?);
        Ok(())
    }

    /// Forgets that socket.
    pub fn forget(&self) {
        self.lock().socket = None;
    }
}

impl Source {
    /// Publishes one line of JSON.
    pub fn publish(&self, channel: &str, data: &str) -> Result<(), PublishError> {
        self.distributor.publish(channel, data, Instant::now())?;
        add(&self.counters.received, 1);
        Ok(())
    }
}
