//! Deadlines.

use super::Core;
use super::ending::LINGER;
use crate::connection::Kind;
use crate::distributor::EXPIRY_INTERVAL;
use crate::stats::add;
use crate::wheel::{TICK, Tick};
use pushlab_session::framing::Framing;
use pushlab_wire::codes::{CloseCode, ErrorCode};
use std::time::Duration;

impl Core {
    pub(super) fn set_deadline(&mut self, id: usize, delay: Duration) {
        let at = self.wheel.after(delay);
        let connection = &mut self.connections[id];
        connection.deadline = at;
        if at < connection.scheduled {
            connection.scheduled = at;
            self.wheel.insert(at, id);
        }
    }

    pub(super) fn on_timers(&mut self) {
        if self.accept_again.is_some_and(|at| at <= self.now) {
            self.accept();
        }
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(self.now, &mut due);
        for (at, id) in due.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if connection.scheduled != at {
                continue;
            }
            connection.scheduled = Tick::MAX;
            if connection.deadline <= self.wheel.now() {
                self.on_deadline(id);
            } else {
                connection.scheduled = connection.deadline;
                self.wheel.insert(connection.deadline, id);
            }
        }
        self.due = due;
        if self.now >= self.next_expiry {
            self.next_expiry = self.now + EXPIRY_INTERVAL;
            self.shared.distributor.expire(self.now);
        }
    }

    pub(super) fn on_deadline(&mut self, id: usize) {
        let now = self.wheel.now();
        let limits = &self.shared.config.limits;
        let ticks = |d: Duration| Tick::try_from(d.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(Tick::MAX);
        let connection = &self.connections[id];
        let is_taking =
            |d: Duration| connection.has_queued() && now.saturating_sub(connection.last_progress) < ticks(d);
        if connection.has_queued() && !is_taking(limits.write_timeout) {
            add(&self.counters.closed_timeout, 1);
            return self.close(id);
        }
        // A peer that takes what is queued for it lives; no ping asked it to say so.
        let last_sign = connection.last_read.max(connection.last_progress);
        // Who was never asked cannot have failed to answer: this process may have been halted meanwhile.
        let is_silent =
            connection.is_pinged && now.saturating_sub(last_sign) >= ticks(limits.heartbeat).saturating_mul(2);
        match connection.kind {
            Kind::HeldPoll => self.release_poll(id),
            Kind::Awaiting { .. } => self.end_waiting(id),
            Kind::Answering { until } if until <= self.now => {
                add(&self.counters.closed_timeout, 1);
                self.close(id);
            }
            Kind::Answering { until } => self.set_deadline(id, limits.write_timeout.min(until - self.now)),
            Kind::WebSocket { .. } if is_silent => {
                add(&self.counters.closed_timeout, 1);
                self.close_websocket(id, CloseCode::IdleTimeout, "no answer to two pings");
            }
            Kind::WebSocket { .. } => self.heartbeat(id, Framing::WebSocket),
            Kind::Stream(framing) => self.heartbeat(id, framing),
            Kind::Http(None) if connection.has_queued() => self.set_deadline(id, limits.write_timeout),
            Kind::Http(None) if connection.carry.is_empty() => {
                // Between two requests, or nothing came at all: not an error, just the end.
                add(&self.counters.closed_timeout, 1);
                self.close_gently(id);
            }
            Kind::Http(_) => {
                add(&self.counters.closed_timeout, 1);
                self.refuse(id, ErrorCode::RequestTimeout, "the request did not arrive in time");
            }
            Kind::Lingering if is_taking(LINGER) => self.set_deadline(id, LINGER),
            Kind::Lingering => self.close(id),
            Kind::Ended => {}
        }
    }

    pub(super) fn heartbeat(&mut self, id: usize, framing: Framing) {
        // What is queued proves to the peer that we live; a heartbeat behind it would only add to it.
        if !self.connections[id].has_queued() {
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            let connection = &self.connections[id];
            let is_current = !connection.subscriber.is_catching_up;
            let position = if is_current {
                connection.subscriber.seen.max(self.fanned_out_to)
            } else {
                connection.subscriber.seen
            };
            framing.heartbeat(&mut out, &self.shared.distributor.cursor(position).to_string());
            self.connections[id].is_pinged = true;
            self.send(id, &out);
            self.out = out;
        }
        self.set_deadline(id, self.limits().heartbeat);
    }
}
