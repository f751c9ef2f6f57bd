//! Deadlines of connections: a wheel of 100 ms slots with at most a few entries for each place of a connection.

use std::time::Duration;

/// Resolution of all timeouts.
pub const TICK: Duration = Duration::from_millis(100);
const SLOTS: usize = 1024;

/// A point in time, in ticks since the wheel was made.
pub type Tick = u32;

/// Finds connections whose deadline may have come. Entries are never removed: a deadline that moved later is found
/// early and entered again, which costs nothing while it keeps moving. A connection that takes the place of another finds
/// its entry there too, so however many come and go, the wheel grows with the places alone.
pub struct Wheel {
    now: Tick,
    slots: Vec<Vec<(Tick, usize)>>,
    /// For each place the earliest entry; `Tick::MAX` for none.
    earliest: Vec<Tick>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self { now: 0, slots: vec![Vec::new(); SLOTS], earliest: Vec::new() }
    }
}

impl Wheel {
    /// The current tick.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The tick that is at least `delay` from now.
    pub fn after(&self, delay: Duration) -> Tick {
        let ticks = delay.as_nanos().div_ceil(TICK.as_nanos());
        self.now.saturating_add(Tick::try_from(ticks).unwrap_or(Tick::MAX)).saturating_add(1)
    }

    /// Remembers to look at `id` at a tick, or before it.
    pub fn insert(&mut self, at: Tick, id: usize) {
        let at = at.max(self.now + 1);
        if self.earliest.len() <= id {
            self.earliest.resize(id + 1, Tick::MAX);
        }
        if at < self.earliest[id] {
            self.earliest[id] = at;
            self.slots[at as usize % SLOTS].push((at, id));
        }
    }

    /// Moves to the present, so long after the wheel was made, and collects whom to look at; of them nothing is remembered
    /// any more.
    pub fn advance(&mut self, now: Duration, due: &mut Vec<usize>) {
        let target = Tick::try_from(now.as_nanos() / TICK.as_nanos()).unwrap_or(Tick::MAX);
        while self.now < target {
            self.now += 1;
            let now = self.now;
            let slot = &mut self.slots[now as usize % SLOTS];
            let mut kept = 0;
            for i in 0..slot.len() {
                let (at, id) = slot[i];
                if at > now {
                    slot.swap(kept, i);
                    kept += 1;
                } else if self.earliest[id] == at {
                    self.earliest[id] = Tick::MAX;
                    due.push(id);
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
        let mut wheel = Wheel::default();
        for (id, secs) in [(1, 1), (2, 2), (3, 200)] {
            wheel.insert(wheel.after(Duration::from_secs(secs)), id);
        }
        let mut due = Vec::new();
        let mut found = Vec::new();
        for second in 0..=201 {
            wheel.advance(Duration::from_secs(second), &mut due);
            found.extend(due.drain(..).map(|id| (second, id)));
        }
        assert_eq!(found, [(2, 1), (3, 2), (201, 3)]);
    }

    #[test]
    fn the_wheel_grows_with_the_places_not_with_those_who_come_and_go() {
        let mut wheel = Wheel::default();
        let entries = |wheel: &Wheel| wheel.slots.iter().map(Vec::len).sum::<usize>();
        for _ in 0..1_000 {
            for id in 0..4 {
                // A head is awaited, then a poll is held, then somebody else has the place.
                wheel.insert(wheel.after(Duration::from_secs(10)), id);
                wheel.insert(wheel.after(Duration::from_secs(60)), id);
            }
        }
        assert_eq!(entries(&wheel), 4);
        // A deadline that is nearer has an entry of its own; the other then says nothing.
        wheel.insert(wheel.after(Duration::from_secs(1)), 2);
        let (mut due, mut found) = (Vec::new(), Vec::new());
        for second in 0..=60 {
            wheel.advance(Duration::from_secs(second), &mut due);
            found.extend(due.drain(..).map(|id| (second, id)));
        }
        assert_eq!(found, [(2, 2), (11, 0), (11, 1), (11, 3)]);
        assert_eq!(entries(&wheel), 0);
    }
}
