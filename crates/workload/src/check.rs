//! Exact accounting of stamps: what was lost, came twice, came out of order. No clock, no socket.

use crate::pacing::Pacing;
use crate::shape::Warp;
use pushlab_wire::stamp::{RESOLUTION_NS, Stamp};
use std::sync::Arc;

/// How far back a late or repeated sequence number is told apart exactly.
pub const WINDOW: u32 = 64;

/// What one delivery was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// For the first time, and in order.
    New,
    /// For the first time, after a later one of the same publisher.
    Late,
    /// Again.
    Duplicate,
}

/// What one receiver has seen of one publisher: 16 bytes, all zero before the first.
///
/// Holds the next sequence number, how many distinct ones came, and which of the last [`WINDOW`] they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    next: u32,
    distinct: u32,
    /// Bit j: `next − 1 − j` came.
    window: u64,
}

impl Seen {
    #[inline]
    fn observe(&mut self, sequence: u32) -> Verdict {
        if sequence >= self.next {
            let ahead = sequence - self.next + 1;
            self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = sequence + 1;
            self.distinct += 1;
            return Verdict::New;
        }
        let behind = self.next - 1 - sequence;
        if behind < WINDOW {
            let bit = 1u64 << behind;
            if self.window & bit != 0 {
                return Verdict::Duplicate;
            }
            self.window |= bit;
        } else if self.holes_before_window() == 0 {
            return Verdict::Duplicate;
        }
        // Beyond the window, and something is missing there: that it is this one is the kinder reading, and
        // the only one that cannot count more duplicates than there are.
        self.distinct += 1;
        Verdict::Late
    }

    fn holes_before_window(&self) -> u32 {
        self.next.saturating_sub(WINDOW) - (self.distinct - self.window.count_ones())
    }

    fn pack(self) -> [u64; 2] {
        [u64::from(self.next) << 32 | u64::from(self.distinct), self.window]
    }

    fn unpack([counts, window]: [u64; 2]) -> Self {
        Self { next: (counts >> 32) as u32, distinct: counts as u32, window }
    }
}

/// What every receiver of a loop has seen of every source.
///
/// A flat table of 16 bytes for each pair. The kernel gives zeroed pages only when they are written, so pairs
/// that never meet cost nothing.
#[derive(Debug)]
pub struct SeenTable {
    cells: Vec<[u64; 2]>,
    sources: usize,
}

/// Bytes of a [`SeenTable`] for each pair of receiver and source.
pub const PAIR_BYTES: u64 = 16;

impl SeenTable {
    /// A table of receivers × sources.
    pub fn new(receivers: u32, sources: u32) -> Self {
        Self { cells: vec![[0; 2]; receivers as usize * sources as usize], sources: sources as usize }
    }

    /// Accounts for one delivery. `sequence` counts from 0 within what is to be counted.
    ///
    /// # Panics
    /// When receiver or source lies beyond the table.
    #[inline]
    pub fn observe(&mut self, receiver: u32, source: u32, sequence: u32) -> Verdict {
        let cell = &mut self.cells[receiver as usize * self.sources + source as usize];
        let mut seen = Seen::unpack(*cell);
        let verdict = seen.observe(sequence);
        *cell = seen.pack();
        verdict
    }

    /// Whether one came that is `step`, `2 · step` … after a sequence number, as far as the last [`WINDOW`] tell.
    ///
    /// # Panics
    /// When receiver or source lies beyond the table.
    pub fn has_later(&self, receiver: u32, source: u32, sequence: u32, step: u32) -> bool {
        let seen = Seen::unpack(self.cells[receiver as usize * self.sources + source as usize]);
        let window = seen.next.saturating_sub(WINDOW).max(sequence + 1)..seen.next;
        window
            .rev()
            .any(|later| (later - sequence).is_multiple_of(step) && seen.window >> (seen.next - 1 - later) & 1 == 1)
    }
}

/// What is meant to be published, so that a stamp can be recognised.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Instants are known beforehand.
    Open {
        /// Warm-up and load, without a break.
        pacing: Pacing,
        /// The first publication of the load phase.
        load_from: u64,
    },
    /// A client sends when its last answer has come; stamps carry the instant of sending, and sequence numbers
    /// begin anew with the load phase.
    Closed {
        /// When the load phase begins, ns.
        load_ns: u64,
        /// When it ends, ns.
        load_end_ns: u64,
        /// Which share of the clients asks, where that changes, from the beginning of the warm-up on.
        share: Option<(u64, Arc<Warp>)>,
    },
}

/// A stamp that belongs to the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// Published in the warm-up: not counted.
    WarmUp,
    /// Published in the load phase.
    Load {
        /// Counts the publisher's publications in the load phase from 0.
        sequence: u32,
        /// Counts all publications of the load phase from 0 (0 in a closed loop).
        index: u64,
    },
}

impl Schedule {
    /// Publications of the load phase; 0 in a closed loop, where nobody knows beforehand.
    pub fn load_count(&self) -> u64 {
        match self {
            Self::Open { pacing, load_from } => pacing.count - load_from,
            Self::Closed { .. } => 0,
        }
    }

    /// Tells what a stamp stands for; `None` for one that nobody was to send.
    #[inline]
    pub fn recognise(&self, stamp: &Stamp) -> Option<Recognised> {
        match self {
            Self::Open { pacing, load_from } => {
                if stamp.source >= pacing.per_period {
                    return None;
                }
                let k = pacing.index_of(stamp.source, u64::from(stamp.sequence));
                if k >= pacing.count || pacing.due_ns(k) / RESOLUTION_NS != stamp.instant_ns / RESOLUTION_NS {
                    return None;
                }
                if k < *load_from {
                    return Some(Recognised::WarmUp);
                }
                let before = pacing.sequences_before(*load_from, stamp.source) as u32;
                Some(Recognised::Load { sequence: stamp.sequence - before, index: k - load_from })
            }
            Self::Closed { load_ns, load_end_ns, .. } => {
                let is_load = (*load_ns..*load_end_ns).contains(&stamp.instant_ns);
                Some(if is_load { Recognised::Load { sequence: stamp.sequence, index: 0 } } else { Recognised::WarmUp })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Loses, doubles and swaps neighbours; returns what was done and what arrives.
    fn disturb(count: u32, seed: u64) -> (Vec<u32>, [u32; 3]) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut out, mut done) = (Vec::new(), [0; 3]);
        let mut held = None;
        for sequence in 0..count {
            if let Some(held) = held.take() {
                out.extend([sequence, held]);
                continue;
            }
            match rng.u32(0..1000) {
                0..10 => done[0] += 1,
                10..15 => {
                    done[1] += 1;
                    out.extend([sequence, sequence]);
                }
                15..25 if sequence + 1 < count => {
                    done[2] += 1;
                    held = Some(sequence);
                }
                _ => out.push(sequence),
            }
        }
        (out, done)
    }

    proptest! {
        #[test]
        fn what_a_bad_server_does_comes_out_exactly(seed: u64, count in 1u32..5000) {
            let (arrivals, [lost, doubled, swapped]) = disturb(count, seed);
            let mut table = SeenTable::new(2, 3);
            let mut counts = [0u32; 3];
            for sequence in arrivals {
                counts[table.observe(1, 2, sequence) as usize] += 1;
            }
            prop_assert_eq!(count - counts[0] - counts[1], lost);
            prop_assert_eq!(counts[2], doubled);
            prop_assert_eq!(counts[1], swapped);
            prop_assert!(table.cells[..5].iter().all(|cell| *cell == [0; 2]));
        }

        #[test]
        fn no_more_distinct_than_there_are(arrivals in prop::collection::vec(0u32..200, 0..600)) {
            let mut seen = Seen::default();
            let mut distinct = std::collections::HashSet::new();
            for sequence in arrivals {
                seen.observe(sequence);
                distinct.insert(sequence);
                prop_assert_eq!(Seen::unpack(seen.pack()), seen);
            }
            prop_assert!(seen.distinct <= seen.next);
            prop_assert!(seen.distinct as usize >= distinct.len() || seen.next > WINDOW);
        }

        #[test]
        fn within_the_window_any_order_is_exact(order in Just((0..WINDOW).collect::<Vec<_>>()).prop_shuffle(), repeats in prop::collection::vec(0..WINDOW, 0..20)) {
            let mut seen = Seen::default();
            for &sequence in &order {
                prop_assert_ne!(seen.observe(sequence), Verdict::Duplicate);
            }
            for sequence in repeats {
                prop_assert_eq!(seen.observe(sequence), Verdict::Duplicate);
            }
            prop_assert_eq!(seen.distinct, WINDOW);
        }
    }

    #[test]
    fn far_late_ones_fill_holes_and_no_more() {
        let mut seen = Seen::default();
        assert_eq!(seen.observe(1), Verdict::New);
        assert_eq!(seen.observe(500), Verdict::New);
        assert_eq!(seen.observe(0), Verdict::Late);
        assert_eq!(seen.observe(u32::MAX - 1), Verdict::New);
        let mut full = Seen::default();
        (0..200).for_each(|sequence| assert_eq!(full.observe(sequence), Verdict::New));
        assert_eq!(full.observe(3), Verdict::Duplicate);
    }

    #[test]
    fn only_scheduled_stamps_are_recognised() {
        let pacing = Pacing::between(1_000_000, 1_010_000, 3_000, 4);
        let load_from = pacing.first_at(1_005_000);
        let schedule = Schedule::Open { pacing: pacing.clone(), load_from };
        let mut sequences = [0; 4];
        for k in 0..pacing.count {
            let (source, sequence) = pacing.publisher_of(k);
            let stamp = Stamp { source, sequence: sequence as u32, instant_ns: pacing.due_ns(k) / 100 * 100 };
            let expected = if k < load_from {
                Recognised::WarmUp
            } else {
                sequences[source as usize] += 1;
                Recognised::Load { sequence: sequences[source as usize] - 1, index: k - load_from }
            };
            assert_eq!(schedule.recognise(&stamp), Some(expected));
            assert_eq!(schedule.recognise(&Stamp { instant_ns: stamp.instant_ns + 100, ..stamp }), None);
            assert_eq!(schedule.recognise(&Stamp { source: 4, ..stamp }), None);
        }
        assert_eq!(sequences.iter().sum::<u32>() as u64, schedule.load_count());
        let beyond = Stamp { source: 0, sequence: 1000, instant_ns: pacing.due_ns(4000) / 100 * 100 };
        assert_eq!(schedule.recognise(&beyond), None);
    }

    #[test]
    fn a_closed_loop_goes_by_the_instant() {
        let schedule = Schedule::Closed { load_ns: 1000, load_end_ns: 2000, share: None };
        let stamp = |instant_ns| Stamp { source: 0, sequence: 9, instant_ns };
        assert_eq!(schedule.recognise(&stamp(900)), Some(Recognised::WarmUp));
        assert_eq!(schedule.recognise(&stamp(1000)), Some(Recognised::Load { sequence: 9, index: 0 }));
        assert_eq!(schedule.recognise(&stamp(2000)), Some(Recognised::WarmUp));
    }
}
