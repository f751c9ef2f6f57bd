//! What sockets bring.

use super::client::Client;
use super::compression::{Before, CompressedBody, Compression, Ratio};
use super::event_loop::ClientLoop;
use crate::connection::{Head, Incoming, Outgoing, Owner, Protocol, Received, Side};
use crate::cut::Cut;
use crate::record::{Delivery, Recorder};
use crate::socket::Read;
use crate::transport::{Asking, Event, Hearing, Receiver, Uplink};
use fastrand::Rng;
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::websocket::permessage_deflate::Agreement;
use pushlab_workload::tally::WayTally;
use pushlab_workload::traffic::Traffic;

/// Reads of one socket in one turn; the others are not to wait for a sender that never pauses.
const MAX_READS: usize = 16;

/// What a read brought besides deliveries.
#[derive(Debug, Default)]
struct ReadOutcome {
    is_subscribed: bool,
    answered: Option<bool>,
    has_echo: bool,
    /// Whether there was a message that the client had not been brought before, or word that some are gone.
    has_news: bool,
    /// Requests put among the bytes to send.
    asked: u32,
}

/// Takes down what one client hears.
struct Heard<'a> {
    recorder: &'a mut Recorder,
    /// Whether the client sends anything that can be refused.
    publishes: bool,
    outcome: ReadOutcome,
    payload: u64,
    /// What the counts were before a compressed message, and what it was compressed to.
    compressed: Option<(Before, Ratio)>,
    receiver: u32,
    own_source: u32,
    now_ns: u64,
}

impl<'a> Heard<'a> {
    /// Nothing yet; each stream says whose it is.
    #[inline]
    fn new(recorder: &'a mut Recorder, publishes: bool, now_ns: u64) -> Self {
        let outcome = ReadOutcome::default();
        Self { recorder, publishes, outcome, payload: 0, compressed: None, receiver: 0, own_source: 0, now_ns }
    }

    #[inline]
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Message(data) | Event::Relayed(data) => {
                let repeated = self.recorder.repeated;
                self.payload += if self.recorder.is_back_ends(data) { 0 } else { data.len() as u64 };
                self.deliver(data, matches!(event, Event::Relayed(_)));
                self.outcome.has_news |= self.recorder.repeated == repeated;
            }
            Event::Echo(data) => {
                self.payload += data.len() as u64;
                // Somebody else's is none, nor is an earlier one again.
                self.outcome.has_echo |= self.deliver(data, false);
            }
            Event::Subscribed => self.outcome.is_subscribed = true,
            Event::Gap => {
                self.outcome.has_news = true;
                self.recorder.told_gap(self.receiver, self.now_ns);
            }
            Event::ComeBack { after_ms } => self.recorder.returns.told_when(self.receiver, after_ms),
            Event::Error { code, text } => self.complaint(code, text),
            Event::Asked => self.outcome.asked += 1,
            Event::Answered { keeps_alive } => self.outcome.answered = Some(keeps_alive),
            Event::Compressed { sent, inflated } => {
                let ratio = Ratio { sent: sent as u64, inflated: inflated as u64 };
                self.compressed = Some((self.before(0), ratio));
            }
            Event::Uncompressed => {
                if let Some((before, ratio)) = self.compressed.take() {
                    ratio.rescale(&mut self.payload, before.payload);
                    self.count_compressed(before);
                }
            }
        }
    }

    /// An error frame: of what the client has published, unless it says why the connection ends.
    #[cold]
    fn complaint(&mut self, code: &str, text: &str) {
        use ErrorCode::{Disconnected, Draining, TokenExpired};
        let why = format_args!("error frame: {code} {text}");
        match ErrorCode::from_name(code) {
            Some(Disconnected | Draining | TokenExpired) => self.recorder.part.errors.add(&why),
            _ if !self.publishes => self.recorder.part.errors.add(&why),
            _ => self.recorder.refused(&why),
        }
    }

    /// Counts as they are; whoever has one of texts brings it.
    fn before(&self, texts: u64) -> Before {
        Before { texts, payload: self.payload, delivered: self.recorder.part.delivered }
    }

    /// What was heard since then was compressed.
    fn count_compressed(&mut self, before: Before) {
        let part = &mut self.recorder.part;
        part.delivered_compressed += part.delivered - before.delivered;
    }

    #[inline]
    fn deliver(&mut self, data: &[u8], is_relayed: bool) -> bool {
        let Self { receiver, own_source, now_ns, .. } = *self;
        self.recorder.delivered(Delivery { receiver, own_source, data, is_relayed, now_ns })
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
    compression: &'a mut Compression,
    heard: Heard<'a>,
}

impl<R: Receiver> Told<'_, R> {
    /// A piece of a body as it is, or as it was before it was compressed.
    #[inline]
    fn plain_body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
        let Self { clients, side, rng, out, tally, compression, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        let sink = &mut |event: Event<'_>| heard.take(event);
        let inflater = &mut compression.inflater;
        let mut hearing = Hearing { rng, inflater, out, texts: &mut tally.texts, sink };
        match (side, &mut client.up) {
            (Side::Up, Some(up)) => client.receiver.post_body(&mut up.posts, data, is_last, &mut hearing),
            _ => client.receiver.body(data, is_last, &mut hearing),
        }
    }

    /// A piece of a compressed body.
    #[cold]
    fn compressed_body(&mut self, mut body: Box<CompressedBody>, data: &[u8], is_last: bool) -> Result<(), Cut> {
        let before = self.heard.before(self.tally.texts);
        let mut room = self.compression.take_room();
        let decoded = body.decoder.decode(data, &mut room, |piece| self.plain_body(piece, false));
        self.compression.give_room(room);
        decoded?;
        if is_last {
            body.check_end()?;
            self.plain_body(&[], true)?;
        }
        body.rescale(&mut self.tally.texts, &mut self.heard.payload, before);
        self.heard.count_compressed(before);
        if is_last {
            self.compression.keep(body);
        } else {
            let client = &mut self.clients[self.heard.receiver as usize];
            *client.body_of(self.side) = Some(body);
        }
        Ok(())
    }
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
        let Self { clients, side, rng, out, tally, compression, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        match (&side, &mut client.up) {
            (Side::Up, Some(up)) => client.receiver.post_head(&mut up.posts, head)?,
            _ => {
                let sink = &mut |event: Event<'_>| heard.take(event);
                let inflater = &mut compression.inflater;
                client.receiver.head(head, &mut Hearing { rng, inflater, out, texts: &mut tally.texts, sink })?;
            }
        }
        *client.body_of(*side) = compression.body(head)?;
        Ok(())
    }

    #[inline]
    fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
        // Most are plain, and then nothing is written.
        let under_way = self.clients[self.heard.receiver as usize].body_of(self.side);
        match under_way.is_some().then(|| under_way.take()).flatten() {
            None => self.plain_body(data, is_last),
            Some(body) => self.compressed_body(body, data, is_last),
        }
    }

    fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let fields: Vec<&str> = head.headers("sec-websocket-extensions").collect();
        let is_offered = self.compression.from_bytes.is_some();
        if let Some(agreement) = Agreement::of(fields.into_iter(), is_offered)? {
            self.clients[self.heard.receiver as usize].receiver.agree(agreement);
        }
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
        let Self { clients, rng, out, tally, compression, heard, .. } = self;
        let client = &mut clients[heard.receiver as usize];
        let sink = &mut |event: Event<'_>| heard.take(event);
        let inflater = &mut compression.inflater;
        client.receiver.frames(bytes, &mut Hearing { rng, inflater, out, texts: &mut tally.texts, sink })
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
                    self.recorder.waited_ns = connection.socket.waited_ns();
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
            let Self { clients, config, connections, recorder, windows, rng, buffer, out, compression, .. } = self;
            let Some(connection) = connections.at(number) else { return Ok(()) };
            out.clear();
            let tally = &mut windows.tally.down;
            let heard = Heard::new(recorder, config.traffic != Traffic::Silent, now);
            let (lane, lanes) = (config.lane, config.lanes);
            let mut told = Told { clients, lane, lanes, side: Side::Down, rng, out, tally, compression, heard };
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
        if R::ASKING != Asking::Never && outcome.answered.is_some() {
            self.count_poll(outcome.has_news, now);
        }
        if outcome.is_subscribed {
            self.subscribe(index, now);
        }
        if outcome.has_echo {
            self.answer(index, now);
        }
        if outcome.answered.is_some() && self.rest_if_away(index, now) {
            return;
        }
        let answered = outcome.answered.map(|keeps_alive| keeps_alive && self.config.requests.keep_alive());
        // A WebSocket stays with the client that asks on it.
        let is_shared = self.hosts.is_some() && R::UPLINK == Uplink::Posts;
        if let (Some(keeps_alive), true) = (answered, is_shared) {
            // Whoever has waited for the connection comes before this client's next question.
            self.release(index, Side::Down, keeps_alive);
            if R::ASKING == Asking::AtOnce || self.clients[index].receiver.has_further_question(&self.config.requests) {
                self.ask(index, now);
            }
            return;
        }
        match answered {
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
            if let Some(after_ns) = self.recorder.returns.is_back(index as u32, now) {
                self.recorder.part.back.record(after_ns);
            }
            self.recorder.part.connect.record(now.saturating_sub(client.opened_ns));
        }
        // What waited for this.
        self.send_due(index);
    }

    fn act_on_post(&mut self, index: usize, outcome: &ReadOutcome, now: u64) {
        let Some(keeps_alive) = outcome.answered else { return };
        let keeps_alive = keeps_alive && self.config.requests.keep_alive();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::LoopConfig;
    use crate::connection::Http1;
    use crate::run_state::RunState;
    use crate::transport::Requests;
    use crate::transport::polling::Polling;
    use crate::transport::sse::Sse;
    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use pushlab_wire::stamp::Stamp;
    use pushlab_workload::audience::Audience;
    use pushlab_workload::check::Schedule;
    use pushlab_workload::plan::Target;
    use pushlab_workload::timeline::Timeline;
    use std::io::Write as _;
    use std::sync::Arc;

    const DATA: &str = r#"{"id":17,"name":"sensor","unit":"degrees","values":[1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"#;

    /// What a client counts of an answer that comes in pieces of the given sizes (the last repeats), and why it stopped.
    #[derive(Debug, PartialEq)]
    struct Counted {
        unknown: u64,
        texts: u64,
        payload: u64,
        why: Option<String>,
    }

    fn hear<R: Receiver>(answer: &[u8], cuts: &[usize], asks: Option<u32>) -> Counted {
        let config = LoopConfig::silent();
        let mut recorder = Recorder::new(1, &config, Arc::new(RunState::new(0, 1)));
        let mut clients = [Client::<R>::new()];
        let (mut rng, mut out, mut tally) = (fastrand::Rng::with_seed(1), Outgoing::default(), WayTally::default());
        let (mut http1, mut compression) = (Http1::default(), Compression::new(asks));
        let requests = Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 25);
        let _ = http1.open(Owner::new(0, Side::Down));
        clients[0].receiver.open(&requests, &mut rng, &mut out);
        http1.has_sent(0, &mut out);
        let (mut held, mut payload, mut why) = (Vec::new(), 0, None);
        let mut sizes = cuts.iter().chain(cuts.last().into_iter().cycle());
        let mut rest = answer;
        while !rest.is_empty() && why.is_none() {
            let (piece, others) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            (rest, held) = (others, [held, piece.to_vec()].concat());
            let heard = Heard::new(&mut recorder, false, 0);
            let (rng, out, tally, compression) = (&mut rng, &mut out, &mut tally, &mut compression);
            let clients = &mut clients;
            let mut told = Told { clients, lane: 0, lanes: 1, side: Side::Down, rng, out, tally, compression, heard };
            match http1.receive(&mut held, &mut told) {
                Ok(received) => drop(held.drain(..received.consumed)),
                Err(cut) => why = Some(cut.to_string()),
            }
            payload += told.heard.payload;
        }
        Counted { unknown: recorder.part.unknown, texts: tally.texts, payload, why }
    }

    /// A body in gzip, each of its parts flushed, and whether it ends as gzip does.
    fn gzip(parts: &[String], is_ended: bool) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        for part in parts {
            encoder.write_all(part.as_bytes()).unwrap();
            encoder.flush().unwrap();
        }
        if is_ended { encoder.finish().unwrap() } else { encoder.get_ref().clone() }
    }

    fn answer(fields: &str, body: &[u8]) -> Vec<u8> {
        [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat()
    }

    proptest! {
        #[test]
        fn a_compressed_stream_is_heard_whatever_the_split(cuts in prop::collection::vec(1usize..40, 1..9), messages in 1usize..20) {
            let events: Vec<String> = (0..messages).map(|n| format!("id:e.{n}\ndata:[\"msg\",\"a\",{DATA}]\n\n")).collect();
            let body = gzip(&events, false);
            let counted = hear::<Sse>(&answer("Content-Encoding: gzip\r\n", &body), &cuts, Some(1));
            prop_assert_eq!((counted.unknown, counted.why), (messages as u64, None));
            // Each use has its share of what was sent.
            let (sent, plain) = (body.len() as u64, events.concat().len() as u64);
            let (payload, texts) = ((messages * DATA.len()) as u64, (messages * (DATA.len() + "[\"msg\",\"a\",]".len())) as u64);
            let whole = hear::<Sse>(&answer("Content-Encoding: gzip\r\n", &body), &[100_000], Some(1));
            prop_assert_eq!((whole.payload, whole.texts), (payload * sent / plain, texts * sent / plain));
            // The body so far decides, which may have been compressed less: it is not much, and never less.
            prop_assert!(counted.payload >= whole.payload && counted.payload < counted.texts && counted.texts <= sent);
        }

        #[test]
        fn a_compressed_answer_is_heard_whatever_the_split(cuts in prop::collection::vec(1usize..40, 1..9)) {
            let reply = format!("[[\"msg\",\"a\",\"e.5\",{DATA}],[\"cursor\",\"e.7\"]]");
            let body = gzip(std::slice::from_ref(&reply), true);
            let fields = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", body.len());
            let counted = hear::<Polling>(&answer(&fields, &body), &cuts, Some(1));
            // All that a reply has is text.
            let payload = (DATA.len() * body.len() / reply.len()) as u64;
            prop_assert_eq!(counted, Counted { unknown: 1, texts: body.len() as u64, payload, why: None });
        }
    }

    #[test]
    fn an_echo_is_the_senders_own_and_comes_once() {
        let config = LoopConfig { audience: Audience::Own, ..LoopConfig::silent() };
        let mut recorder = Recorder::new(1, &config, Arc::new(RunState::new(0, 1)));
        let schedule = Some(Schedule::Closed { load_ns: 0, load_end_ns: 1_000_000, share: None });
        let (load_ns, load_end_ns) = (0, 1_000_000);
        recorder.set_timeline(&Timeline {
            idle_ns: 0,
            warm_up_ns: 0,
            load_ns,
            load_end_ns,
            schedule,
            upstream: None,
            polls: None,
        });
        let mut has_echo = |source| {
            let data = Stamp { source, sequence: 0, instant_ns: 100 }.encode();
            let recorder = &mut recorder;
            let (publishes, own_source) = (true, 5);
            let mut heard = Heard { own_source, ..Heard::new(recorder, publishes, 200) };
            heard.take(Event::Echo(&data));
            heard.outcome.has_echo
        };
        assert_eq!([4, 5, 5].map(&mut has_echo), [false, true, false]);
        assert_eq!((recorder.part.delivered, recorder.part.misdirected, recorder.part.duplicated), (1, 1, 1));
    }

    #[test]
    fn an_error_frame_refuses_what_was_published_but_for_the_end_of_a_connection() {
        let mut recorder = Recorder::new(1, &LoopConfig::silent(), Arc::new(RunState::new(0, 1)));
        for (publishes, code) in [(true, "forbidden"), (true, "complaint"), (true, "draining"), (false, "forbidden")] {
            let recorder = &mut recorder;
            let mut heard = Heard::new(recorder, publishes, 0);
            heard.take(Event::Error { code, text: "no" });
        }
        let refused: Vec<_> = recorder.part.refused.into_sorted().into_iter().map(|refused| refused.error).collect();
        assert_eq!(refused, ["error frame: complaint no", "error frame: forbidden no"]);
        assert_eq!((recorder.refused_total, recorder.part.errors.into_sorted().len()), (2, 3));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let why = |fields: &str, body: &[u8], asks| hear::<Polling>(&answer(fields, body), &[999], asks).why.unwrap();
        let other = why("Content-Encoding: br\r\n", b"x", Some(1));
        assert_eq!(other, "unsupported Content-Encoding \"br\": expected gzip, once, or none");
        let unasked = why("Content-Encoding: gzip\r\n", b"x", None);
        assert!(unasked.starts_with("the server compressed a response (Content-Encoding: gzip) although"), "{unasked}");
        assert_eq!(why("Content-Encoding: gzip\r\n", b"x", Some(1)), "a body with Content-Encoding: gzip is not gzip");
        let cut = gzip(&["[[\"cursor\",\"e.7\"]]".to_owned()], false);
        let fields = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", cut.len());
        assert_eq!(why(&fields, &cut, Some(1)), "a gzip body is truncated");
        // 17 MiB of nothing in 17 KiB.
        let bomb = gzip(&["[".repeat(17 << 20)], true);
        let fields = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", bomb.len());
        assert!(bomb.len() < 100_000);
        let too_large = hear::<Polling>(&answer(&fields, &bomb), &[999_999], Some(1)).why;
        assert_eq!(too_large.as_deref(), Some("a reply of more than 16777216 bytes"));
    }
}
