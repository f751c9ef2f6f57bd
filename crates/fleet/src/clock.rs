//! The coordinator's clock as the clock of this process: asked for all the time, so that every instant that is written,
//! read or slept to is one of the coordinator's.

mod direct;

pub use direct::{BadClockAddress, ClockAddress, ClockPort, ClockSocket};

use pushlab_os::clock;
use pushlab_os::random;
use pushlab_workload::clock::{Adjustment, ERROR_READY_MAX_NS, Reading, RoundTrip, Steering, Uneven};
use pushlab_workload::result::WorkerClock;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Longest time for one answer: what comes later says less than the next question.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Questions of the opening, half of which may be lost.
const OPENING_MAX: u32 = 100;

/// Why the coordinator's clock is not known.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// Too few answers.
    #[error("the coordinator answered {answers} of {} questions about its clock: is it still running?", OPENING_MAX)]
    NoAnswer {
        /// So many.
        answers: u32,
    },
    /// The way there is too long, or too busy.
    #[error(
        "the coordinator's clock is known only to within {error_ms} ms, and {} ms are allowed: run the coordinator nearer \
         to its workers, or where the network is less busy",
        ERROR_READY_MAX_NS / MS
    )]
    Unsure {
        /// How far off it may be, ms.
        error_ms: u64,
    },
    /// See there.
    #[error(transparent)]
    Uneven(#[from] Uneven),
    /// There is no thread left, or no random number.
    #[error("the clock cannot be steered: {0}")]
    System(#[from] io::Error),
}

/// An answer about the coordinator's clock, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub read: Reading,
    /// For how long it had been on this machine when it was read, ns; 0 where the kernel does not tell.
    pub waited_ns: u64,
}

/// Steers the clock of this process ([`clock::monotonic_ns`]) after the coordinator's, on a thread of its own, until it is
/// dropped: the clock then goes on as it went last. There is one of it in a process.
#[derive(Debug)]
pub struct SteeredClock {
    shared: Arc<Mutex<Shared>>,
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    steering: Steering,
    uneven: Option<Uneven>,
}

impl SteeredClock {
    /// Learns the coordinator's clock, which takes a second, sets this process's after it, and steers it from then on.
    ///
    /// `ask` sends the coordinator a question and returns what [`answer`] said there, or nothing if no answer to this
    /// question came in the time given. The shorter the way of both, the better the clock is known; when they leave and
    /// come is taken around the call, but for the time that the answer had waited.
    ///
    /// # Errors
    /// When too little is known of the coordinator's clock after the opening.
    pub fn begin(mut ask: impl FnMut(Duration) -> Option<Answer> + Send + 'static) -> Result<Self, ClockError> {
        let mut steering = Steering::new(u64::from_ne_bytes(random::bytes()?));
        let mut answers = 0;
        for _ in 0..OPENING_MAX {
            std::thread::sleep(Duration::from_nanos(steering.wait_ns()));
            let Some(trip) = round_trip(&mut ask) else { continue };
            answers += 1;
            adjust(steering.heard(trip, clock::from_raw(trip.came_ns))?);
            if steering.error_ns().is_some() {
                break;
            }
        }
        match steering.error_ns() {
            None => return Err(ClockError::NoAnswer { answers }),
            Some(error_ns) if error_ns > ERROR_READY_MAX_NS => {
                return Err(ClockError::Unsure { error_ms: error_ns.div_ceil(MS) });
            }
            Some(_) => {}
        }
        let shared = Arc::new(Mutex::new(Shared { steering, uneven: None }));
        let (end, ended) = mpsc::channel::<()>();
        let steered = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("clock".into()).spawn(move || {
            loop {
                let wait = Duration::from_nanos(lock(&steered).steering.wait_ns());
                if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let Some(trip) = round_trip(&mut ask) else { continue };
                let mut shared = lock(&steered);
                match shared.steering.heard(trip, clock::from_raw(trip.came_ns)) {
                    Ok(adjustment) => adjust(adjustment),
                    Err(uneven) => return shared.uneven = Some(uneven),
                }
            }
        })?;
        Ok(Self { shared, end: Some(end), thread: Some(thread) })
    }

    /// What is measured begins: the largest error from now on counts.
    pub fn begin_measuring(&self) {
        lock(&self.shared).steering.begin();
    }

    /// Whether the clocks ran evenly so far.
    ///
    /// # Errors
    /// When they did not: what was measured is void, and steering has ended.
    pub fn check(&self) -> Result<(), Uneven> {
        lock(&self.shared).uneven.map_or(Ok(()), Err)
    }

    /// How the clock did since [`Self::begin_measuring`], as that of a worker.
    pub fn of_worker(&self, worker: u32) -> WorkerClock {
        let shared = lock(&self.shared);
        let raw_ns = clock::raw_ns();
        shared.steering.of_worker(worker, raw_ns, clock::from_raw(raw_ns))
    }
}

impl Drop for SteeredClock {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It has shown why if it panicked.
            let _ = thread.join();
        }
    }
}

/// What the coordinator answers to a question about its clock that came when `received_ns` was read from it: to be called
/// right before the answer is sent.
pub fn answer(received_ns: u64) -> Reading {
    Reading { received_ns, answered_ns: clock::monotonic_ns() }
}

fn round_trip(ask: &mut impl FnMut(Duration) -> Option<Answer>) -> Option<RoundTrip> {
    let sent_ns = clock::raw_ns();
    let Answer { read, waited_ns } = ask(ANSWER_MAX)?;
    Some(RoundTrip { sent_ns, read, came_ns: clock::raw_ns().saturating_sub(waited_ns) })
}

fn adjust(adjustment: Option<Adjustment>) {
    match adjustment {
        None => {}
        Some(Adjustment::Set { raw_ns, ns, rate }) => clock::set(raw_ns, ns, rate),
        Some(Adjustment::Slew { rate }) => clock::slew(rate),
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
