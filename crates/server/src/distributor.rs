//! From whoever publishes to every event loop.

use crate::config::Limits;
use mio::Waker;
use pushlab_log::{MemoryLog, Publication, Replay};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::receipt::Receipt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often [`Distributor::expire`] is worth calling.
pub const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Publications on their way to one event loop.
pub struct Inbox {
    messages: Mutex<Vec<Arc<Publication>>>,
    len: AtomicUsize,
    bytes: AtomicUsize,
    /// Its event loop takes nothing more.
    has_ended: AtomicBool,
    waker: Waker,
}

/// The log and the inboxes. *Invariant*: a publication is appended to the log and put into every inbox under one lock,
/// so every event loop sees publications in the order of their offsets.
pub struct Distributor {
    epoch: Epoch,
    limits: Limits,
    marks_receipts: bool,
    inboxes: Vec<Arc<Inbox>>,
    log: Mutex<MemoryLog>,
    start: Instant,
}

/// Why a publication was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// An event loop is too far behind.
    #[error("the server is behind; try again in a moment")]
    Overloaded,
    /// The channel's name is invalid.
    #[error(transparent)]
    BadChannel(#[from] BadChannel),
}

impl Inbox {
    /// An inbox that wakes its event loop through `waker`.
    pub fn new(waker: Waker) -> Self {
        Self {
            messages: Mutex::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            waker,
        }
    }

    /// Takes all messages into `into`, which must be empty.
    pub fn drain(&self, into: &mut Vec<Arc<Publication>>) {
        if self.len.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut messages = lock(&self.messages);
        std::mem::swap(&mut *messages, into);
        self.len.store(0, Ordering::Release);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Wakes the event loop for a reason other than a message.
    pub fn wake(&self) {
        // An eventfd write fails only when its counter is full, and then the loop is awake anyway.
        let _ = self.waker.wake();
    }

    /// Takes no more messages and lets go of those it has: the event loop has ended, and must hold up nobody else.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.drain(&mut Vec::new());
    }

    /// Whether it is too full for another message. Those that publish at the same time may each add one beyond.
    fn is_full(&self, limits: &Limits) -> bool {
        let is_over = self.len.load(Ordering::Relaxed) >= limits.max_inbox_messages
            || self.bytes.load(Ordering::Relaxed) >= limits.max_inbox_bytes;
        is_over && !self.has_ended.load(Ordering::Relaxed)
    }

    fn push(&self, publication: Arc<Publication>) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let mut messages = lock(&self.messages);
        self.bytes.fetch_add(publication.text.as_bytes().len(), Ordering::Relaxed);
        messages.push(publication);
        self.len.store(messages.len(), Ordering::Release);
        if messages.len() == 1 {
            self.wake();
        }
    }
}

impl Distributor {
    /// A distributor with an empty log that feeds these event loops.
    pub fn new(epoch: Epoch, limits: Limits, marks_receipts: bool, inboxes: Vec<Arc<Inbox>>) -> Self {
        let log = Mutex::new(MemoryLog::new(epoch, limits.history()));
        Self { epoch, limits, marks_receipts, inboxes, log, start: Instant::now() }
    }

    /// The mark of what is received now, where the server is to leave one.
    pub fn receipt(&self) -> Option<Receipt> {
        self.marks_receipts.then(|| Receipt { instant_ns: monotonic_ns() })
    }

    /// Publishes; `data` is one line of valid JSON.
    pub fn publish(&self, channel: &str, data: &str, now: Instant) -> Result<Cursor, PublishError> {
        if self.inboxes.iter().any(|inbox| inbox.is_full(&self.limits)) {
            return Err(PublishError::Overloaded);
        }
        // Before the lock: waiting for it belongs to the way down.
        let receipt = self.receipt();
        let mut log = lock(&self.log);
        let publication = log.append(channel, data, receipt, self.since_start_ns(now))?;
        for inbox in &self.inboxes {
            inbox.push(publication.clone());
        }
        Ok(self.cursor(publication.offset))
    }

    /// The position after the latest publication.
    pub fn head(&self) -> Cursor {
        lock(&self.log).head()
    }

    /// A position of this server's life.
    pub fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }

    /// What was published to these channels after a cursor: see [`MemoryLog::read`].
    pub fn read(&self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Replay {
        lock(&self.log).read(channels, after, max_bytes)
    }

    /// Lets go of history that is too old.
    pub fn expire(&self, now: Instant) {
        lock(&self.log).expire(self.since_start_ns(now));
    }

    /// Channels with history, and the bytes of all history.
    pub fn history_size(&self) -> (usize, usize) {
        lock(&self.log).history_size()
    }

    fn since_start_ns(&self, now: Instant) -> u64 {
        // 584 years.
        now.saturating_duration_since(self.start).as_nanos() as u64
    }
}

/// Locks, also after a panic of another thread: every change under these locks leaves the state whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Poll, Token};

    fn distributor(limits: Limits, loops: usize) -> (Distributor, Vec<Arc<Inbox>>) {
        // A waker outlives its poll; nobody waits here.
        let waker = || Waker::new(Poll::new().unwrap().registry(), Token(0)).unwrap();
        let inboxes: Vec<_> = (0..loops).map(|_| Arc::new(Inbox::new(waker()))).collect();
        (Distributor::new(Epoch::from_number(1), limits, false, inboxes.clone()), inboxes)
    }

    fn drained(inbox: &Inbox) -> usize {
        let mut messages = Vec::new();
        inbox.drain(&mut messages);
        messages.len()
    }

    #[test]
    fn an_inbox_is_bounded_in_messages_and_bytes() {
        let data = format!("\"{}\"", "x".repeat(1000));
        for (max_inbox_messages, max_inbox_bytes, taken) in [(3, usize::MAX, 3), (1000, 5_000, 5)] {
            let limits = Limits { max_inbox_messages, max_inbox_bytes, ..Limits::default() };
            let (distributor, inboxes) = distributor(limits, 1);
            for _ in 0..2 {
                for _ in 0..taken {
                    distributor.publish("a", &data, Instant::now()).unwrap();
                }
                assert_eq!(distributor.publish("a", &data, Instant::now()), Err(PublishError::Overloaded));
                assert_eq!(drained(&inboxes[0]), taken);
            }
        }
    }

    #[test]
    fn an_event_loop_that_has_ended_holds_up_nobody() {
        let (distributor, inboxes) = distributor(Limits { max_inbox_messages: 2, ..Limits::default() }, 2);
        distributor.publish("a", "1", Instant::now()).unwrap();
        inboxes[0].end();
        for _ in 0..10 {
            distributor.publish("a", "1", Instant::now()).unwrap();
            assert!(drained(&inboxes[1]) > 0);
        }
        assert_eq!(drained(&inboxes[0]), 0, "it holds nothing either");
    }
}
