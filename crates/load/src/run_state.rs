//! What the threads of one run share: when the phases are, and how far everybody is.

use crate::broadcasts::Broadcasts;
use pushlab_os::clock::CpuClock;
use pushlab_workload::seconds::SecondTable;
use pushlab_workload::timeline::Timeline;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How far one loop is; written by the loop once a turn.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct LoopProgress {
    /// Clients subscribed now.
    pub subscribed: AtomicU32,
    /// Clients that wait for one of their host's connections, all of which have endless answers, or will.
    pub held_back: AtomicU32,
    /// Publications sent in any phase.
    pub published: AtomicU64,
    /// Deliveries received in any phase.
    pub delivered: AtomicU64,
    /// Publications of the load phase sent.
    pub load_published: AtomicU64,
    /// Deliveries of the load phase, each counted once.
    pub load_delivered: AtomicU64,
    /// Deliveries of the load phase of which clients of a storm were told that they are gone.
    pub load_gone: AtomicU64,
    /// Publications in any phase, and attempts to subscribe, that were refused.
    pub refused: AtomicU64,
}

const NOT_YET: u64 = u64::MAX;

/// What the threads of one run share.
#[derive(Debug)]
pub struct RunState {
    origin_ns: u64,
    timeline: OnceLock<Timeline>,
    after_ns: AtomicU64,
    end_ns: AtomicU64,
    loops: Box<[LoopProgress]>,
    /// What a closed loop of broadcasts has under way.
    broadcasts: Option<Broadcasts>,
    seconds: Mutex<SecondTable>,
    threads: Mutex<Vec<CpuClock>>,
}

impl RunState {
    /// A run that begins now, with so many loops that hand in their seconds.
    pub fn new(origin_ns: u64, loops: u32) -> Self {
        Self {
            origin_ns,
            timeline: OnceLock::new(),
            after_ns: AtomicU64::new(NOT_YET),
            end_ns: AtomicU64::new(NOT_YET),
            loops: (0..loops).map(|_| LoopProgress::default()).collect(),
            broadcasts: None,
            seconds: Mutex::new(SecondTable::new(loops)),
            threads: Mutex::default(),
        }
    }

    /// With publications that a feeder keeps under way.
    pub fn with_broadcasts(self, broadcasts: Option<Broadcasts>) -> Self {
        Self { broadcasts, ..self }
    }

    /// What a feeder keeps under way, where one does.
    #[inline]
    pub fn broadcasts(&self) -> Option<&Broadcasts> {
        self.broadcasts.as_ref()
    }

    /// When the run began, ns.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Fixes the phases, once; later calls change nothing.
    pub fn begin(&self, timeline: Timeline) {
        self.timeline.get_or_init(|| timeline);
    }

    /// The phases, once they are fixed.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.get()
    }

    /// Ends the drain.
    pub fn set_after(&self, instant_ns: u64) {
        self.after_ns.store(instant_ns, Ordering::Release);
    }

    /// When the drain ended; far in the future until then.
    pub fn after_ns(&self) -> u64 {
        self.after_ns.load(Ordering::Acquire)
    }

    /// Tells every thread when to stop.
    pub fn set_end(&self, instant_ns: u64) {
        self.end_ns.store(instant_ns, Ordering::Release);
    }

    /// When to stop; far in the future until it is known.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Acquire)
    }

    /// The progress of one loop.
    pub fn loop_progress(&self, index: usize) -> &LoopProgress {
        &self.loops[index]
    }

    /// The sum of one figure over all loops.
    pub fn sum(&self, figure: impl Fn(&LoopProgress) -> &AtomicU64) -> u64 {
        self.loops.iter().map(|progress| figure(progress).load(Ordering::Relaxed)).sum()
    }

    /// Clients subscribed now, over all loops.
    pub fn subscribed(&self) -> u32 {
        self.loops.iter().map(|progress| progress.subscribed.load(Ordering::Relaxed)).sum()
    }

    /// Clients that wait for what endless answers have taken, over all loops.
    pub fn held_back(&self) -> u32 {
        self.loops.iter().map(|progress| progress.held_back.load(Ordering::Relaxed)).sum()
    }

    /// Counts a thread's CPU time among the worker's.
    pub fn count_thread(&self, thread: CpuClock) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// CPU time of all counted threads that still live, ns.
    pub fn cpu_ns(&self) -> u64 {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().filter_map(|thread| thread.read_ns()).sum()
    }

    /// The table of seconds, locked: what all threads have measured of each second of the load.
    pub fn with_seconds<T>(&self, work: impl FnOnce(&mut SecondTable) -> T) -> T {
        work(&mut self.seconds.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
