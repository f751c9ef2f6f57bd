//! A run second by second, put together from all parts without averaging quantiles.

use crate::result::Second;
use pushlab_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most seconds of a series, about 19 hours; later ones are not kept.
pub const MAX_SECONDS: usize = 1 << 16;

/// What some part of the load saw of one second, or what several did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SecondPart {
    /// Publications sent.
    pub published: u64,
    /// Latency of the deliveries received; none without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Box<Histogram>>,
    /// The same of clients' own publications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_own: Option<Box<Histogram>>,
}

impl SecondPart {
    /// Adds what another part saw of the same second.
    pub fn add(&mut self, published: u64, latency: Option<&Histogram>, latency_own: Option<&Histogram>) {
        self.published += published;
        for (own, more) in [(&mut self.latency, latency), (&mut self.latency_own, latency_own)] {
            if let Some(more) = more.filter(|more| !more.is_empty()) {
                own.get_or_insert_default().merge(more);
            }
        }
    }

    /// What a report says of it.
    pub fn summary(&self) -> Second {
        let quantile = |of: &Option<Box<Histogram>>, q| of.as_deref().and_then(|latency| latency.quantile(q));
        Second {
            published: self.published,
            delivered: self.latency.as_deref().map_or(0, Histogram::count),
            latency_median_ns: quantile(&self.latency, 0.5),
            latency_p99_ns: quantile(&self.latency, 0.99),
            latency_own_median_ns: quantile(&self.latency_own, 0.5),
        }
    }
}

/// Merges the seconds of so many parts. Only seconds that some part has not handed in yet hold histograms, 216 KiB each.
#[derive(Debug)]
pub struct SecondTable {
    parts: u32,
    /// The first second that is not closed.
    next: usize,
    open: VecDeque<OpenSecond>,
}

#[derive(Debug, Default)]
struct OpenSecond {
    merged: SecondPart,
    parts: u32,
}

impl SecondTable {
    /// For so many parts.
    pub fn new(parts: u32) -> Self {
        Self { parts, next: 0, open: VecDeque::new() }
    }

    /// Takes one part's share of the second `index`, in any order. Every part hands in every second once; what comes
    /// after its second was closed is not kept.
    pub fn hand_in(
        &mut self,
        index: usize,
        published: u64,
        latency: Option<&Histogram>,
        latency_own: Option<&Histogram>,
    ) {
        let Some(place) = index.checked_sub(self.next).filter(|_| index < MAX_SECONDS) else { return };
        if self.open.len() <= place {
            self.open.resize_with(place + 1, OpenSecond::default);
        }
        let open = &mut self.open[place];
        open.merged.add(published, latency, latency_own);
        open.parts += 1;
    }

    /// The next second that all parts have handed in.
    pub fn take_closed(&mut self) -> Option<(usize, SecondPart)> {
        if self.open.front()?.parts < self.parts {
            return None;
        }
        self.take_front()
    }

    /// The next second, whoever is missing: when no more are to come.
    pub fn take_front(&mut self) -> Option<(usize, SecondPart)> {
        let open = self.open.pop_front()?;
        self.next += 1;
        Some((self.next - 1, open.merged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        latencies.iter().for_each(|latency| histogram.record(*latency));
        histogram
    }

    #[test]
    fn a_second_is_closed_when_all_have_handed_it_in() {
        let mut table = SecondTable::new(2);
        table.hand_in(1, 5, Some(&of(&[1_000])), None);
        table.hand_in(0, 1, Some(&of(&[1_000_000; 90])), None);
        assert!(table.take_closed().is_none());
        table.hand_in(1, 6, None, Some(&of(&[7_000])));
        assert!(table.take_closed().is_none(), "the one before is not");
        table.hand_in(0, 2, Some(&of(&[9_000_000; 10])), None);
        let (index, second) = table.take_closed().unwrap();
        let summary = second.summary();
        assert_eq!((index, summary.published, summary.delivered), (0, 3, 100));
        assert!(summary.latency_median_ns.unwrap() < 1_002_000 && summary.latency_p99_ns.unwrap() >= 9_000_000);
        let (index, second) = table.take_closed().unwrap();
        assert_eq!((index, second.published), (1, 11));
        assert_eq!(second.summary().latency_own_median_ns, Some(of(&[7_000]).quantile(0.5).unwrap()));
        table.hand_in(0, 100, None, None);
        assert!(table.take_front().is_none(), "what comes too late opens nothing again");
    }

    #[test]
    fn what_somebody_did_not_hand_in_is_there_at_the_end() {
        let mut table = SecondTable::new(2);
        table.hand_in(2, 4, None, None);
        assert!(table.take_closed().is_none());
        let published: Vec<u64> =
            std::iter::from_fn(|| table.take_front()).map(|(_, second)| second.published).collect();
        assert_eq!(published, [0, 0, 4]);
        table.hand_in(MAX_SECONDS, 1, None, None);
        assert!(table.take_front().is_none());
    }
}
