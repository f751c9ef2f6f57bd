//! Which connections' sockets stand in the ring's table of registered files.
//!
//! A send to one of them spares the kernel looking up a descriptor. The table holds a socket open, though its
//! descriptor was closed: a connection that ends must leave it, or its peer would not hear of the end.

use super::uring::Ring;
use io_uring::register::SKIP_FILE as SKIP;
use std::io;
use std::os::fd::RawFd;

/// Empties a slot.
const NOTHING: RawFd = -1;
/// No connection; one of this generation is entered each time, which only costs.
const NOBODY: u32 = 0;
/// Slots between two changes that one call passes over.
const MAX_SKIPPED: usize = 64;

/// The table; the slot of a connection is its number.
#[derive(Default)]
pub struct Files {
    /// Slots there are. 0: no table, descriptors serve.
    size: u32,
    /// The generation of the connection in each slot.
    held: Vec<u32>,
    /// Changes that the kernel was not told yet: slot and descriptor.
    changes: Vec<(u32, RawFd)>,
    /// Connections that have ended: slot and generation.
    left: Vec<(u32, u32)>,
    /// Working space.
    run: Vec<RawFd>,
}

impl Files {
    /// A table of so many slots, or none where the kernel refuses.
    pub fn register(ring: &Ring, slots: usize) -> Self {
        let wanted = u32::try_from(slots).unwrap_or(u32::MAX);
        let size = if wanted > 0 && ring.register_table(wanted).is_ok() { wanted } else { 0 };
        Self { size, ..Self::default() }
    }

    /// Whether sockets stand in the table at all.
    #[cfg(test)]
    pub fn is_used(&self) -> bool {
        self.size > 0
    }

    /// Whether a connection stands there.
    pub fn has(&self, id: u32, generation: u32) -> bool {
        generation != NOBODY && self.held.get(id as usize) == Some(&generation)
    }

    /// Notes that a connection is to stand there, if there is room.
    pub fn enter(&mut self, id: u32, generation: u32, descriptor: RawFd) {
        if id >= self.size || generation == NOBODY {
            return;
        }
        let at = id as usize;
        if self.held.len() <= at {
            self.held.resize(at + 1, NOBODY);
        }
        self.held[at] = generation;
        self.changes.push((id, descriptor));
    }

    /// Notes that a connection has ended; says whether the table still holds its socket.
    pub fn leave(&mut self, id: u32, generation: u32) -> bool {
        let is_held = self.has(id, generation);
        if is_held {
            self.left.push((id, generation));
        }
        is_held
    }

    /// Lets go of the sockets of connections that have ended.
    pub fn let_go(&mut self, ring: &Ring) {
        while let Some((id, generation)) = self.left.pop() {
            // Whoever came into its place has pushed it out of the table.
            if self.has(id, generation) {
                self.held[id as usize] = NOBODY;
                self.changes.push((id, NOTHING));
            }
        }
        self.apply(ring);
    }

    /// Tells the kernel of all changes, neighbours in one call. Where it refuses there is no table any more.
    pub fn apply(&mut self, ring: &Ring) {
        if self.changes.is_empty() {
            return;
        }
        self.changes.sort_unstable_by_key(|&(slot, _)| slot);
        if self.try_apply(ring).is_err() {
            ring.drop_table();
            *self = Self::default();
        }
        self.changes.clear();
    }

    fn try_apply(&mut self, ring: &Ring) -> io::Result<()> {
        let mut start = 0;
        self.run.clear();
        for &(slot, descriptor) in &self.changes {
            let gap = (slot - start) as usize;
            if self.run.is_empty() || gap > self.run.len() + MAX_SKIPPED {
                if !self.run.is_empty() {
                    ring.update_table(start, &self.run)?;
                    self.run.clear();
                }
                start = slot;
            }
            self.run.resize((slot - start) as usize, SKIP);
            self.run.push(descriptor);
        }
        ring.update_table(start, &self.run)
    }
}
