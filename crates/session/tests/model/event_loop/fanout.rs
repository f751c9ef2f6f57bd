//! From one turn's publications to every subscriber: as `fanout.rs` of the server, where it writes to one after another.

use super::{Connection, EventLoop, Group};
use crate::tally::Happening;
use crate::truth::Kind;
use pushlab_log::{Publication, fitting};
use pushlab_session::answer;
use pushlab_session::batch::Batch;
use pushlab_session::effect::Effect;
use pushlab_session::framing::Framing;
use pushlab_session::queue::{Policy, QueueRules, Verdict};
use pushlab_session::reply;
use pushlab_session::unsent::{write_in_two, write_some};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

impl EventLoop {
    pub(super) fn fan_out(&mut self) {
        let mut arrivals = std::mem::take(&mut self.inbox);
        // Those who have read what they missed receive what was published behind that.
        for (ticket, settlement) in arrivals.settlements.drain(..) {
            self.take_settlement(ticket, settlement);
        }
        let Some(last) = arrivals.publications.last() else { return };
        self.offered_to = last.offset;
        let mut groups: Vec<(Group, Vec<Arc<Publication>>)> = Vec::new();
        for connection in self.connections.iter().flatten().filter(|connection| connection.member_as.is_some()) {
            if !groups.iter().any(|(group, _)| *group == connection.group) {
                groups.push((connection.group.clone(), Vec::new()));
            }
        }
        let mut batch = std::mem::take(&mut self.batch);
        for (group, pending) in &mut groups {
            let are_theirs = arrivals.publications.iter().filter(|p| group.contains(&p.channel));
            pending.extend(are_theirs.cloned());
            if !pending.is_empty() {
                let forgets = self.seam.spoil_turn(group, pending);
                self.fan_out_to(group, pending, forgets, &mut batch);
            }
        }
        self.batch = batch;
    }

    fn fan_out_to(&mut self, group: &Group, pending: &[Arc<Publication>], forgets: bool, batch: &mut Batch) {
        let mut members: Vec<(usize, Framing)> = Vec::new();
        for (id, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection.as_mut().filter(|connection| connection.group == *group) else {
                continue;
            };
            members.extend(connection.member_as.map(|framing| (id, framing)));
            if forgets && connection.member_as.is_some() {
                connection.exchange.subscriber.seen = 0;
            }
        }
        members.sort_by_key(|&(id, framing)| (framing.index(), id));
        for members in members.chunk_by(|(_, a), (_, b)| a == b) {
            let framing = members[0].1;
            if framing == Framing::Reply {
                self.answer_held(group, members, pending, batch);
                continue;
            }
            if let Some(from) = self.rules.compression_from {
                pending.iter().for_each(|publication| framing.compress(publication, from, &mut self.output.deflater));
            }
            batch.fill(pending, framing);
            for &(id, _) in members {
                let Some(first) = self.offer(id, pending) else { continue };
                let written = self.write_batch(id, first, batch);
                self.account(id, first, written, pending, batch);
            }
            self.end_doomed();
        }
    }

    fn end_doomed(&mut self) {
        while let Some(id) = self.doomed.pop() {
            let is_slow = self.at(id).has_queued();
            if is_slow { self.close_slow(id) } else { self.close(id) }
        }
    }

    fn offer(&mut self, id: usize, pending: &[Arc<Publication>]) -> Option<usize> {
        let connection = self.at(id);
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

    fn write_batch(&mut self, id: usize, first: usize, batch: &Batch) -> io::Result<usize> {
        let splits = self.limits.splits_events;
        let connection = self.at(id);
        let from = batch.start_of(first);
        if splits {
            let framing = connection.exchange.framing_out();
            write_in_two(&mut connection.socket, framing, &batch.bytes, from, batch.ends_from(first))
        } else {
            write_some(&mut connection.socket, &batch.bytes[from..])
        }
    }

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
        if batch.start_of(first) + n == batch.bytes.len() {
            return;
        }
        self.tally.count_some(Happening::BegunFrame, u64::from(n > 0));
        self.queue(id, |connection, rules| {
            let Connection { exchange, unsent, .. } = connection;
            let unsent = unsent.get_or_insert_default();
            exchange.subscriber.wrote(n, first, batch, pending, unsent, rules).1
        });
    }

    fn queue(&mut self, id: usize, with: impl FnOnce(&mut Connection, &QueueRules) -> Verdict) {
        let rules = self.queue_rules;
        let connection = self.at(id);
        let is_new = !connection.has_queued();
        let verdict = with(connection, &rules);
        match verdict {
            Verdict::TooSlow => {
                self.tally.count(Happening::SlowEnd);
                self.doomed.push(id);
            }
            Verdict::Stays { dropped } => {
                self.tally.count_some(Happening::Drop, dropped);
                self.check_queue(id);
            }
        }
        self.after_queueing(id, is_new);
    }

    /// A queue that may stay is within the limits; but one message may be over, if what is older had to go for it, and a
    /// frame that was begun.
    fn check_queue(&mut self, id: usize) {
        let QueueRules { max_messages, max_bytes, policy } = self.limits.queue;
        let connection = self.connections[id].as_mut().expect("it has just had something queued");
        let unsent = connection.unsent.as_ref().map_or(0, |unsent| unsent.len());
        let Some(queue) = connection.exchange.subscriber.queued() else { return };
        self.out.clear();
        queue.encode(Framing::Lines { is_chunked: false, is_compressed: false }, false, &mut self.out);
        let messages = self.out.iter().filter(|&&byte| byte == b'\n').count();
        let spared = if policy == Policy::Close { 0 } else { 1 };
        let bytes = unsent + queue.bytes();
        if messages > max_messages || bytes > max_bytes && messages > spared {
            let what = format!("{messages} messages, {bytes} bytes, allowed are {:?}", self.limits.queue);
            self.report(Kind::Overfull, what);
        }
    }

    fn compress_reply(&mut self, body: &[u8], plain: &[u8]) -> Vec<u8> {
        let from = self.rules.compression_from.expect("nobody takes gzip otherwise");
        let Some(compressed) = reply::compress(body, from, &mut self.output.deflater) else { return plain.to_vec() };
        let mut out = Vec::new();
        answer::encode_common_reply(&mut out, Some("gzip"), &compressed, self.rules.gate.common_audience());
        out
    }

    fn answer_held(
        &mut self,
        group: &Group,
        members: &[(usize, Framing)],
        pending: &[Arc<Publication>],
        batch: &mut Batch,
    ) {
        let max_reply_bytes = self.rules.max_reply_bytes;
        let taken = within(pending, max_reply_bytes);
        let body = reply::body(taken, None);
        batch.clear();
        answer::encode_common_reply(&mut batch.bytes, None, &body, self.rules.gate.common_audience());
        let mut compressed: Option<Vec<u8>> = None;
        for &(id, _) in members {
            let connection = self.at(id);
            connection.group = Rc::new([]);
            connection.member_as = None;
            self.tally.count(Happening::HeldPoll);
            let connection = self.at(id);
            match connection.exchange.subscriber.offer(pending) {
                None => self.join_group(id, group.clone()),
                Some(0) if connection.exchange.takes_common_reply() => {
                    let bytes = match connection.exchange.takes_gzip() {
                        false => &batch.bytes,
                        true => compressed.get_or_insert_with(|| self.compress_reply(&body, &batch.bytes)),
                    };
                    self.send_event(id, Framing::Reply, bytes);
                    self.act(id, Effect::Answered);
                }
                Some(skip) => {
                    let rest = within(&pending[skip..], max_reply_bytes);
                    let body = reply::body(rest, None);
                    let effect = self.step(id, |exchange, cx| exchange.answer_poll(&body, cx));
                    self.act(id, effect);
                }
            }
        }
    }
}

fn within(publications: &[Arc<Publication>], max_bytes: usize) -> &[Arc<Publication>] {
    &publications[..fitting(publications.iter(), max_bytes)]
}
