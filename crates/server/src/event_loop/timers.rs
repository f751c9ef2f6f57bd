//! Deadlines.

use super::EventLoop;
use super::ending::LINGER;
use crate::connection::Stage;
use crate::distributor::EXPIRY_INTERVAL;
use crate::stats::add;
use pushlab_session::exchange::Silence;
use pushlab_session::wheel::{TICK, Tick};
use std::time::Duration;

impl EventLoop {
    pub(super) fn set_deadline(&mut self, id: usize, delay: Duration) {
        let at = self.wheel.after(delay);
        self.connections[id].deadline = at;
        self.wheel.insert(at, id);
    }

    /// Looks at a connection after a time, unless it is to be looked at sooner: its token may expire before that.
    pub(super) fn bring_deadline_forward(&mut self, id: usize, delay: Duration) {
        if self.wheel.after(delay) < self.connections[id].deadline {
            self.set_deadline(id, delay);
        }
    }

    pub(super) fn on_timers(&mut self) {
        if self.accept_again.is_some_and(|at| at <= self.now) {
            self.accept();
        }
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(self.now.saturating_duration_since(self.start), &mut due);
        for id in due.drain(..) {
            let Some(connection) = self.connections.get(id) else { continue };
            if connection.deadline <= self.wheel.now() {
                self.on_deadline(id);
            } else {
                self.wheel.insert(connection.deadline, id);
            }
        }
        self.due = due;
        if self.now >= self.next_expiry {
            self.next_expiry = self.now + EXPIRY_INTERVAL;
            self.shared.distributor.expire(self.now);
            self.follow_presence();
            // One of them is enough.
            if let Some(presence) = self.shared.presence.as_ref().filter(|_| self.index == 0) {
                presence.tell(&self.shared.distributor, self.now - self.start);
            }
        }
    }

    pub(super) fn on_deadline(&mut self, id: usize) {
        if let Some(shared) = self.connections[id].http2.clone() {
            return self.on_http2_deadline(id, &shared);
        }
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
        match connection.stage {
            Stage::Open if connection.exchange.is_answering() => {
                let left = limits.take_timeout.saturating_sub(TICK * now.saturating_sub(connection.last_read));
                if left.is_zero() {
                    add(&self.counters.closed_timeout, 1);
                    return self.close(id);
                }
                self.set_deadline(id, limits.write_timeout.min(left));
            }
            Stage::Open => {
                // Who takes what is queued lives, and who is held back is not heard; no ping asked them to say so.
                let last_sign = connection.last_read.max(connection.last_progress);
                let silence = Silence {
                    has_queued: connection.has_queued(),
                    has_partial: !connection.carry.is_empty(),
                    is_held_back: connection.is_held_back(limits),
                    is_long: now.saturating_sub(last_sign) >= ticks(limits.heartbeat).saturating_mul(2),
                };
                let effect = self.step(id, |exchange, cx| exchange.expire(silence, cx));
                self.act(id, effect);
                self.watch_progress(id);
            }
            Stage::Lingering if is_taking(LINGER) => self.set_deadline(id, LINGER),
            Stage::Lingering => self.close(id),
            Stage::Abandoned | Stage::Ended => {}
        }
    }

    /// A peer that has taken some of what is queued for it is looked at again when it may have taken nothing for too long,
    /// not at its next heartbeat.
    pub(super) fn watch_progress(&mut self, id: usize) {
        let now = self.wheel.now();
        let connection = &self.connections[id];
        if connection.is_open() && connection.has_queued() {
            let idle = TICK * now.saturating_sub(connection.last_progress);
            let left = self.limits().write_timeout.saturating_sub(idle);
            self.bring_deadline_forward(id, left);
        }
    }
}
