//! From one turn's publications to every subscriber's socket.

use super::{Core, http};
use crate::connection::{Connection, Kind, NO_GROUP};
use crate::framing::Framing;
use crate::hub::{Publication, fitting};
use crate::outbox::{Verdict, write_in_two, write_some};
use crate::stats::{add, shift};
use std::sync::Arc;

/// Publications of one turn in one framing: their bytes and where each ends.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Core {
    /// Delivers what was published since the last turn.
    pub(super) fn fan_out(&mut self) {
        let mut incoming = std::mem::take(&mut self.incoming);
        self.inbox.drain(&mut incoming);
        let Some(last) = incoming.last() else {
            self.incoming = incoming;
            return;
        };
        self.fanned_out_to = last.offset;
        #[cfg(feature = "slow-fanout")]
        let begun_ns = pushlab_os::clock::monotonic_ns();
        let mut dirty = std::mem::take(&mut self.dirty);
        for publication in &incoming {
            self.groups.distribute(publication, &mut dirty);
        }
        incoming.clear();
        self.incoming = incoming;
        let mut batch = Batch { bytes: std::mem::take(&mut self.out), ends: Vec::new() };
        for group in dirty.drain(..) {
            self.fan_out_to(group, &mut batch);
        }
        self.dirty = dirty;
        self.out = batch.bytes;
        #[cfg(feature = "slow-fanout")]
        waste_a_fifth_of(begun_ns);
    }

    fn fan_out_to(&mut self, group: usize, batch: &mut Batch) {
        let mut pending = std::mem::take(&mut self.groups[group].pending);
        for framing in Framing::ALL {
            let index = framing.index();
            if self.groups[group].members[index].is_empty() {
                continue;
            }
            let members = std::mem::take(&mut self.groups[group].members[index]);
            if framing == Framing::Reply {
                self.answer_held(group, members, &pending, batch);
                continue;
            }
            batch.bytes.clear();
            batch.ends.clear();
            for publication in &pending {
                framing.message(&mut batch.bytes, &publication.text);
                batch.ends.push(batch.bytes.len());
            }
            for &id in &members {
                self.deliver(id as usize, &pending, batch);
            }
            self.groups[group].members[index] = members;
            // Those beyond the policy go now, while the members are whole again.
            self.end_doomed();
        }
        pending.clear();
        self.groups[group].pending = pending;
    }

    fn end_doomed(&mut self) {
        while let Some(id) = self.doomed.pop() {
            // A socket that broke has no queue.
            let is_slow = self.connections.get(id).is_some_and(|c| c.outbox.is_some());
            if is_slow { self.close_slow(id) } else { self.close(id) }
        }
    }

    fn deliver(&mut self, id: usize, pending: &[Arc<Publication>], batch: &Batch) {
        let connection = &mut self.connections[id];
        let Some(skip) = unseen(connection, pending) else { return };
        let mut from = if skip == 0 { 0 } else { batch.ends[skip - 1] };
        let mut queue_from = skip;
        let mut partial: &[u8] = &[];
        if connection.outbox.is_none() {
            let written = if self.shared.config.splits_events {
                let framing = connection.framing_out();
                write_in_two(&mut connection.stream, framing, &batch.bytes, from, &batch.ends[skip..])
            } else {
                write_some(&mut connection.stream, &batch.bytes[from..])
            };
            let Ok(n) = written else {
                self.doomed.push(id);
                return;
            };
            self.turn.bytes_sent += connection.stream.sent(n);
            from += n;
            if from == batch.bytes.len() && !connection.stream.is_blocked() {
                self.turn.sent += (pending.len() - skip) as u64;
                return;
            }
            queue_from = batch.ends.partition_point(|&end| end <= from);
            self.turn.sent += (queue_from - skip) as u64;
            let begun = if queue_from == 0 { 0 } else { batch.ends[queue_from - 1] };
            if n > 0 && from > begun {
                partial = &batch.bytes[from..batch.ends[queue_from]];
                queue_from += 1;
                self.turn.sent += 1;
            }
        }
        self.queue(id, partial, &pending[queue_from..]);
    }

    /// Queues what a socket did not take, and applies the policy to a subscriber that is too slow.
    fn queue(&mut self, id: usize, partial: &[u8], rest: &[Arc<Publication>]) {
        let config = &self.shared.config;
        let connection = &mut self.connections[id];
        let is_new = connection.outbox.is_none();
        let outbox = connection.outbox.get_or_insert_default();
        let before = outbox.bytes();
        // A partial frame cannot break a limit that a whole one was within.
        let _ = outbox.push_bytes(partial, &config.limits);
        let verdict = outbox.push(rest, &config.limits, config.policy);
        shift(&self.counters.queued_bytes, outbox.bytes() as i64 - before as i64);
        if verdict == Verdict::TooSlow {
            // Closing changes the list of members that is being walked.
            add(&self.counters.closed_slow, 1);
            self.doomed.push(id);
            self.after_queueing(id, is_new, Verdict::Stays { dropped: 0 });
            return;
        }
        self.after_queueing(id, is_new, verdict);
    }

    /// Answers every held poll of a group with one reply that is encoded once.
    fn answer_held(&mut self, group: usize, members: Vec<u32>, pending: &[Arc<Publication>], batch: &mut Batch) {
        let taken = within(pending, self.limits().max_reply_bytes);
        let body = self.reply_body(taken, None);
        batch.bytes.clear();
        http::encode_ok(&mut batch.bytes, "application/json", &body, false, true);
        for id in members {
            let id = id as usize;
            let connection = &mut self.connections[id];
            // While the list is apart, nobody may look for a slot in it.
            connection.group = NO_GROUP;
            self.groups[group].references -= 1;
            shift(&self.counters.held_polls, -1);
            match unseen(connection, pending) {
                None => self.join_group(id, group),
                Some(0) if connection.keeps_alive && !connection.has_origin => {
                    self.turn.sent += taken.len() as u64;
                    self.end_poll(id, &batch.bytes);
                }
                Some(skip) => {
                    let rest = within(&pending[skip..], self.limits().max_reply_bytes);
                    let body = self.reply_body(rest, None);
                    self.turn.sent += rest.len() as u64;
                    self.send_reply(id, &body);
                }
            }
        }
    }
}

/// Busy for a fifth of the time since an instant.
#[cfg(feature = "slow-fanout")]
fn waste_a_fifth_of(begun_ns: u64) {
    let now_ns = pushlab_os::clock::monotonic_ns();
    let until_ns = now_ns + (now_ns - begun_ns) / 5;
    while pushlab_os::clock::monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// How many of the pending publications a connection has seen already; `None` if all. It counts as having seen all
/// from now on.
fn unseen(connection: &mut Connection, pending: &[Arc<Publication>]) -> Option<usize> {
    debug_assert!(!matches!(connection.kind, Kind::Lingering), "a lingering connection is in no group");
    let last = pending.last()?.offset;
    if connection.seen >= last {
        return None;
    }
    let skip =
        if connection.seen < pending[0].offset { 0 } else { pending.partition_point(|p| p.offset <= connection.seen) };
    connection.seen = last;
    Some(skip)
}

/// The publications that fit a reply, at least one.
fn within(publications: &[Arc<Publication>], max_bytes: usize) -> &[Arc<Publication>] {
    &publications[..fitting(publications.iter(), max_bytes)]
}
