//! What is written at once, and what has to wait.

use super::Core;
use crate::config::Limits;
use crate::connection::Kind;
use crate::framing::Framing;
use crate::outbox::{Queued, Verdict, write_some};
use crate::stats::{Counters, add, shift};
use pushlab_wire::codes::CloseCode;

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
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut written = 0;
        if connection.outbox.is_none() {
            match write_some(&mut connection.stream, bytes) {
                Ok(n) => written = n,
                Err(_) => return self.close(id),
            }
        }
        self.turn.bytes_sent += connection.stream.sent(written);
        if written < bytes.len() || connection.stream.is_blocked() {
            let limits = &self.shared.config.limits;
            let is_new = connection.outbox.is_none();
            let outbox = connection.outbox.get_or_insert_default();
            let before = outbox.size();
            let verdict = outbox.push_bytes(&bytes[written..], limits);
            self.queued.change(before, outbox.size(), &self.counters);
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
        // Whatever came before in this event may have closed it.
        let Some(connection) = self.connections.get_mut(id) else { return };
        let framing = connection.framing_out();
        let pushed = connection.stream.push();
        let Some(outbox) = connection.outbox.as_mut().filter(|_| pushed.is_ok()) else {
            self.turn.bytes_sent += connection.stream.sent(0);
            return if pushed.is_err() {
                self.close(id)
            };
        };
        let before = outbox.size();
        let mut scratch = std::mem::take(&mut self.out);
        let splits = self.shared.config.splits_events;
        let result = outbox.flush(&mut connection.stream, framing, &self.shared.distributor, &mut scratch, splits);
        self.queued.change(before, outbox.size(), &self.counters);
        self.out = scratch;
        let Ok(flushed) = result else { return self.close(id) };
        let sent = connection.stream.sent(flushed.bytes);
        self.turn.bytes_sent += sent;
        self.turn.sent += flushed.deliveries;
        add(&self.counters.gaps, flushed.gaps);
        if sent > 0 {
            connection.last_progress = self.wheel.now();
        }
        if flushed.is_empty && !connection.stream.is_blocked() {
            connection.outbox = None;
            shift(&self.counters.slow_subscribers, -1);
            match connection.kind {
                Kind::Lingering => self.shut_down(id),
                Kind::Answering { .. } => self.answered(id),
                Kind::Http(None) => self.set_deadline(id, self.limits().idle_timeout),
                _ if connection.is_catching_up => self.catch_up(id),
                _ => {}
            }
        }
    }
}
