//! What is written at once, and what has to wait.

use super::EventLoop;
use crate::config::Limits;
use crate::connection::{Connection, Stage};
use crate::stats::{add, shift};
use pushlab_session::framing::Framing;
use pushlab_session::queue::{QueueRules, Verdict};
use pushlab_session::unsent::write_some;

impl EventLoop {
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
            let may_stay = self.enqueue(id, |connection, _| {
                let unsent = connection.unsent.get_or_insert_default();
                unsent.push(&bytes[written..]);
                if unsent.len() > max { Verdict::TooSlow } else { Verdict::Stays { dropped: 0 } }
            });
            if !may_stay {
                self.close(id);
            }
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

    /// Queues something for a connection, as `with` does, and says whether the connection may stay. The caller ends one
    /// that may not: with a farewell behind what it has queued, if that is still there.
    #[must_use]
    pub(super) fn enqueue(&mut self, id: usize, with: impl FnOnce(&mut Connection, &QueueRules) -> Verdict) -> bool {
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return false;
        }
        let was_slow = connection.has_queued();
        let verdict = with(connection, &self.queue_rules);
        if !was_slow {
            shift(&self.counters.slow_subscribers, 1);
            connection.last_progress = self.wheel.now();
            self.bring_deadline_forward(id, self.limits().write_timeout);
        }
        if !self.find_room(id) {
            return false;
        }
        match verdict {
            Verdict::Stays { dropped } => add(&self.counters.dropped, dropped),
            Verdict::TooSlow => add(&self.counters.closed_slow, 1),
        }
        matches!(verdict, Verdict::Stays { .. })
    }

    /// Ends a subscriber that is too slow.
    pub(super) fn close_slow(&mut self, id: usize) {
        let effect = self.step(id, |exchange, cx| exchange.overrun(cx));
        self.act(id, effect);
    }

    /// An answer is on its way that the peer has not taken: it has some time for that.
    pub(super) fn begin_taking(&mut self, id: usize) {
        let Limits { write_timeout, take_timeout, .. } = *self.limits();
        self.connections[id].last_read = self.wheel.now();
        self.set_deadline(id, write_timeout.min(take_timeout));
    }

    pub(super) fn flush(&mut self, id: usize) {
        if let Some(shared) = &self.connections[id].http2 {
            return shared.borrow_mut().list();
        }
        // A slow reader gets nothing more of what its token does not allow any longer.
        if self.shared.rules.gate.access.is_some()
            && self.connections[id].is_open()
            && let Some(effect) = self.step(id, |exchange, cx| exchange.mind_token(cx))
        {
            self.act(id, effect);
        }
        if !self.write_queued(id) {
            return;
        }
        match self.connections[id].stage {
            Stage::Lingering => self.shut_down(id),
            Stage::Open => {
                let effect = self.step(id, |exchange, cx| exchange.flushed(cx));
                self.act(id, effect);
            }
            Stage::Abandoned | Stage::Ended => {}
        }
    }

    /// Writes what waits; says whether something did, and nothing does any more.
    pub(super) fn write_queued(&mut self, id: usize) -> bool {
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return false;
        }
        let pushed = connection.stream.push();
        if pushed.is_err() || !connection.has_queued() {
            self.turn.bytes_sent += connection.stream.sent(0);
            if pushed.is_err() {
                self.close(id);
            }
            return false;
        }
        let was_held_back = connection.is_held_back(&self.shared.config.limits);
        let framing = connection.exchange.framing_out();
        let splits = self.shared.config.splits_events;
        let Connection { stream, unsent, exchange, .. } = &mut *connection;
        let result = exchange.subscriber.flush(stream, unsent, framing, self.epoch, splits, &mut self.out);
        let Ok(flushed) = result else {
            self.close(id);
            return false;
        };
        let connection = &mut self.connections[id];
        let sent = connection.stream.sent(flushed.bytes);
        self.turn.bytes_sent += sent;
        self.turn.sent += flushed.deliveries;
        add(&self.counters.gaps, flushed.gaps);
        if sent > 0 || flushed.bytes > 0 {
            connection.last_progress = self.wheel.now();
        }
        let is_empty = flushed.is_empty && !connection.stream.is_blocked();
        if is_empty {
            connection.unsent = None;
            connection.exchange.subscriber.abandon_queue();
            shift(&self.counters.slow_subscribers, -1);
        }
        self.settle(id);
        // No event tells of what came while nothing was read.
        if was_held_back && !self.connections[id].waits(self.limits()) {
            self.go_on_with_unread(id);
        }
        is_empty
    }
}
