//! A closed loop of broadcasts: what is under way.

use crate::broadcasts::Broadcasts;

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
    /// Of so many publishers, and how long one of them waits, ns.
    pub fn new(publishers: u32, patience_ns: u64) -> Self {
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
    pub fn settle(&mut self, broadcasts: &Broadcasts, now: u64) -> u32 {
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
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.under_way).filter(|(_, place)| place.is_some()).map(|(publisher, _)| publisher)
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
