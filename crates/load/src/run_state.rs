//! What the threads of one run share: when the phases are, and how far everybody is.

use crate::broadcasts::Broadcasts;
use crate::seconds::SecondTable;
use pushlab_os::clock::CpuClock;
use pushlab_workload::check::Schedule;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// When the phases begin; known when everybody is connected. All instants are multiples of 100 ns, the
/// resolution of stamps, so that a stamp's phase is exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Idle phase.
    pub idle_ns: u64,
    /// Warm-up.
    pub warm_up_ns: u64,
    /// Load.
    pub load_ns: u64,
    /// Load ends, drain begins.
    pub load_end_ns: u64,
    /// What is published; `None` for an idle run.
    pub schedule: Option<Schedule>,
}

impl Timeline {
    /// When load is due from an instant on, warm-up included; `None` if none is any more. A closed loop's is due all
    /// the time, but where nobody is to ask.
    pub fn due_from(&self, instant_ns: u64) -> Option<u64> {
        match self.schedule.as_ref()? {
            Schedule::Open { pacing, .. } => {
                let k = pacing.first_at(instant_ns);
                (k < pacing.count).then(|| pacing.due_ns(k))
            }
            Schedule::Closed { load_end_ns, share, .. } => {
                let due_ns = instant_ns.max(self.warm_up_ns);
                let is_asked =
                    share.as_ref().is_none_or(|(from_ns, warp)| warp.factor_at(due_ns.saturating_sub(*from_ns)) > 0.0);
                (due_ns < *load_end_ns && is_asked).then_some(due_ns)
            }
        }
    }
}

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
    /// Subscribers that each publication of the load phase has reached: 4 bytes a publication.
    subscribers: OnceLock<Box<[AtomicU32]>>,
    /// The same of a closed loop of broadcasts, in which nobody knows beforehand how many there will be.
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
            subscribers: OnceLock::new(),
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

    /// Fixes the phases, once; later calls change nothing. `ranked` publications get their subscribers counted.
    pub fn begin(&self, timeline: Timeline, ranked: u64) {
        self.subscribers.get_or_init(|| (0..ranked).map(|_| AtomicU32::new(0)).collect());
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

    /// Counts a subscriber that publication `index` of the load phase has reached; 1 for the first.
    #[inline]
    pub fn count_subscriber(&self, index: u64) -> Option<u32> {
        let counter = self.subscribers.get()?.get(usize::try_from(index).ok()?)?;
        Some(counter.fetch_add(1, Ordering::Relaxed) + 1)
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

    pub(crate) fn with_seconds<T>(&self, work: impl FnOnce(&mut SecondTable) -> T) -> T {
        work(&mut self.seconds.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
