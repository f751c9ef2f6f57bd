//! Who receives: what it has seen, and what waits for it.

use crate::batch::{Batch, Progress};
use crate::framing::Framing;
use crate::queue::{Queue, QueueRules, Verdict};
use crate::unsent::{Unsent, write_in_two, write_some};
use pushlab_log::Publication;
use pushlab_wire::cursor::Epoch;
use std::io::{self, Write};
use std::sync::Arc;

/// One who receives publications. *Invariant*: `seen` never decreases, and a publication up to it is never offered again.
#[derive(Debug, Default)]
pub struct Subscriber {
    /// Publications up to here have been delivered or are queued, or are not for it.
    pub seen: u64,
    /// What it missed is still being sent; until then no publication is offered to it.
    pub is_catching_up: bool,
    /// What waits for it.
    queue: Option<Box<Queue>>,
}

/// What a flush did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// Bytes that were taken.
    pub bytes: usize,
    /// Deliveries of which something was.
    pub deliveries: u64,
    /// Gaps told.
    pub gaps: u64,
    /// Whether nothing is left.
    pub is_empty: bool,
}

impl Subscriber {
    /// The first of the publications that it has not seen; `None` if it has seen all. From now on it has seen all:
    /// whoever offers them writes them, or [queues](Self::queue) them.
    #[inline]
    pub fn offer(&mut self, publications: &[Arc<Publication>]) -> Option<usize> {
        let last = publications.last()?.offset;
        if self.seen >= last {
            return None;
        }
        let is_new = self.seen < publications[0].offset;
        let first = if is_new { 0 } else { publications.partition_point(|p| p.offset <= self.seen) };
        self.seen = last;
        Some(first)
    }

    /// Of a batch of publications, `n` bytes were written from the first that it was offered on. The rest of the one that
    /// was begun goes behind what its connection has unsent, the others are queued. Gives the deliveries made, too.
    pub fn wrote(
        &mut self,
        n: usize,
        first: usize,
        batch: &Batch,
        publications: &[Arc<Publication>],
        unsent: &mut Unsent,
        rules: &QueueRules,
    ) -> (u64, Verdict) {
        let Progress { deliveries, begun, next } = batch.progress(first, n);
        // A frame that was begun cannot break a limit that a whole one was within.
        unsent.push(begun);
        unsent.note_deliveries();
        (deliveries, self.queue(&publications[next..], unsent.len(), rules))
    }

    /// Queues publications behind `unsent` bytes of its connection.
    pub fn queue(&mut self, publications: &[Arc<Publication>], unsent: usize, rules: &QueueRules) -> Verdict {
        if publications.is_empty() && self.queue.is_none() {
            return Verdict::Stays { dropped: 0 };
        }
        self.queue.get_or_insert_default().push(publications, unsent, rules)
    }

    /// What waits for it, if anything does.
    pub fn queued(&mut self) -> Option<&mut Queue> {
        self.queue.as_deref_mut()
    }

    /// Whether something waits for it.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.queue.is_some()
    }

    /// Bytes that wait for it.
    pub fn queued_bytes(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.bytes())
    }

    /// Bytes of memory its queue takes besides the publications.
    pub fn kept_bytes(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.kept_bytes())
    }

    /// The offset up to which everything stands before what waits for it; `None` if nothing does.
    pub fn queued_after(&self) -> Option<u64> {
        self.queue.as_ref().and_then(|queue| queue.position())
    }

    /// Lets go of what waits for it, or of an empty queue.
    pub fn abandon_queue(&mut self) {
        self.queue = None;
    }

    /// Writes as much as the socket takes of what waits, each publication in two writes if `splits`; `scratch` is
    /// working space.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn flush(
        &mut self,
        stream: &mut impl Write,
        unsent: &mut Option<Box<Unsent>>,
        framing: Framing,
        epoch: Epoch,
        splits: bool,
        scratch: &mut Vec<u8>,
    ) -> io::Result<Flushed> {
        let mut flushed = Flushed::default();
        loop {
            if let Some(unsent) = unsent {
                flushed.bytes += unsent.write_to(stream)?;
                if !unsent.is_empty() {
                    return Ok(flushed);
                }
            }
            let Some(queue) = self.queued().filter(|queue| !queue.is_empty()) else {
                flushed.is_empty = true;
                return Ok(flushed);
            };
            if queue.tell_gap(epoch, framing, unsent.get_or_insert_default().bytes_mut()) {
                flushed.gaps += 1;
                continue;
            }
            scratch.clear();
            queue.encode(framing, splits, scratch);
            let n = if splits {
                write_in_two(stream, framing, scratch, 0, &[scratch.len()])?
            } else {
                write_some(stream, scratch)?
            };
            let is_blocked = n < scratch.len();
            let written = queue.wrote(n, framing, scratch);
            flushed.bytes += n;
            flushed.deliveries += written.deliveries;
            let rest = unsent.get_or_insert_default();
            rest.push(&scratch[n..written.end.max(n)]);
            rest.note_deliveries();
            if is_blocked {
                return Ok(flushed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::publications;

    #[test]
    fn what_was_seen_is_not_offered_again() {
        let all = publications(5);
        let mut subscriber = Subscriber { seen: 2, ..Subscriber::default() };
        assert_eq!(subscriber.offer(&[]), None);
        assert_eq!(subscriber.offer(&all[..2]), None);
        assert_eq!(subscriber.offer(&all[1..4]), Some(1));
        assert_eq!((subscriber.seen, subscriber.offer(&all[..4])), (4, None));
        assert_eq!(subscriber.offer(&all[4..]), Some(0));
    }
}
