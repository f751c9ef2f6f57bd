//! From one turn's publications to every subscriber's socket.

use super::EventLoop;
use crate::connection::{Connection, Stage};
use crate::stats::shift;
use crate::stream::Stream;
use pushlab_engine::{MAX_SENDS, Outcome, Send};
use pushlab_log::{Publication, fitting};
use pushlab_session::answer;
use pushlab_session::batch::Batch;
use pushlab_session::effect::Effect;
use pushlab_session::framing::Framing;
use pushlab_session::groups::{Group, NO_GROUP};
use pushlab_session::queue::{QueueRules, Verdict};
use pushlab_session::reply;
use pushlab_session::unsent::{write_in_two, write_some};
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Publications for which an idle group keeps room.
const MAX_IDLE_PENDING: usize = 64;
/// Groups, or members of one, that are read from memory together before they are written to. What a write touches in
/// the kernel, some 6 KiB, must not push them out again: 100 KiB fit every second-level cache.
const AHEAD: usize = 16;

impl EventLoop {
    /// Delivers what was published since the last turn.
    pub(super) fn fan_out(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.inbox.take(&mut arrivals);
        self.notice_return();
        // Those who have read what they missed receive what was published behind that.
        for (ticket, settlement) in arrivals.settlements.drain(..) {
            self.take_settlement(ticket, settlement);
        }
        let Some(last) = arrivals.publications.last() else {
            self.arrivals = arrivals;
            return;
        };
        self.fanned_out_to = last.offset;
        #[cfg(feature = "slow-fanout")]
        let begun_ns = pushlab_os::clock::monotonic_ns();
        let mut dirty = std::mem::take(&mut self.dirty);
        for publication in &arrivals.publications {
            self.groups.distribute(publication, &mut dirty);
        }
        arrivals.publications.clear();
        self.arrivals = arrivals;
        let mut batch = std::mem::take(&mut self.batch);
        for groups in dirty.chunks(AHEAD) {
            self.fetch_groups(groups);
            for &group in groups {
                self.fan_out_to(group, &mut batch);
            }
        }
        dirty.clear();
        self.dirty = dirty;
        self.batch = batch;
        #[cfg(feature = "slow-fanout")]
        waste_a_share_of(begun_ns);
    }

    /// Reads what [`Self::fan_out_to`] begins with. Between two writes the kernel has filled the caches with a socket, so
    /// group, list of members and connection come from memory, each after the one before; read for several groups, they
    /// come at the same time.
    fn fetch_groups(&self, groups: &[usize]) {
        let mut ids = [u32::MAX; AHEAD];
        for &group in groups {
            black_box((self.groups[group].pending.len(), self.groups[group].members.is_empty()));
        }
        for (&group, id) in groups.iter().zip(&mut ids) {
            let Group { members, pending, .. } = &self.groups[group];
            black_box(pending.first().map(Arc::as_ptr));
            *id = members.first().unwrap_or(u32::MAX);
        }
        self.fetch_connections(&ids);
    }

    /// Reads what a delivery begins with.
    fn fetch_connections(&self, ids: &[u32]) {
        for &id in ids {
            let Some(connection) = self.connections.get(id as usize) else { continue };
            let Connection { exchange, stream, .. } = connection;
            black_box((exchange.subscriber.seen, connection.has_queued(), stream.is_blocked()));
        }
    }

    fn fan_out_to(&mut self, group: usize, batch: &mut Batch) {
        let mut pending = std::mem::take(&mut self.groups[group].pending);
        for framing in self.groups[group].members.framings() {
            let members = self.groups[group].members.take(framing);
            if framing == Framing::Reply {
                self.answer_held(group, members, &pending, batch);
                continue;
            }
            if let Some(from) = self.shared.config.compression_from {
                // Each once, for all of the server's subscribers.
                pending.iter().for_each(|publication| framing.compress(publication, from, &mut self.output.deflater));
            }
            batch.fill(&pending, framing);
            if self.engine.is_some() && members.len() >= self.shared.config.min_uring_members {
                members.chunks(MAX_SENDS).for_each(|some| self.deliver_together(some, &pending, batch));
            } else {
                members.chunks(AHEAD).for_each(|some| self.deliver_each(some, &pending, batch));
            }
            self.groups[group].members.put_back(framing, members);
            // Those beyond the policy go now, while the members are whole again.
            self.end_doomed();
        }
        pending.clear();
        // A group keeps room for usual turns only: there may be as many groups as connections.
        pending.shrink_to(MAX_IDLE_PENDING);
        self.groups[group].pending = pending;
    }

    pub(super) fn end_doomed(&mut self) {
        while let Some(id) = self.doomed.pop() {
            // A socket that broke has no queue, nor has one that was abandoned.
            let is_slow = self.connections[id].has_queued();
            if is_slow { self.close_slow(id) } else { self.close(id) }
        }
    }

    /// Delivers to up to [`AHEAD`] members with a write for each.
    fn deliver_each(&mut self, members: &[u32], pending: &[Arc<Publication>], batch: &Batch) {
        // A single one gains nothing; a group's only member was fetched with it.
        if members.len() > 1 {
            self.fetch_connections(members);
        }
        for &id in members {
            let id = id as usize;
            let Some(first) = self.offer(id, pending) else { continue };
            let written = self.write_batch(id, first, batch);
            self.account(id, first, written, pending, batch);
        }
    }

    /// Delivers to some members with one call to the kernel. None of them is closed here, so that each is still the same
    /// when its result comes.
    fn deliver_together(&mut self, members: &[u32], pending: &[Arc<Publication>], batch: &Batch) {
        let mut sends = std::mem::take(&mut self.sends);
        for ids in members.chunks(AHEAD) {
            self.fetch_connections(ids);
            for &id in ids {
                let Some(first) = self.offer(id as usize, pending) else { continue };
                let connection = &self.connections[id as usize];
                if matches!(connection.stream, Stream::Plain(_)) {
                    sends.push(Send::new(id, connection.generation, first as u32, batch.start_of(first)));
                } else {
                    let written = self.write_batch(id as usize, first, batch);
                    self.account(id as usize, first, written, pending, batch);
                }
            }
        }
        if let Some(engine) = &mut self.engine {
            let connections = &self.connections;
            let socket = |send: &Send| match &connections[send.id as usize].stream {
                Stream::Plain(socket) => socket.as_fd(),
                _ => unreachable!("only plain sockets are sent to by the ring"),
            };
            if !engine.send(&batch.bytes, &mut sends, socket) {
                self.set_engine(None);
            }
        }
        for send in sends.drain(..) {
            let (id, first) = (send.id as usize, send.first as usize);
            let written = match send.outcome {
                Outcome::Taken(n) if send.from + n == batch.bytes.len() => {
                    // Nothing changes in the connection, which would have to come from memory once more.
                    self.turn.bytes_sent += n as u64;
                    self.turn.sent += (pending.len() - first) as u64;
                    continue;
                }
                Outcome::Taken(n) => Ok(n),
                Outcome::Failed(error) => Err(error),
                Outcome::Left => self.write_batch(id, first, batch),
            };
            self.account(id, first, written, pending, batch);
        }
        self.sends = sends;
    }

    /// The first publication that a connection has not seen, if it is to be written now; behind a queue it is queued.
    fn offer(&mut self, id: usize, pending: &[Arc<Publication>]) -> Option<usize> {
        let connection = &mut self.connections[id];
        debug_assert!(connection.stage != Stage::Lingering, "a connection at its end is in no group");
        let first = connection.exchange.subscriber.offer(pending)?;
        if connection.has_queued() {
            self.queue(id, |connection, rules| {
                let unsent = connection.unsent.as_ref().map_or(0, |unsent| unsent.len());
                connection.exchange.subscriber.queue(&pending[first..], unsent, rules)
            });
            return None;
        }
        Some(first)
    }

    /// Writes a batch from a publication on; gives how much of that the socket took.
    fn write_batch(&mut self, id: usize, first: usize, batch: &Batch) -> io::Result<usize> {
        let connection = &mut self.connections[id];
        let from = batch.start_of(first);
        if self.shared.config.splits_events {
            let framing = connection.exchange.framing_out();
            write_in_two(&mut connection.stream, framing, &batch.bytes, from, batch.ends_from(first))
        } else {
            write_some(&mut connection.stream, &batch.bytes[from..])
        }
    }

    /// Counts what a socket took of a batch, and queues the rest.
    fn account(
        &mut self,
        id: usize,
        first: usize,
        written: io::Result<usize>,
        pending: &[Arc<Publication>],
        batch: &Batch,
    ) {
        let Ok(n) = written else {
            self.doomed.push(id);
            return;
        };
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return;
        }
        self.turn.bytes_sent += connection.stream.sent(n);
        if batch.start_of(first) + n == batch.bytes.len() && !connection.stream.is_blocked() {
            self.turn.sent += (pending.len() - first) as u64;
            return;
        }
        let mut deliveries = 0;
        self.queue(id, |connection, rules| {
            let Connection { exchange, unsent, .. } = connection;
            let unsent = unsent.get_or_insert_default();
            let (begun, verdict) = exchange.subscriber.wrote(n, first, batch, pending, unsent, rules);
            deliveries = begun;
            verdict
        });
        self.turn.sent += deliveries;
    }

    /// Queues what a socket did not take. One that may not stay ends when the list of members, which is being walked, is
    /// whole again.
    fn queue(&mut self, id: usize, with: impl FnOnce(&mut Connection, &QueueRules) -> Verdict) {
        if !self.enqueue(id, with) {
            self.doomed.push(id);
        }
    }

    /// The answer to held polls as gzip, or `plain` where that is not worth it.
    fn compress_reply(&mut self, body: &[u8], plain: &[u8]) -> Vec<u8> {
        let from = self.shared.config.compression_from.unwrap_or(usize::MAX);
        let Some(compressed) = reply::compress(body, from, &mut self.output.deflater) else { return plain.to_vec() };
        let mut out = Vec::new();
        answer::encode_common_reply(&mut out, Some("gzip"), &compressed, self.shared.rules.gate.common_audience());
        out
    }

    /// Answers every held poll of a group with one reply that is encoded once.
    fn answer_held(&mut self, group: usize, members: Vec<u32>, pending: &[Arc<Publication>], batch: &mut Batch) {
        let taken = within(pending, self.limits().max_reply_bytes);
        let body = reply::body(taken, None);
        batch.clear();
        answer::encode_common_reply(&mut batch.bytes, None, &body, self.shared.rules.gate.common_audience());
        // The same for those who take gzip, made for the first of them.
        let mut compressed: Option<Vec<u8>> = None;
        for id in members {
            let id = id as usize;
            let connection = &mut self.connections[id];
            if let Some(attendance) = &self.attendance {
                let channels = self.groups.channels(group as u32);
                attendance.leave(connection.exchange.holder(), channels, self.now - self.start);
            }
            // While the list is apart, nobody may look for a slot in it.
            connection.group = NO_GROUP;
            self.groups.release(group);
            shift(&self.counters.held_polls, -1);
            match connection.exchange.subscriber.offer(pending) {
                None => self.join_group(id, group as u32),
                Some(0) if connection.exchange.takes_common_reply() => {
                    self.turn.sent += taken.len() as u64;
                    let bytes = match connection.exchange.takes_gzip() {
                        false => &batch.bytes,
                        true => compressed.get_or_insert_with(|| self.compress_reply(&body, &batch.bytes)),
                    };
                    self.send_event(id, Framing::Reply, bytes);
                    self.act(id, Effect::Answered);
                }
                Some(skip) => {
                    let rest = within(&pending[skip..], self.limits().max_reply_bytes);
                    let body = reply::body(rest, None);
                    self.turn.sent += rest.len() as u64;
                    let effect = self.step(id, |exchange, cx| exchange.answer_poll(&body, cx));
                    self.act(id, effect);
                }
            }
        }
        self.settle_groups();
    }
}

/// Busy for a share of the time since an instant: 6 % of a fan-out, which is nearly all that a delivery costs, make 5 % more
/// CPU time for a delivery.
#[cfg(feature = "slow-fanout")]
fn waste_a_share_of(begun_ns: u64) {
    const PERCENT: u64 = 6;
    let now_ns = pushlab_os::clock::monotonic_ns();
    let until_ns = now_ns + (now_ns - begun_ns) * PERCENT / 100;
    while pushlab_os::clock::monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// The publications that fit a reply, at least one.
fn within(publications: &[Arc<Publication>], max_bytes: usize) -> &[Arc<Publication>] {
    &publications[..fitting(publications.iter(), max_bytes)]
}
