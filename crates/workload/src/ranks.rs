//! The first and the last subscriber that each publication reached.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushlab_stats::histogram::Histogram;
use pushlab_wire::stamp::RESOLUTION_NS;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most publications that are told apart, 12 bytes each: 48 MiB in each loop. Later ones of a run have no rank.
pub const MAX_RANKED: u64 = 1 << 22;

/// What a part of the load knows of the publications of the load phase, by their numbers.
///
/// Latencies are kept in the resolution of stamps, 100 ns, up to 7 minutes; what took longer counts as that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranks(Vec<Rank>);

/// Of one publication; nothing is known of one that has reached nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rank {
    reached: u32,
    first: u32,
    last: u32,
}

impl Ranks {
    /// Of so many publications.
    pub fn new(publications: u64) -> Self {
        Self(vec![Rank::default(); publications.min(MAX_RANKED) as usize])
    }

    /// Notes a delivery. One part sees its deliveries in the order of time, so its latest is its last.
    #[inline]
    pub fn reached(&mut self, publication: u64, latency_ns: u64) {
        let Some(rank) = usize::try_from(publication).ok().and_then(|place| self.0.get_mut(place)) else { return };
        let latency = u32::try_from((latency_ns + RESOLUTION_NS / 2) / RESOLUTION_NS).unwrap_or(u32::MAX);
        if rank.reached == 0 {
            rank.first = latency;
        }
        rank.reached += 1;
        rank.last = latency;
    }

    /// Adds what another part knows.
    pub fn merge(&mut self, other: Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Rank::default());
        }
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own = match (own.reached, more.reached) {
                (_, 0) => *own,
                (0, _) => more,
                _ => Rank {
                    reached: own.reached + more.reached,
                    first: own.first.min(more.first),
                    last: own.last.max(more.last),
                },
            };
        }
    }

    /// Latencies of the first subscriber of each publication, and of the last of each that has reached all; `receivers`
    /// says how many these are.
    pub fn latencies(&self, receivers: impl Fn(u64) -> u64) -> (Histogram, Histogram) {
        let (mut first, mut last) = (Histogram::new(), Histogram::new());
        for (publication, rank) in (0..).zip(&self.0).filter(|(_, rank)| rank.reached > 0) {
            first.record(u64::from(rank.first) * RESOLUTION_NS);
            if u64::from(rank.reached) == receivers(publication) {
                last.record(u64::from(rank.last) * RESOLUTION_NS);
            }
        }
        (first, last)
    }
}

/// Twelve bytes for each publication, as base64: a list of numbers would be three times as long.
impl Serialize for Ranks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.iter().flat_map(|rank| [rank.reached, rank.first, rank.last]);
        let bytes: Vec<u8> = fields.flat_map(u32::to_le_bytes).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Ranks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let (fields, rest) = bytes.as_chunks::<4>();
        let (ranks, others) = fields.as_chunks::<3>();
        if !rest.is_empty() || !others.is_empty() {
            return Err(D::Error::custom(format!("{} bytes are no whole number of publications", bytes.len())));
        }
        let rank = |fields: &[[u8; 4]; 3]| {
            let [reached, first, last] = fields.map(u32::from_le_bytes);
            Rank { reached, first, last }
        };
        Ok(Self(ranks.iter().map(rank).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(ranks: &Ranks, receivers: u64) -> [u64; 2] {
        let (first, last) = ranks.latencies(|_| receivers);
        [first.count(), last.count()]
    }

    #[test]
    fn only_what_has_reached_all_has_a_last() {
        let mut ranks = Ranks::new(3);
        ranks.reached(0, 1_000);
        ranks.reached(0, 5_000);
        ranks.reached(1, 2_000);
        ranks.reached(7, 1);
        assert_eq!(counts(&ranks, 2), [2, 1]);
        let (first, last) = ranks.latencies(|_| 2);
        let of = |latencies: &[u64]| {
            let mut histogram = Histogram::new();
            latencies.iter().for_each(|latency| histogram.record(*latency));
            histogram
        };
        assert_eq!((first, last), (of(&[1_000, 2_000]), of(&[5_000])));
    }

    #[test]
    fn publications_beyond_the_limit_have_no_rank() {
        let mut ranks = Ranks::new(MAX_RANKED + 1);
        ranks.reached(MAX_RANKED - 1, 100);
        ranks.reached(MAX_RANKED, 100);
        assert_eq!(counts(&ranks, 1), [1, 1]);
    }

    #[test]
    fn very_late_is_as_late_as_can_be_told() {
        let mut ranks = Ranks::new(1);
        ranks.reached(0, u64::MAX / 2);
        assert_eq!(counts(&ranks, 1), [1, 1]);
    }

    proptest! {
        #[test]
        fn parts_merged_know_what_one_would_that_saw_everything(
            deliveries in prop::collection::vec((0u64..5, 0usize..4, 0u64..10_000_000), 0..80),
            order in Just(vec![0usize, 1, 2, 3]).prop_shuffle(),
        ) {
            // In the order of time, as each part sees its own.
            let mut deliveries = deliveries;
            deliveries.sort_by_key(|(_, _, latency)| *latency);
            let mut whole = Ranks::new(5);
            let mut parts: Vec<Ranks> = (0..4).map(|_| Ranks::new(5)).collect();
            for (publication, part, latency) in deliveries {
                whole.reached(publication, latency);
                parts[part].reached(publication, latency);
            }
            let mut merged = Ranks::default();
            for part in order {
                let sent = serde_json::to_string(&parts[part]).unwrap();
                merged.merge(serde_json::from_str(&sent).unwrap());
            }
            prop_assert_eq!(merged, whole);
        }
    }
}
