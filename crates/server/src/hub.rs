//! What all event loops share: the order of publications, and history.

use crate::config::Limits;
use mio::Waker;
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::native::MessageText;
use pushlab_wire::receipt::Receipt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One message of one channel, encoded once and shared by history and every queue.
#[derive(Debug)]
pub struct Publication {
    /// Position in the server's stream, from 1.
    pub offset: u64,
    /// Where it was published.
    pub channel: Channel,
    /// Its text.
    pub text: MessageText,
    published_at: Instant,
}

/// Publications on their way to one event loop.
pub struct Inbox {
    messages: Mutex<Vec<Arc<Publication>>>,
    len: AtomicUsize,
    waker: Waker,
}

/// The shared state. *Invariant*: offsets are given, history is written and inboxes are filled under one lock, so
/// every event loop sees publications in the order of their offsets.
pub struct Hub {
    epoch: Epoch,
    limits: Limits,
    marks_receipts: bool,
    inboxes: Vec<Arc<Inbox>>,
    state: Mutex<State>,
}

/// Entries of [`State::order`] that may stand for nothing.
const ORDER_SLACK: usize = 1024;

#[derive(Default)]
struct State {
    head: u64,
    channels: HashMap<Channel, History>,
    /// Every publication that history holds and some that it does not any more, oldest first: finds what is too old or too much in all.
    order: VecDeque<(u64, Channel)>,
    /// Publications in history.
    messages: usize,
    bytes: usize,
    /// Publications up to here may be missing from channels that were forgotten.
    forgotten_to: u64,
}

#[derive(Default)]
struct History {
    ring: VecDeque<Arc<Publication>>,
    bytes: usize,
    /// Offset of the latest publication that is no longer held; 0 if none ever left.
    evicted_to: u64,
}

/// Why a publication was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// An event loop is too far behind.
    #[error("the server is behind; try again in a moment")]
    Overloaded,
    /// The name is none.
    #[error(transparent)]
    BadChannel(#[from] BadChannel),
}

/// What a reader has missed.
#[derive(Debug, Default)]
pub struct Replay {
    /// Where the reader was and where the messages go on, if something between is gone.
    pub gap: Option<(Cursor, Cursor)>,
    /// Messages after that, in order.
    pub messages: Vec<Arc<Publication>>,
    /// Everything up to here is in `messages`, or is not for this reader.
    pub up_to: u64,
    /// Whether nothing more has been published.
    pub is_whole: bool,
}

impl Inbox {
    /// An inbox that wakes its event loop through `waker`.
    pub fn new(waker: Waker) -> Self {
        Self { messages: Mutex::new(Vec::new()), len: AtomicUsize::new(0), waker }
    }

    /// Takes all messages into `into`, which must be empty.
    pub fn drain(&self, into: &mut Vec<Arc<Publication>>) {
        if self.len.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut messages = lock(&self.messages);
        std::mem::swap(&mut *messages, into);
        self.len.store(0, Ordering::Release);
    }

    /// Wakes the event loop for a reason other than a message.
    pub fn wake(&self) {
        // An eventfd write fails only when its counter is full, and then the loop is awake anyway.
        let _ = self.waker.wake();
    }

    fn push(&self, publication: Arc<Publication>) {
        let mut messages = lock(&self.messages);
        messages.push(publication);
        self.len.store(messages.len(), Ordering::Release);
        if messages.len() == 1 {
            self.wake();
        }
    }
}

impl Hub {
    /// A hub that feeds these event loops.
    pub fn new(epoch: Epoch, limits: Limits, marks_receipts: bool, inboxes: Vec<Arc<Inbox>>) -> Self {
        Self { epoch, limits, marks_receipts, inboxes, state: Mutex::new(State::default()) }
    }

    /// The mark of what is received now, where the server is to leave one.
    pub fn receipt(&self) -> Option<Receipt> {
        self.marks_receipts.then(|| Receipt { instant_ns: monotonic_ns() })
    }

    /// Publishes; `data` is one line of valid JSON.
    pub fn publish(&self, channel: &str, data: &str, now: Instant) -> Result<Cursor, PublishError> {
        if self.inboxes.iter().any(|i| i.len.load(Ordering::Relaxed) >= self.limits.max_inbox_messages) {
            return Err(PublishError::Overloaded);
        }
        // Before the lock: waiting for it belongs to the way down.
        let receipt = self.receipt();
        let mut state = lock(&self.state);
        let channel = match state.channels.get_key_value(channel) {
            Some((known, _)) => known.clone(),
            None => Channel::parse(channel)?,
        };
        state.head += 1;
        let cursor = self.cursor(state.head);
        let mut text = MessageText::new(channel.as_str(), &cursor, data);
        if let Some(receipt) = receipt {
            text.mark(receipt);
        }
        let publication =
            Arc::new(Publication { offset: state.head, channel: channel.clone(), text, published_at: now });
        for inbox in &self.inboxes {
            inbox.push(publication.clone());
        }
        state.remember(publication, &self.limits);
        state.trim(&self.limits, now);
        Ok(cursor)
    }

    /// The position after the latest publication.
    pub fn head(&self) -> Cursor {
        self.cursor(lock(&self.state).head)
    }

    /// A position of this server's life.
    pub fn cursor(&self, offset: u64) -> Cursor {
        Cursor { epoch: self.epoch, offset }
    }

    /// What was published to these channels after a cursor, in order, at most about `max_bytes` (but one message).
    pub fn read(&self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Replay {
        let state = lock(&self.state);
        let head = state.head;
        let Some(after) = after else { return Replay { up_to: head, is_whole: true, ..Replay::default() } };
        let is_known = after.epoch == self.epoch && after.offset <= head;
        let evicted_to = |channel| state.channels.get(channel).map_or(state.forgotten_to, |h| h.evicted_to);
        let evicted_to = channels.iter().map(evicted_to).max().unwrap_or(0);
        let known_to = if is_known { after.offset } else { 0 };
        // Other channels may hold messages older than what one of them lost; those are part of the gap.
        let from = known_to.max(evicted_to);
        let mut messages: Vec<Arc<Publication>> = Vec::new();
        let mut is_cut = false;
        for history in channels.iter().filter_map(|c| state.channels.get(c)) {
            let start = history.ring.partition_point(|p| p.offset <= from);
            // No channel can have more than this in the answer.
            let taken = history.ring.range(start..).take(fitting(history.ring.range(start..), max_bytes));
            let before = messages.len();
            messages.extend(taken.cloned());
            is_cut |= messages.len() - before < history.ring.len() - start;
        }
        drop(state);
        if channels.len() > 1 {
            messages.sort_unstable_by_key(|p| p.offset);
        }
        let gap = (!is_known || evicted_to > known_to)
            .then(|| (after, self.cursor(messages.first().map_or(head, |p| p.offset - 1))));
        let count = fitting(messages.iter(), max_bytes);
        let is_whole = !is_cut && count == messages.len();
        messages.truncate(count);
        let up_to = messages.last().filter(|_| !is_whole).map_or(head, |p| p.offset);
        Replay { gap, messages, up_to, is_whole }
    }

    /// Lets go of history that is too old.
    pub fn sweep(&self, now: Instant) {
        lock(&self.state).trim(&self.limits, now);
    }

    /// Channels with history, and the bytes of all history.
    pub fn history_size(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.channels.len(), state.bytes)
    }
}

impl State {
    fn remember(&mut self, publication: Arc<Publication>, limits: &Limits) {
        let size = size_of_message(&publication);
        let channel = publication.channel.clone();
        self.order.push_back((publication.offset, channel.clone()));
        self.bytes += size;
        self.messages += 1;
        let forgotten_to = self.forgotten_to;
        let history =
            self.channels.entry(channel).or_insert_with(|| History { evicted_to: forgotten_to, ..History::default() });
        history.bytes += size;
        history.ring.push_back(publication);
        while history.ring.len() > limits.max_history_messages
            || (history.bytes > limits.max_history_bytes && history.ring.len() > 1)
        {
            self.bytes -= history.evict_oldest();
            self.messages -= 1;
        }
        // Most of a busy channel's entries stand for messages that left its ring. They are let go before they
        // outnumber the others, at a cost of two looks for each publication.
        if self.order.len() > 2 * self.messages + ORDER_SLACK {
            let channels = &self.channels;
            self.order.retain(|(offset, channel)| channels.get(channel).is_some_and(|h| *offset > h.evicted_to));
        }
    }

    fn trim(&mut self, limits: &Limits, now: Instant) {
        while let Some((offset, channel)) = self.order.front() {
            let is_many = self.channels.len() > limits.max_channels;
            let Some(history) = self.channels.get_mut(channel) else {
                self.order.pop_front();
                continue;
            };
            let Some(oldest) = history.ring.front().filter(|p| p.offset == *offset) else {
                // It left its ring already.
                self.order.pop_front();
                continue;
            };
            let is_old = now.saturating_duration_since(oldest.published_at) > limits.max_history_age;
            if !is_old && !is_many && self.bytes <= limits.max_history_total_bytes {
                return;
            }
            self.bytes -= history.evict_oldest();
            self.messages -= 1;
            if history.ring.is_empty() {
                self.forgotten_to = self.forgotten_to.max(history.evicted_to);
                let channel = channel.clone();
                self.channels.remove(&channel);
            }
            self.order.pop_front();
        }
    }
}

impl History {
    fn evict_oldest(&mut self) -> usize {
        let Some(oldest) = self.ring.pop_front() else { return 0 };
        let size = size_of_message(&oldest);
        self.bytes -= size;
        self.evicted_to = oldest.offset;
        size
    }
}

/// How many of these fit, at least one if there is one.
pub fn fitting<'a>(publications: impl Iterator<Item = &'a Arc<Publication>>, max_bytes: usize) -> usize {
    let mut bytes = 0;
    let mut count = 0;
    for publication in publications {
        bytes += publication.text.as_bytes().len() + 1;
        if bytes > max_bytes {
            return count.max(1);
        }
        count += 1;
    }
    count
}

/// Text and bookkeeping: what a message costs as long as history holds it.
fn size_of_message(publication: &Publication) -> usize {
    publication.text.as_bytes().len() + size_of::<Publication>() + size_of::<(u64, Channel)>() + 24
}

/// Locks, also after a panic of another thread: every change under these locks leaves the state whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often [`Hub::sweep`] is worth calling.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(limits: Limits) -> Hub {
        Hub::new(Epoch::from_number(1), limits, false, Vec::new())
    }

    fn channels(names: &[&str]) -> Vec<Channel> {
        names.iter().map(|n| Channel::parse(n).unwrap()).collect()
    }

    fn offsets(replay: &Replay) -> Vec<u64> {
        replay.messages.iter().map(|p| p.offset).collect()
    }

    #[test]
    fn one_cursor_resumes_several_channels_in_order() {
        let (hub, now) = (hub(Limits::default()), Instant::now());
        for (i, channel) in ["a", "b", "c", "a", "b"].iter().enumerate() {
            assert_eq!(hub.publish(channel, "1", now).unwrap().offset, i as u64 + 1);
        }
        let replay = hub.read(&channels(&["a", "b"]), Some(hub.cursor(1)), 1000);
        assert_eq!((offsets(&replay), replay.gap, replay.up_to), (vec![2, 4, 5], None, 5));
        assert_eq!(offsets(&hub.read(&channels(&["a"]), Some(hub.cursor(4)), 1000)), [0; 0]);
        assert_eq!(hub.publish("no channel", "1", now), Err(PublishError::BadChannel(BadChannel)));
    }

    #[test]
    fn a_bounded_reply_goes_on_where_it_ended() {
        let (hub, now) = (hub(Limits::default()), Instant::now());
        (0..5).for_each(|_| drop(hub.publish("a", "\"xxxxxxxx\"", now)));
        let first = hub.read(&channels(&["a"]), Some(hub.cursor(0)), 70);
        assert_eq!((offsets(&first), first.up_to), (vec![1, 2], 2));
        let tiny = hub.read(&channels(&["a"]), Some(hub.cursor(2)), 1);
        assert_eq!((offsets(&tiny), tiny.up_to), (vec![3], 3));
    }

    #[test]
    fn what_left_history_is_a_gap() {
        let (hub, now) = (hub(Limits { max_history_messages: 3, ..Limits::default() }), Instant::now());
        (0..5).for_each(|_| drop(hub.publish("a", "1", now)));
        hub.publish("b", "1", now).unwrap();
        let replay = hub.read(&channels(&["a", "b"]), Some(hub.cursor(1)), 1000);
        assert_eq!(replay.gap, Some((hub.cursor(1), hub.cursor(2))));
        assert_eq!(offsets(&replay), [3, 4, 5, 6]);
        assert_eq!(hub.read(&channels(&["a"]), Some(hub.cursor(2)), 1000).gap, None);
        assert_eq!(hub.read(&channels(&["b"]), Some(hub.cursor(1)), 1000).gap, None);
    }

    #[test]
    fn another_epoch_or_a_future_cursor_is_a_gap() {
        let (hub, now) = (hub(Limits::default()), Instant::now());
        hub.publish("a", "1", now).unwrap();
        for strange in [Cursor { epoch: Epoch::from_number(2), offset: 0 }, hub.cursor(9)] {
            let replay = hub.read(&channels(&["a"]), Some(strange), 1000);
            assert_eq!((replay.gap, offsets(&replay)), (Some((strange, hub.cursor(0))), vec![1]));
        }
    }

    #[test]
    fn a_busy_channel_beside_a_quiet_one_leaves_nothing_behind() {
        let (hub, now) = (hub(Limits { max_history_messages: 10, ..Limits::default() }), Instant::now());
        hub.publish("quiet", "1", now).unwrap();
        (0..20_000).for_each(|_| drop(hub.publish("busy", "1", now)));
        let state = lock(&hub.state);
        assert_eq!(state.messages, 11);
        assert!(state.order.len() <= 2 * 11 + ORDER_SLACK, "{}", state.order.len());
        assert_eq!(state.order.front().unwrap().0, 1);
    }

    #[test]
    fn a_cut_channel_does_not_hide_its_rest_behind_another() {
        let (hub, now) = (hub(Limits::default()), Instant::now());
        for channel in ["a", "a", "b", "a"] {
            hub.publish(channel, "\"xxxxxxxx\"", now).unwrap();
        }
        let mut at = 0;
        let mut all = Vec::new();
        while at < 4 {
            let replay = hub.read(&channels(&["a", "b"]), Some(hub.cursor(at)), 40);
            assert_eq!(replay.is_whole, replay.up_to == 4);
            all.extend(offsets(&replay));
            at = replay.up_to;
        }
        assert_eq!(all, [1, 2, 3, 4]);
    }

    #[test]
    fn age_bytes_and_channels_are_bounded_and_remembered_as_gaps() {
        let start = Instant::now();
        let aged = hub(Limits { max_history_age: Duration::from_secs(5), ..Limits::default() });
        aged.publish("a", "1", start).unwrap();
        aged.publish("b", "1", start + Duration::from_secs(4)).unwrap();
        aged.sweep(start + Duration::from_secs(6));
        assert_eq!(aged.history_size().0, 1);
        assert_eq!(
            aged.read(&channels(&["a"]), Some(aged.cursor(0)), 1000).gap,
            Some((aged.cursor(0), aged.cursor(2)))
        );
        assert_eq!(aged.read(&channels(&["a"]), Some(aged.cursor(1)), 1000).gap, None);

        let small = hub(Limits { max_history_total_bytes: 2000, max_channels: 4, ..Limits::default() });
        for i in 0..100 {
            small.publish(&format!("c{}", i % 7), "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"", start).unwrap();
            let (channels, bytes) = small.history_size();
            assert!(channels <= 4 && bytes <= 2000, "{channels} channels, {bytes} bytes");
        }
    }
}
