//! Effects, carried out: as `acting.rs` of the server.

use super::{Asked, EventLoop, Group, Settlement};
use crate::tally::Happening;
use pushlab_log::{Log, Ticket, Turn};
use pushlab_session::effect::{Effect, Query};
use pushlab_session::exchange::Exchange;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;

impl EventLoop {
    pub(super) fn act(&mut self, id: usize, mut effect: Effect) {
        let mut group = self.at(id).group.clone();
        loop {
            effect = match effect {
                Effect::Nothing => {
                    self.say(id);
                    return self.go_on_catching_up(id);
                }
                Effect::Answered => match self.on_answered(id) {
                    Some(next) => next,
                    None => return,
                },
                Effect::Publish => {
                    if self.at(id).exchange.reads_after_publishing() {
                        group = self.output.channels.channels(|_| None).into();
                    }
                    let (channel, data) = self.output.publication.clone();
                    match self.publish(&channel, &data) {
                        Ok(Turn::Done(cursor)) => self.step(id, |exchange, cx| exchange.published(Ok(cursor), cx)),
                        Ok(Turn::Pending(ticket)) => return self.park(id, group, ticket, None, false),
                        Err(error) => {
                            let refusal = (ErrorCode::BadChannel, error.to_string().into());
                            self.step(id, |exchange, cx| exchange.published(Err(refusal), cx))
                        }
                    }
                }
                Effect::Read(query) => {
                    if query.is_new_set {
                        group = self.output.channels.channels(|_| None).into();
                    }
                    match self.read_log(id, &group, query) {
                        Some(next) => next,
                        None => return,
                    }
                }
                Effect::Receive => {
                    if self.at(id).group == group {
                        self.enter_group(id);
                    } else {
                        self.join_group(id, group.clone());
                    }
                    Effect::Nothing
                }
                Effect::Resubscribe { channel, is_more } => self.resubscribe(id, &channel, is_more),
                Effect::Page(_) => self.step(id, |exchange, cx| exchange.answer("application/json", b"{}", cx)),
                Effect::Reconsider | Effect::Ticket(_) => unreachable!("there is no access file"),
                Effect::Ask(_) | Effect::Cancel => unreachable!("there is no application"),
                Effect::End => {
                    self.say(id);
                    return self.close_gently(id);
                }
                Effect::Cut => return self.close(id),
            };
        }
    }

    fn on_answered(&mut self, id: usize) -> Option<Effect> {
        self.leave_group(id);
        self.say(id);
        let connection = self.at(id);
        if !connection.is_open() {
            return None;
        }
        let is_taken = !connection.has_queued();
        let next = self.step(id, |exchange, cx| exchange.answered(is_taken, cx));
        if is_taken {
            self.go_on_with_unread(id);
        } else {
            self.begin_taking(id);
        }
        Some(next)
    }

    pub(super) fn go_on_with_unread(&mut self, id: usize) {
        let connection = self.at(id);
        if std::mem::take(&mut connection.has_unread) || !connection.carry.is_empty() {
            self.unfinished.push(id);
        }
    }

    pub(super) fn say(&mut self, id: usize) {
        let event = self.output.event.take();
        if !self.output.head.is_empty() {
            let (head, is_interim) =
                (std::mem::take(&mut self.output.head), std::mem::take(&mut self.output.is_interim));
            self.at(id).socket.0.borrow_mut().heads_to_client.push_back((head, is_interim));
        }
        if !self.output.bytes.is_empty() {
            let mut bytes = std::mem::take(&mut self.output.bytes);
            match event {
                Some(framing) => self.send_event(id, framing, &bytes),
                None => self.send(id, &bytes),
            }
            bytes.clear();
            self.output.bytes = bytes;
        }
        if std::mem::take(&mut self.output.is_delivery)
            && let Some(unsent) = &mut self.at(id).unsent
        {
            unsent.note_deliveries();
        }
        let (patience, _) = (self.output.patience.take(), self.output.transport.take());
        if !self.at(id).is_open() {
            return;
        }
        if let Some(patience) = patience {
            self.set_deadline(id, patience);
        }
    }

    fn go_on_catching_up(&mut self, id: usize) {
        let connection = self.at(id);
        if connection.exchange.subscriber.is_catching_up && !connection.exchange.is_busy() && !connection.has_queued() {
            self.unfinished.push(id);
        }
    }

    fn read_log(&mut self, id: usize, group: &Group, query: Query) -> Option<Effect> {
        if query.is_subscription && self.at(id).group != *group {
            self.join_group(id, group.clone());
        }
        let is_from_now = query.after.is_none() && !query.is_subscription;
        let (head, log, seam) = (self.log.head(), &mut self.log, &mut self.seam);
        let mut has_read = false;
        let read = || {
            has_read = true;
            match query.newest {
                Some(count) => log.newest(group, count, query.max_bytes),
                None => match log.read(group, query.after, query.max_bytes) {
                    Turn::Done(mut replay) => {
                        seam.spoil_replay(&mut replay);
                        Turn::Done(replay)
                    }
                    pending @ Turn::Pending(_) => pending,
                },
            }
        };
        let mut kept = std::mem::take(&mut self.kept);
        let answer = kept.read(head, group, &query, read);
        let next = match answer {
            Turn::Done(missed) => {
                self.note_now(id, is_from_now, missed.up_to);
                self.tally.count_some(Happening::Part, u64::from(!missed.is_whole));
                self.tally.count_some(Happening::Merged, u64::from(!has_read));
                Some(self.step(id, |exchange, cx| exchange.replayed(missed, query.after, cx)))
            }
            Turn::Pending(ticket) => {
                self.park(id, group.clone(), ticket, query.after, is_from_now);
                None
            }
        };
        self.kept = kept;
        next
    }

    /// Tells the model what *from now on* was for somebody.
    fn note_now(&mut self, id: usize, is_from_now: bool, offset: u64) {
        if is_from_now {
            self.at(id).socket.0.borrow_mut().nows.push_back(offset);
        }
    }

    fn park(&mut self, id: usize, group: Group, ticket: Ticket, after: Option<Cursor>, is_from_now: bool) {
        if self.at(id).group != group {
            self.join_group(id, group);
        }
        self.step(id, Exchange::park);
        self.say(id);
        let connection = self.at(id);
        if connection.is_open() {
            connection.ticket = Some(ticket);
            let generation = connection.generation;
            self.asked.insert(ticket, Asked { id, generation, after, is_from_now });
        }
    }

    pub(super) fn take_settlement(&mut self, ticket: Ticket, settlement: Settlement) {
        let Some(Asked { id, generation, after, is_from_now }) = self.asked.remove(&ticket) else { return };
        let Some(connection) = &mut self.connections[id] else { return };
        if connection.generation != generation || connection.ticket != Some(ticket) || !connection.is_open() {
            return;
        }
        connection.ticket = None;
        self.tally.count(Happening::LateAnswer);
        let effect = match settlement {
            Settlement::Published(cursor) => self.step(id, |exchange, cx| exchange.published(Ok(cursor), cx)),
            Settlement::Read(mut replay) => {
                self.seam.spoil_replay(&mut replay);
                // It may have been told that it waited too long.
                let exchange = &self.at(id).exchange;
                let is_awaited = exchange.is_busy() && !exchange.is_answering();
                self.note_now(id, is_from_now && is_awaited, replay.up_to);
                self.step(id, |exchange, cx| exchange.replayed(&mut replay.into(), after, cx))
            }
            Settlement::Failed => self.step(id, Exchange::not_settled),
        };
        self.act(id, effect);
        let connection = self.at(id);
        if connection.is_open() && !connection.exchange.is_busy() {
            self.go_on_with_unread(id);
        }
    }

    fn resubscribe(&mut self, id: usize, channel: &str, is_more: bool) -> Effect {
        let before = self.at(id).group.clone();
        let chosen = self.step(id, |exchange, cx| exchange.choose_again(&before, channel, is_more, cx));
        let mut first_at = None;
        if chosen.is_ok() {
            let group: Group = self.output.channels.channels(|_| None).into();
            let head = self.log.head().offset;
            if before.is_empty() && !group.is_empty() {
                first_at = Some(head);
            }
            self.join_group(id, group);
            self.note_now(id, true, head);
        }
        self.step(id, |exchange, cx| exchange.resubscribed(chosen, first_at, cx))
    }
}
