//! The log of one process: it ends with the process, and the next one has another epoch.

use crate::engine::{Entry, Log, Part, Replay, Turn};
use crate::history::{History, Limits};
use crate::publication::{Publication, fitting};
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::native::MessageText;
use pushlab_wire::receipt::Receipt;
use std::sync::Arc;

/// A log in memory.
pub struct MemoryLog {
    epoch: Epoch,
    head: u64,
    history: History,
}

impl MemoryLog {
    /// An empty log. `epoch` tells it from all other logs.
    pub fn new(epoch: Epoch, limits: Limits) -> Self {
        Self { epoch, head: 0, history: History::new(limits) }
    }

    /// A log that goes on behind a position of which it knows nothing but that it was: all before it is gone.
    pub fn behind(head: Cursor, limits: Limits) -> Self {
        let mut log = Self::new(head.epoch, limits);
        log.import(&Part { head: head.offset, forgotten_to: head.offset, ..Part::default() });
        log
    }

    /// Goes on with what another one exported: first with everything, then with what came after that.
    pub fn import(&mut self, part: &Part) {
        self.head = part.head;
        self.history.import(part);
    }

    /// What history holds after an offset, and what it has lost since.
    pub fn export(&self, after: u64) -> Part {
        self.history.export(self.head, after)
    }

    /// Appends a publication; `data` is one line of valid JSON. A receipt is written into it where it has a place for one.
    ///
    /// # Errors
    /// If the name cannot be a channel's.
    pub fn append(
        &mut self,
        channel: &str,
        data: &str,
        receipt: Option<Receipt>,
        now_ns: u64,
    ) -> Result<Arc<Publication>, BadChannel> {
        let channel = match self.history.known(channel) {
            Some(known) => known.clone(),
            None => Channel::parse(channel)?,
        };
        self.head += 1;
        let mut text = MessageText::new(channel.as_str(), &self.head(), data);
        if let Some(receipt) = receipt {
            text.mark(receipt);
        }
        let publication = Arc::new(Publication::new(self.head, channel, text, now_ns));
        self.history.remember(publication.clone(), now_ns);
        Ok(publication)
    }

    /// The position after the latest publication.
    pub fn head(&self) -> Cursor {
        Cursor { epoch: self.epoch, offset: self.head }
    }

    /// What was published to these channels after a cursor, in order, at most about `max_bytes` but at least one
    /// message.
    pub fn read(&self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Replay {
        let head = self.head;
        let Some(after) = after else { return Replay { up_to: head, is_whole: true, ..Replay::default() } };
        let is_known = after.epoch == self.epoch && after.offset <= head;
        if is_known && after.offset == head {
            // Most polls: nothing has come since the reply to the one before.
            return Replay { up_to: head, is_whole: true, ..Replay::default() };
        }
        let evicted_to = self.history.evicted_to(channels);
        let known_to = if is_known { after.offset } else { 0 };
        // Other channels may hold messages older than what one of them lost; those are part of the gap.
        let from = known_to.max(evicted_to);
        let mut messages = Vec::new();
        // No channel can have more than `max_bytes` in the answer. Behind the first message that is left out for that none
        // of another channel may follow.
        let left_out = channels.iter().filter_map(|c| self.history.collect(c, from, max_bytes, &mut messages)).min();
        if channels.len() > 1 {
            messages.sort_unstable_by_key(|p| p.offset);
        }
        if let Some(first) = left_out {
            messages.truncate(messages.partition_point(|p| p.offset < first));
        }
        let to = messages.first().map_or(head, |p| p.offset - 1);
        let gap = (!is_known || evicted_to > known_to).then_some((after, Cursor { epoch: self.epoch, offset: to }));
        let count = fitting(messages.iter(), max_bytes);
        let is_whole = left_out.is_none() && count == messages.len();
        messages.truncate(count);
        let up_to = messages.last().filter(|_| !is_whole).map_or(head, |p| p.offset);
        Replay { gap, messages, up_to, is_whole }
    }

    /// The newest publications of each of these channels: see [`Log::newest`].
    pub fn newest(&self, channels: &[Channel], count: u32, max_bytes: usize) -> Replay {
        let mut messages = Vec::new();
        channels.iter().for_each(|channel| self.history.collect_newest(channel, count, max_bytes, &mut messages));
        messages.sort_unstable_by_key(|publication| publication.offset);
        Replay { gap: None, messages, up_to: self.head, is_whole: true }
    }

    /// Drops history that is too old.
    pub fn expire(&mut self, now_ns: u64) {
        self.history.expire(now_ns);
    }

    /// Channels with history, and the bytes of all history.
    pub fn history_size(&self) -> (usize, usize) {
        self.history.size()
    }
}

impl Log for MemoryLog {
    fn append(&mut self, entry: Entry<'_>, now_ns: u64) -> Result<Turn<Arc<Publication>>, BadChannel> {
        self.append(entry.channel, entry.data, entry.receipt, now_ns).map(Turn::Done)
    }

    fn read(&mut self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Turn<Replay> {
        Turn::Done(MemoryLog::read(self, channels, after, max_bytes))
    }

    fn newest(&mut self, channels: &[Channel], count: u32, max_bytes: usize) -> Turn<Replay> {
        Turn::Done(MemoryLog::newest(self, channels, count, max_bytes))
    }

    fn head(&self) -> Cursor {
        self.head()
    }

    fn expire(&mut self, now_ns: u64) {
        self.expire(now_ns);
    }

    fn history_size(&self) -> (usize, usize) {
        self.history_size()
    }

    fn export(&self, after: u64) -> Option<Part> {
        Some(self.export(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND_NS: u64 = 1_000_000_000;

    fn log(limits: Limits) -> MemoryLog {
        MemoryLog::new(Epoch::from_number(1), limits)
    }

    fn channels(names: &[&str]) -> Vec<Channel> {
        names.iter().map(|n| Channel::parse(n).unwrap()).collect()
    }

    fn offsets(replay: &Replay) -> Vec<u64> {
        replay.messages.iter().map(|p| p.offset).collect()
    }

    fn cursor(offset: u64) -> Option<Cursor> {
        Some(Cursor { epoch: Epoch::from_number(1), offset })
    }

    fn append(log: &mut MemoryLog, channels: &[&str], data: &str) {
        for channel in channels {
            log.append(channel, data, None, 0).unwrap();
        }
    }

    #[test]
    fn one_cursor_resumes_several_channels_in_order() {
        let mut log = log(Limits::default());
        for (i, channel) in ["a", "b", "c", "a", "b"].iter().enumerate() {
            assert_eq!(log.append(channel, "1", None, 0).unwrap().offset, i as u64 + 1);
        }
        let replay = log.read(&channels(&["a", "b"]), cursor(1), 1000);
        assert_eq!((offsets(&replay), replay.gap, replay.up_to), (vec![2, 4, 5], None, 5));
        assert_eq!(offsets(&log.read(&channels(&["a"]), cursor(4), 1000)), [0; 0]);
        assert_eq!(log.append("no channel", "1", None, 0).unwrap_err(), BadChannel);
        assert_eq!(log.head().offset, 5, "what is refused takes no offset");
    }

    #[test]
    fn the_newest_of_a_channel_are_there_as_often_as_they_are_asked_for() {
        let mut log = log(Limits { max_age: Duration::from_secs(5), ..Limits::default() });
        assert_eq!(offsets(&log.newest(&channels(&["a"]), 1, 1000)), [0; 0]);
        append(&mut log, &["b", "a", "b", "a", "c"], "1");
        for (count, expected) in [(1, vec![3, 4]), (1, vec![3, 4]), (2, vec![1, 2, 3, 4]), (9, vec![1, 2, 3, 4])] {
            let newest = log.newest(&channels(&["a", "b"]), count, 1000);
            assert_eq!((offsets(&newest), newest.gap, newest.up_to, newest.is_whole), (expected, None, 5, true));
        }
        for (max_bytes, expected) in [(70, vec![2, 4]), (30, vec![4]), (0, vec![4])] {
            let newest = log.newest(&channels(&["a"]), 9, max_bytes);
            assert_eq!(offsets(&newest), expected, "{max_bytes}: the newest of them, and one in any case");
        }
        log.expire(6 * SECOND_NS);
        assert_eq!(offsets(&log.newest(&channels(&["a"]), 1, 1000)), [0; 0], "history is gone");
    }

    #[test]
    fn a_bounded_reply_goes_on_where_it_ended() {
        let mut log = log(Limits::default());
        append(&mut log, &["a"; 5], "\"xxxxxxxx\"");
        let first = log.read(&channels(&["a"]), cursor(0), 70);
        assert_eq!((offsets(&first), first.up_to), (vec![1, 2], 2));
        let tiny = log.read(&channels(&["a"]), cursor(2), 1);
        assert_eq!((offsets(&tiny), tiny.up_to), (vec![3], 3));
    }

    #[test]
    fn what_left_history_is_a_gap() {
        let mut log = log(Limits { max_channel_messages: 3, ..Limits::default() });
        append(&mut log, &["a", "a", "a", "a", "a", "b"], "1");
        let replay = log.read(&channels(&["a", "b"]), cursor(1), 1000);
        assert_eq!(replay.gap, cursor(1).zip(cursor(2)));
        assert_eq!(offsets(&replay), [3, 4, 5, 6]);
        assert_eq!(log.read(&channels(&["a"]), cursor(2), 1000).gap, None);
        assert_eq!(log.read(&channels(&["b"]), cursor(1), 1000).gap, None);
    }

    #[test]
    fn another_epoch_or_a_future_cursor_is_a_gap() {
        let mut log = log(Limits::default());
        append(&mut log, &["a"], "1");
        for strange in [Cursor { epoch: Epoch::from_number(2), offset: 0 }, cursor(9).unwrap()] {
            let replay = log.read(&channels(&["a"]), Some(strange), 1000);
            assert_eq!((replay.gap, offsets(&replay)), (Some(strange).zip(cursor(0)), vec![1]));
        }
    }

    #[test]
    fn a_cut_channel_does_not_hide_its_rest_behind_another() {
        let mut log = log(Limits::default());
        append(&mut log, &["a", "a", "b", "a"], "\"xxxxxxxx\"");
        let mut at = 0;
        let mut all = Vec::new();
        while at < 4 {
            let replay = log.read(&channels(&["a", "b"]), cursor(at), 40);
            assert_eq!(replay.is_whole, replay.up_to == 4);
            all.extend(offsets(&replay));
            at = replay.up_to;
        }
        assert_eq!(all, [1, 2, 3, 4]);
    }

    /// A large message does not fit behind the one before it; a small one of another channel, which came later, would.
    #[test]
    fn what_does_not_fit_holds_back_what_came_later() {
        let mut log = log(Limits::default());
        append(&mut log, &["a"], "1");
        append(&mut log, &["a"], &format!("\"{}\"", "x".repeat(100)));
        append(&mut log, &["b"], "1");
        let replay = log.read(&channels(&["a", "b"]), cursor(0), 100);
        assert_eq!((offsets(&replay), replay.up_to, replay.is_whole), (vec![1], 1, false));
    }

    #[test]
    fn what_is_too_old_is_a_gap() {
        let mut log = log(Limits { max_age: Duration::from_secs(5), ..Limits::default() });
        log.append("a", "1", None, 0).unwrap();
        log.append("b", "1", None, 4 * SECOND_NS).unwrap();
        log.expire(6 * SECOND_NS);
        assert_eq!(log.history_size().0, 1);
        assert_eq!(log.read(&channels(&["a"]), cursor(0), 1000).gap, cursor(0).zip(cursor(2)));
        assert_eq!(log.read(&channels(&["a"]), cursor(1), 1000).gap, None);
    }

    /// A client that is one message behind gets that message, whatever others publish meanwhile, and to however many
    /// channels.
    #[test]
    fn nobody_fills_the_history_of_others() {
        for (max_channels, max_bytes) in [(50, usize::MAX), (usize::MAX, 50_000), (50, 50_000)] {
            let mut log = log(Limits { max_channels, max_bytes, ..Limits::default() });
            append(&mut log, &["quiet"; 3], "1");
            let before = log.head();
            append(&mut log, &["quiet"], "2");
            for i in 0..1000 {
                append(&mut log, &["busy", &format!("new{}", i % 100)], &format!("\"{i:0100}\""));
                let (channels, bytes) = log.history_size();
                assert!(channels <= max_channels && bytes <= max_bytes, "{channels} channels, {bytes} bytes");
            }
            let replay = log.read(&channels(&["quiet"]), Some(before), 1000);
            assert_eq!((offsets(&replay), replay.gap), (vec![4], None), "{max_channels} {max_bytes}");
        }
    }

    #[test]
    fn a_channel_without_history_tells_the_gap_and_gets_its_place_when_others_expire() {
        let mut log = log(Limits { max_channels: 1, max_age: Duration::from_secs(5), ..Limits::default() });
        log.append("a", "1", None, 0).unwrap();
        log.append("b", "1", None, SECOND_NS).unwrap();
        let replay = log.read(&channels(&["b"]), cursor(1), 1000);
        assert_eq!((replay.gap, offsets(&replay), replay.up_to), (cursor(1).zip(cursor(2)), vec![], 2));
        assert_eq!(log.read(&channels(&["b"]), cursor(2), 1000).gap, None);
        log.append("b", "1", None, 6 * SECOND_NS).unwrap();
        let replay = log.read(&channels(&["b"]), cursor(2), 1000);
        assert_eq!((replay.gap, offsets(&replay)), (None, vec![3]));
    }

    /// A part as another process has it.
    fn copy(part: &Part) -> Part {
        let again = |p: &Arc<Publication>| {
            let cursor = Cursor { epoch: Epoch::from_number(1), offset: p.offset };
            Arc::new(Publication::restored(cursor, p.channel.clone(), p.data(), p.published_at_ns))
        };
        let (evicted, messages) = (part.evicted.clone(), part.messages.iter().map(again).collect());
        Part { head: part.head, forgotten_to: part.forgotten_to, evicted, messages }
    }

    /// Whoever takes a log over, in two steps while it goes on, answers every reader as it would have. Where its limits let it
    /// keep one thing more, it may have to let go of another, and says so.
    #[test]
    fn a_log_that_was_taken_over_answers_as_before() {
        let (mut reads, mut worse) = (0, 0);
        for seed in 0..60 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limits = Limits {
                max_channels: random.usize(1..8),
                max_channel_messages: random.usize(1..20),
                max_bytes: random.usize(1000..8000),
                max_age: Duration::from_nanos(random.u64(10..400)),
                ..Limits::default()
            };
            let mut now_ns = 0;
            let mut publish = |log: &mut MemoryLog, random: &mut fastrand::Rng| {
                for _ in 0..random.usize(..300) {
                    now_ns += random.u64(..3);
                    let name = format!("c{}", random.usize(..10) * random.usize(..2));
                    log.append(&name, &format!("\"{}\"", "x".repeat(random.usize(..60))), None, now_ns).unwrap();
                }
            };
            let (mut old, mut new) = (log(limits.clone()), log(Limits { account: Arc::default(), ..limits }));
            publish(&mut old, &mut random);
            let first = old.export(0);
            publish(&mut old, &mut random);
            new.import(&copy(&first));
            new.import(&copy(&old.export(first.head)));
            assert_eq!(new.head(), old.head(), "seed {seed}");
            for round in 0..20 {
                if round == 10 {
                    // It goes on with what both have now.
                    let (channels, bytes) = new.history_size();
                    assert!(channels <= 10 && bytes < 100_000, "seed {seed}");
                    new.append("c1", "1", None, u64::MAX / 2).unwrap();
                    old.append("c1", "1", None, u64::MAX / 2).unwrap();
                }
                let name = format!("c{}", random.usize(..10));
                let after = random.u64(..=old.head().offset);
                let [before, now] = [&old, &new].map(|log| log.read(&channels(&[&name]), cursor(after), usize::MAX));
                // What one of them has let go of, it says; each has let go of what it had to.
                let told = [&before, &now].map(|replay| replay.gap.map_or(after, |(_, to)| to.offset));
                let from = told[0].max(told[1]);
                let known = |replay: &Replay| offsets(replay).into_iter().filter(|&it| it > from).collect::<Vec<_>>();
                assert_eq!(known(&now), known(&before), "seed {seed}, {name} after {after}");
                (reads, worse) = (reads + 1, worse + u32::from(told[1] > told[0]));
            }
        }
        assert!(worse * 50 < reads, "{worse} of {reads}");
    }

    /// Each byte counts once, whoever refers to it, until nobody does.
    #[test]
    fn what_is_kept_counts_once_until_its_last_reference_is_gone() {
        let limits = Limits { max_channel_messages: 2, ..Limits::default() };
        let account = Arc::clone(&limits.account);
        let mut log = log(limits);
        let first = log.append("a", "\"first\"", None, 0).unwrap();
        let size = account.total();
        assert!(size > first.text.as_bytes().len());
        assert_eq!((account.history(), account.beside_history()), (size, 0));
        let also = Arc::clone(&first);
        first.compress(crate::Form::Text, || Some(Box::from([0; 7])));
        also.compress(crate::Form::Text, || panic!("once"));
        assert_eq!((account.history(), account.total()), (size + 7, size + 7));
        append(&mut log, &["a", "a"], "1");
        let held = account.history();
        assert_eq!(account.beside_history(), size + 7, "history has let it go, and somebody refers to it");
        also.compress(crate::Form::Event, || Some(Box::from([0; 5])));
        assert_eq!((account.history(), account.beside_history()), (held, size + 12));
        drop(first);
        assert_eq!(account.beside_history(), size + 12);
        drop(also);
        assert_eq!((account.history(), account.beside_history()), (held, 0));
        log.expire(u64::MAX);
        assert_eq!(account.total(), 0);
    }

    #[test]
    fn compressed_forms_take_room_in_history() {
        let mut log = log(Limits { max_bytes: 4_000, ..Limits::default() });
        for _ in 0..20 {
            let publication = log.append("a", "1", None, 0).unwrap();
            publication.compress(crate::Form::Text, || Some(Box::from([0; 1_000])));
            drop(publication);
            assert!(log.history_size().1 <= 5_000, "it was larger than it is when it came");
        }
        assert_eq!(
            log.read(&channels(&["a"]), cursor(0), usize::MAX).messages.len(),
            4,
            "the last of them grew behind that"
        );
    }

    #[test]
    fn behind_a_position_everybody_has_a_gap_once() {
        let epoch = Epoch::from_number(1);
        let mut log = MemoryLog::behind(Cursor { epoch, offset: 100 }, Limits::default());
        assert_eq!(log.read(&channels(&["a"]), cursor(7), 1000).gap, cursor(7).zip(cursor(100)));
        assert_eq!(log.append("a", "1", None, 0).unwrap().offset, 101);
        let replay = log.read(&channels(&["a"]), cursor(7), 1000);
        assert_eq!((replay.gap, offsets(&replay)), (cursor(7).zip(cursor(100)), vec![101]));
        assert_eq!(log.read(&channels(&["a"]), cursor(100), 1000).gap, None);
    }

    /// Random publications against a list of all: what is read is right, nothing is missing without a gap, and the
    /// limits hold.
    #[test]
    fn history_is_a_part_of_everything_that_was_published() {
        for seed in 0..40 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limits = Limits {
                max_channels: random.usize(1..8),
                max_channel_messages: random.usize(1..20),
                max_channel_bytes: random.usize(1..4000),
                max_bytes: random.usize(1000..8000),
                max_age: Duration::from_nanos(random.u64(10..400)),
                ..Limits::default()
            };
            let mut log = log(limits.clone());
            let mut all: Vec<(u64, String)> = Vec::new();
            for now_ns in 0..2000 {
                let name = format!("c{}", random.usize(..10) * random.usize(..2));
                let data = format!("\"{}\"", "x".repeat(random.usize(..200)));
                all.push((log.append(&name, &data, None, now_ns).unwrap().offset, name));
                let (held, bytes) = log.history_size();
                assert!(held <= limits.max_channels && bytes <= limits.max_bytes, "seed {seed}");
                let names: Vec<String> = (0..random.usize(1..4)).map(|_| format!("c{}", random.usize(..10))).collect();
                let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
                names.sort_unstable();
                names.dedup();
                let after = random.u64(..=all.len() as u64);
                let replay = log.read(&channels(&names), cursor(after), random.usize(1..2000));
                let from = replay.gap.map_or(after, |(_, to)| to.offset);
                let is_for = |(offset, name): &&(u64, String)| {
                    (from + 1..=replay.up_to).contains(offset) && names.contains(&name.as_str())
                };
                let expected: Vec<u64> = all.iter().filter(is_for).map(|(offset, _)| *offset).collect();
                assert_eq!(offsets(&replay), expected, "seed {seed}, after {after}, {names:?}");
            }
            // What has expired leaves nothing behind.
            log.expire(u64::MAX);
            assert_eq!(log.history_size(), (0, 0), "seed {seed}");
        }
    }
}
