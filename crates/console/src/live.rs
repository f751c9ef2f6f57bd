//! The live figures of the campaign that goes on, told to whoever watches.

use crate::interface::LiveStart;
use pushlab_application::Publisher;
use pushlab_lab::LiveState;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Channel of the live figures.
pub const CHANNEL: &str = "console.live";

/// The latest figures, and whom they are published to once a server has begun.
#[derive(Default)]
pub struct Board(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    state: LiveState,
    publisher: Option<Publisher>,
}

impl Board {
    /// A server has begun.
    pub fn begin(&self, publisher: Publisher) {
        self.lock().publisher = Some(publisher);
    }

    /// Notes the figures and publishes them. Both under one lock: whoever was given the figures and a cursor gets all
    /// that differs from them after it.
    pub fn tell(&self, state: LiveState) {
        let mut inside = self.lock();
        if let (Some(publisher), Ok(text)) = (&inside.publisher, serde_json::to_string(&state)) {
            // Where the loops have more to do than they can, the next figures are a quarter of a second away.
            let _ = publisher.publish(CHANNEL, &text);
        }
        inside.state = state;
    }

    /// The latest figures.
    pub fn state(&self) -> LiveState {
        self.lock().state.clone()
    }

    /// The figures now, and whence to follow them; the cursor is empty without a server.
    pub fn start(&self) -> LiveStart {
        let inside = self.lock();
        let cursor = inside.publisher.as_ref().map_or_else(String::new, |publisher| publisher.head().to_string());
        LiveStart { cursor, live: inside.state.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Figures are replaced whole: a panic cannot leave half of them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
