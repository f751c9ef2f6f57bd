//! Room for the packets that are under way: taken once, used again and again.

/// Most that the packets under way in both directions may take, bytes. Each takes the room of the largest, so this is
/// 178,956 packets of Ethernet's size: 300 ms at 600,000 packets a second, which is more than one thread carries. What
/// finds no room waits in the kernel.
pub const MAX_BUFFER_BYTES: usize = 256 << 20;

/// Packets in one allocation.
const CHUNK: usize = 64;

/// A place for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// Places of one size, made when first needed and then kept.
#[derive(Debug)]
pub struct Buffers {
    slot_bytes: usize,
    max_chunks: usize,
    chunks: Vec<Box<[u8]>>,
    /// The one given back last is the next one taken: it is still in the cache.
    free: Vec<Slot>,
}

impl Buffers {
    /// For packets of up to `slot_bytes`.
    pub fn new(slot_bytes: usize) -> Self {
        let max_chunks = (MAX_BUFFER_BYTES / (slot_bytes * CHUNK)).max(1);
        Self { slot_bytes, max_chunks, chunks: Vec::new(), free: Vec::new() }
    }

    /// A free place; `None` when all are taken.
    pub fn take(&mut self) -> Option<Slot> {
        if self.free.is_empty() && self.chunks.len() < self.max_chunks {
            let first = (self.chunks.len() * CHUNK) as u32;
            self.chunks.push(vec![0; CHUNK * self.slot_bytes].into_boxed_slice());
            self.free.extend((first..first + CHUNK as u32).rev().map(Slot));
        }
        self.free.pop()
    }

    /// Gives a place back.
    pub fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Whether every place is taken.
    pub fn are_full(&self) -> bool {
        self.free.is_empty() && self.chunks.len() == self.max_chunks
    }

    /// The bytes of a place.
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        let (chunk, at) = self.place(slot);
        &self.chunks[chunk][at..at + self.slot_bytes]
    }

    /// The bytes of a place, to be filled.
    pub fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let (chunk, at) = self.place(slot);
        &mut self.chunks[chunk][at..at + self.slot_bytes]
    }

    fn place(&self, slot: Slot) -> (usize, usize) {
        (slot.0 as usize / CHUNK, slot.0 as usize % CHUNK * self.slot_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_are_used_again() {
        let mut buffers = Buffers::new(100);
        let slots: Vec<Slot> = (0..200).map(|_| buffers.take().unwrap()).collect();
        for (i, &slot) in slots.iter().enumerate() {
            buffers.bytes_mut(slot).fill(i as u8);
        }
        for (i, &slot) in slots.iter().enumerate() {
            assert!(buffers.bytes(slot).iter().all(|&byte| byte == i as u8));
        }
        let chunks = buffers.chunks.len();
        slots.iter().for_each(|&slot| buffers.give_back(slot));
        assert!((0..200).all(|_| buffers.take().is_some()));
        assert_eq!(buffers.chunks.len(), chunks);
    }

    #[test]
    fn there_are_no_more_places_than_the_limit() {
        let mut buffers = Buffers::new(65_535);
        let mut taken = 0;
        while let Some(slot) = buffers.take() {
            taken += 1;
            assert!((slot.0 as usize) < MAX_BUFFER_BYTES / 65_535);
        }
        assert!(buffers.are_full() && taken * 65_535 <= MAX_BUFFER_BYTES && taken > 4000);
        buffers.give_back(Slot(7));
        assert!(!buffers.are_full());
        assert_eq!(buffers.take(), Some(Slot(7)));
    }
}
