//! What sockets bring.

use super::client::Client;
use super::event_loop::ClientLoop;
use crate::connection::{Head, Incoming, Outgoing, Owner, Protocol, Received, Side};
use crate::cut::Cut;
use crate::record::{Delivery, Recorder};
use crate::socket::Read;
use crate::tally::WayTally;
use crate::transport::{Asking, Event, Hearing, Receiver, Uplink};
use fastrand::Rng;
use pushlab_os::clock::monotonic_ns;
use pushlab_workload::traffic::Traffic;

/// Reads of one socket in one turn; the others are not to wait for a sender that never pauses.
const MAX_READS: usize = 16;

/// What a read brought besides deliveries.
#[derive(Debug, Default)]
struct ReadOutcome {
    is_subscribed: bool,
    answered: Option<bool>,
    has_echo: bool,
    /// Requests put among the bytes to send.
    asked: u32,
}

/// Takes down what one client hears.
struct Heard<'a> {
    recorder: &'a mut Recorder,
    outcome: ReadOutcome,
    payload: u64,
    receiver: u32,
    own_source: u32,
    now_ns: u64,
}

impl Heard<'_> {
    #[inline]
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Message(data) => {
                self.payload += if self.recorder.is_back_ends(data) { 0 } else { data.len() as u64 };
                self.deliver(data);
            }
            Event::Echo(data) => {
                self.outcome.has_echo = true;
                self.payload += data.len() as u64;
                self.deliver(data);
            }
            Event::Subscribed => self.outcome.is_subscribed = true,
            Event::Gap => self.recorder.part.gaps += 1,
            Event::Error { code, text } => self.recorder.part.errors.add(&format_args!("error frame: {code} {text}")),
            Event::Asked => self.outcome.asked += 1,
            Event::Answered { keeps_alive } => self.outcome.answered = Some(keeps_alive),
        }
    }

    #[inline]
    fn deliver(&mut self, data: &[u8]) {
        let Self { receiver, own_source, now_ns, .. } = *self;
        self.recorder.delivered(Delivery { receiver, own_source, data, now_ns });
    }
}

/// The clients that are told what their streams brought, one at a time.
struct Told<'a, R> {
    clients: &'a mut [Client<R>],
    lane: u32,
    lanes: u32,
    side: Side,
    rng: &'a mut Rng,
    out: &'a mut Outgoing,
    tally: &'a mut WayTally,
    heard: Heard<'a>,
}

impl<R: Receiver> Incoming for Told<'_, R> {
    #[inline]
    fn turn_to(&mut self, owner: Owner) {
        self.side = owner.side;
        self.heard.receiver = owner.client() as u32;
        self.heard.own_source = self.heard.receiver * self.lanes + self.lane;
    }

    fn head_bytes(&mut self, size: usize) {
        self.tally.heads += size as u64;
    }

    fn frame_bytes(&mut self, size: usize) {
        self.tally.frames += size as u64;
    }

    fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let Self { clients, side, rng, out, tally, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        match (side, &mut client.up) {
            (Side::Up, Some(up)) => client.receiver.post_head(&mut up.posts, head),
            _ => {
                let sink = &mut |event: Event<'_>| heard.take(event);
                client.receiver.head(head, &mut Hearing { rng, out, texts: &mut tally.texts, sink })
            }
        }
    }

    #[inline]
    fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
        let Self { clients, side, rng, out, tally, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        let sink = &mut |event: Event<'_>| heard.take(event);
        let mut hearing = Hearing { rng, out, texts: &mut tally.texts, sink };
        match (side, &mut client.up) {
            (Side::Up, Some(up)) => client.receiver.post_body(&mut up.posts, data, is_last, &mut hearing),
            _ => client.receiver.body(data, is_last, &mut hearing),
        }
    }

    #[inline]
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
        let Self { clients, rng, out, tally, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        let sink = &mut |event: Event<'_>| heard.take(event);
        client.receiver.frames(bytes, &mut Hearing { rng, out, texts: &mut tally.texts, sink })
    }
}

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    pub(super) fn writable(&mut self, number: u32) {
        let Some(connection) = self.connections.at(number) else { return };
        // The kernel says so with everything that comes, and a shared connection has many owners to tell.
        let is_expected = !connection.is_established() || connection.socket.is_blocked();
        if P::IS_SHARED && !is_expected {
            return;
        }
        connection.note_writable();
        let (is_established, owners) = (connection.is_established(), connection.protocol.owners());
        let flushed_ns = match connection.socket.flush() {
            Ok(0) => None,
            Ok(taken) => {
                let now = monotonic_ns();
                self.count_sent(taken, now);
                Some(now)
            }
            Err(error) => return self.cut_connection(number, &Cut::Io(error)),
        };
        owners.into_iter().for_each(|owner| self.writable_stream(owner, is_established, flushed_ns));
    }

    /// Sends what waits for a stream, whose connection may just have begun to stand, or have got rid of what it held.
    #[inline]
    fn writable_stream(&mut self, owner: Owner, is_established: bool, flushed_ns: Option<u64>) {
        let (index, side) = (owner.client(), owner.side);
        let client = &mut self.clients[index];
        if side == Side::Up
            && is_established
            && let Some(up) = &mut client.up
            && !up.is_connected
        {
            (up.is_connected, up.free_ns) = (true, monotonic_ns());
        }
        if let Some(now) = flushed_ns {
            client.free_ns = now;
        }
        if client.sent < client.due || client.receiver.has_own_post() {
            self.send_due(index);
        } else if side == Side::Up {
            self.release_unused_up(index);
        }
    }

    /// Reads what a connection holds; `turn_ns` is when this turn of the loop began.
    pub(super) fn readable(&mut self, number: u32, is_closing: bool, turn_ns: u64) {
        for _ in 0..MAX_READS {
            let Some(connection) = self.connections.at(number) else { return };
            if !connection.is_heard() {
                return;
            }
            let had_room = P::IS_SHARED && connection.protocol.has_room();
            if self.config.dialler.delays_acks() {
                connection.socket.delay_acks(turn_ns);
            }
            match connection.socket.read(&mut self.buffer) {
                Ok(Read::Blocked) => return,
                Ok(Read::Established) => self.writable(number),
                Ok(Read::Closed) => return self.cut_connection(number, &Cut::Closed),
                Err(error) => return self.cut_connection(number, &Cut::Io(error)),
                Ok(Read::Bytes { held, new, is_drained }) => {
                    let now = monotonic_ns();
                    self.count_received(new, now);
                    self.count_tls(number, now);
                    if let Err(cut) = self.decode(number, held, now) {
                        return self.cut_connection(number, &cut);
                    }
                    if P::IS_SHARED {
                        self.settle(number, had_room, now);
                    }
                    if now >= self.next_publication_ns {
                        self.publish_due(now);
                    }
                    if is_drained && !is_closing {
                        return;
                    }
                }
            }
        }
        self.again.push(number);
    }

    pub(super) fn cut_side(&mut self, owner: Owner, cut: &Cut) {
        let index = owner.client();
        match owner.side {
            Side::Down => self.cut(index, cut),
            Side::Up => {
                self.cut_up(index, cut);
                // One that has been cut already comes back by itself; one of a host may only be waiting its turn.
                let client = &self.clients[index];
                if client.receiver.cannot_go_on() && (client.down.is_some() || self.hosts.is_some()) {
                    self.cut(index, cut);
                }
            }
        }
    }

    /// Decodes what lies at the front of the buffer and acts on it, stream by stream.
    ///
    /// # Errors
    /// When the connection cannot go on.
    #[inline]
    fn decode(&mut self, number: u32, held: usize, now: u64) -> Result<(), Cut> {
        let mut at = 0;
        loop {
            let Self { clients, config, connections, recorder, windows, rng, buffer, out, .. } = self;
            let Some(connection) = connections.at(number) else { return Ok(()) };
            out.clear();
            let (tally, outcome) = (&mut windows.tally.down, ReadOutcome::default());
            let heard = Heard { recorder, outcome, payload: 0, receiver: 0, own_source: 0, now_ns: now };
            let (lane, lanes) = (config.lane, config.lanes);
            let mut told = Told { clients, lane, lanes, side: Side::Down, rng, out, tally, heard };
            let received = connection.protocol.receive(&mut buffer[at..held], &mut told);
            let Heard { outcome, payload, .. } = told.heard;
            tally.payload += payload;
            let Received { consumed, owner, ended, is_freed, has_more } = received?;
            at += consumed;
            if !has_more {
                connection.socket.keep(&buffer[at..held]);
            }
            match (owner, ended) {
                (Some(owner), Some(cut)) => self.cut_side(owner, &cut),
                (Some(owner), None) if is_freed => self.writable_stream(owner, true, Some(now)),
                (Some(owner), None) => self.act(owner, &outcome, now),
                (None, _) => {}
            }
            if !has_more {
                return Ok(());
            }
        }
    }

    /// Sends what a client answers at once, and does what follows from what it heard.
    #[inline]
    fn act(&mut self, owner: Owner, outcome: &ReadOutcome, now: u64) {
        let index = owner.client();
        for _ in 0..outcome.asked {
            self.count_request(index, now);
        }
        if !self.out.is_empty() {
            self.send_down(index, now);
            if self.clients[index].down.is_none() {
                return;
            }
        }
        if self.clients[index].receiver.has_own_post() {
            self.send_due(index);
        }
        match owner.side {
            Side::Down => self.act_on(index, outcome, now),
            Side::Up => self.act_on_post(index, outcome, now),
        }
    }

    #[inline]
    fn act_on(&mut self, index: usize, outcome: &ReadOutcome, now: u64) {
        if outcome.is_subscribed {
            self.subscribe(index, now);
        }
        if outcome.has_echo {
            self.answer(index, now);
        }
        // A WebSocket stays with the client that asks on it.
        let is_shared = self.hosts.is_some() && R::UPLINK == Uplink::Posts;
        if let (Some(keeps_alive), true) = (outcome.answered, is_shared) {
            // Whoever has waited for the connection comes before this client's next question.
            self.release(index, Side::Down, keeps_alive);
            if R::ASKING == Asking::AtOnce || self.clients[index].receiver.has_further_question(&self.config.requests) {
                self.ask(index, now);
            }
            return;
        }
        match outcome.answered {
            Some(false) => self.reopen(index, now),
            Some(true)
                if R::ASKING == Asking::AtOnce
                    || self.clients[index].receiver.has_further_question(&self.config.requests) =>
            {
                self.ask(index, now);
            }
            _ => {}
        }
    }

    #[cold]
    fn subscribe(&mut self, index: usize, now: u64) {
        let client = &mut self.clients[index];
        client.attempts = 0;
        if !std::mem::replace(&mut client.is_subscribed, true) {
            client.free_ns = now;
            self.subscribed += 1;
            self.recorder.part.connect.record(now.saturating_sub(client.opened_ns));
        }
        // What waited for this.
        self.send_due(index);
    }

    fn act_on_post(&mut self, index: usize, outcome: &ReadOutcome, now: u64) {
        let Some(keeps_alive) = outcome.answered else { return };
        let client = &mut self.clients[index];
        client.attempts = 0;
        if let Some(up) = &mut client.up {
            up.free_ns = now;
        }
        if !keeps_alive || self.hosts.is_some() {
            self.release(index, Side::Up, keeps_alive);
        }
        if outcome.has_echo {
            self.answer(index, monotonic_ns());
        } else {
            self.send_due(index);
        }
    }

    /// An echo came back: in a closed loop the next one goes out.
    fn answer(&mut self, index: usize, now: u64) {
        if self.config.traffic == Traffic::ClosedLoop {
            let client = &mut self.clients[index];
            if std::mem::take(&mut client.is_waiting) && now < self.marks.load_end_ns {
                client.due = client.sent + 1;
            }
        }
        self.send_due(index);
    }

    /// Asks for messages, unless an answer is outstanding.
    pub(super) fn ask(&mut self, index: usize, now: u64) {
        match self.clients[index].down {
            Some(stream) if !self.connections.is_blocked(Some(stream)) => drop(self.ask_now(index, now)),
            None if self.hosts.is_some() => self.ask_over_shared(index, now),
            _ => {}
        }
    }

    /// Asks on a connection that need not stand yet; `false` when there is nothing to ask.
    pub(super) fn ask_now(&mut self, index: usize, now: u64) -> bool {
        let number = self.client_number(index);
        self.pass_time(now);
        let client = &mut self.clients[index];
        self.out.clear();
        self.config.requests.turn_to_client(number);
        if !client.receiver.poll(&self.config.requests, &mut self.rng, &mut self.out) {
            return false;
        }
        if R::UPLINK == Uplink::Posts {
            self.count_request(index, now);
        }
        self.send_down(index, now);
        true
    }
}
