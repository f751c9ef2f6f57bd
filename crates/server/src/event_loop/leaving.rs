//! Following the server's stage; above all, how connections move to the process that took over.

use super::EventLoop;
use crate::stage::Stage;
use pushlab_session::spread::Spread;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// How often some leave: a few of thousands at a time.
pub(super) const LEAVING_INTERVAL: Duration = Duration::from_millis(5);

/// The connections that are to leave, evenly over a window.
#[derive(Default)]
pub(super) struct Leaving {
    /// Places and generations.
    those: VecDeque<(usize, u32)>,
    count: usize,
    over: Option<(Instant, Duration)>,
}

impl Leaving {
    pub(super) fn is_empty(&self) -> bool {
        self.those.is_empty()
    }

    /// How many stay for now.
    fn staying(&self, now: Instant) -> usize {
        let Some((begin, window)) = self.over else { return 0 };
        let left = window.saturating_sub(now.saturating_duration_since(begin));
        (self.count as f64 * left.as_secs_f64() / window.as_secs_f64()).ceil() as usize
    }
}

impl EventLoop {
    /// Does what belongs to the server's stage.
    ///
    /// # Errors
    /// Those of the poller.
    pub(super) fn follow(&mut self, stage: Stage) -> io::Result<()> {
        if stage != self.stage {
            match stage {
                Stage::Serving | Stage::Returned => self.set_accepting(true)?,
                Stage::Paused => self.set_accepting(false)?,
                Stage::Leaving => {
                    self.set_accepting(false)?;
                    self.begin_leaving();
                }
                Stage::Stopping => self.begin_drain(),
            }
            self.stage = stage;
        }
        self.send_away(self.leaving.staying(self.now), Duration::ZERO);
        Ok(())
    }

    /// The process that took over has died, and what it published last is gone. Those who are connected here are told so as
    /// they come again; until then, nothing that is published behind that may reach them.
    pub(super) fn notice_return(&mut self) {
        if self.stage != Stage::Returned && self.shared.stage.current() == Stage::Returned {
            if self.stage != Stage::Leaving {
                self.begin_leaving();
            }
            self.send_away(0, self.shared.return_window());
        }
    }

    fn begin_leaving(&mut self) {
        self.send_http2_away();
        let those: VecDeque<_> = self.connections.iter().map(|(id, connection)| (id, connection.generation)).collect();
        self.leaving = Leaving { count: those.len(), those, over: Some((self.now, self.shared.return_window())) };
    }

    /// Ends connections as a stopping server does, until so many are left of those that are to leave; their clients come back
    /// within the window.
    fn send_away(&mut self, staying: usize, window: Duration) {
        let mut spread = Spread::new(window, self.index);
        while self.leaving.those.len() > staying {
            let Some((id, generation)) = self.leaving.those.pop_front() else { return };
            let Some(connection) = self.connections.get(id) else { continue };
            // What asks ends behind its next answer, and is not cut off while it asks.
            let is_asking = connection.exchange.is_http() && self.stage != Stage::Returned;
            if connection.generation == generation && connection.is_open() && connection.http2.is_none() && !is_asking {
                let has_partial = !connection.carry.is_empty();
                let effect = self.step_with(id, Some(&mut spread), |exchange, cx| exchange.drain(has_partial, cx));
                self.act(id, effect);
            }
        }
    }
}
