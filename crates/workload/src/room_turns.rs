//! Where clients are in rooms: who publishes what next. No clock.

use crate::pacing::Pacing;
use crate::rooms::Rooms;
use pushlab_wire::stamp::Stamp;
use std::sync::Arc;

/// What the clients of a loop publish to rooms. A client's next publication follows from its last one, so that any
/// number may be due without a queue.
#[derive(Debug)]
pub struct RoomTurns {
    rooms: Arc<Rooms>,
    lane: u32,
    lanes: u32,
    /// The next publication of each client of the loop.
    next: Vec<u64>,
}

impl RoomTurns {
    /// Those of the clients `lane`, `lane + lanes`, `lane + 2 · lanes` … of so many.
    pub fn new(rooms: Arc<Rooms>, pacing: &Pacing, clients: u32, lane: u32, lanes: u32) -> Self {
        let clients = (lane..clients).step_by(lanes.max(1) as usize);
        let next = clients.map(|client| rooms.next_of(client, 0, pacing)).collect();
        Self { rooms, lane, lanes, next }
    }

    /// Who publishes `k`: the client's number in the run.
    pub fn publisher(&self, k: u64, pacing: &Pacing) -> u32 {
        let (room, sequence) = pacing.publisher_of(k);
        self.rooms.publisher(room, sequence)
    }

    /// Whether that is a client of this loop.
    pub fn is_own(&self, k: u64, pacing: &Pacing) -> bool {
        self.lanes == 1 || self.publisher(k, pacing) % self.lanes == self.lane
    }

    /// What a client publishes next.
    ///
    /// # Panics
    /// For a client that is none of the loop's.
    pub fn next_stamp(&self, index: usize, pacing: &Pacing) -> Stamp {
        let k = self.next[index];
        let (source, sequence) = pacing.publisher_of(k);
        Stamp { source, sequence: sequence as u32, instant_ns: pacing.due_ns(k) }
    }

    /// A client has published that.
    ///
    /// # Panics
    /// As [`Self::next_stamp`].
    pub fn has_sent(&mut self, index: usize, k: u64, pacing: &Pacing) {
        let client = index as u32 * self.lanes + self.lane;
        self.next[index] = self.rooms.next_of(client, k + 1, pacing);
    }
}
