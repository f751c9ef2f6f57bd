//! The ends of connections, and of the server.

use super::{Drain, EventLoop};
use crate::connection::Stage;
use crate::leaving::Leaving;
use crate::queued::Queued;
use crate::stage;
use crate::stats::{add, shift};
use crate::stream::Stream;
use pushlab_http2::frame::Code;
use pushlab_session::spread::Spread;
use pushlab_session::subscriber::Subscriber;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the peer may take to read our last bytes.
pub(super) const LINGER: Duration = Duration::from_secs(2);

impl EventLoop {
    /// Ends a connection at once. It stays in its place until the end of the turn: whoever has its number may go on, to no
    /// effect.
    pub(super) fn close(&mut self, id: usize) {
        if self.connections[id].is_gone() {
            return;
        }
        self.leave_group(id);
        self.cancel(id);
        if let Some(shared) = self.connections[id].http2.take() {
            self.forget_http2(&shared);
        }
        let connection = &mut self.connections[id];
        if let Some(engine) = &mut self.engine
            && engine.forget(id as u32, connection.generation)
        {
            // It fails where the peer was faster.
            let _ = connection.stream.socket().map(|socket| socket.shutdown(Shutdown::Both));
        }
        if connection.has_queued() {
            self.queued.change(connection.queued(), Queued::default(), &self.counters);
            shift(&self.counters.slow_subscribers, -1);
        }
        if let Some(transport) = connection.counted.take() {
            shift(&self.counters.connections[transport.index()], -1);
        }
        connection.stage = Stage::Ended;
        connection.exchange.end();
        connection.peer = None;
        connection.exchange.subscriber = Subscriber::default();
        connection.unsent = None;
        connection.carry = Vec::new();
        self.ended.push(id);
    }

    /// Lets go of the connections that have ended in this turn.
    pub(super) fn remove_ended(&mut self) {
        for id in self.ended.drain(..) {
            self.connections.remove(id);
            shift(&self.counters.open, -1);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Nobody waits for what the connection asked for: the application does not begin with it, if it has not yet.
    fn cancel(&mut self, id: usize) {
        self.connections[id].ticket = None;
        if let Some(call) = self.stop_awaiting(id) {
            call.cancel();
        }
    }

    /// Ends a connection after what was sent has been read: our side is shut, then the peer has [`LINGER`] to close.
    pub(super) fn close_gently(&mut self, id: usize) {
        if self.connections[id].is_gone() {
            return;
        }
        self.leave_group(id);
        self.cancel(id);
        let connection = &mut self.connections[id];
        connection.stage = Stage::Lingering;
        connection.exchange.end();
        connection.carry = Vec::new();
        if connection.has_queued() {
            // Nothing may follow our last bytes; who resumes gets it then.
            let before = connection.queued();
            connection.exchange.subscriber.abandon_queue();
            let after = connection.queued();
            self.queued.change(before, after, &self.counters);
            if after.bytes == 0 && !connection.stream.is_blocked() {
                connection.unsent = None;
                shift(&self.counters.slow_subscribers, -1);
            } else {
                // Also where nothing but sealed bytes wait for the socket.
                connection.unsent.get_or_insert_default();
            }
        }
        if !connection.has_queued() {
            self.shut_down(id);
        }
        self.set_deadline(id, LINGER);
    }

    pub(super) fn shut_down(&mut self, id: usize) {
        let stream = &mut self.connections[id].stream;
        let result = stream.shut_down();
        self.turn.bytes_sent += stream.sent(0);
        // A stream waits for nobody: what was said on it is in the output of its connection.
        if result.is_err() || matches!(stream, Stream::Http2(_)) {
            self.close(id);
        }
    }

    /// Ends a connection whose peer broke TLS, or never spoke it. It was told so by an alert, behind which nothing may
    /// follow.
    pub(super) fn end_broken_tls(&mut self, id: usize) {
        add(&self.counters.tls_failures, 1);
        if self.connections[id].has_queued() { self.close(id) } else { self.close_gently(id) }
    }

    pub(super) fn begin_drain(&mut self) {
        // Who took over is there already.
        let window = if self.stage == stage::Stage::Leaving { Duration::ZERO } else { self.shared.return_window() };
        let spread = Spread::new(window, self.index);
        self.drain = Some(Drain { until: self.now + self.limits().drain_timeout, spread });
        self.is_accepting = false;
        self.listeners = Vec::new();
        self.leaving = Leaving::default();
        self.send_http2_away();
        let ids: Vec<usize> = self.connections.iter().map(|(id, _)| id).collect();
        for id in ids {
            let connection = &self.connections[id];
            if connection.is_open() && connection.http2.is_none() {
                let has_partial = !connection.carry.is_empty();
                let effect = self.step(id, |exchange, cx| exchange.drain(has_partial, cx));
                self.act(id, effect);
            }
        }
    }

    /// Tells those who speak HTTP/2 that new streams belong on another connection: before their streams end, which may
    /// stand in places before theirs.
    pub(super) fn send_http2_away(&self) {
        for (_, connection) in &self.connections {
            if let Some(shared) = &connection.http2 {
                let mut http2 = shared.borrow_mut();
                http2.protocol.go_away(Code::NoError, true);
                http2.list();
            }
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| self.connections.is_empty() || self.now >= drain.until)
    }
}
