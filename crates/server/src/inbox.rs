//! The way into an event loop from everywhere else.

use crate::carrier::Carrier;
use mio::Waker;
use pushlab_access::Holder;
use pushlab_log::{Publication, Replay, Ticket};
use pushlab_wire::cursor::Cursor;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is on its way to one event loop.
pub struct Inbox {
    arrivals: Mutex<Arrivals>,
    /// Whether something is in it.
    is_filled: AtomicBool,
    carried: Mutex<Carried>,
    has_carried: AtomicBool,
    /// Identities whose connections are to end.
    dismissed: Mutex<Vec<Holder>>,
    has_dismissed: AtomicBool,
    messages: AtomicUsize,
    bytes: AtomicUsize,
    /// Its event loop takes nothing more.
    has_ended: AtomicBool,
    waker: Waker,
}

/// What has come to an event loop.
#[derive(Default)]
pub struct Arrivals {
    /// Publications, in the order of their offsets.
    pub publications: Vec<Arc<Publication>>,
    /// What the log has answered. *Invariant*: a replay tells of everything that came to this inbox before it, so whoever
    /// takes these first, and only then these publications, misses none.
    pub settlements: Vec<(Ticket, Settlement)>,
}

/// What has come of connections that somebody else carries. It is taken at the beginning of a turn, as events of sockets
/// are, so that what these connections publish leaves in the same turn.
#[derive(Default)]
pub struct Carried {
    /// New ones.
    pub carriers: Vec<Box<dyn Carrier>>,
    /// Those that can go on, by number and generation.
    pub ready: Vec<(usize, u32)>,
}

/// What became of something that was asked of the log.
pub enum Settlement {
    /// It is published here.
    Published(Cursor),
    /// What was missed.
    Read(Replay),
    /// Nobody knows.
    Failed,
}

/// How much an inbox holds.
#[derive(Debug, Clone, Copy)]
pub struct InboxLimits {
    /// Publications.
    pub max_messages: usize,
    /// Their bytes.
    pub max_bytes: usize,
}

impl Inbox {
    /// An inbox that wakes its event loop through `waker`.
    pub fn new(waker: Waker) -> Self {
        Self {
            arrivals: Mutex::default(),
            is_filled: AtomicBool::new(false),
            carried: Mutex::default(),
            has_carried: AtomicBool::new(false),
            dismissed: Mutex::default(),
            has_dismissed: AtomicBool::new(false),
            messages: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            waker,
        }
    }

    /// Takes what has come of carried connections.
    pub fn take_carried(&self) -> Carried {
        if !self.has_carried.swap(false, Ordering::AcqRel) {
            return Carried::default();
        }
        std::mem::take(&mut *lock(&self.carried))
    }

    /// Takes whose connections are to end.
    pub fn take_dismissed(&self) -> Vec<Holder> {
        if !self.has_dismissed.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *lock(&self.dismissed))
    }

    /// Ends the connections of an identity.
    pub fn dismiss(&self, holder: Holder) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        lock(&self.dismissed).push(holder);
        if !self.has_dismissed.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Takes everything else into `into`, which must be empty.
    pub fn take(&self, into: &mut Arrivals) {
        if !self.is_filled.load(Ordering::Acquire) {
            return;
        }
        let mut arrivals = lock(&self.arrivals);
        std::mem::swap(&mut *arrivals, into);
        self.is_filled.store(false, Ordering::Release);
        self.messages.store(0, Ordering::Relaxed);
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
        self.take(&mut Arrivals::default());
        drop(self.take_carried());
    }

    /// Whether its event loop has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Bytes of the publications in it.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it is too full for another message. Those that publish at the same time may each add one beyond.
    pub fn is_full(&self, limits: InboxLimits) -> bool {
        let is_over = self.messages.load(Ordering::Relaxed) >= limits.max_messages
            || self.bytes.load(Ordering::Relaxed) >= limits.max_bytes;
        is_over && !self.has_ended.load(Ordering::Relaxed)
    }

    /// Adds a publication.
    pub fn push(&self, publication: Arc<Publication>) {
        self.change(|arrivals| {
            self.bytes.fetch_add(publication.text.as_bytes().len(), Ordering::Relaxed);
            arrivals.publications.push(publication);
            self.messages.store(arrivals.publications.len(), Ordering::Relaxed);
        });
    }

    /// Brings a connection that somebody else carries.
    pub fn bring(&self, carrier: Box<dyn Carrier>) {
        self.change_carried(|carried| carried.carriers.push(carrier));
    }

    /// Tells that a carried connection can go on.
    pub fn tell_ready(&self, id: usize, generation: u32) {
        self.change_carried(|carried| carried.ready.push((id, generation)));
    }

    /// Adds an answer of the log.
    pub fn settle(&self, ticket: Ticket, settlement: Settlement) {
        self.change(|arrivals| arrivals.settlements.push((ticket, settlement)));
    }

    fn change_carried(&self, with: impl FnOnce(&mut Carried)) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        with(&mut lock(&self.carried));
        if !self.has_carried.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    fn change(&self, with: impl FnOnce(&mut Arrivals)) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let mut arrivals = lock(&self.arrivals);
        with(&mut arrivals);
        if !self.is_filled.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }
}

/// Locks, also after a panic of another thread: every change under these locks leaves the state whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
