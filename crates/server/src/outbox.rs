//! What a slow subscriber has not taken yet.

use crate::config::{Limits, Policy};
use crate::distributor::Distributor;
use crate::framing::{Framing, gap_frame};
use crate::pool::LargeBody;
use pushlab_log::Publication;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

/// Most bytes encoded for one write, and of an application's answer that is copied into a queue.
pub const MAX_WRITE_BYTES: usize = 64 * 1024;

/// Bytes of a frame that was begun, then whole publications. Exists only while a socket would block.
#[derive(Default)]
pub struct Outbox {
    /// Rest of a frame that was begun, and control frames behind it.
    partial: Vec<u8>,
    /// An application's answer behind that, of which so many bytes were written. Nothing is pushed behind it.
    answer: Option<(LargeBody, usize)>,
    /// Publications from after the first offset up to the second were dropped, before those in `queue`.
    dropped: Option<(u64, u64)>,
    queue: VecDeque<Arc<Publication>>,
    queue_bytes: usize,
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

/// What a flush did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// Bytes written.
    pub bytes: usize,
    /// Deliveries whose last byte was written.
    pub deliveries: u64,
    /// Gaps told.
    pub gaps: u64,
    /// Whether nothing is left.
    pub is_empty: bool,
}

/// Bytes of queues.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// What is to be sent.
    pub bytes: usize,
    /// What of that nobody else holds in memory, as history and other queues hold publications.
    pub own: usize,
}

impl Outbox {
    /// Bytes it stands for.
    pub fn size(&self) -> Queued {
        let answer = self.answer.as_ref().map_or(0, |(body, at)| body.as_bytes().len() - at);
        let own = self.partial.len() + answer;
        Queued { bytes: own + self.queue_bytes, own }
    }

    fn bytes(&self) -> usize {
        self.size().bytes
    }

    /// The offset up to which everything stands before what is queued; `None` if nothing is.
    pub fn position(&self) -> Option<u64> {
        self.dropped.map(|(from, _)| from).or(self.queue.front().map(|oldest| oldest.offset - 1))
    }

    /// Lets go of what is queued; the rest of a frame that was begun stays.
    pub fn abandon_queue(&mut self) {
        self.dropped = None;
        self.queue = VecDeque::new();
        self.queue_bytes = 0;
    }

    /// Adds bytes that must go out as they are, before queued publications.
    pub fn push_bytes(&mut self, bytes: &[u8], limits: &Limits) -> Verdict {
        self.partial.extend_from_slice(bytes);
        // A reply to a poll may be larger than a queue; it must fit once.
        let max = limits.max_queue_bytes.max(limits.max_reply_bytes + limits.max_message_bytes);
        if self.partial.len() > max { Verdict::TooSlow } else { Verdict::Stays { dropped: 0 } }
    }

    /// Adds an application's answer, which is bounded where it is made: see [`crate::pool`].
    pub fn push_answer(&mut self, head: &[u8], body: LargeBody) {
        self.partial.extend_from_slice(head);
        // One write, and one record of TLS, for most.
        if body.as_bytes().len() <= MAX_WRITE_BYTES {
            self.partial.extend_from_slice(body.as_bytes());
        } else {
            self.answer = Some((body, 0));
        }
    }

    /// Adds publications and applies the policy.
    pub fn push(&mut self, publications: &[Arc<Publication>], limits: &Limits, policy: Policy) -> Verdict {
        for publication in publications {
            self.queue_bytes += publication.text.as_bytes().len();
            self.queue.push_back(publication.clone());
        }
        if !self.is_over(limits) {
            return Verdict::Stays { dropped: 0 };
        }
        let before = self.queue.len();
        match policy {
            Policy::Close => return Verdict::TooSlow,
            Policy::DropOldest => {}
            Policy::Conflate => self.conflate(),
        }
        // After conflation there may still be too many channels.
        while self.is_over(limits) && self.queue.len() > 1 {
            let Some(oldest) = self.queue.pop_front() else { break };
            self.queue_bytes -= oldest.text.as_bytes().len();
            let from = self.dropped.map_or(oldest.offset - 1, |(from, _)| from);
            self.dropped = Some((from, oldest.offset));
        }
        Verdict::Stays { dropped: (before - self.queue.len()) as u64 }
    }

    fn is_over(&self, limits: &Limits) -> bool {
        self.queue.len() > limits.max_queue_messages || self.bytes() > limits.max_queue_bytes
    }

    /// Keeps only the latest publication of each channel.
    fn conflate(&mut self) {
        let mut seen = std::collections::HashSet::new();
        let mut kept: VecDeque<_> = VecDeque::new();
        for publication in self.queue.drain(..).rev() {
            if seen.insert(publication.channel.clone()) {
                kept.push_front(publication);
            }
        }
        self.queue_bytes = kept.iter().map(|p| p.text.as_bytes().len()).sum();
        self.queue = kept;
    }

    /// Writes as much as the socket takes, each publication in two writes if `splits`; `scratch` is working space.
    pub fn flush(
        &mut self,
        socket: &mut impl Write,
        framing: Framing,
        distributor: &Distributor,
        scratch: &mut Vec<u8>,
        splits: bool,
    ) -> io::Result<Flushed> {
        let mut flushed = Flushed::default();
        loop {
            if !self.partial.is_empty() {
                let n = write_some(socket, &self.partial)?;
                flushed.bytes += n;
                self.partial.drain(..n);
                if !self.partial.is_empty() {
                    return Ok(flushed);
                }
            }
            if let Some((body, at)) = &mut self.answer {
                let rest = &body.as_bytes()[*at..];
                let n = write_some(socket, rest)?;
                flushed.bytes += n;
                *at += n;
                if n < rest.len() {
                    return Ok(flushed);
                }
                self.answer = None;
            }
            if let Some((from, to)) = self.dropped.take() {
                let (from, to) = (distributor.cursor(from), distributor.cursor(to));
                framing.frame(&mut self.partial, gap_frame(from, to).as_bytes(), to.to_string().as_bytes());
                flushed.gaps += 1;
                continue;
            }
            if self.queue.is_empty() {
                flushed.is_empty = true;
                return Ok(flushed);
            }
            let is_blocked = self.write_batch(socket, framing, scratch, splits, &mut flushed)?;
            if is_blocked {
                return Ok(flushed);
            }
        }
    }

    /// Encodes publications into one write; says whether the socket took less than all of it.
    fn write_batch(
        &mut self,
        socket: &mut impl Write,
        framing: Framing,
        scratch: &mut Vec<u8>,
        splits: bool,
        flushed: &mut Flushed,
    ) -> io::Result<bool> {
        scratch.clear();
        for publication in &self.queue {
            framing.message(scratch, &publication.text);
            if splits || scratch.len() >= MAX_WRITE_BYTES {
                break;
            }
        }
        let n = if splits {
            write_in_two(socket, framing, scratch, 0, &[scratch.len()])?
        } else {
            write_some(socket, scratch)?
        };
        flushed.bytes += n;
        let is_blocked = n < scratch.len();
        // Frames are encoded again to find the border: cheaper than remembering borders, as it happens only
        // when a socket blocks.
        let mut end = 0;
        while end < n {
            let Some(publication) = self.queue.pop_front() else { break };
            self.queue_bytes -= publication.text.as_bytes().len();
            let start = scratch.len();
            framing.message(scratch, &publication.text);
            let size = scratch.len() - start;
            scratch.truncate(start);
            end += size;
            flushed.deliveries += 1;
        }
        self.partial.extend_from_slice(&scratch[n..end.max(n)]);
        Ok(is_blocked)
    }
}

/// One write; a socket that would block takes nothing.
#[inline]
pub fn write_some(socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Writes the events of `bytes` after `from`, each in two writes; `ends` says where each ends. Gives what the socket took.
pub fn write_in_two(
    socket: &mut impl Write,
    framing: Framing,
    bytes: &[u8],
    from: usize,
    ends: &[usize],
) -> io::Result<usize> {
    let mut at = from;
    for &end in ends {
        let border = at + framing.head_len(&bytes[at..end]);
        for to in [border, end] {
            at += write_some(socket, &bytes[at..to])?;
            if at < to {
                return Ok(at - from);
            }
        }
    }
    Ok(at - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Body;
    use pushlab_wire::channel::Channel;
    use pushlab_wire::cursor::Epoch;
    use std::time::Instant;

    /// Takes so many bytes a call, then blocks until told otherwise.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let n = bytes.len().min(self.room);
            self.room -= n;
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn publications(channels: &[&str]) -> (Distributor, Vec<Arc<Publication>>) {
        let distributor = Distributor::new(Epoch::parse("e").unwrap(), Limits::default(), false, Vec::new());
        for channel in channels {
            distributor.publish(channel, "1", Instant::now()).unwrap();
        }
        let mut names: Vec<Channel> = channels.iter().map(|c| Channel::parse(c).unwrap()).collect();
        names.sort();
        names.dedup();
        let all = distributor.read(&names, Some(distributor.cursor(0)), usize::MAX).messages;
        (distributor, all)
    }

    fn text(socket: &Narrow) -> String {
        String::from_utf8(socket.taken.clone()).unwrap()
    }

    #[test]
    fn nothing_is_lost_or_torn_however_little_the_socket_takes() {
        let (distributor, all) = publications(&["a"; 5]);
        let framing = Framing::Lines { is_chunked: false };
        let expected: String = (1..=5).map(|i| format!("[\"msg\",\"a\",\"e.{i}\",1]\n")).collect();
        for room in 1..40 {
            let mut outbox = Outbox::default();
            assert_eq!(outbox.push(&all, &Limits::default(), Policy::Close), Verdict::Stays { dropped: 0 });
            let mut socket = Narrow { taken: Vec::new(), room };
            let mut deliveries = 0;
            loop {
                let flushed = outbox.flush(&mut socket, framing, &distributor, &mut Vec::new(), false).unwrap();
                deliveries += flushed.deliveries;
                if flushed.is_empty {
                    break;
                }
                socket.room = room;
            }
            assert_eq!((text(&socket), deliveries, outbox.bytes()), (expected.clone(), 5, 0));
        }
    }

    #[test]
    fn an_answer_leaves_whole_whatever_its_size() {
        let distributor = Distributor::new(Epoch::parse("e").unwrap(), Limits::default(), false, Vec::new());
        for size in [0, 1, MAX_WRITE_BYTES, MAX_WRITE_BYTES + 1, 5 << 20] {
            let body = vec![b'x'; size];
            let mut outbox = Outbox::default();
            outbox.push_answer(b"head\n", Body::Own(body.clone()).into());
            assert_eq!(outbox.bytes(), 5 + size);
            let mut socket = Narrow { taken: Vec::new(), room: 3 };
            while !outbox.flush(&mut socket, Framing::Reply, &distributor, &mut Vec::new(), false).unwrap().is_empty {
                assert_eq!(outbox.bytes(), 5 + size - socket.taken.len());
                outbox.abandon_queue();
                socket.room = 100_000;
            }
            assert_eq!((outbox.bytes(), socket.taken), (0, [&b"head\n"[..], &body].concat()));
        }
    }

    #[test]
    fn dropping_the_oldest_tells_the_gap() {
        let (distributor, all) = publications(&["a"; 6]);
        let limits = Limits { max_queue_messages: 2, ..Limits::default() };
        let mut outbox = Outbox::default();
        assert_eq!(outbox.push(&all[..4], &limits, Policy::DropOldest), Verdict::Stays { dropped: 2 });
        assert_eq!(outbox.push(&all[4..], &limits, Policy::DropOldest), Verdict::Stays { dropped: 2 });
        let mut socket = Narrow { taken: Vec::new(), room: usize::MAX };
        outbox.flush(&mut socket, Framing::Lines { is_chunked: false }, &distributor, &mut Vec::new(), false).unwrap();
        assert_eq!(text(&socket), "[\"gap\",\"e.0\",\"e.4\"]\n[\"msg\",\"a\",\"e.5\",1]\n[\"msg\",\"a\",\"e.6\",1]\n");
    }

    #[test]
    fn conflating_keeps_the_latest_of_each_channel() {
        let (distributor, all) = publications(&["a", "b", "a", "b", "b"]);
        let limits = Limits { max_queue_messages: 4, ..Limits::default() };
        let mut outbox = Outbox::default();
        assert_eq!(outbox.push(&all, &limits, Policy::Conflate), Verdict::Stays { dropped: 3 });
        let mut socket = Narrow { taken: Vec::new(), room: usize::MAX };
        outbox.flush(&mut socket, Framing::Lines { is_chunked: false }, &distributor, &mut Vec::new(), false).unwrap();
        assert_eq!(text(&socket), "[\"msg\",\"a\",\"e.3\",1]\n[\"msg\",\"b\",\"e.5\",1]\n");
    }

    #[test]
    fn the_limits_hold_in_messages_and_bytes() {
        let (_, all) = publications(&["a"; 3]);
        let few = Limits { max_queue_messages: 2, ..Limits::default() };
        assert_eq!(Outbox::default().push(&all, &few, Policy::Close), Verdict::TooSlow);
        assert_eq!(Outbox::default().push(&all[..2], &few, Policy::Close), Verdict::Stays { dropped: 0 });
        let small = Limits { max_queue_bytes: 50, ..Limits::default() };
        assert_eq!(Outbox::default().push(&all, &small, Policy::Close), Verdict::TooSlow);
    }

    /// Keeps what each call wrote; after `room` of them it blocks.
    struct Calls {
        taken: Vec<Vec<u8>>,
        room: usize,
        most: usize,
    }

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.taken.len() == self.room {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let n = bytes.len().min(self.most);
            self.taken.push(bytes[..n].to_vec());
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_event_of_a_batch_is_two_writes() {
        let (_, all) = publications(&["a"; 3]);
        for framing in Framing::ALL {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            for publication in &all {
                framing.message(&mut bytes, &publication.text);
                ends.push(bytes.len());
            }
            let mut socket = Calls { taken: Vec::new(), room: usize::MAX, most: usize::MAX };
            // The first has been seen already.
            assert_eq!(write_in_two(&mut socket, framing, &bytes, ends[0], &ends[1..]).unwrap(), ends[2] - ends[0]);
            assert_eq!(socket.taken.concat(), &bytes[ends[0]..], "{framing:?}");
            let sizes: Vec<usize> = socket.taken.iter().map(Vec::len).collect();
            let head = framing.head_len(&bytes[ends[0]..ends[1]]);
            let rest = ends[1] - ends[0] - head;
            assert_eq!(sizes, [head, rest, head, rest], "{framing:?}");
            // It stops where the socket does.
            for (room, most) in [(0, 9), (1, 9), (2, 3), (3, usize::MAX)] {
                let mut socket = Calls { taken: Vec::new(), room, most };
                let n = write_in_two(&mut socket, framing, &bytes, 0, &ends).unwrap();
                assert_eq!(socket.taken.concat(), &bytes[..n], "{framing:?}");
                assert!(n < bytes.len());
            }
        }
    }

    #[test]
    fn what_was_queued_leaves_in_two_writes_each_too() {
        let (distributor, all) = publications(&["a"; 3]);
        let framing = Framing::WebSocket;
        let mut outbox = Outbox::default();
        outbox.push(&all, &Limits::default(), Policy::Close);
        let mut socket = Calls { taken: Vec::new(), room: usize::MAX, most: usize::MAX };
        let flushed = outbox.flush(&mut socket, framing, &distributor, &mut Vec::new(), true).unwrap();
        assert_eq!((flushed.deliveries, flushed.is_empty, socket.taken.len()), (3, true, 6));
        assert!(socket.taken.iter().step_by(2).all(|head| head.len() == 2));
    }
}
