//! What is written at once, and what has to wait: as `writing.rs` of the server.

use super::{Connection, EventLoop, Stage, TAKE_TIMEOUT};
use crate::tally::Happening;
use pushlab_session::framing::Framing;
use pushlab_session::unsent::write_some;

impl EventLoop {
    pub(super) fn send(&mut self, id: usize, bytes: &[u8]) {
        let max = self.limits.queue.max_bytes.max(self.rules.max_reply_bytes + self.rules.max_message_bytes);
        let connection = self.at(id);
        if connection.is_gone() {
            return;
        }
        let mut written = 0;
        if !connection.has_queued() {
            match write_some(&mut connection.socket, bytes) {
                Ok(n) => written = n,
                Err(_) => return self.close(id),
            }
        }
        if written < bytes.len() {
            let is_new = !connection.has_queued();
            let unsent = connection.unsent.get_or_insert_default();
            unsent.push(&bytes[written..]);
            let is_too_slow = unsent.len() > max;
            self.after_queueing(id, is_new);
            if is_too_slow {
                self.tally.count(Happening::SlowEnd);
                self.close(id);
            }
        }
    }

    pub(super) fn send_event(&mut self, id: usize, framing: Framing, bytes: &[u8]) {
        let border = if self.limits.splits_events { framing.head_len(bytes) } else { 0 };
        if border > 0 {
            self.send(id, &bytes[..border]);
        }
        self.send(id, &bytes[border..]);
    }

    pub(super) fn after_queueing(&mut self, id: usize, is_new: bool) {
        if is_new {
            self.at(id).last_progress = self.now;
            self.set_deadline(id, self.rules.write_timeout);
        }
    }

    pub(super) fn close_slow(&mut self, id: usize) {
        let effect = self.step(id, |exchange, cx| exchange.overrun(cx));
        self.act(id, effect);
    }

    pub(super) fn begin_taking(&mut self, id: usize) {
        self.at(id).taken_by = self.now + TAKE_TIMEOUT.as_nanos() as u64;
        self.set_deadline(id, self.rules.write_timeout.min(TAKE_TIMEOUT));
    }

    pub(super) fn flush(&mut self, id: usize) {
        if !self.write_queued(id) {
            return;
        }
        match self.at(id).stage {
            Stage::Lingering => self.at(id).socket.shut(true),
            Stage::Open => {
                let effect = self.step(id, |exchange, cx| exchange.flushed(cx));
                self.act(id, effect);
            }
            Stage::Ended => {}
        }
    }

    fn write_queued(&mut self, id: usize) -> bool {
        let (epoch, splits, now) = (self.epoch, self.limits.splits_events, self.now);
        let max_unread = self.limits.max_unread_replies_bytes;
        let connection = self.connections[id].as_mut().expect("it stays in its place until the end of the turn");
        if connection.is_gone() || !connection.has_queued() {
            return false;
        }
        let was_held_back = connection.is_held_back(max_unread);
        let framing = connection.exchange.framing_out();
        let Connection { socket, unsent, exchange, .. } = &mut *connection;
        let result = exchange.subscriber.flush(socket, unsent, framing, epoch, splits, &mut self.out);
        let Ok(flushed) = result else {
            self.close(id);
            return false;
        };
        if flushed.bytes > 0 {
            connection.last_progress = now;
        }
        if flushed.is_empty {
            connection.unsent = None;
            connection.exchange.subscriber.abandon_queue();
        }
        if was_held_back && !connection.waits(max_unread) {
            self.go_on_with_unread(id);
        }
        flushed.is_empty
    }
}
