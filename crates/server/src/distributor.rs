//! From whoever publishes to every event loop.

use crate::inbox::{Inbox, InboxLimits, Settlement, lock};
use pushlab_access::Holder;
use pushlab_application::PublishError;
use pushlab_handover::frame::{Frame, Number};
use pushlab_handover::{HandoverError, Link, Outgoing, RemoteLog};
use pushlab_log::{Account, Entry, Log, MemoryLog, Notify, Part, Publication, Replay, Settled, Ticket, Turn};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::native::is_too_deep;
use pushlab_wire::receipt::Receipt;
use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often [`Distributor::expire`] is worth calling.
pub const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// The log and the inboxes. *Invariant*: a publication is appended to the log and put into every inbox under one lock,
/// so every event loop sees publications in the order of their offsets.
pub struct Distributor {
    epoch: Epoch,
    account: Arc<Account>,
    limits: InboxLimits,
    /// How long a thread waits for the log.
    answer_timeout: Duration,
    marks_receipts: bool,
    inboxes: Vec<Arc<Inbox>>,
    order: Mutex<Order>,
    start: Instant,
}

/// What gives publications their order, and who waits for it.
struct Order {
    log: Box<dyn Log>,
    asked: HashMap<Ticket, Origin>,
    /// The process that this one took over from, as long as it has clients: it hears of everything, as an event loop does.
    predecessor: Option<Arc<Outgoing>>,
}

/// Where a request to the log came from whose answer comes later.
enum Origin {
    /// An event loop.
    Loop(usize),
    /// A thread beside them.
    Thread(SyncSender<Settlement>),
}

impl Distributor {
    /// A distributor of what this log orders to these event loops; the clock of publications begins at `start`.
    pub fn new(
        log: Box<dyn Log>,
        account: Arc<Account>,
        limits: InboxLimits,
        answer_timeout: Duration,
        marks_receipts: bool,
        inboxes: Vec<Arc<Inbox>>,
        start: Instant,
    ) -> Arc<Self> {
        let epoch = log.head().epoch;
        let order = Mutex::new(Order { log, asked: HashMap::new(), predecessor: None });
        let distributor =
            Arc::new(Self { epoch, account, limits, answer_timeout, marks_receipts, inboxes, order, start });
        lock(&distributor.order).log.attach(distributor.notify());
        distributor
    }

    /// How many event loops there are.
    pub fn loops(&self) -> usize {
        self.inboxes.len()
    }

    /// Bytes of publications that an event loop has yet to take, each counted once.
    pub fn on_their_way(&self) -> usize {
        self.inboxes.iter().map(|inbox| inbox.bytes()).max().unwrap_or(0)
    }

    /// Wakes an event loop.
    pub fn wake(&self, index: usize) {
        self.inboxes[index].wake();
    }

    /// What a log calls that has settled something.
    fn notify(self: &Arc<Self>) -> Notify {
        let weak = Arc::downgrade(self);
        Box::new(move || weak.upgrade().into_iter().for_each(|distributor| distributor.settle()))
    }

    /// The mark of what is received now, where the server is to leave one.
    pub fn receipt(&self) -> Option<Receipt> {
        self.marks_receipts.then(|| Receipt { instant_ns: monotonic_ns() })
    }

    /// Publishes for a thread beside the event loops, which waits if the log does not answer at once; `data` is one line
    /// of valid JSON.
    pub fn publish(&self, channel: &str, data: &str, now: Instant) -> Result<Cursor, PublishError> {
        let mut later = None;
        let turn = self.append(channel, data, now, || {
            let (sender, receiver) = sync_channel(1);
            later = Some(receiver);
            Origin::Thread(sender)
        })?;
        match (turn, later) {
            (Turn::Pending(_), Some(later)) => match later.recv_timeout(self.answer_timeout) {
                Ok(Settlement::Published(cursor)) => Ok(cursor),
                _ => Err(PublishError::OutcomeUnknown),
            },
            (Turn::Done(cursor), _) => Ok(cursor),
            (Turn::Pending(_), None) => Err(PublishError::OutcomeUnknown),
        }
    }

    /// Publishes for an event loop, which gets the answer in its inbox if it does not come at once.
    pub fn ask_to_publish(
        &self,
        channel: &str,
        data: &str,
        now: Instant,
        index: usize,
    ) -> Result<Turn<Cursor>, PublishError> {
        self.append(channel, data, now, || Origin::Loop(index))
    }

    fn append(
        &self,
        channel: &str,
        data: &str,
        now: Instant,
        origin: impl FnOnce() -> Origin,
    ) -> Result<Turn<Cursor>, PublishError> {
        if is_too_deep(data) {
            return Err(PublishError::TooDeep);
        }
        if self.inboxes.iter().any(|inbox| inbox.is_full(self.limits)) {
            return Err(PublishError::Overloaded);
        }
        // Before the lock: waiting for it belongs to the way down.
        let receipt = self.receipt();
        let mut order = lock(&self.order);
        if order.predecessor.as_ref().is_some_and(|predecessor| predecessor.is_full()) {
            return Err(PublishError::Overloaded);
        }
        Ok(match order.log.append(Entry { channel, data, receipt }, self.since_start_ns(now))? {
            Turn::Done(publication) => Turn::Done(self.distribute(&order, publication, None)),
            Turn::Pending(ticket) => {
                order.asked.insert(ticket, origin());
                Turn::Pending(ticket)
            }
        })
    }

    /// Puts a publication into every inbox; the order is locked. The predecessor, if it asked for it, has a number for it.
    fn distribute(&self, order: &Order, publication: Arc<Publication>, ticket: Option<Number>) -> Cursor {
        let cursor = self.cursor(publication.offset);
        publication.charge(&self.account);
        if let Some(predecessor) = &order.predecessor {
            predecessor.push(&Frame::Published { ticket, publication: publication.clone() });
        }
        for inbox in &self.inboxes {
            inbox.push(publication.clone());
        }
        cursor
    }

    /// What was published to these channels after a cursor: see [`Log::read`]. An event loop asks, and gets the answer in
    /// its inbox if it does not come at once.
    pub fn read(&self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize, index: usize) -> Turn<Replay> {
        self.ask(index, |log| log.read(channels, after, max_bytes))
    }

    /// The same for a thread beside the event loops, which waits if the log does not answer at once; `None`: it has not
    /// answered in time.
    pub fn read_now(&self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Option<Replay> {
        let mut order = lock(&self.order);
        let ticket = match order.log.read(channels, after, max_bytes) {
            Turn::Done(replay) => return Some(replay),
            Turn::Pending(ticket) => ticket,
        };
        let (sender, receiver) = sync_channel(1);
        order.asked.insert(ticket, Origin::Thread(sender));
        drop(order);
        match receiver.recv_timeout(self.answer_timeout) {
            Ok(Settlement::Read(replay)) => Some(replay),
            _ => None,
        }
    }

    /// Ends the connections of an identity, on every event loop.
    pub fn dismiss(&self, holder: &Holder) {
        self.inboxes.iter().for_each(|inbox| inbox.dismiss(holder.clone()));
    }

    /// The newest messages of each of these channels: see [`Log::newest`]. The answer comes as that of [`Self::read`].
    pub fn newest(&self, channels: &[Channel], count: u32, max_bytes: usize, index: usize) -> Turn<Replay> {
        self.ask(index, |log| log.newest(channels, count, max_bytes))
    }

    fn ask(&self, index: usize, question: impl FnOnce(&mut dyn Log) -> Turn<Replay>) -> Turn<Replay> {
        let mut order = lock(&self.order);
        let turn = question(&mut *order.log);
        if let Turn::Pending(ticket) = turn {
            order.asked.insert(ticket, Origin::Loop(index));
        }
        turn
    }

    /// Passes on what the log has settled, in its order.
    fn settle(&self) {
        let mut order = lock(&self.order);
        while let Some(settled) = order.log.settled() {
            let (ticket, settlement) = match settled {
                Settled::Published(publication, ticket) => {
                    let cursor = self.distribute(&order, publication, None);
                    let Some(ticket) = ticket else { continue };
                    (ticket, Settlement::Published(cursor))
                }
                Settled::Read(replay, ticket) => (ticket, Settlement::Read(replay)),
                Settled::Failed(ticket) => (ticket, Settlement::Failed),
            };
            match order.asked.remove(&ticket) {
                Some(Origin::Loop(index)) => {
                    self.inboxes[index].settle(ticket, settlement);
                }
                Some(Origin::Thread(sender)) => {
                    // It may have waited too long.
                    let _ = sender.try_send(settlement);
                }
                None => {}
            }
        }
    }

    // --- Taking over and handing over ---

    /// From now on, the process that this one took over from hears of everything too.
    pub fn follow(&self, predecessor: Arc<Outgoing>) {
        lock(&self.order).predecessor = Some(predecessor);
    }

    /// It has gone.
    pub fn unfollow(&self) {
        lock(&self.order).predecessor = None;
    }

    /// Does what it asks for. It may publish beyond the limits of an inbox, by what its connections can: each waits until
    /// this is done.
    ///
    /// # Errors
    /// If it asks for nothing that there is, or the log here does not answer at once.
    pub fn serve(&self, request: Frame) -> Result<(), HandoverError> {
        let mut order = lock(&self.order);
        let (ticket, answer) = match request {
            Frame::Append { ticket, receipt, published_at_ns, channel, data } => {
                let entry = Entry { channel: channel.as_str(), data: &data, receipt };
                return match order.log.append(entry, published_at_ns) {
                    Ok(Turn::Done(publication)) => {
                        self.distribute(&order, publication, Some(ticket));
                        Ok(())
                    }
                    _ => Err(HandoverError::Unexpected),
                };
            }
            Frame::Read { ticket, after, max_bytes, channels } => {
                (ticket, order.log.read(&channels, after, usize::try_from(max_bytes).unwrap_or(usize::MAX)))
            }
            Frame::Newest { ticket, count, max_bytes, channels } => {
                (ticket, order.log.newest(&channels, count, usize::try_from(max_bytes).unwrap_or(usize::MAX)))
            }
            _ => return Err(HandoverError::Unexpected),
        };
        // Under the same lock: the answer stands behind all that it tells of.
        match (answer, &order.predecessor) {
            (Turn::Done(replay), Some(predecessor)) => predecessor.push(&Frame::Replay { ticket, replay }),
            _ => return Err(HandoverError::Unexpected),
        }
        Ok(())
    }

    /// All that another process needs to go on with the log, which goes on here; `None` if it is kept elsewhere.
    pub fn export(&self) -> Option<Part> {
        lock(&self.order).log.export(0)
    }

    /// Gives the log to another process: what has come since that, after which nothing is appended here, and the link is
    /// asked. `limits` are those of a log that begins anew.
    pub fn hand_over(self: &Arc<Self>, since: u64, limits: pushlab_log::Limits, link: Arc<Link>) -> Option<Part> {
        let mut order = lock(&self.order);
        let rest = order.log.export(since)?;
        let empty = MemoryLog::new(self.epoch, limits.clone());
        let log = std::mem::replace(&mut order.log, Box::new(empty));
        let mut log = RemoteLog::new(log, limits, link);
        log.attach(self.notify());
        order.log = Box::new(log);
        Some(rest)
    }

    /// What the clock of publications shows.
    pub fn clock_ns(&self) -> u64 {
        self.since_start_ns(Instant::now())
    }

    /// The position after the latest publication.
    pub fn head(&self) -> Cursor {
        lock(&self.order).log.head()
    }

    /// A position of this server's life.
    pub fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }

    /// Lets go of history that is too old.
    pub fn expire(&self, now: Instant) {
        let now_ns = self.since_start_ns(now);
        lock(&self.order).log.expire(now_ns);
    }

    /// Channels with history, and the bytes of all history.
    pub fn history_size(&self) -> (usize, usize) {
        lock(&self.order).log.history_size()
    }

    fn since_start_ns(&self, now: Instant) -> u64 {
        // 584 years.
        now.saturating_duration_since(self.start).as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Arrivals;
    use mio::{Poll, Token, Waker};

    fn distributor(limits: InboxLimits, loops: usize) -> (Arc<Distributor>, Vec<Arc<Inbox>>) {
        // A waker outlives its poll; nobody waits here.
        let waker = || Waker::new(Poll::new().unwrap().registry(), Token(0)).unwrap();
        let inboxes: Vec<_> = (0..loops).map(|_| Arc::new(Inbox::new(waker()))).collect();
        let log = MemoryLog::new(Epoch::from_number(1), pushlab_log::Limits::default());
        (
            Distributor::new(
                Box::new(log),
                Arc::default(),
                limits,
                Duration::ZERO,
                false,
                inboxes.clone(),
                Instant::now(),
            ),
            inboxes,
        )
    }

    fn drained(inbox: &Inbox) -> usize {
        let mut arrivals = Arrivals::default();
        inbox.take(&mut arrivals);
        arrivals.publications.len()
    }

    #[test]
    fn an_inbox_is_bounded_in_messages_and_bytes() {
        let data = format!("\"{}\"", "x".repeat(1000));
        for (max_messages, max_bytes, taken) in [(3, usize::MAX, 3), (1000, 5_000, 5)] {
            let limits = InboxLimits { max_messages, max_bytes };
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
        let limits = InboxLimits { max_messages: 2, max_bytes: usize::MAX };
        let (distributor, inboxes) = distributor(limits, 2);
        distributor.publish("a", "1", Instant::now()).unwrap();
        inboxes[0].end();
        for _ in 0..10 {
            distributor.publish("a", "1", Instant::now()).unwrap();
            assert!(drained(&inboxes[1]) > 0);
        }
        assert_eq!(drained(&inboxes[0]), 0, "it holds nothing either");
    }
}
