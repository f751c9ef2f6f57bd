//! The thread that carries the packets of a link, in both directions.
//!
//! It reads what the kernel routes to either end, asks the model what becomes of it, and writes what is due to the
//! other end. Between two packets it sleeps until the next one comes or is due. It waits for nobody else: what others
//! want to know of it is copied to where they find it, and left for later while they look.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pushlab_os::bell::Bell;
use pushlab_os::poll::{self, PollFd, PollFlags};
use pushlab_stats::Histogram;

use crate::acks::{Acks, Offered};
use crate::buffers::{Buffers, Slot};
use crate::capture::{Capture, CaptureError};
use crate::direction::{Direction, Heading};
use crate::error::LinkError;
use crate::packet::classify;
use crate::totals::{Accountant, Totals};
use crate::tun::Tun;
use pushlab_os::clock::monotonic_ns;

/// Packets read from one end before the other has its turn: at 2 µs each, nobody waits longer than 0.1 ms for that.
const BATCH: usize = 64;
/// Most lateness figures that are kept back while somebody looks at the histogram.
const MAX_KEPT_BACK: usize = 4096;

/// What others may see while packets are carried.
#[derive(Debug, Default)]
pub struct Published {
    pub totals: Totals,
    /// Since it was last taken.
    pub lateness: Histogram,
    /// What the totals were at the instant that was asked for, if a packet came since.
    pub marked: Option<Totals>,
}

/// What the thread shares with those who started it.
#[derive(Debug)]
pub struct Shared {
    published: Mutex<Published>,
    is_stopping: AtomicBool,
    /// How often there was no room for a packet.
    stalls: AtomicU64,
    /// When the totals are to be marked, ns; the end of time when not.
    mark_ns: AtomicU64,
    /// Interrupts the thread's sleep.
    wake: Bell,
}

impl Shared {
    pub fn new(wake: Bell) -> Self {
        Self {
            published: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            stalls: AtomicU64::new(0),
            mark_ns: AtomicU64::new(u64::MAX),
            wake,
        }
    }

    /// What is published. Not to be held for longer than a copy takes.
    pub fn published(&self) -> MutexGuard<'_, Published> {
        // Whoever panicked while holding it had only read it, or replaced what is whole at any instant.
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often there was no room for a packet, so that it stayed with the kernel.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    /// Asks for the totals of an instant.
    pub fn mark_at(&self, at_ns: u64) {
        self.mark_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Asks the thread to end.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake.ring();
    }
}

/// One end of the link and the way that begins there.
#[derive(Debug)]
pub struct End {
    pub tun: Tun,
    pub heading: Heading,
    pub direction: Direction<Slot>,
}

/// The capture and what became of it.
#[derive(Debug)]
pub struct Recorder {
    pub path: PathBuf,
    pub capture: Capture<BufWriter<File>>,
    pub error: Option<CaptureError>,
    /// To be added to the monotonic clock for nanoseconds since 1970.
    pub since_1970_ns: u64,
}

impl Recorder {
    /// Ends the file: packets that its limit left out.
    pub fn finish(self) -> Result<u64, LinkError> {
        let left_out = self.capture.left_out();
        let written = self.error.map_or_else(|| self.capture.finish().map(drop), Err);
        written.map(|()| left_out).map_err(|source| LinkError::Capture { path: self.path, source })
    }
}

/// A packet that was read.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    slot: Slot,
    bytes: u32,
}

/// The place of the load's end among both.
const LOAD: usize = 1;

/// What the thread owns.
#[derive(Debug)]
pub struct Carrier {
    /// The subject's, then the load's.
    ends: [End; 2],
    /// Where receivers are to delay acknowledgements.
    acks: Option<Acks<Read>>,
    buffers: Buffers,
    accountant: Accountant,
    recorder: Option<Recorder>,
    shared: Arc<Shared>,
    lateness_kept_back: Vec<u64>,
}

impl Carrier {
    pub fn new(
        ends: [End; 2],
        acks: Option<Acks<Read>>,
        mtu_bytes: usize,
        accountant: Accountant,
        recorder: Option<Recorder>,
        shared: Arc<Shared>,
    ) -> Self {
        let (buffers, lateness_kept_back) = (Buffers::new(mtu_bytes), Vec::with_capacity(MAX_KEPT_BACK));
        Self { ends, acks, buffers, accountant, recorder, shared, lateness_kept_back }
    }

    /// Carries packets until it is told to stop; what is under way then is dropped.
    pub fn run(mut self) -> Result<Option<Recorder>, LinkError> {
        let result = self.carry();
        self.publish(true);
        result.map(|()| self.recorder)
    }

    fn carry(&mut self) -> Result<(), LinkError> {
        while !self.shared.is_stopping.load(Ordering::Acquire) {
            let mut is_idle = true;
            is_idle &= self.deliver()? == 0;
            is_idle &= self.acknowledge() == 0;
            for from in 0..2 {
                is_idle &= self.receive(from)? == 0;
            }
            self.publish(is_idle);
            if is_idle {
                self.sleep()?;
            }
        }
        Ok(())
    }

    /// Takes what waits at one end, and hands on what is due meanwhile.
    fn receive(&mut self, from: usize) -> Result<usize, LinkError> {
        for read in 0..BATCH {
            let Some(slot) = self.buffers.take() else {
                self.shared.stalls.fetch_add(1, Ordering::Relaxed);
                return Ok(read);
            };
            let tun = &self.ends[from].tun;
            let length = tun.read(self.buffers.bytes_mut(slot)).map_err(broken("reading a packet"))?;
            let Some(length) = length else {
                self.buffers.give_back(slot);
                return Ok(read);
            };
            self.take(from, monotonic_ns(), Read { slot, bytes: length as u32 });
            self.deliver()?;
        }
        Ok(BATCH)
    }

    /// Takes a packet that was read: it goes on its way, or is an acknowledgement that the receiver would not have sent
    /// yet.
    fn take(&mut self, from: usize, now_ns: u64, read: Read) {
        let Some(acks) = self.acks.as_mut().filter(|_| from == LOAD) else { return self.offer(from, now_ns, read) };
        let Some(packet) = classify(&self.buffers.bytes(read.slot)[..read.bytes as usize]) else {
            return self.offer(from, now_ns, read);
        };
        let offered = acks.offer(now_ns, &packet, read);
        self.spare(offered.spared);
        if let Some(read) = offered.passes {
            self.offer(from, now_ns, read);
        }
    }

    /// Drops an acknowledgement that need not be sent.
    fn spare(&mut self, read: Option<Read>) {
        if let Some(read) = read {
            self.buffers.give_back(read.slot);
            self.accountant.note_spared_ack();
        }
    }

    /// Lets a packet begin its way.
    fn offer(&mut self, from: usize, now_ns: u64, read: Read) {
        if now_ns >= self.shared.mark_ns.load(Ordering::Relaxed) {
            self.mark();
        }
        let end = &mut self.ends[from];
        let fate = end.direction.offer(now_ns, read.bytes, read.slot);
        let packet = &self.buffers.bytes(read.slot)[..read.bytes as usize];
        self.accountant.note(end.heading, packet, fate);
        if let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.error.is_none()) {
            let at_ns = recorder.since_1970_ns + now_ns;
            recorder.error = recorder.capture.packet(end.heading, at_ns, packet, fate).err();
        }
        if !fate.arrives() {
            self.buffers.give_back(read.slot);
        }
    }

    /// Sends the acknowledgements that have waited long enough.
    fn acknowledge(&mut self) -> usize {
        let mut sent = 0;
        let now_ns = monotonic_ns();
        while let Some(read) = self.acks.as_mut().and_then(|acks| acks.take_due(now_ns)) {
            self.accountant.note_delayed_ack();
            self.offer(LOAD, now_ns, read);
            sent += 1;
        }
        sent
    }

    /// Hands on what is due, the earlier first.
    fn deliver(&mut self) -> Result<usize, LinkError> {
        let mut delivered = 0;
        loop {
            let from = usize::from(self.due_ns(1).is_some_and(|up| self.due_ns(0).is_none_or(|down| up < down)));
            let now_ns = monotonic_ns();
            let Some(due) = self.ends[from].direction.take_due(now_ns) else { return Ok(delivered) };
            self.keep_lateness(now_ns - due.due_ns);
            let packet = &self.buffers.bytes(due.packet)[..due.bytes as usize];
            let written = self.ends[1 - from].tun.write(packet).map_err(broken("handing on a packet"))?;
            if written.is_none() {
                return Err(broken("handing on a packet")(io::ErrorKind::WouldBlock.into()));
            }
            let ended = self.acks.as_mut().filter(|_| from != LOAD).and_then(|acks| {
                let packet = classify(packet)?;
                Some(acks.delivered(now_ns, &packet))
            });
            if let Some(Offered { passes, spared }) = ended {
                if let Some(read) = passes {
                    self.accountant.note_delayed_ack();
                    self.offer(LOAD, now_ns, read);
                }
                self.spare(spared);
            }
            self.buffers.give_back(due.packet);
            delivered += 1;
        }
    }

    /// Keeps the totals as they are before the packet that has just come.
    #[cold]
    fn mark(&mut self) {
        self.shared.mark_ns.store(u64::MAX, Ordering::Relaxed);
        self.shared.published().marked = Some(self.accountant.totals());
    }

    fn due_ns(&self, from: usize) -> Option<u64> {
        self.ends[from].direction.due_ns()
    }

    fn keep_lateness(&mut self, lateness_ns: u64) {
        if self.lateness_kept_back.len() == MAX_KEPT_BACK {
            self.publish(true);
        }
        self.lateness_kept_back.push(lateness_ns);
    }

    /// Shows others what happened; unless it `must`, not while one of them is looking.
    fn publish(&mut self, must: bool) {
        let shared = Arc::clone(&self.shared);
        let published = if must { Some(shared.published()) } else { shared.published.try_lock().ok() };
        if let Some(mut published) = published {
            published.totals = self.accountant.totals();
            self.lateness_kept_back.drain(..).for_each(|ns| published.lateness.record(ns));
        }
    }

    /// Sleeps until there is something to read, or due, or the thread is to end.
    fn sleep(&self) -> Result<(), LinkError> {
        // Without room for a packet none is waited for; one that is under way will be due and make room.
        let events = if self.buffers.are_full() { PollFlags::empty() } else { PollFlags::IN };
        let [subject, load] = &self.ends;
        let mut polled = [
            PollFd::new(&subject.tun, events),
            PollFd::new(&load.tun, events),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        let ack_ns = self.acks.as_ref().and_then(Acks::due_ns);
        let due_ns = [self.due_ns(0), self.due_ns(1), ack_ns].into_iter().flatten().min();
        let timeout_ns = due_ns.map(|due_ns| due_ns.saturating_sub(monotonic_ns()));
        poll::wait(&mut polled, timeout_ns).map(drop).map_err(broken("waiting"))
    }
}

fn broken(step: &'static str) -> impl FnOnce(io::Error) -> LinkError {
    move |source| LinkError::Broken { step, source }
}
