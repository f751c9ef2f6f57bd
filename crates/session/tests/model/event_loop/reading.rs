//! From a connection to the exchange whose bytes come on it: as `reading.rs` of the server.

use super::{EventLoop, Stage};
use crate::tally::Happening;
use pushlab_session::exchange::Exchange;
use pushlab_wire::fields::FieldList;
use std::io;

/// What the poller tells of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ready {
    pub is_readable: bool,
    pub is_writable: bool,
    /// The client says nothing more.
    pub is_read_closed: bool,
    /// It has gone in both directions.
    pub is_error: bool,
}

impl EventLoop {
    pub fn on_event(&mut self, (id, generation): (usize, u32), ready: Ready) {
        if self.connections.get(id).and_then(Option::as_ref).is_none_or(|c| c.generation != generation) {
            return;
        }
        if ready.is_writable {
            self.flush(id);
        }
        let max_unread = self.limits.max_unread_replies_bytes;
        let connection = self.at(id);
        connection.has_ended |= ready.is_read_closed;
        if (ready.is_readable || ready.is_read_closed) && !connection.is_gone() {
            if connection.waits(max_unread) && !ready.is_error {
                connection.has_unread = true;
                return;
            }
            if connection.is_behind {
                return;
            }
            if connection.exchange.is_http() && !connection.carry.is_empty() {
                return self.unfinished.push(id);
            }
            self.read(id);
        }
    }

    fn read(&mut self, id: usize) {
        let (max, now) = (self.limits.read_buffer_bytes, self.now);
        let connection = self.at(id);
        let head = connection.socket.0.borrow_mut().head_to_server.take_if(|_| connection.stage == Stage::Open);
        if let Some((fields, has_ended)) = head {
            return self.take_head(id, &fields, has_ended);
        }
        let has_more = connection.has_ended;
        match connection.socket.read(max) {
            Ok(bytes) if bytes.is_empty() => self.on_end(id),
            Ok(mut bytes) => {
                connection.last_read = now;
                connection.exchange.heard();
                self.take_in(id, &mut bytes);
                if !self.at(id).is_gone() && (bytes.len() == max || has_more) {
                    self.unfinished.push(id);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && !has_more => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.unfinished.push(id),
            Err(_) => self.close(id),
        }
    }

    /// A stream of HTTP/2 begins. What comes behind its head is read in the next turn.
    fn take_head(&mut self, id: usize, fields: &FieldList, has_ended: bool) {
        let now = self.now;
        let connection = self.at(id);
        connection.http2 = Some(has_ended);
        connection.last_read = now;
        let effect = self.step(id, |exchange, cx| exchange.receive_head(fields, has_ended, cx));
        self.act(id, effect);
        self.unfinished.push(id);
    }

    fn on_end(&mut self, id: usize) {
        let connection = self.at(id);
        match connection.stage {
            Stage::Open if connection.http2.is_some() => {
                if connection.http2.replace(true) == Some(false) {
                    let effect = self.step(id, Exchange::end_of_input);
                    self.act(id, effect);
                }
            }
            Stage::Open if connection.exchange.is_http() && connection.has_queued() => self.close_gently(id),
            Stage::Lingering if connection.has_queued() => {}
            _ => self.close(id),
        }
    }

    fn take_in(&mut self, id: usize, fresh: &mut [u8]) {
        self.work_left = self.limits.max_work;
        let mut carry = std::mem::take(&mut self.at(id).carry);
        if carry.is_empty() {
            let used = self.process(id, fresh);
            if used < fresh.len() {
                carry.extend_from_slice(&fresh[used..]);
            }
        } else {
            carry.extend_from_slice(fresh);
            let used = self.process(id, &mut carry);
            carry.drain(..used);
        }
        if carry.is_empty() {
            self.at(id).is_behind = false;
            return;
        }
        let max = self.rules.max_head_bytes.max(self.rules.max_message_bytes) + self.limits.read_buffer_bytes;
        let is_behind = self.work_left == 0;
        let connection = self.at(id);
        if !connection.is_gone() {
            let is_too_much = carry.len() > max;
            connection.carry = carry;
            connection.is_behind = is_behind;
            if is_behind {
                self.unfinished.push(id);
            }
            if is_too_much {
                self.close(id);
            }
        }
    }

    fn process(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && self.work_left > 0 {
            let max_unread = self.limits.max_unread_replies_bytes;
            let connection = self.at(id);
            if !connection.is_open() {
                return bytes.len();
            }
            if connection.is_held_back(max_unread) {
                self.tally.count(Happening::HoldingBack);
                break;
            }
            let (used, effect) = self.step(id, |exchange, cx| exchange.receive(&mut bytes[at..], cx));
            self.act(id, effect);
            if used == 0 {
                break;
            }
            at += used;
            self.work_left = self.work_left.saturating_sub(1);
        }
        at
    }

    pub(super) fn go_on_with_unfinished(&mut self) {
        let mut ids = std::mem::take(&mut self.unfinished);
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            self.go_on(id);
        }
    }

    fn go_on(&mut self, id: usize) {
        let Some(connection) = &self.connections[id] else { return };
        if !connection.has_queued() {
            let effect = self.step(id, |exchange, cx| exchange.catch_up(cx));
            self.act(id, effect);
        }
        if !self.at(id).carry.is_empty() {
            self.take_in(id, &mut []);
        }
        let max_unread = self.limits.max_unread_replies_bytes;
        let connection = self.at(id);
        if connection.is_gone() || connection.is_behind {
            // What is behind stands among the unfinished again.
        } else if connection.waits(max_unread) {
            connection.has_unread = true;
        } else {
            self.read(id);
        }
    }
}
