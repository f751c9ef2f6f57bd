//! What a slow subscriber has not been sent yet.

use crate::framing::{Framing, gap_frame};
use pushlab_log::Publication;
use pushlab_wire::cursor::{Cursor, Epoch};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Most bytes encoded for one write.
pub const MAX_WRITE_BYTES: usize = 64 * 1024;

/// What happens when a subscriber's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The connection is closed (WebSocket code 4001); the client resumes with its cursor.
    Close,
    /// The oldest messages go, and a `gap` says so.
    DropOldest,
    /// Only the latest message of each channel stays; no gap is told.
    Conflate,
}

/// When a queue is full, and what happens then.
#[derive(Debug, Clone, Copy)]
pub struct QueueRules {
    /// Messages. The queue shares them with history: 8 bytes each of its own.
    pub max_messages: usize,
    /// Bytes, together with what the connection holds of frames that were begun.
    pub max_bytes: usize,
    /// What happens.
    pub policy: Policy,
}

/// Whether a subscriber may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its queue is within its limits; so many messages were dropped for that.
    Stays {
        /// Messages dropped or conflated.
        dropped: u64,
    },
    /// It is beyond them, and the policy is to close it.
    TooSlow,
}

/// Whole publications, in order. Exists only while a connection takes nothing.
#[derive(Debug, Default)]
pub struct Queue {
    /// Publications from after the first offset up to the second were dropped, before those in `publications`.
    dropped: Option<(u64, u64)>,
    publications: VecDeque<Arc<Publication>>,
    bytes: usize,
}

/// What of an encoded batch was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Deliveries whose first byte was written.
    pub deliveries: u64,
    /// The end of the last of these in the batch: what stands before it must follow.
    pub end: usize,
}

impl Queue {
    /// Bytes of the publications.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory it takes besides the publications.
    pub fn kept_bytes(&self) -> usize {
        size_of::<Self>() + self.publications.capacity() * size_of::<Arc<Publication>>()
    }

    /// Whether nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_none() && self.publications.is_empty()
    }

    /// The offset up to which everything stands before what is queued; `None` if nothing is.
    pub fn position(&self) -> Option<u64> {
        self.dropped.map(|(from, _)| from).or(self.publications.front().map(|oldest| oldest.offset - 1))
    }

    /// Adds publications and applies the policy; `unsent` bytes stand before the queue.
    pub fn push(&mut self, publications: &[Arc<Publication>], unsent: usize, rules: &QueueRules) -> Verdict {
        for publication in publications {
            self.bytes += publication.text.as_bytes().len();
            self.publications.push_back(publication.clone());
        }
        let is_over =
            |queue: &Self| queue.publications.len() > rules.max_messages || unsent + queue.bytes > rules.max_bytes;
        if !is_over(self) {
            return Verdict::Stays { dropped: 0 };
        }
        let before = self.publications.len();
        match rules.policy {
            Policy::Close => return Verdict::TooSlow,
            Policy::DropOldest => {}
            Policy::Conflate => self.conflate(),
        }
        // After conflation there may still be too many channels.
        while is_over(self) && self.publications.len() > 1 {
            let Some(oldest) = self.publications.pop_front() else { break };
            self.bytes -= oldest.text.as_bytes().len();
            let from = self.dropped.map_or(oldest.offset - 1, |(from, _)| from);
            self.dropped = Some((from, oldest.offset));
        }
        Verdict::Stays { dropped: (before - self.publications.len()) as u64 }
    }

    /// Keeps only the latest publication of each channel.
    fn conflate(&mut self) {
        let mut seen = HashSet::new();
        let mut kept: VecDeque<_> = VecDeque::new();
        for publication in self.publications.drain(..).rev() {
            if seen.insert(publication.channel.clone()) {
                kept.push_front(publication);
            }
        }
        self.bytes = kept.iter().map(|p| p.text.as_bytes().len()).sum();
        self.publications = kept;
    }

    /// Appends the gap that is to be told before the publications; says whether there was one. It counts as told.
    pub fn tell_gap(&mut self, epoch: Epoch, framing: Framing, out: &mut Vec<u8>) -> bool {
        let Some((from, to)) = self.dropped.take() else { return false };
        let [from, to] = [from, to].map(|offset| Cursor { epoch, offset });
        framing.frame(out, gap_frame(from, to).as_bytes(), to.to_string().as_bytes());
        true
    }

    /// Appends the publications that leave with the next write: one if that is asked for, else about
    /// [`MAX_WRITE_BYTES`].
    pub fn encode(&self, framing: Framing, is_one: bool, out: &mut Vec<u8>) {
        for publication in &self.publications {
            framing.message(out, publication);
            if is_one || out.len() >= MAX_WRITE_BYTES {
                break;
            }
        }
    }

    /// Takes out what has been written of a batch, of which `n` bytes were taken: whole publications, and the one that was
    /// begun, whose rest must follow. `scratch` is working space behind the batch.
    pub fn wrote(&mut self, n: usize, framing: Framing, scratch: &mut Vec<u8>) -> Written {
        // Frames are encoded again to find the border: cheaper than remembering borders, as it happens only
        // when a socket blocks.
        let mut written = Written { deliveries: 0, end: 0 };
        let start = scratch.len();
        while written.end < n {
            let Some(publication) = self.publications.pop_front() else { break };
            self.bytes -= publication.text.as_bytes().len();
            framing.message(scratch, &publication);
            written.end += scratch.len() - start;
            scratch.truncate(start);
            written.deliveries += 1;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_log::{Limits, MemoryLog};

    const LINES: Framing = Framing::Lines { is_chunked: false, is_compressed: false };

    fn publications(channels: &[&str]) -> Vec<Arc<Publication>> {
        let mut log = MemoryLog::new(epoch(), Limits::default());
        channels.iter().map(|channel| log.append(channel, "1", None, 0).unwrap()).collect()
    }

    fn epoch() -> Epoch {
        Epoch::parse("e").unwrap()
    }

    fn rules(max_messages: usize, max_bytes: usize, policy: Policy) -> QueueRules {
        QueueRules { max_messages, max_bytes, policy }
    }

    /// What a socket gets that takes `room` bytes a write, and the deliveries counted.
    fn sent(queue: &mut Queue, framing: Framing, is_one: bool, room: usize) -> (String, u64) {
        let (mut taken, mut unsent, mut deliveries) = (Vec::new(), Vec::new(), 0);
        while !(queue.is_empty() && unsent.is_empty()) {
            let n = room.min(unsent.len());
            taken.extend(unsent.drain(..n));
            if unsent.is_empty() && !queue.tell_gap(epoch(), framing, &mut unsent) {
                let mut batch = Vec::new();
                queue.encode(framing, is_one, &mut batch);
                let n = room.min(batch.len());
                let written = queue.wrote(n, framing, &mut batch);
                deliveries += written.deliveries;
                taken.extend_from_slice(&batch[..n]);
                unsent.extend_from_slice(&batch[n..written.end.max(n)]);
            }
        }
        assert_eq!(queue.bytes(), 0);
        (String::from_utf8_lossy(&taken).into_owned(), deliveries)
    }

    #[test]
    fn nothing_is_lost_or_torn_however_little_the_socket_takes() {
        let all = publications(&["a"; 5]);
        let expected: String = (1..=5).map(|i| format!("[\"msg\",\"a\",\"e.{i}\",1]\n")).collect();
        for room in 1..120 {
            for is_one in [false, true] {
                let mut queue = Queue::default();
                let verdict = queue.push(&all, 0, &rules(10, 1000, Policy::Close));
                assert_eq!(verdict, Verdict::Stays { dropped: 0 });
                assert_eq!(queue.position(), Some(0));
                assert_eq!(sent(&mut queue, LINES, is_one, room), (expected.clone(), 5), "{room} {is_one}");
            }
        }
    }

    #[test]
    fn dropping_the_oldest_tells_the_gap() {
        let all = publications(&["a"; 6]);
        let rules = rules(2, 1000, Policy::DropOldest);
        let mut queue = Queue::default();
        assert_eq!(queue.push(&all[..4], 0, &rules), Verdict::Stays { dropped: 2 });
        assert_eq!(queue.push(&all[4..], 0, &rules), Verdict::Stays { dropped: 2 });
        assert_eq!(queue.position(), Some(0));
        let expected = "[\"gap\",\"e.0\",\"e.4\"]\n[\"msg\",\"a\",\"e.5\",1]\n[\"msg\",\"a\",\"e.6\",1]\n";
        assert_eq!(sent(&mut queue, LINES, false, usize::MAX), (expected.to_owned(), 2));
    }

    #[test]
    fn conflating_keeps_the_latest_of_each_channel() {
        let all = publications(&["a", "b", "a", "b", "b"]);
        let mut queue = Queue::default();
        assert_eq!(queue.push(&all, 0, &rules(4, 1000, Policy::Conflate)), Verdict::Stays { dropped: 3 });
        let expected = "[\"msg\",\"a\",\"e.3\",1]\n[\"msg\",\"b\",\"e.5\",1]\n";
        assert_eq!(sent(&mut queue, LINES, false, usize::MAX), (expected.to_owned(), 2));
    }

    #[test]
    fn the_limits_hold_in_messages_and_bytes() {
        let all = publications(&["a"; 3]);
        let size = all[0].text.as_bytes().len();
        for (rules, unsent, is_within) in [
            (rules(2, 1000, Policy::Close), 0, false),
            (rules(3, 1000, Policy::Close), 0, true),
            (rules(10, 3 * size, Policy::Close), 0, true),
            (rules(10, 3 * size - 1, Policy::Close), 0, false),
            (rules(10, 3 * size, Policy::Close), 1, false),
        ] {
            let verdict = Queue::default().push(&all, unsent, &rules);
            assert_eq!(verdict == Verdict::TooSlow, !is_within, "{rules:?} {unsent}");
        }
    }
}
