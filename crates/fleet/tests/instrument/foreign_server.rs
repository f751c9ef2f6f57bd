//! A server of others' dialects in its simplest form, with troubles made to order: `bare` over every transport, and a
//! hub of SignalR's over an event stream, whose clients have to post before they are subscribed.

use pushlab_wire::http::{BodyKind, Headers, parse_request, split_target};
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, handshake};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What ends a record of the hub's.
const END: char = '\u{1e}';

/// What goes wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    Nothing,
    /// Every connection that receives is cut after so many publications.
    CutAfter(usize),
    /// The streams of the first so many that join are cut instead. One in three is never answered, one when as many
    /// others are there, and one is answered 500 when it has closed its stream.
    CutJoining(usize),
    /// The first so many that join are answered 500.
    RefuseJoining(usize),
    /// A publication is answered after the client was given what it must answer by another POST.
    PingFirst,
    /// No poll's connection is kept.
    ClosePolls,
}

pub struct ForeignServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    trouble: Trouble,
    state: Mutex<State>,
    changed: Condvar,
}

/// What has come to pass so far.
#[derive(Debug, Default)]
pub struct State {
    /// What requests called it.
    pub hosts: BTreeSet<String>,
    /// The data of all publications.
    pub published: Vec<String>,
    /// Deliveries that were handed to connections.
    pub handed: usize,
    /// Publications of clients that were never subscribed, or had not been told so.
    pub early: usize,
    /// Joins that were refused or cut.
    pub troubled: usize,
    /// Times that the hub has asked a client for a ping, and pings that came.
    pub pings: [usize; 2],
    /// Connections that receive without being asked each time. A hub's token is the place here.
    pub receivers: Vec<Receiver>,
    cuts: usize,
}

#[derive(Debug, Default)]
pub struct Receiver {
    /// Publications since its connection was closed.
    pub late: usize,
    is_hub: bool,
    is_open: bool,
    is_joined: bool,
    /// Cut by the server; what waits is written before.
    is_cut: bool,
    is_closed: bool,
    waiting: Vec<String>,
    /// Texts that are not written yet.
    unwritten: usize,
}

impl Receiver {
    fn push(&mut self, text: String) {
        self.waiting.push(text);
        self.unwritten += 1;
    }
}

impl ForeignServer {
    pub fn start(trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { trouble, state: Mutex::default(), changed: Condvar::new() });
        let server = Self { address, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, stream) = (Arc::clone(&shared), stream.unwrap());
                std::thread::spawn(move || Connection::new(stream, shared).serve());
            }
        });
        server
    }

    pub fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }
}

impl Shared {
    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let result = act(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        result
    }

    fn wait_while(&self, is_so: impl Fn(&State) -> bool) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| is_so(state)).unwrap());
    }

    fn publish(&self, data: &str) {
        self.change(|state| {
            state.published.push(data.to_owned());
            for receiver in state.receivers.iter_mut().filter(|receiver| receiver.is_joined && !receiver.is_cut) {
                state.handed += 1;
                receiver.push(match receiver.is_hub {
                    true => format!("{{\"type\":1,\"target\":\"msg\",\"arguments\":[{data}]}}{END}"),
                    false => data.to_owned(),
                });
            }
            if self.trouble == Trouble::CutAfter(state.published.len()) {
                state.cuts += 1;
                state.receivers.iter_mut().for_each(|receiver| receiver.is_cut = true);
            }
        });
    }

    /// Writes what a receiver is to get, until it is cut.
    fn deliver(&self, place: usize, stream: &mut TcpStream, encode: fn(&str) -> Vec<u8>) -> Option<()> {
        loop {
            let is_idle = |state: &State| {
                let Receiver { waiting, is_cut, is_closed, .. } = &state.receivers[place];
                waiting.is_empty() && !is_cut && !is_closed
            };
            self.wait_while(is_idle);
            let texts = std::mem::take(&mut self.state.lock().unwrap().receivers[place].waiting);
            if texts.is_empty() {
                // What the client has sent before it learns of the cut is still read.
                return stream.shutdown(Shutdown::Write).ok();
            }
            for text in texts {
                stream.write_all(&encode(&text)).ok()?;
                self.change(|state| state.receivers[place].unwritten -= 1);
            }
        }
    }
}

struct Connection {
    stream: TcpStream,
    shared: Arc<Shared>,
    held: Vec<u8>,
    /// Cuts before it was opened.
    cuts: usize,
    /// Whether what the client sends is nobody's.
    is_mute: bool,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        stream.set_nodelay(true).unwrap();
        let cuts = shared.state.lock().unwrap().cuts;
        Self { stream, shared, held: Vec::new(), cuts, is_mute: false }
    }

    fn read_more(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let size = self.stream.read(&mut buffer).ok().filter(|&size| size > 0)?;
        self.held.extend_from_slice(&buffer[..size]);
        Some(())
    }

    fn serve(mut self) -> Option<()> {
        loop {
            let (method, target, body, accept) = self.request()?;
            let (path, parameters) = split_target(&target);
            let parameters: Vec<_> = parameters.collect();
            let number = |name: &str| {
                let (_, value) = parameters.iter().find(|(known, _)| known == name)?;
                value.parse::<usize>().ok()
            };
            match (method.as_str(), path) {
                // It brings what others publish, and no echo.
                ("GET", "/ws" | "/ws/echo") => {
                    self.is_mute = path == "/ws/echo";
                    let mut head = Vec::new();
                    handshake::encode_response(&mut head, &accept?);
                    return self.receive_on(None, &head, frame);
                }
                ("GET", "/sse") => return self.receive_on(None, EVENTS, event),
                ("GET", "/stream") => return self.receive_on(None, LINES, |text| format!("{text}\n").into_bytes()),
                ("GET", "/poll") => self.poll(number("after"), number("wait").unwrap_or(0) as u64)?,
                ("POST", "/publish") => {
                    self.shared.publish(&body);
                    self.answer("200 OK", "")?;
                }
                ("POST", "/hub/negotiate") => {
                    let token = self.shared.change(|state| {
                        state.receivers.push(Receiver { is_hub: true, ..Receiver::default() });
                        state.receivers.len() - 1
                    });
                    self.answer("200 OK", &format!("{{\"connectionToken\":\"{token}\"}}"))?;
                }
                ("GET", "/hub") => return self.receive_on(number("id"), EVENTS, event),
                ("POST", "/hub") => {
                    let status = self.hear(number("id"), &body)?;
                    self.answer(status, "")?;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn request(&mut self) -> Option<(String, String, String, Option<String>)> {
        loop {
            let mut headers = Headers::default();
            if let Some((head, size)) = parse_request(&self.held, &mut headers).unwrap() {
                let BodyKind::Length(body) = head.body else { panic!("{head:?}") };
                let end = size + body as usize;
                if self.held.len() >= end {
                    let (method, target) = (head.method.to_owned(), head.target.to_owned());
                    self.shared.state.lock().unwrap().hosts.insert(head.header("host").unwrap().to_owned());
                    let accept = handshake::accept(&head).ok();
                    let body = String::from_utf8(self.held[size..end].to_vec()).unwrap();
                    self.held.drain(..end);
                    return Some((method, target, body, accept));
                }
            }
            self.read_more()?;
        }
    }

    fn answer(&mut self, status: &str, body: &str) -> Option<()> {
        self.answer_with(status, "", body)
    }

    fn answer_with(&mut self, status: &str, headers: &str, body: &str) -> Option<()> {
        let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.write_all(text.as_bytes()).ok()
    }

    fn poll(&mut self, after: Option<usize>, wait_s: u64) -> Option<()> {
        let reply = {
            let state = self.shared.state.lock().unwrap();
            let from = after.unwrap_or(state.published.len());
            let (wait, cuts) = (Duration::from_secs(wait_s), self.cuts);
            let is_idle = |state: &mut State| state.published.len() == from && state.cuts == cuts;
            let (mut state, _) = self.shared.changed.wait_timeout_while(state, wait, is_idle).unwrap();
            if state.cuts != cuts {
                return None;
            }
            let parts: String = state.published[from..].iter().map(|data| format!(",{data}")).collect();
            state.handed += state.published.len() - from;
            format!("[{}{parts}]", state.published.len())
        };
        if self.shared.trouble == Trouble::ClosePolls {
            self.answer_with("200 OK", "Connection: close\r\n", &reply)?;
            return None;
        }
        self.answer("200 OK", &reply)
    }

    /// Carries what one receiver gets, and reads until the client closes.
    fn receive_on(mut self, place: Option<usize>, head: &[u8], encode: fn(&str) -> Vec<u8>) -> Option<()> {
        let place = self.shared.change(|state| {
            let place = place.unwrap_or_else(|| {
                state.receivers.push(Receiver { is_joined: true, ..Receiver::default() });
                state.receivers.len() - 1
            });
            state.receivers[place].is_open = true;
            place
        });
        self.stream.write_all(head).ok()?;
        let (shared, mut stream) = (Arc::clone(&self.shared), self.stream.try_clone().unwrap());
        std::thread::spawn(move || shared.deliver(place, &mut stream, encode));
        let (mut decoder, config) = (Decoder::default(), Config::new(Role::Server));
        while self.read_more().is_some() {
            while let Decoded::Frame { consumed, event } = decoder.decode(&mut self.held, &config).unwrap() {
                if let Some(Event::Text(data)) = event.filter(|_| !self.is_mute) {
                    self.shared.publish(data);
                }
                self.held.drain(..consumed);
            }
        }
        self.shared.change(|state| state.receivers[place].is_closed = true);
        Some(())
    }

    /// Records that a client has posted to the hub; the answer's status, or none for no answer.
    fn hear(&mut self, place: Option<usize>, body: &str) -> Option<&'static str> {
        for record in body.split_terminator(END) {
            let Some(place) = place else {
                self.shared.change(|state| state.early += 1);
                return Some("404 Not Found");
            };
            if record.contains("\"protocol\"") {
                self.shared.change(|state| state.receivers[place].push(format!("{{}}{END}")));
            } else if record.contains("\"Join\"") {
                if let Some(trouble) = self.trouble_of(place) {
                    return trouble;
                }
                self.shared.change(|state| {
                    state.receivers[place].push(format!("{{\"type\":3,\"invocationId\":\"0\"}}{END}"));
                    state.receivers[place].is_joined = true;
                });
            } else if record.contains("\"Publish\"") {
                self.publish_to_hub(place, record);
            } else {
                assert_eq!(record, "{\"type\":6}");
                self.shared.change(|state| state.pings[1] += 1);
            }
        }
        Some("200 OK")
    }

    /// What becomes of a client that joins, as [`Self::hear`] says it; nothing out of the ordinary for most.
    fn trouble_of(&mut self, place: usize) -> Option<Option<&'static str>> {
        match self.shared.trouble {
            Trouble::RefuseJoining(first) if place < first => {
                self.shared.change(|state| state.troubled += 1);
                Some(Some("500 Internal Server Error"))
            }
            Trouble::CutJoining(first) if place < first => {
                self.shared.change(|state| {
                    state.troubled += 1;
                    state.receivers[place].is_cut = true;
                });
                match place % 3 {
                    0 => {
                        while self.read_more().is_some() {}
                        Some(None)
                    }
                    1 => {
                        let open = |state: &State| state.receivers.iter().filter(|receiver| receiver.is_open).count();
                        self.shared.wait_while(|state| open(state) < 2 * first);
                        Some(Some("200 OK"))
                    }
                    _ => {
                        self.shared.wait_while(|state| !state.receivers[place].is_closed);
                        Some(Some("500 Internal Server Error"))
                    }
                }
            }
            _ => None,
        }
    }

    fn publish_to_hub(&mut self, place: usize, record: &str) {
        let (_, data) = record.split_once("\"arguments\":[\"a\",").unwrap();
        self.shared.change(|state| {
            let receiver = &mut state.receivers[place];
            receiver.late += usize::from(receiver.is_closed);
            state.early += usize::from(!receiver.is_joined);
        });
        self.shared.publish(data.strip_suffix("]}").unwrap());
        if self.shared.trouble == Trouble::PingFirst {
            self.shared.change(|state| {
                state.pings[0] += 1;
                (0..3).for_each(|_| state.receivers[place].push(format!("{{\"type\":6}}{END}")));
            });
            self.shared.wait_while(|state| state.receivers[place].unwritten > 0);
        }
    }
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const LINES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";

fn event(text: &str) -> Vec<u8> {
    format!("data:{text}\n\n").into_bytes()
}

fn frame(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, Opcode::Text, text.as_bytes(), None);
    out
}
