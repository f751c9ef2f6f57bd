//! From a socket to the exchange whose bytes come on it.

use super::{EventLoop, MAX_UNFINISHED_WORK, MAX_WORK, READ_BUFFER_BYTES, UNFINISHED_WORK};
use crate::connection::{Known, Stage};
use crate::inbox::Carried;
use crate::stage as server;
use crate::stream::Stream;
use mio::event::Event;
use std::{io, mem};

/// A connection's bytes that are not used yet may take so much more memory than they are.
const MAX_SPARE_BYTES: usize = 16 * 1024;

impl EventLoop {
    /// Goes on with a connection, or puts it off: says whether it has done more than that.
    pub(super) fn on_event(&mut self, id: usize, event: &Event) -> bool {
        if event.is_writable() {
            self.flush(id);
        }
        let is_closed = event.is_read_closed();
        let connection = &mut self.connections[id];
        // There is no second event for it, whenever all that came before has been read.
        connection.has_ended |= is_closed;
        connection.is_peer_gone |= event.is_write_closed() || event.is_error();
        let (is_readable, is_proven) = (event.is_readable() || is_closed, connection.known == Known::Whole);
        match (is_readable, is_proven) {
            (true, true) => self.on_readable(id),
            (true, false) => self.go_on_later(id),
            (false, _) => {}
        }
        is_proven || !is_readable
    }

    /// Goes on with a connection when others had their turn.
    pub(super) fn go_on_later(&mut self, id: usize) {
        if !mem::replace(&mut self.connections[id].is_unfinished, true) {
            self.unfinished.push_back(id);
        }
    }

    /// New connections that somebody else carries, and those of them that can go on.
    pub(super) fn take_carried(&mut self) {
        let Carried { carriers, ready } = self.inbox.take_carried();
        for carrier in carriers {
            self.admit_carried(carrier);
        }
        for (id, generation) in ready {
            self.on_ready(id, generation);
        }
    }

    fn on_ready(&mut self, id: usize, generation: u32) {
        if self.connections.get(id).is_some_and(|c| c.generation == generation) {
            self.flush(id);
            let connection = &mut self.connections[id];
            connection.is_peer_gone |= connection.stream.is_gone();
            self.on_readable(id);
        }
    }

    fn on_readable(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if !connection.is_gone() {
            // Who has gone in both directions gets no answer; that shows here alone.
            if connection.waits(&self.shared.config.limits) && !connection.is_peer_gone {
                connection.has_unread = true;
                return;
            }
            if connection.is_behind {
                return;
            }
            // Requests that waited for an answer come before what is read now, which may be the end.
            if connection.exchange.is_http() && !connection.carry.is_empty() {
                return self.go_on_later(id);
            }
            self.read(id);
        }
    }

    /// Reads one buffer; what is left is read in the next turn, after everybody else had theirs.
    pub(super) fn read(&mut self, id: usize) {
        self.work_left = MAX_WORK;
        let mut buffer = mem::take(&mut self.read_buffer);
        let connection = &mut self.connections[id];
        let stream = &mut connection.stream;
        let result = stream.read(&mut buffer);
        let has_more = stream.has_more() || connection.has_ended;
        self.turn.bytes_received += stream.received(result.as_ref().map_or(0, |&n| n));
        // With TLS, reading may have to be answered.
        self.turn.bytes_sent += stream.sent(0);
        match result {
            Ok(0) => self.on_end(id),
            Ok(n) => {
                let connection = &mut self.connections[id];
                connection.last_read = self.wheel.now();
                connection.exchange.heard();
                let is_first = connection.known == Known::Nothing;
                self.take_in(id, &mut buffer[..n]);
                let connection = &mut self.connections[id];
                // A short read that left nothing has emptied the socket.
                let has_more = n == buffer.len() || has_more;
                if !is_first {
                    let is_whole = !has_more && !connection.has_partial();
                    connection.known = if is_whole { Known::Whole } else { Known::Beginning };
                }
                if !connection.is_gone() && has_more {
                    self.go_on_later(id);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && !has_more => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                self.go_on_later(id);
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidData => self.end_broken_tls(id),
            // The end without the farewell of TLS. Requests say how long they are, so none is mistaken for a whole one.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => self.on_end(id),
            Err(_) => self.close(id),
        }
        // With TLS, what came may be a part of a record.
        self.settle(id);
        self.read_buffer = buffer;
    }

    /// The peer says nothing more. What it has asked for leaves first: it may still read.
    fn on_end(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if matches!(connection.stream, Stream::Http2(_)) {
            return self.on_stream_end(id);
        }
        match connection.stage {
            Stage::Open if connection.exchange.is_http() && connection.has_queued() => self.close_gently(id),
            Stage::Lingering if connection.has_queued() => {}
            _ => {
                let stream = &mut connection.stream;
                stream.answer_farewell();
                self.turn.bytes_sent += stream.sent(0);
                // The farewell may not fit where an answer has just left.
                if stream.is_blocked() { self.close_gently(id) } else { self.close(id) }
            }
        }
    }

    /// Gives bytes to the exchange, behind those that it has not used yet.
    pub(super) fn take_in(&mut self, id: usize, fresh: &mut [u8]) {
        self.receipt = self.shared.distributor.receipt();
        let mut carry = mem::take(&mut self.connections[id].carry);
        if carry.is_empty() {
            let used = self.process(id, fresh);
            if used < fresh.len() {
                carry.extend_from_slice(&fresh[used..]);
            }
        } else {
            carry.extend_from_slice(fresh);
            let used = self.process(id, &mut carry);
            carry.drain(..used);
            if carry.capacity() > 2 * carry.len() + MAX_SPARE_BYTES {
                carry.shrink_to_fit();
            }
        }
        if carry.is_empty() {
            self.connections[id].is_behind = false;
            return self.settle(id);
        }
        let max = self.limits().max_head_bytes.max(self.limits().max_message_bytes);
        let connection = &mut self.connections[id];
        if !connection.is_gone() {
            connection.carry = carry;
            connection.is_behind = self.work_left == 0;
            let (is_behind, is_too_much) = (connection.is_behind, connection.carry.len() > max + READ_BUFFER_BYTES);
            if is_behind {
                self.go_on_later(id);
            }
            if is_too_much {
                self.close(id);
            }
            self.settle(id);
        }
    }

    /// Gives bytes to the exchange until it wants no more; says how many were used.
    fn process(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        if self.begins_http2(id, bytes) {
            self.begin_http2(id);
        }
        if let Some(shared) = self.connections[id].http2.clone() {
            return self.process_frames(id, &shared, bytes);
        }
        let mut at = 0;
        while at < bytes.len() && self.work_left > 0 {
            let connection = &self.connections[id];
            if !connection.is_open() {
                return bytes.len();
            }
            if connection.is_held_back(&self.shared.config.limits) {
                break;
            }
            let (used, effect) = self.step(id, |exchange, cx| exchange.receive(&mut bytes[at..], cx));
            self.act(id, effect);
            if used == 0 {
                break;
            }
            at += used;
            self.connections[id].begin();
            self.work_left = self.work_left.saturating_sub(1);
        }
        at
    }

    /// A server that stops goes on with all of them, and answers what has come.
    pub(super) fn go_on_with_unfinished(&mut self, stage: server::Stage) {
        let most = if stage == server::Stage::Stopping { u32::MAX } else { MAX_UNFINISHED_WORK };
        let mut done = 0;
        for _ in 0..self.unfinished.len() {
            if done >= most {
                return;
            }
            let Some(id) = self.unfinished.pop_front() else { return };
            done += UNFINISHED_WORK;
            // It may have ended in an earlier turn.
            if let Some(connection) = self.connections.get_mut(id) {
                connection.is_unfinished = false;
                self.work_left = MAX_WORK;
                self.go_on(id);
                done += MAX_WORK - self.work_left;
                self.keep_to_limit();
            }
        }
    }

    fn go_on(&mut self, id: usize) {
        if !self.connections[id].has_queued() {
            let effect = self.step(id, |exchange, cx| exchange.catch_up(cx));
            self.act(id, effect);
        }
        if !self.connections[id].carry.is_empty() {
            self.work_left = MAX_WORK;
            self.take_in(id, &mut []);
        }
        let connection = &mut self.connections[id];
        if connection.is_gone() || connection.is_behind {
            // What is behind stands among the unfinished again.
        } else if connection.waits(&self.shared.config.limits) && !connection.is_peer_gone {
            connection.has_unread = true;
        } else {
            self.read(id);
        }
    }
}
