//! Connections that speak HTTP/2: from their frames to the exchanges of their streams, and back.

use super::ending::LINGER;
use super::{EventLoop, HEAD_BYTES_PER_WORK};
use crate::connection::{Known, Stage};
use crate::http2::{Http2, Http2Stream, Shared};
use crate::stage;
use crate::stats::{add, shift};
use crate::stream::Stream;
use pushlab_http2::event::Event;
use pushlab_http2::frame::{Code, PREFACE};
use pushlab_session::unsent::write_some;
use pushlab_session::wheel::TICK;
use pushlab_wire::fields::FieldList;
use std::io;
use std::mem;

/// As much of its beginning as no request of HTTP/1 has.
const SIGN: &[u8] = PREFACE.first_chunk::<4>().unwrap();

impl EventLoop {
    /// Whether a connection on which these are the first bytes speaks HTTP/2: TLS has agreed on it, or, without TLS, the
    /// client knows (RFC 9113, section 3.3).
    pub(super) fn begins_http2(&self, id: usize, bytes: &[u8]) -> bool {
        let connection = &self.connections[id];
        connection.known == Known::Nothing
            && self.shared.config.speaks_http2
            && match &connection.stream {
                Stream::Secure(secure) => secure.has_agreed_on_http2(),
                Stream::Plain(_) | Stream::Carried(_) => bytes.starts_with(SIGN),
                Stream::Http2(_) => false,
            }
    }

    pub(super) fn begin_http2(&mut self, id: usize) {
        let limits = self.limits().http2();
        let unsent = self.unsent.clone();
        let connection = &mut self.connections[id];
        connection.begin();
        connection.http2 = Some(Http2::new(limits, connection.stream.peer_address().ok(), id, unsent));
        // Each stream has one of its own.
        connection.exchange.end();
        shift(&self.counters.http2, 1);
        self.set_deadline(id, self.limits().head_timeout.min(self.limits().idle_timeout));
    }

    /// Reads frames; says how many bytes were used.
    pub(super) fn process_frames(&mut self, id: usize, shared: &Shared, bytes: &mut [u8]) -> usize {
        let now = self.now.saturating_duration_since(self.start);
        let mut head = mem::take(&mut self.head);
        let was_inside_head = shared.borrow().protocol.is_inside_head();
        let mut at = 0;
        while at < bytes.len() && self.work_left > 0 {
            if !self.connections[id].is_open() {
                at = bytes.len();
                break;
            }
            let received = shared.borrow_mut().protocol.receive(&mut bytes[at..], now, &mut head);
            let Ok((used, event)) = received else {
                add(&self.counters.errors, 1);
                self.end_http2(id);
                at = bytes.len();
                break;
            };
            let is_body = matches!(event, Event::Data { .. });
            self.on_stream_event(shared, event);
            if used == 0 {
                break;
            }
            at += used;
            let work = if is_body { 1 } else { 1 + used / HEAD_BYTES_PER_WORK };
            self.work_left = self.work_left.saturating_sub(work as u32);
        }
        self.head = head;
        // Answers to the peer's frames, and windows that it opened.
        shared.borrow_mut().list();
        let is_inside_head = shared.borrow().protocol.is_inside_head();
        let is_partial = at < bytes.len() || is_inside_head;
        // A frame that has come whole proves that the peer gets on, but for one that only goes on with a head.
        let is_the_same = at == 0 || was_inside_head && is_inside_head;
        let since = shared.borrow().partial_since.filter(|_| is_the_same).unwrap_or(self.wheel.now());
        shared.borrow_mut().partial_since = is_partial.then_some(since);
        if is_partial {
            self.bring_deadline_forward(id, self.limits().head_timeout);
        }
        at
    }

    fn on_stream_event(&mut self, shared: &Shared, event: Event<'_>) {
        match event {
            Event::Request { stream, head, is_cut, is_end } => self.open_stream(shared, stream, head, is_cut, is_end),
            Event::Data { owner, bytes, is_end } => self.on_stream_data(owner as usize, bytes, is_end),
            Event::Reset { owner, .. } => {
                let Some(connection) = self.connections.get_mut(owner as usize) else { return };
                if let Stream::Http2(stream) = &mut connection.stream {
                    stream.note_reset();
                    self.close(owner as usize);
                }
            }
            Event::Nothing | Event::Pong(_) | Event::GoingAway { .. } | Event::Response { .. } => {}
        }
    }

    fn open_stream(&mut self, shared: &Shared, number: u32, head: &FieldList, is_cut: bool, is_end: bool) {
        if !self.has_room() {
            // Nothing was done: the client may ask again.
            return shared.borrow_mut().protocol.reset(number, Code::RefusedStream);
        }
        let stream = Http2Stream::new(shared.clone(), number, is_end);
        let peer = self.connections.get(shared.borrow().id).and_then(|socket| socket.peer.clone());
        let Some(id) = self.adopt(Stream::Http2(Box::new(stream)), peer) else { return };
        shared.borrow_mut().protocol.set_owner(number, id as u32);
        self.receipt = self.shared.distributor.receipt();
        let effect = self.step(id, |exchange, cx| {
            if is_cut { exchange.refuse_large_head(cx) } else { exchange.receive_head(head, is_end, cx) }
        });
        self.act(id, effect);
    }

    fn on_stream_data(&mut self, id: usize, bytes: &mut [u8], is_end: bool) {
        let now = self.wheel.now();
        let Some(connection) = self.connections.get_mut(id) else { return };
        let waits = connection.waits(&self.shared.config.limits) || connection.is_behind;
        let Stream::Http2(stream) = &mut connection.stream else { return };
        stream.has_peer_ended |= is_end;
        if stream.has_more() || waits {
            stream.keep(bytes);
            connection.has_unread = true;
            connection.has_ended |= is_end;
            return self.settle(id);
        }
        connection.last_read = now;
        connection.exchange.heard();
        if !bytes.is_empty() {
            let size = bytes.len();
            self.take_in(id, bytes);
            if let Stream::Http2(stream) = &self.connections[id].stream {
                stream.used(size);
            }
        }
        if is_end {
            self.on_stream_end(id);
        }
    }

    /// The peer of a stream says nothing more on it.
    pub(super) fn on_stream_end(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if !connection.is_open() {
            return;
        }
        if connection.waits(&self.shared.config.limits) || connection.is_behind {
            (connection.has_unread, connection.has_ended) = (true, true);
            return;
        }
        let effect = self.step(id, |exchange, cx| exchange.end_of_input(cx));
        self.act(id, effect);
    }

    /// Ends all streams; the socket is shut when the output has left, in which the reason stands.
    pub(super) fn end_http2(&mut self, id: usize) {
        let Some(shared) = self.connections[id].http2.clone() else { return };
        self.close_streams(&shared);
        shared.borrow_mut().list();
        let connection = &mut self.connections[id];
        connection.stage = Stage::Lingering;
        connection.carry = Vec::new();
        self.set_deadline(id, LINGER);
    }

    fn close_streams(&mut self, shared: &Shared) {
        let owners = shared.borrow().protocol.owners();
        for owner in owners {
            self.close(owner as usize);
        }
    }

    /// A connection that speaks HTTP/2 has ended, and with it its streams.
    pub(super) fn forget_http2(&mut self, shared: &Shared) {
        self.close_streams(shared);
        shift(&self.counters.http2, -1);
    }

    /// Sends what streams and protocol have put into the outputs.
    pub(super) fn send_outputs(&mut self) {
        loop {
            let ids = mem::take(&mut *self.unsent.borrow_mut());
            if ids.is_empty() {
                return;
            }
            for id in ids {
                // Its place may be somebody else's by now.
                if let Some(shared) = self.connections.get(id).and_then(|connection| connection.http2.clone()) {
                    shared.borrow_mut().unlist();
                    self.send_output(id, &shared);
                }
            }
        }
    }

    fn send_output(&mut self, id: usize, shared: &Shared) {
        loop {
            let Ok(is_empty) = self.write_output(id, shared) else { return self.close(id) };
            let mut has_moved = false;
            while let Some(owner) = { shared.borrow_mut().protocol.next_ready() } {
                has_moved = true;
                self.flush(owner as usize);
            }
            if !is_empty || !has_moved {
                break;
            }
        }
        self.account_for_output(id, shared);
        let connection = &self.connections[id];
        let mut http2 = shared.borrow_mut();
        let is_sent_away = self.drain.is_some() || self.stage == stage::Stage::Leaving;
        let is_leaving = http2.protocol.has_peer_left() || connection.has_ended || is_sent_away;
        let has_sent_all = http2.protocol.output().is_empty() && !connection.stream.is_blocked();
        match connection.stage {
            Stage::Open if is_leaving && http2.protocol.open_streams() == 0 => {
                http2.protocol.go_away(Code::NoError, false);
                drop(http2);
                self.end_http2(id);
            }
            Stage::Lingering if has_sent_all => {
                drop(http2);
                self.shut_down(id);
            }
            _ => {}
        }
    }

    /// Gives the socket as much as it takes; says whether that was all.
    fn write_output(&mut self, id: usize, shared: &Shared) -> io::Result<bool> {
        let mut http2 = shared.borrow_mut();
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return Ok(false);
        }
        let stream = &mut connection.stream;
        stream.push()?;
        let mut written = 0;
        while !http2.protocol.output().is_empty() && !stream.is_blocked() {
            let size = write_some(stream, http2.protocol.output())?;
            if size == 0 {
                break;
            }
            written += size;
            http2.protocol.sent(size);
        }
        let sent = stream.sent(written);
        self.turn.bytes_sent += sent;
        if sent > 0 {
            connection.last_progress = self.wheel.now();
        }
        Ok(http2.protocol.output().is_empty() && !connection.stream.is_blocked())
    }

    /// What the socket did not take counts as what connections have queued does.
    fn account_for_output(&mut self, id: usize, shared: &Shared) {
        let connection = &self.connections[id];
        if connection.is_gone() {
            return;
        }
        let left = shared.borrow().protocol.output().len();
        let before = mem::replace(&mut shared.borrow_mut().queued, left);
        self.settle(id);
        if before == 0 && left > 0 {
            self.connections[id].last_progress = self.wheel.now();
            self.bring_deadline_forward(id, self.limits().write_timeout);
        }
    }

    pub(super) fn on_http2_deadline(&mut self, id: usize, shared: &Shared) {
        let now = self.wheel.now();
        let connection = &self.connections[id];
        let limits = self.limits();
        let since = |at: u32| TICK * now.saturating_sub(at);
        let is_blocked = shared.borrow().queued > 0;
        let is_stuck = is_blocked && since(connection.last_progress) >= limits.write_timeout;
        let (has_settings, streams) = {
            let protocol = &shared.borrow().protocol;
            (protocol.has_settings(), protocol.open_streams())
        };
        let idle = since(connection.last_read.max(connection.last_progress));
        let partial_since = shared.borrow().partial_since;
        let is_late = partial_since.is_some_and(|at| since(at) >= limits.head_timeout);
        let is_idle = streams == 0 && (idle >= limits.idle_timeout || !has_settings);
        let next = if is_blocked { limits.write_timeout.min(limits.idle_timeout) } else { limits.idle_timeout };
        let next = partial_since.map_or(next, |at| next.min(limits.head_timeout.saturating_sub(since(at))));
        match connection.stage {
            Stage::Abandoned | Stage::Ended => {}
            Stage::Lingering => self.close(id),
            Stage::Open if is_stuck => {
                add(&self.counters.closed_timeout, 1);
                self.close(id);
            }
            Stage::Open if is_idle || is_late => {
                add(&self.counters.closed_timeout, 1);
                let code = if has_settings { Code::NoError } else { Code::SettingsTimeout };
                shared.borrow_mut().protocol.go_away(code, false);
                self.end_http2(id);
            }
            Stage::Open => self.set_deadline(id, next),
        }
    }
}
