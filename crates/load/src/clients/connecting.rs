//! Opening connections, and opening them again after a cut; sharing them, where the clients of a host do.

use super::client::Up;
use super::event_loop::ClientLoop;
use super::hosts::Obtained;
use crate::connection::{Owner, Protocol, Side, Stream};
use crate::cut::Cut;
use crate::transport::posts::Posts;
use crate::transport::{Receiver, Uplink};
use pushlab_os::clock::monotonic_ns;
use pushlab_workload::tally::TlsBytes;
use pushlab_workload::traffic::Traffic;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;

/// First pause before a connection is opened again, ns; doubled with every failure, and jittered down to half.
const BACKOFF_NS: u64 = 100_000_000;
/// Connections opened again in one turn: what those bring that stand is not to wait for thousands of others.
const MAX_RETRIES: usize = 64;
/// Longest pause, as doublings of the first: 6.4 s.
const BACKOFF_DOUBLINGS_MAX: u8 = 6;

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    /// Opens the receiving connection, for the first time or again.
    pub(super) fn connect(&mut self, index: usize, now: u64) {
        let client = &mut self.clients[index];
        if client.was_opened {
            self.recorder.part.reconnects += 1;
        }
        client.was_opened = true;
        client.opened_ns = now;
        self.begin(index, now);
    }

    /// Asks for the receiving connection, and sends on it what comes first.
    fn begin(&mut self, index: usize, now: u64) {
        if !self.obtain_down(index, now) {
            return;
        }
        if self.clients[index].receiver.begins_anew() {
            self.release(index, Side::Up, false);
            self.forget_answer(index);
        }
        let number = self.client_number(index);
        let client = &mut self.clients[index];
        self.out.clear();
        self.config.requests.turn_to_client(number);
        client.receiver.open(&self.config.requests, &mut self.rng, &mut self.out);
        self.count_request(index, now);
        self.send_down(index, now);
    }

    /// Gives a client its receiving stream; `false` if it has none now: it waits, or the attempt has failed.
    fn obtain_down(&mut self, index: usize, now: u64) -> bool {
        match self.obtain(Owner::new(index, Side::Down), now) {
            Ok(obtained) => self.clients[index].down = obtained,
            Err(error) => self.cut(index, &Cut::Io(error)),
        }
        self.clients[index].down.is_some()
    }

    /// A stream on a new connection, or of those of the client's host on one that is free; `None` when the client has
    /// to wait for one.
    fn obtain(&mut self, owner: Owner, now: u64) -> std::io::Result<Option<Stream>> {
        let Self { hosts, connections, .. } = self;
        match hosts.as_mut().map_or(Obtained::Fresh, |hosts| hosts.obtain(owner, connections)) {
            Obtained::Later => return Ok(None),
            Obtained::Kept(stream) => return Ok(Some(stream)),
            Obtained::Fresh => {}
        }
        let opened = self.open(owner, now);
        if let Some(hosts) = &mut self.hosts {
            match &opened {
                Err(_) => hosts.has_closed(owner.client(), None),
                Ok(stream) => {
                    let connection = self.connections.at(stream.connection);
                    if connection.is_some_and(|connection| connection.protocol.has_room()) {
                        hosts.release(owner.client(), stream.connection);
                    }
                }
            }
        }
        opened.map(Some)
    }

    /// Releases a stream, and its connection if that has no other: for another client of the host, if it can carry
    /// another request.
    pub(super) fn release(&mut self, index: usize, side: Side, keeps_alive: bool) {
        let Some(stream) = self.clients[index].take_stream(side) else { return };
        // It may have ended, and this stream with it.
        let Some(connection) = self.connections.at(stream.connection) else { return };
        let (now, mut goodbye) = (monotonic_ns(), P::outgoing());
        let is_of_use = connection.protocol.close(stream.number, keeps_alive, &mut goodbye);
        if !goodbye.is_empty() {
            // That the socket has failed is learned when it is read.
            let taken = connection.socket.send(goodbye.bytes()).unwrap_or(0);
            self.count_handed(goodbye.tally(), now);
            self.count_sent(taken, now);
        }
        match &mut self.hosts {
            Some(hosts) if is_of_use => {
                hosts.release(index, stream.connection);
                self.count_tls(stream.connection, now);
            }
            _ => self.close_unused(stream.connection, now),
        }
    }

    /// Closes a connection if it has no streams.
    fn close_unused(&mut self, connection: u32, now: u64) {
        let is_used = |connection: &P| connection.owners().into_iter().next().is_some();
        if !self.connections.at(connection).is_some_and(|connection| is_used(&connection.protocol)) {
            self.close(connection, now);
        }
    }

    /// Closes a connection, whatever streams it has.
    fn close(&mut self, connection: u32, now: u64) {
        self.count_tls(connection, now);
        let Self { connections, out, hosts, .. } = self;
        let Some(closing) = connections.at(connection) else { return };
        if P::IS_SHARED {
            // Why, if it is we who close it. Whether the peer hears it does not matter any more.
            let _ = closing.speak(out);
        }
        let (opened_for, is_given_up) = (closing.opened_for(), closing.is_given_up);
        connections.close(connection);
        if let Some(hosts) = hosts
            && !is_given_up
        {
            hosts.has_closed(opened_for, Some(connection));
        }
    }

    /// After a read of a connection that is shared: sends what it has to say, and notes whether there is more room on
    /// it, or none for ever.
    pub(super) fn settle(&mut self, number: u32, had_room: bool, now: u64) {
        let Self { connections, out, hosts, .. } = self;
        let Some(connection) = connections.at(number) else { return };
        // That the socket has failed is learned when it is read, behind what has come before.
        let taken = connection.speak(out).unwrap_or(0);
        let (handed, is_given_up) = (out.tally(), connection.protocol.is_leaving());
        if let Some(hosts) = hosts {
            if is_given_up && !std::mem::replace(&mut connection.is_given_up, true) {
                hosts.has_closed(connection.opened_for(), Some(number));
            } else if !had_room && connection.protocol.has_room() {
                hosts.release(connection.opened_for(), number);
            }
        }
        if handed.all > 0 {
            self.count_handed(handed, now);
            self.count_sent(taken, now);
            self.count_tls(number, now);
        }
        if is_given_up {
            self.close_unused(number, now);
        }
    }

    /// Gives a connection up, with all of its streams.
    pub(super) fn cut_connection(&mut self, connection: u32, why: &Cut) {
        let Some(cut) = self.connections.at(connection) else { return };
        let owners = cut.protocol.owners();
        self.close(connection, monotonic_ns());
        owners.into_iter().for_each(|owner| self.cut_side(owner, why));
    }

    /// Gives the connections of hosts that are free to the clients that have waited longest.
    pub(super) fn serve_hosts(&mut self, now: u64) {
        while let Some((index, side)) = self.hosts.as_mut().and_then(super::hosts::Hosts::next_waiting) {
            match side {
                Side::Up => self.send_due(index),
                Side::Down if self.clients[index].is_subscribed => self.ask(index, now),
                Side::Down => self.begin(index, now),
            }
        }
    }

    /// Asks on one of the host's connections, when it is the client's turn. One that is not subscribed has not asked
    /// for the first time yet, and will.
    #[cold]
    pub(super) fn ask_over_shared(&mut self, index: usize, now: u64) {
        if !self.clients[index].is_subscribed || !self.obtain_down(index, now) {
            return;
        }
        if !self.ask_now(index, now) {
            self.release(index, Side::Down, true);
        }
    }

    /// Releases a shared posting connection that there is nothing to send on.
    pub(super) fn release_unused_up(&mut self, index: usize) {
        let Some(up) = &self.clients[index].up else { return };
        let is_unused = up.is_connected && !up.posts.is_waiting() && !self.connections.is_blocked(Some(up.stream));
        if self.hosts.is_some() && is_unused {
            self.release(index, Side::Up, true);
        }
    }

    /// Counts what TLS has added to a connection's bytes since this was last asked.
    #[inline]
    pub(super) fn count_tls(&mut self, connection: u32, now: u64) {
        if self.config.dialler.has_tls() {
            self.add_tls(connection, now);
        }
    }

    fn add_tls(&mut self, connection: u32, now: u64) {
        let Some(connection) = self.connections.at(connection) else { return };
        let TlsBytes { read, written } = connection.socket.tls_bytes();
        self.pass_time(now);
        self.windows.tls.read += read;
        self.windows.tls.written += written;
    }

    /// Counts what TLS has added to all connections, at the end of the run.
    pub(super) fn count_all_tls(&mut self) {
        let now = monotonic_ns();
        self.connections.numbers().for_each(|connection| self.count_tls(connection, now));
    }

    fn open(&mut self, owner: Owner, now: u64) -> std::io::Result<Stream> {
        let number = self.client_number(owner.client());
        let Self { config, connections, poll, .. } = self;
        let source = config.dialler.source_of(number, config.clients);
        let stream = connections.open(&config.dialler, source, poll.registry(), owner)?;
        if owner.side == Side::Down
            && self.receipt_sample.takes_next()
            && let Some(connection) = self.connections.at(stream.connection)
        {
            connection.socket.note_receipts();
        }
        // Counted when begun: one that is refused later is among the errors.
        self.recorder.part.connections_opened += u64::from(self.marks.is_load(now));
        Ok(stream)
    }

    /// The client's number in the run, which is also its number as a publisher.
    pub(super) fn client_number(&self, index: usize) -> u32 {
        index as u32 * self.config.lanes + self.config.lane
    }

    /// Sends what was put together on the receiving stream.
    pub(super) fn send_down(&mut self, index: usize, now: u64) {
        let Some(stream) = self.clients[index].down else { return };
        let Some(connection) = self.connections.at(stream.connection) else { return };
        let sent = connection.send(stream.number, &mut self.out);
        self.windows.tally.up += self.out.tally();
        match sent {
            Ok(taken) => {
                self.count_sent(taken, now);
                self.count_tls(stream.connection, now);
            }
            Err(error) => self.cut(index, &Cut::Io(error)),
        }
    }

    /// Gives the receiving connection up, counts why, and plans the next attempt.
    pub(super) fn cut(&mut self, index: usize, why: &Cut) {
        let now = monotonic_ns();
        // That a storm cuts its clients off is no error.
        let is_by_design = self.recorder.returns.are_away(now);
        if why.is_final() && !self.clients[index].is_subscribed {
            self.recorder.refused(why);
        } else if !is_by_design {
            self.recorder.part.errors.add(why);
        }
        if self.clients[index].is_down_resting {
            // It comes back already: the same end has met its posting connection too.
            return;
        }
        if let Some(after_ms) = why.after_ms() {
            self.recorder.returns.told_when(index as u32, after_ms);
        }
        self.recorder.part.connections_cut += u64::from(self.marks.is_load(now) && !is_by_design);
        let due_ns = self.return_ns(index, now).unwrap_or_else(|| now + self.backoff(index));
        self.drop_down(index);
        self.rest(index, due_ns);
    }

    /// Opens the receiving connection again at an instant.
    pub(super) fn rest(&mut self, index: usize, due_ns: u64) {
        self.clients[index].is_down_resting = true;
        self.retries.push(Reverse((due_ns, index, Side::Down)));
    }

    /// After an answer to a poll: a client that is away, or was told when to come back, lets its connection go. Whether it
    /// did.
    pub(super) fn rest_if_away(&mut self, index: usize, now: u64) -> bool {
        let Some(due_ns) = self.return_ns(index, now) else { return false };
        self.drop_down(index);
        self.rest(index, due_ns);
        true
    }

    /// Opens a connection again at once, which the server has closed after a whole answer.
    pub(super) fn reopen(&mut self, index: usize, now: u64) {
        let client = &self.clients[index];
        let stays_subscribed = client.is_subscribed && client.receiver.stays_subscribed();
        self.drop_down(index);
        if stays_subscribed {
            self.clients[index].is_subscribed = true;
            self.subscribed += 1;
        }
        self.connect(index, now);
    }

    fn drop_down(&mut self, index: usize) {
        self.release(index, Side::Down, false);
        let client = &mut self.clients[index];
        if std::mem::take(&mut client.is_subscribed) {
            self.subscribed -= 1;
        }
        if R::UPLINK == Uplink::Frames {
            self.forget_answer(index);
        }
    }

    /// How long a client waits after another failure.
    fn backoff(&mut self, index: usize) -> u64 {
        let attempts = &mut self.clients[index].attempts;
        let full = BACKOFF_NS << (*attempts).min(BACKOFF_DOUBLINGS_MAX);
        *attempts = attempts.saturating_add(1);
        self.rng.u64(full / 2..=full)
    }

    /// Closed loop: an answer that a cut took away is not waited for.
    fn forget_answer(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if self.config.traffic == Traffic::ClosedLoop && std::mem::take(&mut client.is_waiting) {
            client.due = client.sent + 1;
        }
    }

    /// Opens the posting connection; what waits is sent when it stands. Where clients share connections, it is one
    /// of those, for one POST.
    pub(super) fn connect_up(&mut self, index: usize) {
        let now = monotonic_ns();
        let obtained = self.obtain(Owner::new(index, Side::Up), now);
        if matches!(obtained, Ok(None)) {
            return;
        }
        let client = &mut self.clients[index];
        // A shared one is asked for again and again.
        if std::mem::replace(&mut client.was_up, self.hosts.is_none()) {
            self.recorder.part.reconnects += 1;
        }
        match obtained {
            Ok(obtained) => {
                let connection = obtained.and_then(|stream| self.connections.at(stream.connection));
                let is_connected = connection.is_some_and(|connection| connection.is_established());
                let up = |stream| Up { stream, posts: Posts::default(), body: None, is_connected, free_ns: now };
                client.up = obtained.map(up).map(Box::new);
            }
            Err(error) => self.cut_up(index, &Cut::Io(error)),
        }
    }

    /// Gives the posting connection up. One that was free is no error: it is opened again with the next POST.
    pub(super) fn cut_up(&mut self, index: usize, why: &Cut) {
        let up = self.clients[index].up.as_deref();
        let was_free = up.is_some_and(|up| up.is_connected && !up.posts.is_waiting());
        self.release(index, Side::Up, false);
        if was_free && matches!(why, Cut::Closed) {
            return self.send_due(index);
        }
        // What a client has to post before it is subscribed is no publication.
        if why.status().is_some() && !self.clients[index].receiver.cannot_go_on() {
            self.recorder.refused(why);
        } else {
            self.recorder.part.errors.add(why);
        }
        self.forget_answer(index);
        let client = &mut self.clients[index];
        client.was_up = true;
        client.is_up_resting = true;
        let due_ns = monotonic_ns() + self.backoff(index);
        self.retries.push(Reverse((due_ns, index, Side::Up)));
    }

    pub(super) fn retry_due(&mut self, now: u64) {
        for _ in 0..MAX_RETRIES {
            let Some(next) = self.retries.peek_mut().filter(|next| next.0.0 <= now) else { return };
            let Reverse((_, client, side)) = PeekMut::pop(next);
            match side {
                Side::Down => {
                    self.clients[client].is_down_resting = false;
                    self.connect(client, now);
                }
                Side::Up => {
                    self.clients[client].is_up_resting = false;
                    self.send_due(client);
                }
            }
        }
    }
}
