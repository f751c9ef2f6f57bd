//! A closed loop of broadcasts: each of the feeder's publishers keeps one publication under way.

use super::{ClientLoop, LoopConfig, WAKEUP};
use crate::broadcasts::Broadcasts;
use crate::connection::Protocol;
use crate::run_state::RunState;
use crate::transport::{Asking, Receiver};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use pushlab_workload::traffic::Traffic;
use std::io;
use std::os::fd::AsRawFd as _;

/// How long a publication may be under way without reaching anybody more, ns: more than a client that was cut
/// needs to come back. Where clients ask at an interval, that comes on top.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Why fewer publications are waited for than are missing.
const GIVEN_UP: &str = "fan-out: a publication was given up, which did not reach all clients for a second";

/// What a feeder's publishers have under way: one publication each, or none.
#[derive(Debug)]
pub(super) struct Feeding {
    patience_ns: u64,
    under_way: Vec<Option<UnderWay>>,
}

/// A publication that has not reached everybody.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    /// Whom it had reached when it was last looked at, and when that last grew (or it was sent), ns.
    deliveries: u32,
    grown_ns: u64,
}

impl Feeding {
    fn new(publishers: u32, patience_ns: u64) -> Self {
        Self { patience_ns, under_way: vec![None; publishers as usize] }
    }

    /// Whether a publisher may send its next one.
    pub fn is_free(&self, publisher: usize) -> bool {
        self.under_way.get(publisher).is_some_and(Option::is_none)
    }

    /// A publisher has one under way.
    pub fn has_sent(&mut self, publisher: usize, now: u64) {
        self.under_way[publisher] = Some(UnderWay { deliveries: 0, grown_ns: now });
    }

    /// Takes out what has reached everybody, and what is not waited for any longer; returns how many these are.
    fn settle(&mut self, broadcasts: &Broadcasts, now: u64) -> u32 {
        let mut given_up = 0;
        for (publisher, place) in (0..).zip(&mut self.under_way) {
            let Some(under_way) = place else { continue };
            let deliveries = broadcasts.deliveries(publisher);
            if std::mem::replace(&mut under_way.deliveries, deliveries) != deliveries {
                under_way.grown_ns = now;
            }
            if broadcasts.has_reached_all(publisher) {
                *place = None;
            } else if now.saturating_sub(under_way.grown_ns) >= self.patience_ns {
                *place = None;
                given_up += 1;
            }
        }
        given_up
    }

    /// The publishers that have one under way.
    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.under_way).filter(|(_, place)| place.is_some()).map(|(publisher, _)| publisher)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_is_free_when_its_own_has_reached_everybody() {
        let (broadcasts, mut feeding) = (Broadcasts::new(2, 1).unwrap(), Feeding::new(2, 100));
        for publisher in [0, 1] {
            broadcasts.begin(publisher, 0);
            feeding.has_sent(publisher as usize, 10);
        }
        broadcasts.reached(1, 0);
        assert_eq!(feeding.settle(&broadcasts, 20), 0);
        assert!(!feeding.is_free(0) && feeding.is_free(1) && !feeding.is_free(2));
        assert_eq!(feeding.waiting().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn patience_ends_where_nothing_grows_for_as_long() {
        let (broadcasts, mut feeding) = (Broadcasts::new(2, 3).unwrap(), Feeding::new(2, 100));
        for publisher in [0, 1] {
            broadcasts.begin(publisher, 0);
            feeding.has_sent(publisher as usize, 10);
        }
        assert_eq!(feeding.settle(&broadcasts, 109), 0);
        broadcasts.reached(0, 0);
        assert_eq!(feeding.settle(&broadcasts, 110), 1, "the other one's time is over");
        assert!(!feeding.is_free(0) && feeding.is_free(1), "it has just grown");
        assert_eq!((feeding.settle(&broadcasts, 209), feeding.settle(&broadcasts, 210)), (0, 1));
        broadcasts.begin(0, 1);
        feeding.has_sent(0, 210);
        assert_eq!(broadcasts.reached(0, 0), None, "what comes late counts for nothing");
        assert_eq!((feeding.settle(&broadcasts, 309), feeding.settle(&broadcasts, 310)), (0, 1));
    }
}
