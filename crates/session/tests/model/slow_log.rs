//! A log that answers at once or some turns later, and sometimes fails.

use fastrand::Rng;
use pushlab_log::{Entry, Limits, Log, MemoryLog, Publication, Replay, Settled, Ticket, Turn};
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use std::sync::Arc;

/// A log in memory that takes its time. What is pending happens when it is settled, so publications come out in order and
/// a replay tells of all that came out before it.
pub struct SlowLog {
    log: MemoryLog,
    rng: Rng,
    /// How many of a hundred are answered later.
    slow_percent: u32,
    next_ticket: u64,
    now_ns: u64,
    pending: Vec<(Ticket, Pending)>,
    /// Behind a publication of which its publisher is told that it failed.
    failed: Option<Ticket>,
    /// How many of those that are pending may be settled now.
    pub allowance: usize,
    /// How many failed.
    pub failures: u64,
}

enum Pending {
    Append(String, String),
    Read(Vec<Channel>, Option<Cursor>, usize),
    Newest(Vec<Channel>, u32, usize),
}

impl SlowLog {
    pub fn new(epoch: Epoch, limits: Limits, slow_percent: u32, rng: Rng) -> Self {
        Self {
            log: MemoryLog::new(epoch, limits),
            rng,
            slow_percent,
            next_ticket: 0,
            now_ns: 0,
            pending: Vec::new(),
            failed: None,
            allowance: 0,
            failures: 0,
        }
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.failed.is_some()
    }

    fn is_slow(&mut self) -> bool {
        self.slow_percent > 0 && self.rng.u32(..100) < self.slow_percent
    }

    fn defer(&mut self, pending: Pending) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket::numbered(self.next_ticket);
        self.pending.push((ticket, pending));
        ticket
    }
}

impl Log for SlowLog {
    fn append(&mut self, entry: Entry<'_>, now_ns: u64) -> Result<Turn<Arc<Publication>>, BadChannel> {
        self.now_ns = now_ns;
        if !self.is_slow() {
            return Log::append(&mut self.log, entry, now_ns);
        }
        Channel::parse(entry.channel)?;
        let pending = Pending::Append(entry.channel.to_owned(), entry.data.to_owned());
        Ok(Turn::Pending(self.defer(pending)))
    }

    fn read(&mut self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Turn<Replay> {
        if !self.is_slow() {
            return Log::read(&mut self.log, channels, after, max_bytes);
        }
        Turn::Pending(self.defer(Pending::Read(channels.to_vec(), after, max_bytes)))
    }

    fn newest(&mut self, channels: &[Channel], count: u32, max_bytes: usize) -> Turn<Replay> {
        if !self.is_slow() {
            return Log::newest(&mut self.log, channels, count, max_bytes);
        }
        Turn::Pending(self.defer(Pending::Newest(channels.to_vec(), count, max_bytes)))
    }

    fn settled(&mut self) -> Option<Settled> {
        if let Some(ticket) = self.failed.take() {
            return Some(Settled::Failed(ticket));
        }
        if self.allowance == 0 || self.pending.is_empty() {
            return None;
        }
        self.allowance -= 1;
        let (ticket, pending) = self.pending.swap_remove(self.rng.usize(..self.pending.len()));
        let fails = self.rng.u32(..100) < 3;
        self.failures += u64::from(fails);
        Some(match pending {
            Pending::Read(..) | Pending::Newest(..) if fails => Settled::Failed(ticket),
            Pending::Read(channels, after, max_bytes) => {
                Settled::Read(self.log.read(&channels, after, max_bytes), ticket)
            }
            Pending::Newest(channels, count, max_bytes) => {
                Settled::Read(self.log.newest(&channels, count, max_bytes), ticket)
            }
            // Nobody knows whether it was made, so some are.
            Pending::Append(..) if fails && self.rng.bool() => Settled::Failed(ticket),
            Pending::Append(channel, data) => {
                let publication = self.log.append(&channel, &data, None, self.now_ns).expect("the name was checked");
                self.failed = fails.then_some(ticket);
                Settled::Published(publication, (!fails).then_some(ticket))
            }
        })
    }

    fn head(&self) -> Cursor {
        self.log.head()
    }

    fn expire(&mut self, now_ns: u64) {
        self.log.expire(now_ns);
    }

    fn history_size(&self) -> (usize, usize) {
        self.log.history_size()
    }
}
