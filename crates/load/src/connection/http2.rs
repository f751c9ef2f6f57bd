//! HTTP/2 on a connection, without its socket: many streams together, each of which carries one request after the other
//! (RFC 9113), or a WebSocket (RFC 8441).
//!
//! A stream of a client's is a place here, which lasts from one request to the next; each request has a stream of
//! HTTP/2 of its own, whose owner the place is.

use super::{Head, Incoming, Outgoing, Owner, Protocol, Received};
use crate::cut::Cut;
use pushlab_http2::connection::{Connection, Role, Uses};
use pushlab_http2::event::Event;
use pushlab_http2::frame::Code;
use pushlab_http2::limits::{Limits, Rate};
use pushlab_wire::fields::FieldList;
use std::collections::VecDeque;
use std::time::Duration;

/// Streams that are opened before the peer has said how many it allows: as many as Chromium opens.
const MAX_STREAMS_AT_FIRST: u32 = 100;

/// What the peer may send before it is told that this was used, bytes: so much that nothing ever waits for it. What has
/// come is used at once, so that it costs no memory; what a message may take is limited where it is put together.
const WINDOW_BYTES: u32 = 1 << 30;

/// A server is measured by what it does, and not refused for how often: whoever starts the load has chosen it.
const ANY_RATE: Rate = Rate { burst: u32::MAX, per_second: u32::MAX };

const LIMITS: Limits = Limits {
    // None of the server's own.
    max_streams: 0,
    max_head_bytes: 16 * 1024,
    max_continuations: 8,
    stream_window: WINDOW_BYTES,
    connection_window: WINDOW_BYTES,
    // It is handed over after each request, and the socket keeps what it cannot take.
    max_output_bytes: usize::MAX,
    max_unread_bytes: 256 * 1024,
    resets: ANY_RATE,
    idle_frames: ANY_RATE,
};

/// What is under way on one connection.
#[derive(Debug)]
pub struct Http2 {
    connection: Connection,
    places: Vec<Option<Place>>,
    free: Vec<u32>,
    open: u32,
    /// Places whose request waits for the peer's settings, or until there may be another stream.
    waiting: VecDeque<u32>,
    /// What owners of places are to be told.
    news: VecDeque<(u32, News)>,
    /// Of what was sent, what has been handed over.
    spoken: Uses,
    head: FieldList,
    is_leaving: bool,
}

/// One stream of a client's.
#[derive(Debug)]
struct Place {
    owner: Owner,
    /// The stream of HTTP/2, if one was opened.
    stream: Option<u32>,
    state: State,
    /// A head that waits.
    request: Option<Box<FieldList>>,
    /// What waits behind that, or for the windows.
    unsent: Vec<u8>,
    /// The beginning of what has come on a WebSocket and is not yet whole.
    held: Vec<u8>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing: nothing was asked, or the answer is whole.
    Idle,
    /// The head of an answer.
    Head,
    Body,
    /// The answer to an extended CONNECT.
    Upgrading,
    /// Frames of a WebSocket.
    Upgraded,
}

#[derive(Debug)]
enum News {
    Freed,
    Ended(Cut),
}

impl Default for Http2 {
    fn default() -> Self {
        Self {
            connection: Connection::new(Role::Client, LIMITS),
            places: Vec::new(),
            free: Vec::new(),
            open: 0,
            waiting: VecDeque::new(),
            news: VecDeque::new(),
            spoken: Uses::default(),
            head: FieldList::default(),
            is_leaving: false,
        }
    }
}

impl Place {
    /// Whether our side of the stream ends with what is sent.
    fn is_request(&self) -> bool {
        !matches!(self.state, State::Upgrading | State::Upgraded)
    }

    /// Sends what the windows let pass of what waits and of what is new.
    fn write(&mut self, connection: &mut Connection, bytes: &[u8]) {
        let Some(stream) = self.stream.filter(|_| self.request.is_none()) else {
            return self.unsent.extend_from_slice(bytes);
        };
        if !self.unsent.is_empty() {
            let taken = connection.data(stream, &self.unsent).unwrap_or(self.unsent.len());
            self.unsent.drain(..taken);
        }
        if self.unsent.is_empty() {
            // A stream that has ended takes nothing, and wants nothing more.
            let taken = connection.data(stream, bytes).unwrap_or(bytes.len());
            self.unsent = bytes[taken..].to_vec();
        } else {
            self.unsent.extend_from_slice(bytes);
        }
        if self.unsent.is_empty() && self.is_request() {
            connection.end(stream);
        }
    }
}

impl Protocol for Http2 {
    const IS_SHARED: bool = true;
    type Owners = Vec<Owner>;

    fn outgoing() -> Outgoing {
        Outgoing::of_fields()
    }

    fn open(&mut self, owner: Owner) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let place =
            Place { owner, stream: None, state: State::Idle, request: None, unsent: Vec::new(), held: Vec::new() };
        self.open += 1;
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[number as usize] = Some(place);
        Some(number)
    }

    fn has_room(&self) -> bool {
        let max = if self.connection.has_settings() { self.connection.max_streams() } else { MAX_STREAMS_AT_FIRST };
        !self.is_leaving && self.open < max
    }

    fn owners(&self) -> Vec<Owner> {
        self.places.iter().flatten().map(|place| place.owner).collect()
    }

    fn close(&mut self, number: u32, _: bool, out: &mut Outgoing) -> bool {
        if let Some(place) = self.places.get_mut(number as usize).and_then(Option::take) {
            if let Some(stream) = place.stream {
                // Where both sides have ended it, it is gone by now.
                self.connection.reset(stream, Code::Cancel);
            }
            self.waiting.retain(|&other| other != number);
            self.news.retain(|(other, _)| *other != number);
            self.open -= 1;
            self.free.push(number);
            self.ask_waiting();
        }
        self.speak(out);
        !self.is_leaving && !self.connection.is_over()
    }

    fn has_sent(&mut self, number: u32, out: &mut Outgoing) {
        let Self { connection, places, waiting, .. } = self;
        if let Some(place) = places.get_mut(number as usize).and_then(Option::as_mut) {
            if !out.head.is_empty() {
                if let Some(stream) = place.stream.take() {
                    connection.reset(stream, Code::Cancel);
                }
                let is_upgrade = out.key.is_some();
                place.state = if is_upgrade { State::Upgrading } else { State::Head };
                place.unsent.clear();
                place.held.clear();
                let is_end = !is_upgrade && out.bytes.is_empty();
                // Whether there are WebSockets is known when the settings have come.
                let may_ask = waiting.is_empty() && (!is_upgrade || connection.takes_connect());
                place.stream = may_ask.then(|| connection.open(number, &out.head, is_end).ok()).flatten();
                if place.stream.is_none() {
                    place.request = Some(Box::new(out.head.clone()));
                    waiting.push_back(number);
                }
            }
            place.write(connection, &out.bytes);
        }
        self.advance();
        out.bytes.clear();
        self.speak(out);
    }

    fn is_blocked(&self, number: u32) -> bool {
        let place = self.places.get(number as usize).and_then(Option::as_ref);
        place.is_none_or(|place| place.request.is_some() || !place.unsent.is_empty())
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    fn speak(&mut self, out: &mut Outgoing) {
        let output = self.connection.output();
        if output.is_empty() {
            return;
        }
        let size = output.len();
        out.bytes.extend_from_slice(output);
        self.connection.sent(size);
        let sent = self.connection.counts().sent;
        out.heads += sent.heads - self.spoken.heads;
        out.frames += sent.frames - self.spoken.frames;
        self.spoken = sent;
    }

    fn receive(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<Received, Cut> {
        if let Some((number, news)) = self.news.pop_front() {
            let owner = self.places[number as usize].as_ref().map(|place| place.owner);
            let (ended, is_freed) = match news {
                News::Ended(cut) => (Some(cut), false),
                News::Freed => (None, true),
            };
            return Ok(Received { consumed: 0, owner, ended, is_freed, has_more: true });
        }
        let had_settings = self.connection.has_settings();
        if !had_settings && input.starts_with(b"HTTP/1.") {
            return Err(Cut::NotHttp2);
        }
        let (consumed, owner, ended) = self.receive_frame(input, incoming)?;
        if consumed > 0 {
            if !had_settings && self.connection.has_settings() {
                self.check_settings()?;
            }
            self.ask_waiting();
            self.advance();
        }
        let has_more = consumed > 0 && consumed < input.len() || !self.news.is_empty();
        Ok(Received { consumed, owner, ended, is_freed: false, has_more })
    }
}

/// Bytes, whose stream they were on, and why that cannot go on.
type Frame = (usize, Option<Owner>, Option<Cut>);

impl Http2 {
    fn receive_frame(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<Frame, Cut> {
        let Self { connection, places, head, .. } = self;
        let before = connection.counts().received;
        // What it allows at any rate needs no clock.
        let (consumed, event) = connection.receive(input, Duration::ZERO, head)?;
        let counts = connection.counts().received;
        incoming.head_bytes((counts.heads - before.heads) as usize);
        incoming.frame_bytes((counts.frames - before.frames) as usize);
        let (number, is_end) = match &event {
            Event::Response { owner, is_end, .. } | Event::Data { owner, is_end, .. } => (*owner, *is_end),
            Event::Reset { owner, .. } => (*owner, true),
            Event::GoingAway { last, code } => {
                let (last, code) = (*last, *code);
                self.leave(last, code);
                return Ok((consumed, None, None));
            }
            Event::Nothing | Event::Request { .. } | Event::Pong(_) => return Ok((consumed, None, None)),
        };
        let Some(place) = places.get_mut(number as usize).and_then(Option::as_mut) else {
            return Ok((consumed, None, None));
        };
        incoming.turn_to(place.owner);
        let (stream, mut used) = (place.stream, 0);
        let heard = match event {
            Event::Response { head, .. } => place.hear_head(head, is_end, incoming),
            Event::Data { bytes, .. } => {
                used = bytes.len();
                place.hear_data(bytes, is_end, incoming)
            }
            Event::Reset { code, .. } if place.state != State::Idle => Err(Cut::Reset(code.name())),
            // The answer was whole, and what was left of the request is not wanted (RFC 9113, section 8.1).
            _ => Ok(()),
        };
        let owner = place.owner;
        if let Some(stream) = stream.filter(|_| used > 0) {
            connection.used(stream, used);
        }
        Ok((consumed, Some(owner), heard.err()))
    }

    /// The peer's settings have come.
    fn check_settings(&mut self) -> Result<(), Cut> {
        let wants_websockets = self.places.iter().flatten().any(|place| place.state == State::Upgrading);
        if wants_websockets && !self.connection.takes_connect() {
            return Err(Cut::NoWebSockets);
        }
        // Who has waited for them, and finds no room, is to wait for its turn as everybody does.
        let max = self.connection.max_streams();
        for _ in max..self.open {
            let Some(number) = self.waiting.pop_back() else { break };
            self.news.push_back((number, News::Ended(Cut::TooManyStreams { max })));
        }
        Ok(())
    }

    /// Sends the requests that have waited, as far as there may be streams now.
    fn ask_waiting(&mut self) {
        while let Some(&number) = self.waiting.front() {
            let Some(place) = self.places[number as usize].as_mut() else {
                self.waiting.pop_front();
                continue;
            };
            if !place.is_request() && !self.connection.takes_connect() {
                return;
            }
            let Some(request) = &place.request else { return };
            let is_end = place.is_request() && place.unsent.is_empty();
            let Ok(stream) = self.connection.open(number, request, is_end) else { return };
            (place.stream, place.request) = (Some(stream), None);
            place.write(&mut self.connection, &[]);
            if place.unsent.is_empty() {
                self.news.push_back((number, News::Freed));
            }
            self.waiting.pop_front();
        }
    }

    /// Sends what has waited for windows.
    fn advance(&mut self) {
        while let Some(number) = self.connection.next_ready() {
            let Some(place) = self.places[number as usize].as_mut() else { continue };
            place.write(&mut self.connection, &[]);
            if place.unsent.is_empty() {
                self.news.push_back((number, News::Freed));
            }
        }
    }

    /// The peer looks at no stream above one of them.
    fn leave(&mut self, last: u32, code: Code) {
        self.is_leaving = true;
        self.waiting.clear();
        for (number, place) in self.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let cut = match place.stream {
                Some(stream) if stream <= last => continue,
                // It has nothing under way: it may have it elsewhere.
                None if place.request.is_none() => Cut::Closed,
                _ => Cut::GoingAway(code.name()),
            };
            self.news.push_back((number as u32, News::Ended(cut)));
        }
    }
}

impl Place {
    fn hear_head(&mut self, head: &FieldList, is_end: bool, incoming: &mut impl Incoming) -> Result<(), Cut> {
        let digits = head.get(":status").unwrap_or_default();
        let status = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
        if status < 200 {
            return Ok(());
        }
        let head = Head::of_list(status, head, &[]);
        head.stay()?;
        match self.state {
            State::Upgrading if status == 200 && !is_end => {
                self.state = State::Upgraded;
                incoming.upgraded(&head)?;
                // Whoever waits for the upgrade learns of it.
                incoming.bytes(&mut []).map(drop)
            }
            State::Upgrading => Err(Cut::refused("the extended CONNECT for the WebSocket was", status, &[])),
            _ => {
                self.state = if is_end { State::Idle } else { State::Body };
                incoming.head(&head)?;
                if is_end { incoming.body(&[], true) } else { Ok(()) }
            }
        }
    }

    #[inline]
    fn hear_data(&mut self, bytes: &mut [u8], is_end: bool, incoming: &mut impl Incoming) -> Result<(), Cut> {
        if self.state != State::Upgraded {
            if is_end {
                self.state = State::Idle;
            }
            return incoming.body(bytes, is_end);
        }
        if self.held.is_empty() {
            // Where they lie: what is whole is not copied.
            let consumed = incoming.bytes(bytes)?;
            if consumed < bytes.len() {
                self.held.extend_from_slice(&bytes[consumed..]);
            }
        } else {
            self.held.extend_from_slice(bytes);
            let consumed = incoming.bytes(&mut self.held)?;
            if consumed == self.held.len() {
                self.held = Vec::new();
            } else {
                self.held.drain(..consumed);
            }
        }
        if is_end { Err(Cut::StreamEnded) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fields, Request, Side};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Writes down what comes, by client.
    #[derive(Default)]
    struct Noted {
        turn: usize,
        heard: BTreeMap<usize, String>,
        heads: usize,
        frames: usize,
        data: usize,
    }

    impl Noted {
        fn note(&mut self, text: &str) {
            self.heard.entry(self.turn).or_default().push_str(text);
        }
    }

    impl Incoming for Noted {
        fn turn_to(&mut self, owner: Owner) {
            self.turn = owner.client();
        }

        fn head_bytes(&mut self, size: usize) {
            self.heads += size;
        }

        fn frame_bytes(&mut self, size: usize) {
            self.frames += size;
        }

        fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
            let kind = head.headers("Content-Type").collect::<Vec<_>>().join(" and ");
            self.note(&format!("{} {kind}: ", head.status));
            Ok(())
        }

        fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
            self.data += data.len();
            self.note(str::from_utf8(data).unwrap());
            self.note(if is_last { "." } else { "" });
            Ok(())
        }

        fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut> {
            head.headers("sec-websocket-extensions").for_each(|agreed| self.note(&format!("upgraded {agreed}: ")));
            Ok(())
        }

        fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
            // Three at a time, as frames that come whole or not at all.
            let whole = bytes.len() / 3 * 3;
            self.data += whole;
            self.note(str::from_utf8(&bytes[..whole]).unwrap());
            Ok(whole)
        }
    }

    /// Both ends of a connection. What the server has to say is given to the client when it is asked to hear it.
    struct Ends {
        http2: Http2,
        server: Connection,
        out: Outgoing,
        noted: Noted,
        /// Streams of requests to the server, in their order, and the bytes of all bodies.
        asked: Vec<u32>,
        paths: Vec<String>,
        bodies: usize,
        resets: Vec<Code>,
        /// Who was told that it is free, and why others cannot go on.
        freed: Vec<usize>,
        ended: Vec<(usize, String)>,
        carried: usize,
    }

    impl Ends {
        fn new(limits: Limits) -> Self {
            Self {
                http2: Http2::default(),
                server: Connection::new(Role::Server, limits),
                out: Http2::outgoing(),
                noted: Noted::default(),
                asked: Vec::new(),
                paths: Vec::new(),
                bodies: 0,
                resets: Vec::new(),
                freed: Vec::new(),
                ended: Vec::new(),
                carried: 0,
            }
        }

        fn open(&mut self, client: usize) -> u32 {
            self.http2.open(Owner::new(client, Side::Down)).unwrap()
        }

        /// Has a client ask, and gives the server what that makes.
        fn ask(&mut self, number: u32, body: Option<&[u8]>, is_upgrade: bool) {
            let (fields, target) = (Fields::of([("Connection", "keep-alive"), ("A", "b")]), &["/sub", "?a=1"]);
            let method = if body.is_some() { "POST" } else { "GET" };
            let request =
                Request { method, scheme: "http", authority: "h:1", target, fields: &fields, lines: "", body };
            self.out.clear();
            if is_upgrade {
                self.out.upgrade(&request, [7; 16])
            } else {
                self.out.request(&request)
            }
            self.http2.has_sent(number, &mut self.out);
            self.give();
        }

        fn give(&mut self) {
            let tally = self.out.tally();
            assert!(tally.heads + tally.frames <= tally.all);
            let (mut bytes, mut at, mut head) = (self.out.bytes().to_vec(), 0, FieldList::default());
            self.out.clear();
            while at < bytes.len() {
                let (size, event) = self.server.receive(&mut bytes[at..], Duration::ZERO, &mut head).unwrap();
                at += size;
                let mut used = None;
                match event {
                    Event::Request { stream, head, .. } => {
                        self.asked.push(stream);
                        assert_eq!((head.get("a"), head.get("connection")), (Some(&b"b"[..]), None));
                        let path = head.get(":path").unwrap();
                        self.paths.push(String::from_utf8(path.to_vec()).unwrap());
                        used = Some((stream, 0));
                    }
                    Event::Data { owner, bytes, .. } => {
                        self.bodies += bytes.len();
                        used = Some((owner, bytes.len()));
                    }
                    Event::Reset { code, .. } => self.resets.push(code),
                    _ => {}
                }
                if let Some((stream, size)) = used {
                    self.server.set_owner(stream, stream);
                    self.server.used(stream, size);
                }
            }
        }

        fn answer(&mut self, place: usize, status: &str, body: &str, is_end: bool) {
            let mut head = FieldList::default();
            head.push(b":status", status.as_bytes());
            head.push(b"content-type", b"t");
            self.server.head(self.asked[place], &head, false);
            self.say(place, body, is_end);
        }

        fn say(&mut self, place: usize, body: &str, is_end: bool) {
            assert_eq!(self.server.data(self.asked[place], body.as_bytes()), Some(body.len()));
            if is_end {
                self.server.end(self.asked[place]);
            }
        }

        /// The client hears what the server has said, in pieces of these sizes (the last repeats), and answers.
        fn hear(&mut self, cuts: &[usize]) -> Result<(), Cut> {
            let bytes = self.server.output().to_vec();
            self.server.sent(bytes.len());
            self.hear_bytes(&bytes, cuts)
        }

        fn hear_bytes(&mut self, bytes: &[u8], cuts: &[usize]) -> Result<(), Cut> {
            self.carried += bytes.len();
            let (mut held, mut start) = (Vec::new(), 0);
            for i in 0.. {
                let end = (start + cuts[i.min(cuts.len() - 1)]).min(bytes.len());
                held.extend_from_slice(&bytes[start..end]);
                start = end;
                loop {
                    let Received { consumed, owner, ended, is_freed, has_more } =
                        self.http2.receive(&mut held, &mut self.noted)?;
                    held.drain(..consumed);
                    if let (Some(owner), Some(cut)) = (owner, ended) {
                        self.ended.push((owner.client(), cut.to_string()));
                    }
                    if let (Some(owner), true) = (owner, is_freed) {
                        self.freed.push(owner.client());
                    }
                    if !has_more {
                        break;
                    }
                }
                if start == bytes.len() {
                    break;
                }
            }
            assert!(held.is_empty());
            self.out.clear();
            self.http2.speak(&mut self.out);
            self.give();
            Ok(())
        }

        fn heard(&self, client: usize) -> &str {
            self.noted.heard.get(&client).map_or("", String::as_str)
        }
    }

    proptest! {
        #[test]
        fn any_split_means_the_same(cuts in prop::collection::vec(1usize..60, 1..9)) {
            let mut ends = Ends::new(Limits::default());
            let numbers = [5, 6, 7].map(|client| ends.open(client));
            ends.ask(numbers[0], None, false);
            ends.ask(numbers[1], Some(b"{}"), false);
            ends.ask(numbers[2], None, true);
            prop_assert_eq!((&ends.paths[..], ends.bodies), (&["/sub?a=1".to_owned(), "/sub?a=1".to_owned()][..], 2));
            ends.hear(&cuts).unwrap();
            prop_assert_eq!((ends.asked.len(), &ends.freed[..]), (3, &[7][..]), "the settings have come");
            ends.answer(0, "200", "abc", false);
            ends.answer(1, "404", "", true);
            ends.answer(2, "200", "0123", false);
            ends.say(0, "def", true);
            ends.say(2, "45678", false);
            ends.hear(&cuts).unwrap();
            prop_assert_eq!([5, 6, 7].map(|client| ends.heard(client)), ["200 t: abcdef.", "404 t: .", "012345678"]);
            let Noted { heads, frames, data, .. } = ends.noted;
            prop_assert_eq!(heads + frames + data, ends.carried, "each byte has one use");
            prop_assert!(ends.ended.is_empty() && ends.resets.is_empty());
            // The same place asks again, on another stream.
            ends.ask(numbers[0], None, false);
            prop_assert_eq!(ends.asked.len(), 4);
        }
    }

    #[test]
    fn what_windows_hold_back_is_sent_when_they_open() {
        let mut ends = Ends::new(Limits::default());
        ends.hear(&[999]).unwrap();
        let numbers = [1, 2].map(|client| ends.open(client));
        let body = vec![b'x'; 300_000];
        numbers.iter().for_each(|&number| ends.ask(number, Some(&body), false));
        assert!(numbers.iter().all(|&number| ends.http2.is_blocked(number)) && ends.bodies < 600_000);
        for _ in 0..40 {
            ends.hear(&[999]).unwrap();
        }
        ends.freed.sort_unstable();
        assert_eq!((ends.bodies, &ends.freed[..]), (600_000, &[1, 2][..]));
        assert!(!numbers.iter().any(|&number| ends.http2.is_blocked(number)));
        ends.answer(0, "204", "", true);
        ends.hear(&[999]).unwrap();
        assert_eq!((ends.heard(1), ends.resets.len()), ("204 t: .", 0), "the requests have been ended");
    }

    #[test]
    fn a_client_that_leaves_takes_nobody_with_it() {
        let mut ends = Ends::new(Limits::default());
        let numbers: Vec<u32> = (0..12).map(|client| ends.open(client)).collect();
        numbers.iter().for_each(|&number| ends.ask(number, None, false));
        (0..12).for_each(|place| ends.answer(place, "200", "a", false));
        ends.hear(&[7]).unwrap();
        for &number in &numbers[..6] {
            ends.out.clear();
            assert!(ends.http2.close(number, false, &mut ends.out));
            // What comes for them meanwhile is nobody's.
            ends.say(number as usize, "late", false);
            ends.give();
        }
        assert_eq!((&ends.resets[..], ends.server.open_streams()), (&[Code::Cancel; 6][..], 6));
        (6..12).for_each(|place| ends.say(place, "b", false));
        let newcomer = ends.open(99);
        ends.ask(newcomer, None, false);
        ends.answer(12, "200", "c", true);
        ends.hear(&[7]).unwrap();
        let heard: Vec<&str> = (0..12).map(|client| ends.heard(client)).collect();
        assert_eq!(heard, [["200 t: a"; 6], ["200 t: ab"; 6]].concat());
        assert_eq!((ends.heard(99), ends.http2.owners().len()), ("200 t: c.", 7));
    }

    #[test]
    fn a_stream_that_is_reset_ends_alone() {
        let mut ends = Ends::new(Limits::default());
        let numbers = [0, 1].map(|client| ends.open(client));
        numbers.iter().for_each(|&number| ends.ask(number, None, false));
        ends.server.reset(ends.asked[0], Code::RefusedStream);
        ends.answer(1, "200", "a", false);
        ends.hear(&[999]).unwrap();
        assert_eq!(ends.ended, [(0, "the server reset the stream: REFUSED_STREAM".to_owned())]);
        assert_eq!(ends.heard(1), "200 t: a");
        // An answer that is whole is none the less for what was not wanted of its request.
        let number = ends.open(2);
        ends.ask(number, Some(&[b'x'; 100_000]), false);
        ends.answer(2, "413", "b", true);
        ends.server.reset(ends.asked[2], Code::NoError);
        ends.hear(&[999]).unwrap();
        assert_eq!((ends.heard(2), ends.ended.len()), ("413 t: b.", 1));
    }

    #[test]
    fn a_server_that_leaves_lets_go_on_what_it_has_looked_at() {
        let mut ends = Ends::new(Limits::default());
        let numbers = [0, 1, 2].map(|client| ends.open(client));
        ends.ask(numbers[0], None, false);
        ends.hear(&[999]).unwrap();
        // This one is on its way.
        let (asked, answered) = (ends.asked.len(), ends.asked[0]);
        ends.ask(numbers[1], None, false);
        let mut goodbye = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
        goodbye.extend_from_slice(&[answered.to_be_bytes(), [0; 4]].concat());
        ends.hear_bytes(&goodbye, &[3]).unwrap();
        assert_eq!((asked, ends.http2.is_leaving(), ends.http2.has_room()), (1, true, false));
        let [second, third] = [&ends.ended[0], &ends.ended[1]];
        assert_eq!((second.0, third.0), (1, 2));
        assert!(second.1.contains("GOAWAY (NO_ERROR)") && third.1 == Cut::Closed.to_string(), "{:?}", ends.ended);
        ends.answer(0, "200", "a", true);
        ends.hear(&[999]).unwrap();
        assert_eq!((ends.heard(0), ends.ended.len()), ("200 t: a.", 2));
        assert!(!ends.http2.close(numbers[0], true, &mut ends.out), "nothing can follow on it");
    }

    #[test]
    fn more_than_the_server_allows_are_told_so() {
        let mut ends = Ends::new(Limits { max_streams: 2, ..Limits::default() });
        let numbers: Vec<u32> = (0..5).map(|client| ends.open(client)).collect();
        numbers.iter().for_each(|&number| ends.ask(number, None, true));
        ends.hear(&[999]).unwrap();
        let ended: Vec<usize> = ends.ended.iter().map(|(client, _)| *client).collect();
        assert_eq!((ended, ends.asked.len()), (vec![4, 3, 2], 2));
        assert_eq!(
            ends.ended[0].1,
            "the server allows 2 concurrent streams on an HTTP/2 connection, too few for the clients that share it: lower \
             clients_per_host or raise the server's limit"
        );
        for &number in &numbers[2..] {
            ends.http2.close(number, false, &mut ends.out);
        }
        assert!(!ends.http2.has_room());
        ends.http2.close(numbers[0], false, &mut ends.out);
        assert!(ends.http2.has_room());
    }

    #[test]
    fn other_servers_are_told_apart() {
        const NO_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let asked = |is_upgrade| {
            let mut ends = Ends::new(Limits::default());
            let number = ends.open(0);
            ends.ask(number, None, is_upgrade);
            ends
        };
        assert!(matches!(asked(true).hear_bytes(&NO_SETTINGS, &[99]), Err(Cut::NoWebSockets)));
        assert!(asked(false).hear_bytes(&NO_SETTINGS, &[99]).is_ok());
        let refused = asked(false).hear_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n", &[99]);
        assert!(matches!(refused, Err(Cut::NotHttp2)));
        assert!(matches!(asked(false).hear_bytes(&[9; 40], &[99]), Err(Cut::Http2(_))));
        let mut ends = asked(true);
        ends.hear(&[99]).unwrap();
        ends.answer(0, "503", "", false);
        ends.hear(&[99]).unwrap();
        assert_eq!(ends.ended, [(0, "the extended CONNECT for the WebSocket was answered 503".to_owned())]);
    }
}
