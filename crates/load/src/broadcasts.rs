//! The publications under way of a closed loop of broadcasts: whom each has reached, and what wakes the feeder.

use pushlab_os::bell::Bell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Counts whom publications have reached, over all loops. 8 bytes for each publisher; at most 8 KiB.
#[derive(Debug)]
pub struct Broadcasts {
    receivers: u32,
    /// Sequence number and deliveries so far of each publisher's latest publication, 32 bits each. One that was given
    /// up is forgotten with the next.
    slots: Box<[AtomicU64]>,
    /// Whether the feeder sleeps until a publication has reached everybody.
    is_awaited: AtomicBool,
    wakeup: Bell,
}

impl Broadcasts {
    /// For so many publishers, and receivers of each publication. To be made before the threads that keep its
    /// descriptor.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new(publishers: u32, receivers: u32) -> io::Result<Self> {
        let wakeup = Bell::new()?;
        // No stamp has the number of an empty place.
        let slots = (0..publishers.max(1)).map(|_| AtomicU64::new(u64::MAX)).collect();
        Ok(Self { receivers, slots, is_awaited: AtomicBool::new(false), wakeup })
    }

    /// What becomes readable when the feeder is to go on. Registered edge-triggered it need not be read.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// Before a publication is sent; again if it could not be.
    ///
    /// # Panics
    /// For a publisher beyond their number.
    pub fn begin(&self, publisher: u32, sequence: u32) {
        self.slots[publisher as usize].store(u64::from(sequence) << 32, SeqCst);
    }

    /// Counts a delivery; 1 for the first. `None` for a publication that was given up. The last one wakes the
    /// feeder, if that waits for it.
    #[inline]
    pub fn reached(&self, publisher: u32, sequence: u32) -> Option<u32> {
        let counted = |held: u64| (held >> 32 == u64::from(sequence)).then(|| held + 1);
        let slot = self.slots.get(publisher as usize)?;
        let place = slot.fetch_update(SeqCst, SeqCst, counted).ok()? as u32 + 1;
        if place == self.receivers && self.is_awaited.swap(false, SeqCst) {
            self.wakeup.ring();
        }
        Some(place)
    }

    /// Deliveries so far of a publisher's latest publication.
    ///
    /// # Panics
    /// For a publisher beyond their number.
    pub fn deliveries(&self, publisher: u32) -> u32 {
        self.slots[publisher as usize].load(SeqCst) as u32
    }

    /// Whether a publisher's latest publication has reached everybody.
    ///
    /// # Panics
    /// For a publisher beyond their number.
    pub fn has_reached_all(&self, publisher: u32) -> bool {
        self.deliveries(publisher) >= self.receivers
    }

    /// Wakes the feeder as soon as any has reached everybody from now on; at once if one of these publishers' has by
    /// now.
    pub fn wake_after(&self, mut waiting: impl Iterator<Item = u32>) {
        self.is_awaited.store(true, SeqCst);
        if waiting.any(|publisher| self.has_reached_all(publisher)) && self.is_awaited.swap(false, SeqCst) {
            self.wakeup.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};
    use std::os::fd::AsRawFd as _;
    use std::time::Duration;

    #[test]
    fn a_place_counts_for_one_publication_at_a_time() {
        let broadcasts = Broadcasts::new(2, 3).unwrap();
        assert_eq!(broadcasts.reached(0, 0), None, "nothing has begun");
        (0..2).for_each(|publisher| broadcasts.begin(publisher, 0));
        let reach = |(publisher, sequence)| broadcasts.reached(publisher, sequence);
        assert_eq!([(0, 0), (0, 0), (1, 0), (0, 0)].map(reach), [Some(1), Some(2), Some(1), Some(3)]);
        assert!(broadcasts.has_reached_all(0) && !broadcasts.has_reached_all(1));
        broadcasts.begin(0, 1);
        assert_eq!([(0, 0), (0, 1), (0, 2), (0, 1), (2, 0)].map(reach), [None, Some(1), None, Some(2), None]);
        assert_eq!((broadcasts.deliveries(0), broadcasts.deliveries(1)), (2, 1));
    }

    fn has_woken(poll: &mut Poll) -> bool {
        let mut events = Events::with_capacity(4);
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        !events.is_empty()
    }

    #[test]
    fn whoever_waits_is_woken_once() {
        let broadcasts = Broadcasts::new(4, 2).unwrap();
        let mut poll = Poll::new().unwrap();
        let wakeup = broadcasts.wakeup().as_raw_fd();
        poll.registry().register(&mut SourceFd(&wakeup), Token(1), Interest::READABLE).unwrap();
        (0..4).for_each(|publisher| broadcasts.begin(publisher, 7));
        let reach = |publisher| assert_eq!([(); 2].map(|()| broadcasts.reached(publisher, 7)), [Some(1), Some(2)]);
        reach(0);
        assert!(!has_woken(&mut poll), "nobody waits");
        broadcasts.wake_after(1..4);
        broadcasts.reached(1, 7);
        assert!(!has_woken(&mut poll), "one is missing");
        broadcasts.reached(1, 7);
        reach(2);
        assert!(has_woken(&mut poll) && !has_woken(&mut poll));
        broadcasts.wake_after(2..4);
        assert!(has_woken(&mut poll), "it had already reached everybody");
        reach(3);
        assert!(!has_woken(&mut poll), "nobody waits any more");
    }

    #[test]
    fn the_last_delivery_is_never_unheard() {
        let broadcasts = Broadcasts::new(1, 2).unwrap();
        let mut poll = Poll::new().unwrap();
        let wakeup = broadcasts.wakeup().as_raw_fd();
        poll.registry().register(&mut SourceFd(&wakeup), Token(1), Interest::READABLE).unwrap();
        let mut events = Events::with_capacity(4);
        for sequence in 0..2_000 {
            broadcasts.begin(0, sequence);
            std::thread::scope(|scope| {
                (0..2).for_each(|_| _ = scope.spawn(|| broadcasts.reached(0, sequence)));
                broadcasts.wake_after(0..1);
                poll.poll(&mut events, Some(Duration::from_secs(20))).unwrap();
                assert!(!events.is_empty(), "{sequence}");
            });
            assert!(broadcasts.has_reached_all(0));
        }
    }
}
