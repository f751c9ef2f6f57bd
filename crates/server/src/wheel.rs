//! Deadlines of connections: a wheel of 100 ms slots with at most a few stale entries per connection.

use std::time::{Duration, Instant};

/// Resolution of all timeouts.
pub const TICK: Duration = Duration::from_millis(100);
const SLOTS: usize = 1024;

/// A point in time, in ticks since the wheel was made.
pub type Tick = u32;

/// Finds connections whose deadline may have come. Entries are never removed: a deadline that moved later is found
/// early and entered again, which costs nothing while it keeps moving.
pub struct Wheel {
    start: Instant,
    now: Tick,
    slots: Vec<Vec<(Tick, usize)>>,
}

impl Wheel {
    /// An empty wheel.
    pub fn new(start: Instant) -> Self {
        Self { start, now: 0, slots: vec![Vec::new(); SLOTS] }
    }

    /// The current tick.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The tick that is at least `delay` from now.
    pub fn after(&self, delay: Duration) -> Tick {
        let ticks = delay.as_nanos().div_ceil(TICK.as_nanos());
        self.now.saturating_add(Tick::try_from(ticks).unwrap_or(Tick::MAX)).saturating_add(1)
    }

    /// Remembers to look at `id` at a tick.
    pub fn insert(&mut self, at: Tick, id: usize) {
        let at = at.max(self.now + 1);
        self.slots[at as usize % SLOTS].push((at, id));
    }

    /// Moves to the present and collects the entries that are due.
    pub fn advance(&mut self, now: Instant, due: &mut Vec<(Tick, usize)>) {
        let target =
            Tick::try_from(now.saturating_duration_since(self.start).as_nanos() / TICK.as_nanos()).unwrap_or(Tick::MAX);
        while self.now < target {
            self.now += 1;
            let now = self.now;
            let slot = &mut self.slots[now as usize % SLOTS];
            let mut kept = 0;
            for i in 0..slot.len() {
                if slot[i].0 <= now {
                    due.push(slot[i]);
                } else {
                    slot.swap(kept, i);
                    kept += 1;
                }
            }
            slot.truncate(kept);
            if slot.is_empty() && slot.capacity() > 64 {
                *slot = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_when_due_also_beyond_one_turn() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        for (id, secs) in [(1, 1), (2, 2), (3, 200)] {
            wheel.insert(wheel.after(Duration::from_secs(secs)), id);
        }
        let mut due = Vec::new();
        let mut found = Vec::new();
        for second in 0..=201 {
            wheel.advance(start + Duration::from_secs(second), &mut due);
            found.extend(due.drain(..).map(|(_, id)| (second, id)));
        }
        assert_eq!(found, [(2, 1), (3, 2), (201, 3)]);
    }
}
