//! A closed loop of broadcasts: each of the feeder's publishers keeps one publication under way.

use super::config::LoopConfig;
use super::event_loop::{ClientLoop, WAKEUP};
use super::feeding::Feeding;
use crate::connection::Protocol;
use crate::run_state::RunState;
use crate::transport::{Asking, Receiver};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use pushlab_workload::traffic::Traffic;
use pushlab_workload::turns::Turns;
use std::io;
use std::os::fd::AsRawFd as _;

/// How long a publication may be under way without reaching anybody more, ns: more than a client that was cut
/// needs to come back. Where clients ask at an interval, that comes on top.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Why fewer publications are waited for than are missing.
const GIVEN_UP: &str = "fan-out: gave up on a publication: none of its missing deliveries came for a second";

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    /// What the loop of a feeder has under way; `None` for other loops.
    pub(super) fn feeding(config: &LoopConfig, state: &RunState, registry: &Registry) -> io::Result<Option<Feeding>> {
        let Some(broadcasts) = state.broadcasts().filter(|_| config.traffic == Traffic::Broadcasts) else {
            return Ok(None);
        };
        registry.register(&mut SourceFd(&broadcasts.wakeup().as_raw_fd()), WAKEUP, Interest::READABLE)?;
        let asked_after_ns = if R::ASKING == Asking::AtInterval { config.poll_interval_ns } else { 0 };
        Ok(Some(Feeding::new(config.clients, PATIENCE_NS + asked_after_ns)))
    }

    /// When the publishers may publish next, where they have to wait for their turn.
    pub(super) fn next_turn_ns(&self, now: u64) -> Option<u64> {
        let turns = self.config.turns.filter(|_| self.feeding.is_some())?;
        let begin_ns = self.marks.warm_up_ns;
        (begin_ns..self.marks.load_end_ns).contains(&now).then(|| begin_ns + turns.next_own_ns(now - begin_ns))
    }

    /// Has every publisher that is free send its next one, from the warm-up to the end of the load. What the feeder
    /// waits for wakes its loop: the broadcasts, its own sockets or, for what is to be given up, the next tick.
    pub(super) fn keep_publishing(&mut self, now: u64) {
        let (Some(broadcasts), Some(feeding)) = (self.state.broadcasts(), &mut self.feeding) else { return };
        if !(self.marks.warm_up_ns..self.marks.load_end_ns).contains(&now) {
            return;
        }
        self.has_started_loop = true;
        for _ in 0..feeding.settle(broadcasts, now) {
            self.recorder.part.errors.add(&GIVEN_UP);
        }
        let is_own = |turns: &Turns| turns.is_own(now - self.marks.warm_up_ns);
        if !self.config.turns.as_ref().is_none_or(is_own) {
            return;
        }
        for publisher in 0..self.clients.len() {
            if self.feeding.as_ref().is_some_and(|feeding| feeding.is_free(publisher)) {
                let client = &mut self.clients[publisher];
                client.due = client.sent + 1;
                self.send_due(publisher);
            }
        }
        if let (Some(broadcasts), Some(feeding)) = (self.state.broadcasts(), &self.feeding) {
            broadcasts.wake_after(feeding.waiting());
        }
    }
}
