//! What is written at once, and what has to wait.

use super::Core;
use crate::config::Limits;
use crate::connection::{Connection, Kind, Queued};
use crate::stats::{Counters, add, shift};
use crate::unsent::{write_in_two, write_some};
use pushlab_session::framing::Framing;
use pushlab_session::queue::Verdict;
use pushlab_wire::codes::CloseCode;
use pushlab_wire::cursor::Epoch;
use std::io;

/// What all connections of an event loop have queued, of their own, and its limit.
pub struct QueuedTotal {
    own: usize,
    max: usize,
}

impl QueuedTotal {
    /// The part of a server's limit that one of `loops` has.
    pub fn new(limits: &Limits, loops: usize) -> Self {
        Self { own: 0, max: limits.max_queued_total_bytes / loops.max(1) }
    }

    /// Accounts for a queue that was of one size and is of another.
    pub fn change(&mut self, before: Queued, after: Queued, counters: &Counters) {
        self.own = self.own + after.own - before.own;
        shift(&counters.queued_bytes, after.bytes as i64 - before.bytes as i64);
    }

    /// The verdict on a connection that has just had something queued: beyond the limit it is too slow.
    pub fn within(&self, verdict: Verdict) -> Verdict {
        if self.own > self.max { Verdict::TooSlow } else { verdict }
    }
}

impl Core {
    /// Sends bytes now, or queues them behind what is queued already.
    pub(super) fn send(&mut self, id: usize, bytes: &[u8]) {
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return;
        }
        let mut written = 0;
        if !connection.has_queued() {
            match write_some(&mut connection.stream, bytes) {
                Ok(n) => written = n,
                Err(_) => return self.close(id),
            }
        }
        self.turn.bytes_sent += connection.stream.sent(written);
        if written < bytes.len() || connection.stream.is_blocked() {
            let limits = &self.shared.config.limits;
            // A reply to a poll may be larger than a queue; it must fit once.
            let max = limits.max_queue_bytes.max(limits.max_reply_bytes + limits.max_message_bytes);
            let is_new = !connection.has_queued();
            let before = connection.queued();
            let unsent = connection.unsent.get_or_insert_default();
            unsent.push(&bytes[written..]);
            let verdict = if unsent.len() > max { Verdict::TooSlow } else { Verdict::Stays { dropped: 0 } };
            self.queued.change(before, connection.queued(), &self.counters);
            self.after_queueing(id, is_new, self.queued.within(verdict));
        }
    }

    /// Sends an event or a reply to a poll: in two writes where that is asked for.
    pub(super) fn send_event(&mut self, id: usize, framing: Framing, bytes: &[u8]) {
        let border = if self.shared.config.splits_events { framing.head_len(bytes) } else { 0 };
        if border > 0 {
            self.send(id, &bytes[..border]);
        }
        self.send(id, &bytes[border..]);
    }

    pub(super) fn after_queueing(&mut self, id: usize, is_new: bool, verdict: Verdict) {
        if is_new {
            shift(&self.counters.slow_subscribers, 1);
            self.connections[id].last_progress = self.wheel.now();
            self.set_deadline(id, self.limits().write_timeout);
        }
        match verdict {
            Verdict::Stays { dropped } => add(&self.counters.dropped, dropped),
            Verdict::TooSlow => {
                add(&self.counters.closed_slow, 1);
                self.close(id);
            }
        }
    }

    /// Ends a subscriber that is too slow: a farewell takes the place of its queue, behind the frame that was begun.
    pub(super) fn close_slow(&mut self, id: usize) {
        match self.connections[id].kind {
            Kind::WebSocket { .. } => self.close_websocket(id, CloseCode::SlowSubscriber, "its queue was full"),
            Kind::Stream(framing) => self.end_stream(id, framing),
            _ => self.close(id),
        }
    }

    pub(super) fn end_stream(&mut self, id: usize, framing: Framing) {
        let mut end = Vec::new();
        framing.end(&mut end);
        self.send(id, &end);
        self.close_gently(id);
    }

    pub(super) fn flush(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return;
        }
        let pushed = connection.stream.push();
        if pushed.is_err() || !connection.has_queued() {
            self.turn.bytes_sent += connection.stream.sent(0);
            return if pushed.is_err() {
                self.close(id)
            };
        }
        let before = connection.queued();
        let result = write_queued(connection, &mut self.out, self.epoch, self.shared.config.splits_events);
        self.queued.change(before, connection.queued(), &self.counters);
        let Ok(flushed) = result else { return self.close(id) };
        let sent = connection.stream.sent(flushed.bytes);
        self.turn.bytes_sent += sent;
        self.turn.sent += flushed.deliveries;
        add(&self.counters.gaps, flushed.gaps);
        if sent > 0 {
            connection.last_progress = self.wheel.now();
        }
        if flushed.is_empty && !connection.stream.is_blocked() {
            connection.unsent = None;
            connection.subscriber.abandon_queue();
            shift(&self.counters.slow_subscribers, -1);
            match connection.kind {
                Kind::Lingering => self.shut_down(id),
                Kind::Answering { .. } => self.answered(id),
                Kind::Http(None) => self.set_deadline(id, self.limits().idle_timeout),
                _ if connection.subscriber.is_catching_up => self.catch_up(id),
                _ => {}
            }
        }
    }
}

/// What a flush did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Flushed {
    bytes: usize,
    deliveries: u64,
    gaps: u64,
    /// Whether nothing is left.
    is_empty: bool,
}

/// Writes as much as the socket takes of what waits for it, each publication in two writes if `splits`; `scratch` is
/// working space.
fn write_queued(connection: &mut Connection, scratch: &mut Vec<u8>, epoch: Epoch, splits: bool) -> io::Result<Flushed> {
    let framing = connection.framing_out();
    let Connection { stream, unsent, subscriber, .. } = connection;
    let mut flushed = Flushed::default();
    loop {
        if let Some(unsent) = unsent {
            flushed.bytes += unsent.write_to(stream)?;
            if unsent.len() > 0 {
                return Ok(flushed);
            }
        }
        let Some(queue) = subscriber.queued().filter(|queue| !queue.is_empty()) else {
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
        unsent.get_or_insert_default().push(&scratch[n..written.end.max(n)]);
        if is_blocked {
            return Ok(flushed);
        }
    }
}
