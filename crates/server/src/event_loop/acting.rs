//! What exchanges ask for, carried out: by the log, the groups, the application, the connection.

use super::{Asked, CODED_BYTES_PER_WORK, EventLoop, PAGE_WORK, SET_BYTES_PER_WORK};
use crate::connection::Connection;
use crate::inbox::Settlement;
use crate::metrics;
use crate::stage::Stage;
use crate::stats::{add, shift};
use crate::stream::Stream;
use pushlab_access::Holder;
use pushlab_application::pool::{Answer, Call, Caller, LargeBody};
use pushlab_application::{Request, Response};
use pushlab_log::{Ticket, Turn};
use pushlab_os::random;
use pushlab_session::effect::{Context, Effect, Page, Query, Question, Time};
use pushlab_session::exchange::Exchange;
use pushlab_session::gate::{Refusal, refusal_of_limit};
use pushlab_session::groups::NO_GROUP;
use pushlab_session::queue::{MAX_WRITE_BYTES, Verdict};
use pushlab_session::spread::Spread;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::exposition::CONTENT_TYPE;
use std::mem;
use std::sync::Arc;

impl EventLoop {
    /// One step of an exchange.
    #[inline]
    pub(super) fn step<R>(&mut self, id: usize, with: impl FnOnce(&mut Exchange, &mut Context<'_>) -> R) -> R {
        self.step_with(id, None, with)
    }

    /// The same for a connection that is sent away while the server goes on.
    #[inline]
    pub(super) fn step_with<R>(
        &mut self,
        id: usize,
        away: Option<&mut Spread>,
        with: impl FnOnce(&mut Exchange, &mut Context<'_>) -> R,
    ) -> R {
        let connection = &mut self.connections[id];
        let mut cx = Context {
            rules: &self.shared.rules,
            peer: connection.peer.as_ref(),
            is_leaving: self.stage == Stage::Leaving,
            drain: away.or_else(|| self.drain.as_mut().map(|drain| &mut drain.spread)),
            time: Time { unix_s: self.unix_s, ns: (self.now - self.start).as_nanos() as u64 },
            epoch: self.epoch,
            offered_to: self.fanned_out_to,
            receipt: self.receipt,
            output: &mut self.output,
        };
        let result = with(&mut connection.exchange, &mut cx);
        let inflated = mem::take(&mut self.output.coded_bytes);
        self.work_left = self.work_left.saturating_sub((inflated / CODED_BYTES_PER_WORK) as u32);
        result
    }

    /// The group of the channels that were asked for.
    fn intern(&mut self) -> u32 {
        let work = self.output.channels.as_str().len() / SET_BYTES_PER_WORK;
        self.work_left = self.work_left.saturating_sub(work as u32);
        self.groups.intern(&self.output.channels)
    }

    /// Carries out what an exchange asks for, and what it asks for then, until it needs nothing more or has to wait.
    pub(super) fn act(&mut self, id: usize, mut effect: Effect) {
        // The group of the channels that it reads, in which it need not be.
        let mut group = self.connections[id].group;
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
                Effect::Publish => match self.publish(id, &mut group) {
                    Some(next) => next,
                    None => return,
                },
                Effect::Read(query) => {
                    if query.is_new_set {
                        group = self.intern();
                    }
                    match self.read_log(id, group, query) {
                        Some(next) => next,
                        None => return,
                    }
                }
                Effect::Receive => {
                    if self.connections[id].group == group {
                        self.enter_group(id);
                    } else {
                        self.join_group(id, group);
                    }
                    Effect::Nothing
                }
                Effect::Resubscribe { channel, is_more } => self.resubscribe(id, &channel, is_more),
                Effect::Reconsider => self.reconsider(id),
                Effect::Ticket(token) => self.give_ticket(id, &token),
                Effect::Page(page) => {
                    self.work_left = self.work_left.saturating_sub(PAGE_WORK);
                    self.answer_with_page(id, page)
                }
                Effect::Ask(question) => match self.ask_application(id, *question) {
                    Some(next) => next,
                    None => return,
                },
                Effect::Cancel => {
                    let (was_begun, is_change) = match self.stop_awaiting(id) {
                        Some(call) => (!call.cancel(), call.is_change()),
                        None => (true, false),
                    };
                    self.step(id, |exchange, cx| exchange.not_responded(was_begun, is_change, cx))
                }
                Effect::End => {
                    self.say(id);
                    return self.close_gently(id);
                }
                Effect::Cut => return self.close(id),
            };
        }
    }

    /// An answer stands in the output, or has been given to the connection: what follows, unless that has ended.
    fn on_answered(&mut self, id: usize) -> Option<Effect> {
        self.leave_group(id);
        self.say(id);
        let connection = &mut self.connections[id];
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

    /// What came while nothing was read is read in the next turn.
    pub(super) fn go_on_with_unread(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if std::mem::take(&mut connection.has_unread) || !connection.carry.is_empty() {
            self.go_on_later(id);
        }
    }

    /// Says what an exchange has left in the output.
    pub(super) fn say(&mut self, id: usize) {
        self.count_troubles();
        let event = self.output.event.take();
        self.say_head(id);
        if !self.output.bytes.is_empty() {
            let mut bytes = std::mem::take(&mut self.output.bytes);
            match event {
                Some(framing) => self.send_event(id, framing, &bytes),
                None => self.send(id, &bytes),
            }
            bytes.clear();
            self.output.bytes = bytes;
        }
        if mem::take(&mut self.output.is_delivery)
            && let Some(unsent) = &mut self.connections[id].unsent
        {
            unsent.note_deliveries();
        }
        let (patience, transport) = (self.output.patience.take(), self.output.transport.take());
        if !self.connections[id].is_open() {
            return;
        }
        if let Some(transport) = transport {
            self.count_as(id, transport);
        }
        if let Some(patience) = patience {
            self.set_deadline(id, patience);
            self.watch_progress(id);
        }
    }

    /// Says the head that an exchange over HTTP/2 has left in the output.
    fn say_head(&mut self, id: usize) {
        let output = &mut self.output;
        if !output.head.is_empty() {
            if let Stream::Http2(stream) = &mut self.connections[id].stream {
                stream.send_head(&output.head);
            }
            output.head.clear();
            output.is_interim = false;
        }
    }

    /// Counts what somebody may look for as soon as it is told; the rest is counted at the end of the turn.
    fn count_troubles(&mut self) {
        let counts = &mut self.output.counts;
        for (counter, count) in [
            (&self.counters.gaps, &mut counts.gaps),
            (&self.counters.errors, &mut counts.errors),
            (&self.counters.closed_timeout, &mut counts.timeouts),
        ] {
            if *count > 0 {
                add(counter, std::mem::take(count));
            }
        }
    }

    /// Where the socket took all of what a subscriber missed so far there is no event to go on at.
    fn go_on_catching_up(&mut self, id: usize) {
        let connection = &self.connections[id];
        if connection.exchange.subscriber.is_catching_up && !connection.exchange.is_busy() && !connection.has_queued() {
            self.go_on_later(id);
        }
    }

    // --- The log ---

    /// Publishes what the output has. `None`: the log answers later.
    fn publish(&mut self, id: usize, group: &mut u32) -> Option<Effect> {
        if self.connections[id].exchange.reads_after_publishing() {
            *group = self.intern();
        }
        let published = self.allow_publication(id).and_then(|()| {
            let (channel, data) = &self.output.publication;
            let asked = self.shared.distributor.ask_to_publish(channel, data, self.now, self.index);
            asked.map_err(|error| (error.code(), error.to_string().into()))
        });
        match published {
            Ok(Turn::Done(cursor)) => Some(self.step(id, |exchange, cx| exchange.published(Ok(cursor), cx))),
            Ok(Turn::Pending(ticket)) => {
                self.park(id, *group, ticket, None);
                None
            }
            Err(refusal) => Some(self.step(id, |exchange, cx| exchange.published(Err(refusal), cx))),
        }
    }

    fn read_log(&mut self, id: usize, group: u32, query: Query) -> Option<Effect> {
        if query.is_subscription && self.connections[id].group != group {
            self.join_group(id, group);
        }
        let channels = self.groups.channels(group);
        let distributor = &self.shared.distributor;
        let read = || match query.newest {
            Some(count) => distributor.newest(channels, count, query.max_bytes, self.index),
            None => distributor.read(channels, query.after, query.max_bytes, self.index),
        };
        let mut kept = mem::take(&mut self.kept);
        let answer = kept.read(distributor.head(), channels, &query, read);
        let next = match answer {
            Turn::Done(missed) => Some(self.step(id, |exchange, cx| exchange.replayed(missed, query.after, cx))),
            Turn::Pending(ticket) => {
                self.park(id, group, ticket, query.after);
                None
            }
        };
        self.kept = kept;
        next
    }

    /// The log answers in a later turn.
    fn park(&mut self, id: usize, group: u32, ticket: Ticket, after: Option<Cursor>) {
        // Nobody else refers to the group until then.
        if self.connections[id].group != group {
            self.join_group(id, group);
        }
        self.step(id, Exchange::park);
        self.say(id);
        let connection = &mut self.connections[id];
        if connection.is_open() {
            connection.ticket = Some(ticket);
            self.asked.insert(ticket, Asked { id, generation: connection.generation, after });
        }
    }

    /// The log has answered.
    pub(super) fn take_settlement(&mut self, ticket: Ticket, settlement: Settlement) {
        let Some(Asked { id, generation, after }) = self.asked.remove(&ticket) else { return };
        // It may have ended, or waited too long and asked for something else.
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.generation != generation || connection.ticket != Some(ticket) || !connection.is_open() {
            return;
        }
        connection.ticket = None;
        let effect = self.step(id, |exchange, cx| match settlement {
            Settlement::Published(cursor) => exchange.published(Ok(cursor), cx),
            Settlement::Read(replay) => exchange.replayed(&mut replay.into(), after, cx),
            Settlement::Failed => exchange.not_settled(cx),
        });
        self.act(id, effect);
        let connection = &self.connections[id];
        if connection.is_open() && !connection.exchange.is_busy() {
            self.go_on_with_unread(id);
        }
    }

    fn resubscribe(&mut self, id: usize, channel: &str, is_more: bool) -> Effect {
        let before = self.connections[id].group;
        // A copy of pointers, so that both the groups and the exchange can be used.
        let channels = self.groups.channels(before).to_vec();
        let chosen = self.step(id, |exchange, cx| exchange.choose_again(&channels, channel, is_more, cx));
        let mut first_at = None;
        if chosen.is_ok() {
            let group = self.intern();
            self.join_group(id, group);
            if before == NO_GROUP && group != NO_GROUP {
                first_at = Some(self.shared.distributor.head().offset);
            }
        }
        self.step(id, |exchange, cx| exchange.resubscribed(chosen, first_at, cx))
    }

    // --- The access file ---

    /// Whether what the output has to publish is within the limits of the identity and of the address it comes from.
    fn allow_publication(&self, id: usize) -> Result<(), Refusal> {
        let Some(access) = &self.shared.rules.gate.access else { return Ok(()) };
        let connection = &self.connections[id];
        let (rules, bytes) = (access.rules(), self.output.publication.1.len());
        let now_ns = (self.now - self.start).as_nanos() as u64;
        let identity = connection.exchange.holder().map(|holder| (holder, rules.identity_quota));
        let address = connection.exchange.address().map(|holder| (holder, rules.address_quota));
        let holders = [identity, address].into_iter().flatten();
        access.ledger.publish(holders, bytes, now_ns).map_err(refusal_of_limit)
    }

    /// Its client has another token: it keeps the channels that this allows.
    fn reconsider(&mut self, id: usize) -> Effect {
        let channels = self.groups.channels(self.connections[id].group).to_vec();
        if self.step(id, |exchange, cx| exchange.keep_allowed(&channels, cx)) {
            let group = self.intern();
            self.join_group(id, group);
        }
        Effect::Nothing
    }

    fn give_ticket(&mut self, id: usize, token: &str) -> Effect {
        let access = self.shared.rules.gate.access.as_ref();
        // Without random bytes there is no ticket, as where there is no room for one.
        let ticket = random::bytes().ok().zip(access).and_then(|(ticket, access)| {
            let whose = match self.connections[id].exchange.holder() {
                Some(Holder::Identity(identity)) => identity,
                _ => "",
            };
            let has_room = access.give_ticket(ticket, whose, token, self.unix_s);
            has_room.then(|| format!("{:032x}", u128::from_be_bytes(ticket)))
        });
        self.step(id, |exchange, cx| exchange.answer_ticket(ticket.as_deref(), cx))
    }

    /// Ends the connections of those whom the back end has sent away.
    pub(super) fn take_dismissed(&mut self) {
        for holder in self.inbox.take_dismissed() {
            let is_theirs = |connection: &Connection| connection.exchange.holder() == Some(&holder);
            let theirs =
                self.connections.iter().filter(|(_, connection)| connection.is_open() && is_theirs(connection));
            let ids: Vec<usize> = theirs.map(|(id, _)| id).collect();
            for id in ids {
                let effect = self.step(id, |exchange, cx| exchange.disconnect(cx));
                self.act(id, effect);
            }
        }
    }

    // --- Pages ---

    fn answer_with_page(&mut self, id: usize, page: Page) -> Effect {
        let stats = self.shared.stats();
        let (kind, body) = match page {
            Page::Stats => ("application/json", serde_json::to_vec(&stats).expect("counters always serialise")),
            Page::Metrics => (CONTENT_TYPE, metrics::page(&stats, self.shared.config.cores.max(1)).into_bytes()),
        };
        self.step(id, |exchange, cx| exchange.answer(kind, &body, cx))
    }

    // --- The application ---

    /// Asks the application. `None`: its connection has ended.
    fn ask_application(&mut self, id: usize, question: Question) -> Option<Effect> {
        let Ok(peer) = self.connections[id].stream.peer_address() else {
            self.close(id);
            return None;
        };
        let Question { method, path, query, fields, forwarded, body, is_tls, person } = question;
        let peer = self.shared.rules.gate.trusted_proxies.client(peer.ip(), forwarded.iter().map(Vec::as_slice));
        let request = Request { method, path, query, fields, body, peer, is_tls, person };
        let Some(call) = self.caller.as_ref().and_then(|caller| caller.ask(id, request)) else {
            let max = self.limits().max_waiting_requests;
            let text = format!("{max} requests wait for the application already; ask again in a moment");
            return Some(self.step(id, |exchange, cx| exchange.respond_with_error(ErrorCode::Overloaded, &text, cx)));
        };
        self.calls.insert(id, call);
        shift(&self.counters.awaiting, 1);
        Some(Effect::Nothing)
    }

    /// The connection waits for the application no more; gives what it waited for.
    pub(super) fn stop_awaiting(&mut self, id: usize) -> Option<Arc<Call>> {
        let call = self.calls.remove(&id)?;
        shift(&self.counters.awaiting, -1);
        Some(call)
    }

    /// Sends the answers that have come, to those who still wait for them.
    pub(super) fn take_answers(&mut self) {
        while let Some(Answer { id, call, response, body }) = self.caller.as_ref().and_then(Caller::answer) {
            if self.calls.get(&id).is_some_and(|awaited| Arc::ptr_eq(awaited, &call)) {
                self.stop_awaiting(id);
                self.respond(id, &response, body);
            }
        }
    }

    fn respond(&mut self, id: usize, response: &Response, body: LargeBody) {
        let Response { status, content_type, fields, .. } = response;
        let size = body.as_ref().len();
        let has_body = self.step(id, |exchange, cx| exchange.respond(*status, content_type, fields, size, cx));
        if has_body && size <= MAX_WRITE_BYTES {
            // One write for head and body.
            self.output.bytes.extend_from_slice(body.as_ref());
        } else if has_body {
            self.say_head(id);
            let mut head = std::mem::take(&mut self.output.bytes);
            let may_stay = self.enqueue(id, |connection, _| {
                let unsent = connection.unsent.get_or_insert_default();
                unsent.push(&head);
                unsent.push_body(body.into());
                Verdict::Stays { dropped: 0 }
            });
            head.clear();
            self.output.bytes = head;
            if !may_stay {
                return self.close(id);
            }
            self.write_queued(id);
        }
        self.act(id, Effect::Answered);
    }
}
