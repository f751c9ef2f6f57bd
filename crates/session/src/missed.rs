//! What readers missed: when many were cut off at once and come back, it is the same for most of them. It is then read
//! once, and encoded once for each framing.

use crate::effect::Query;
use crate::framing::{FRAMINGS, Framing};
use pushlab_log::{Replay, Turn};
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::Cursor;
use std::ops::Deref;

/// Answers of the log that an event loop keeps.
const MAX_KEPT: usize = 16;
/// Bytes of one that is kept: of its messages, and of its encodings, which are made while there is room for them. All
/// together are 2 MiB at most.
const MAX_KEPT_BYTES: usize = 128 * 1024;

/// What the log answered to a query.
#[derive(Debug, Default)]
pub struct Missed {
    replay: Replay,
    /// Whether it was asked for again, so that its encodings are worth keeping.
    is_shared: bool,
    bytes: usize,
    encoded: [Option<Box<[u8]>>; FRAMINGS],
}

impl Missed {
    /// Appends it as it looks in a framing; `encode` does so for the first ones.
    pub fn encode(&mut self, framing: Framing, out: &mut Vec<u8>, encode: impl FnOnce(&Replay, &mut Vec<u8>)) {
        let kept = &mut self.encoded[framing.index()];
        if let Some(kept) = kept {
            return out.extend_from_slice(kept);
        }
        let from = out.len();
        encode(&self.replay, out);
        let size = out.len() - from;
        if self.is_shared && self.bytes + size <= MAX_KEPT_BYTES {
            self.bytes += size;
            *kept = Some(out[from..].into());
        }
    }
}

impl From<Replay> for Missed {
    fn from(replay: Replay) -> Self {
        let bytes = replay.messages.iter().map(|message| message.text.as_bytes().len()).sum();
        Self { replay, bytes, ..Self::default() }
    }
}

impl Deref for Missed {
    type Target = Replay;

    fn deref(&self) -> &Replay {
        &self.replay
    }
}

/// The latest answers of a log, for as long as nothing is published: then each of them is what the log would say again,
/// but for what has become too old for it since.
#[derive(Debug, Default)]
pub struct Kept {
    head: Option<Cursor>,
    answers: Vec<(Question, Missed)>,
    /// Which of them goes next.
    oldest: usize,
    /// What was asked last and is not kept.
    other: Missed,
}

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    after: Cursor,
    max_bytes: usize,
    channels: Box<[Channel]>,
}

impl Kept {
    /// The answer to a query about channels, from a log that stands at a position: one that is kept, or what `read` says.
    pub fn read(
        &mut self,
        head: Cursor,
        channels: &[Channel],
        query: &Query,
        read: impl FnOnce() -> Turn<Replay>,
    ) -> Turn<&mut Missed> {
        let Query { after, max_bytes, .. } = *query;
        // Most polls are of who has everything.
        let after = after.filter(|after| *after != head && query.newest.is_none());
        if self.head != Some(head) {
            self.answers.clear();
            (self.head, self.oldest) = (Some(head), 0);
        }
        let is_asked = |(asked, _): &(Question, Missed)| {
            Some(asked.after) == after && asked.max_bytes == max_bytes && *asked.channels == *channels
        };
        if let Some(place) = self.answers.iter().position(is_asked) {
            let answer = &mut self.answers[place].1;
            answer.is_shared = true;
            return Turn::Done(answer);
        }
        let answer = match read() {
            Turn::Done(replay) => Missed::from(replay),
            Turn::Pending(ticket) => return Turn::Pending(ticket),
        };
        let Some(after) = after.filter(|_| !answer.messages.is_empty() && answer.bytes <= MAX_KEPT_BYTES) else {
            self.other = answer;
            return Turn::Done(&mut self.other);
        };
        let place = self.oldest;
        self.oldest = (place + 1) % MAX_KEPT;
        let kept = (Question { after, max_bytes, channels: channels.into() }, answer);
        match self.answers.get_mut(place) {
            Some(oldest) => *oldest = kept,
            None => self.answers.push(kept),
        }
        Turn::Done(&mut self.answers[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::publications;
    use pushlab_log::{Limits, MemoryLog};
    use pushlab_wire::cursor::Epoch;
    use std::cell::Cell;

    const LINES: Framing = Framing::Lines { is_chunked: false, is_compressed: false };

    fn query(after: Cursor) -> Query {
        Query { is_new_set: true, is_subscription: true, after: Some(after), newest: None, max_bytes: 64 * 1024 }
    }

    fn lines(missed: &mut Missed) -> String {
        let mut out = Vec::new();
        missed.encode(LINES, &mut out, |replay, out| replay.messages.iter().for_each(|m| LINES.message(out, m)));
        String::from_utf8(out).unwrap()
    }

    /// A log that counts how often it is read, and what of its answers is kept.
    struct Counted {
        log: MemoryLog,
        kept: Kept,
        reads: Cell<usize>,
    }

    impl Counted {
        fn new() -> Self {
            let log = MemoryLog::new(Epoch::parse("e").unwrap(), Limits::default());
            Self { log, kept: Kept::default(), reads: Cell::new(0) }
        }

        fn append(&mut self, channel: &str, data: &str) -> Cursor {
            let before = self.log.head();
            self.log.append(channel, data, None, 0).unwrap();
            before
        }

        fn read(&mut self, channel: &str, query: &Query) -> String {
            let Self { log, kept, reads } = self;
            let channels = [Channel::parse(channel).unwrap()];
            let read = || {
                reads.set(reads.get() + 1);
                Turn::Done(log.read(&channels, query.after, query.max_bytes))
            };
            match kept.read(log.head(), &channels, query, read) {
                Turn::Done(missed) => lines(missed),
                Turn::Pending(_) => unreachable!("it is in memory"),
            }
        }
    }

    #[test]
    fn what_is_asked_again_is_read_once_until_something_is_published() {
        let mut log = Counted::new();
        let before = log.append("a", "1");
        let said = log.read("a", &query(before));
        assert_eq!(said, "[\"msg\",\"a\",\"e.1\",1]\n");
        assert_eq!([(); 3].map(|()| log.read("a", &query(before))), [said.as_str(); 3]);
        assert_eq!(log.reads.get(), 1);
        // Others ask for something else.
        assert_eq!(log.read("b", &query(before)), "");
        assert_eq!(log.read("a", &Query { max_bytes: 1, ..query(before) }), said);
        assert_eq!(log.reads.get(), 3);
        log.append("a", "2");
        assert_eq!(log.read("a", &query(before)).lines().count(), 2, "and not what it was before");
        assert_eq!((log.read("a", &query(before)).lines().count(), log.reads.get()), (2, 4));
    }

    #[test]
    fn who_has_everything_takes_no_place() {
        let mut log = Counted::new();
        let before = log.append("a", "1");
        log.read("a", &query(before));
        for _ in 0..2 * MAX_KEPT {
            let head = log.log.head();
            assert_eq!(log.read("a", &query(head)), "");
        }
        let reads = log.reads.get();
        log.read("a", &query(before));
        assert_eq!(log.reads.get(), reads);
    }

    #[test]
    fn only_so_many_answers_and_bytes_are_kept() {
        let mut log = Counted::new();
        let data = format!("\"{}\"", "x".repeat(1_000));
        let places: Vec<Cursor> = (0..2 * MAX_KEPT).map(|_| log.append("a", &data)).collect();
        for _ in 0..3 {
            for place in &places {
                log.read("a", &query(*place));
            }
        }
        assert_eq!(
            (log.reads.get(), log.kept.answers.len()),
            (6 * MAX_KEPT, MAX_KEPT),
            "each pushes out the one before"
        );
        for _ in 0..2 {
            places[MAX_KEPT..].iter().for_each(|place| drop(log.read("a", &query(*place))));
        }
        assert_eq!(log.reads.get(), 6 * MAX_KEPT);
        let large = format!("\"{}\"", "x".repeat(MAX_KEPT_BYTES));
        let before = log.append("a", &large);
        let reads = log.reads.get();
        (0..2).for_each(|_| drop(log.read("a", &query(before))));
        assert_eq!((log.reads.get(), log.kept.answers.len()), (reads + 2, 0));
    }

    #[test]
    fn encodings_are_kept_as_long_as_there_is_room() {
        let mut missed = Missed::from(Replay { messages: publications(3), ..Replay::default() });
        let text = missed.bytes;
        let first = lines(&mut missed);
        assert_eq!(missed.bytes, text, "it may be the only one who asks");
        missed.is_shared = true;
        assert_eq!((lines(&mut missed), missed.bytes), (first.clone(), text + first.len()));
        let mut out = Vec::new();
        missed.encode(LINES, &mut out, |_, _| panic!("once is enough"));
        assert_eq!(out, first.as_bytes());
        let sizes = Framing::ALL.map(|framing| {
            missed.encode(framing, &mut out, |_, out| out.resize(out.len() + MAX_KEPT_BYTES / 4, b'x'));
            missed.bytes
        });
        assert!(sizes.iter().all(|bytes| *bytes <= MAX_KEPT_BYTES), "{sizes:?}");
        assert_eq!(missed.encoded.iter().flatten().count(), 4);
    }
}
