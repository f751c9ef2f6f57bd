//! Counts what is kept for peers, and closes connections when it is too much in total.

use super::{EventLoop, Over, Shared};
use crate::connection::Stage;
use crate::stats::{add, shift};
use pushlab_session::missed::Kept;
use pushlab_session::wheel::TICK;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Making room frees one such part of the limit more than needed, so that it is not soon needed again.
const SLACK: usize = 16;

impl EventLoop {
    /// Counts what a connection holds, if that has changed since the last count.
    pub(super) fn settle(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let now = connection.holds();
        let before = std::mem::replace(&mut connection.counted_bytes, now);
        if now == before {
            return;
        }
        shift(&self.counters.queued_bytes, i64::from(now.queued) - i64::from(before.queued));
        self.shared.account.change(before.kept as usize, now.kept as usize);
        let weight = connection.weight() as u64;
        if weight > self.counters.heaviest.load(Ordering::Relaxed) {
            self.counters.heaviest.store(weight, Ordering::Relaxed);
        }
    }

    /// The same for what connections are subscribed to.
    pub(super) fn settle_groups(&mut self) {
        let now = self.groups.kept_bytes();
        self.shared.account.change(std::mem::replace(&mut self.counted_group_bytes, now), now);
    }

    /// Counts what a connection has received, making room if necessary. Gives `false` if this connection had to go.
    pub(super) fn find_room(&mut self, id: usize) -> bool {
        let connection = &self.connections[id];
        let more = connection.holds().kept.saturating_sub(connection.counted_bytes.kept);
        self.make_room(Some((id, more as usize)));
        self.settle(id);
        !self.connections[id].is_gone()
    }

    /// Makes room if too much is kept, and ends the connections that held the most. Not while walking a list of
    /// members.
    pub(super) fn keep_to_limit(&mut self) {
        self.make_room(None);
        self.end_doomed();
    }

    /// Makes room if there is none, including for what a connection has received but is not counted yet: the
    /// connections that hold the most lose their queues and join the doomed, until the rest fits.
    #[inline]
    fn make_room(&mut self, coming: Option<(usize, usize)>) {
        let kept = self.kept_for_peers() + coming.map_or(0, |(_, more)| more);
        if kept <= self.limits().max_queued_total_bytes {
            self.over = None;
        } else if self.over.is_none_or(|over| over.tried != self.now) {
            let since = self.over.map_or(self.now, |over| over.since);
            let has_made_room = self.shed(coming, since);
            self.over = (!has_made_room).then_some(Over { since, tried: self.now });
        }
    }

    /// Says whether there is room then.
    #[cold]
    fn shed(&mut self, mut coming: Option<(usize, usize)>, since: Instant) -> bool {
        // What was missed lately is read again if need be.
        self.kept = Kept::default();
        let uncounted = coming.map(|(id, _)| id);
        let mut heavy: BinaryHeap<(usize, usize)> = self
            .connections
            .iter()
            .filter(|(_, connection)| !connection.is_gone())
            .map(|(id, connection)| {
                let own = if uncounted == Some(id) { connection.weight() } else { connection.counted_weight() };
                (own + self.groups.share(connection.group), id)
            })
            .filter(|(weight, _)| *weight > 0)
            .collect();
        let max = self.limits().max_queued_total_bytes;
        let enough = max - max / SLACK;
        // What goes with their connections.
        let mut rest = 0;
        loop {
            let (heaviest, id) = heavy.pop().unwrap_or_default();
            self.counters.heaviest.store(heaviest as u64, Ordering::Relaxed);
            let more = coming.map_or(0, |(_, more)| more);
            if self.kept_for_peers() + more <= enough + rest {
                return true;
            }
            if heaviest == 0 || self.leaves_it_to_others(heaviest as u64, since) {
                return false;
            }
            self.abandon(id);
            let connection = &self.connections[id];
            rest += connection.counted_bytes.kept as usize + self.groups.share(connection.group);
            coming = coming.filter(|(coming, _)| *coming != id);
            add(&self.counters.closed_slow, 1);
        }
    }

    /// What is limited: all beside history, but for publications that an event loop has yet to take, which have a limit of
    /// their own.
    fn kept_for_peers(&self) -> usize {
        let Shared { account, distributor, .. } = &*self.shared;
        account.beside_history().saturating_sub(distributor.on_their_way())
    }

    /// Whether another event loop has a connection for which much more is kept: it is woken, and has a tick to let go of that.
    fn leaves_it_to_others(&self, heaviest: u64, since: Instant) -> bool {
        let weights = self.shared.loop_counters().map(|counters| counters.heaviest.load(Ordering::Relaxed));
        let heavier = weights.enumerate().find(|(index, weight)| *index != self.index && weight / 2 > heaviest);
        let Some((index, _)) = heavier else { return false };
        let waits = self.now.saturating_duration_since(since) <= TICK;
        if waits {
            self.shared.distributor.wake(index);
        }
        waits
    }

    /// Lets go of what is queued for a connection. It can only be closed: what it was sent may end in the middle of a frame.
    fn abandon(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.has_queued() {
            shift(&self.counters.slow_subscribers, -1);
        }
        connection.stage = Stage::Abandoned;
        connection.unsent = None;
        connection.carry = Vec::new();
        // Nothing is offered to it any more. Where it is a member it leaves by what it is.
        connection.exchange.subscriber.abandon_queue();
        connection.exchange.subscriber.seen = u64::MAX;
        self.settle(id);
        self.doomed.push(id);
    }
}
