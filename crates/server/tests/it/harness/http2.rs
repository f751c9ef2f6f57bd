//! A client that speaks HTTP/2: many requests on one connection. Whoever makes requests as text of HTTP/1 makes them on
//! its streams as well.

use super::http::Http;
use super::{Dial, PATIENCE, Subject};
use pushlab_http2::connection::{Connection, Refused, Role};
use pushlab_http2::event::Event;
use pushlab_http2::frame::Code;
use pushlab_http2::limits::{Limits, Rate};
use pushlab_wire::fields::FieldList;
use pushlab_wire::http::{BodyKind, Headers, parse_request};
use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A connection, shared by its streams.
#[derive(Clone)]
pub struct Http2(Arc<Mutex<Ends>>);

struct Ends {
    http: Http,
    protocol: Connection,
    streams: HashMap<u32, Incoming>,
    said: Vec<Said>,
    has_ended: bool,
    start: Instant,
}

/// What the server has said of the connection and its streams, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The last stream that it looked at, and why.
    GoingAway(u32, Code),
    /// A stream has ended.
    End(u32),
    Reset(u32, Code),
}

/// What has come on a stream.
#[derive(Debug, Default, Clone)]
struct Incoming {
    heads: Vec<FieldList>,
    body: Vec<u8>,
    has_ended: bool,
    reset: Option<Code>,
    /// The server is not told that anything was used.
    is_held: bool,
}

const ANY: Rate = Rate { burst: u32::MAX, per_second: 0 };

impl Http2 {
    /// A connection to a server, whose settings have come.
    pub fn connect(server: &Subject, is_secure: bool) -> Self {
        Self::dial(dial(server, is_secure))
    }

    /// The same where it is agreed on.
    pub fn dial(dial: Dial) -> Self {
        let limits = Limits { resets: ANY, idle_frames: ANY, max_unread_bytes: 1 << 30, ..Limits::default() };
        let http2 = Self(Arc::new(Mutex::new(Ends {
            http: Http::connect(dial),
            protocol: Connection::new(Role::Client, limits),
            streams: HashMap::new(),
            said: Vec::new(),
            has_ended: false,
            start: Instant::now(),
        })));
        http2.wait("settings come", |ends| ends.protocol.has_settings());
        http2
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket.
    pub fn socket(&self) -> TcpStream {
        self.ends().http.socket.try_clone().unwrap()
    }

    /// Requests on streams of their own.
    pub fn streams(&self) -> Dial {
        Dial { address: self.ends().http.socket.peer_addr().unwrap(), tls: None, http2: Some(self.clone()) }
    }

    /// A request on a stream of its own; its answer has not come.
    pub fn ask(&self, request: &str) -> Http {
        let mut http = Http::connect(self.streams());
        http.send(request);
        http
    }

    /// The same for a GET.
    pub fn get(&self, target: &str) -> Http {
        self.ask(&get(target))
    }

    /// What the server has said so far.
    pub fn said(&self) -> Vec<Said> {
        self.ends().said.clone()
    }

    pub fn farewells(&self) -> Vec<(u32, Code)> {
        let farewell = |said| if let Said::GoingAway(last, code) = said { Some((last, code)) } else { None };
        self.said().into_iter().filter_map(farewell).collect()
    }

    /// Says that it opens no more streams.
    pub fn go_away(&self) {
        let mut ends = self.ends();
        ends.protocol.go_away(Code::NoError, true);
        ends.send();
    }

    /// Reads until the connection ends.
    pub fn expect_end(&self) {
        self.wait("the connection ends", |ends| ends.has_ended);
    }

    /// Asks the server whether it is there: what it said before has come then.
    pub fn ping(&self) {
        let mut ends = self.ends();
        ends.protocol.ping(*b"are you?");
        drop(ends);
        self.wait("the ping is answered", Ends::take_pong);
    }

    #[track_caller]
    fn wait(&self, what: &str, mut is_there: impl FnMut(&mut Ends) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut ends = self.ends();
            ends.send();
            if is_there(&mut ends) {
                return;
            }
            assert!(!ends.has_ended, "the connection ended before {what}: {:?}", ends.said);
            assert!(Instant::now() < end, "waited in vain until {what}");
            ends.receive();
        }
    }
}

impl Ends {
    fn take_pong(&mut self) -> bool {
        self.streams.remove(&0).is_some()
    }

    fn send(&mut self) {
        let output = self.protocol.output().to_vec();
        if !output.is_empty() && !self.has_ended {
            // A server that has gone says so where it is read from.
            let _ = self.http.try_send(&output);
        }
        self.protocol.sent(output.len());
    }

    fn receive(&mut self) {
        self.has_ended |= !self.http.fill();
        let mut buffer = std::mem::take(&mut self.http.buffer);
        let (mut at, mut head) = (0, FieldList::default());
        loop {
            let now = self.start.elapsed();
            let (used, event) = self.protocol.receive(&mut buffer[at..], now, &mut head).expect("the server is right");
            match event {
                Event::Response { owner, head, is_end } => {
                    let stream = self.streams.get_mut(&owner).unwrap();
                    stream.heads.push(head.clone());
                    self.note_end(owner, is_end);
                }
                Event::Data { owner, bytes, is_end } => {
                    let stream = self.streams.get_mut(&owner).unwrap();
                    stream.body.extend_from_slice(bytes);
                    if !stream.is_held {
                        self.protocol.used(owner, bytes.len());
                    }
                    self.note_end(owner, is_end);
                }
                Event::Reset { owner, code, is_by_peer } => {
                    assert!(is_by_peer, "the server broke the protocol on a stream: {code:?}");
                    self.streams.get_mut(&owner).unwrap().reset = Some(code);
                    self.said.push(Said::Reset(owner, code));
                }
                Event::GoingAway { last, code } => self.said.push(Said::GoingAway(last, code)),
                Event::Pong(_) => drop(self.streams.insert(0, Incoming::default())),
                Event::Nothing | Event::Request { .. } => {}
            }
            if used == 0 {
                break;
            }
            at += used;
        }
        buffer.drain(..at);
        assert!(!self.has_ended || buffer.is_empty(), "the connection ended inside a frame");
        self.http.buffer = buffer;
        self.send();
    }

    fn note_end(&mut self, number: u32, is_end: bool) {
        if is_end {
            self.streams.get_mut(&number).unwrap().has_ended = true;
            self.said.push(Said::End(number));
        }
    }
}

/// How to connect so that HTTP/2 is spoken.
pub fn dial(server: &Subject, is_secure: bool) -> Dial {
    let mut dial = server.dial(is_secure);
    if let Some(tls) = &mut dial.tls {
        Arc::make_mut(tls).alpn_protocols = vec![b"h2".to_vec()];
    }
    dial
}

/// A GET as text.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// The one that asks on streams, one after the other.
pub struct Stream {
    http2: Http2,
    number: u32,
    left: Left,
}

/// What is still to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// So many bytes of a body.
    Body(usize),
    /// Whatever there is.
    Frames,
}

impl Stream {
    pub fn new(http2: Http2) -> Self {
        Self { http2, number: 0, left: Left::Nothing }
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// Sends a request, given as text of HTTP/1, or bytes behind one that is not complete.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.left {
            Left::Nothing => self.begin(bytes),
            Left::Body(left) => self.send_body(bytes, left),
            Left::Frames => self.send_data(bytes),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut headers = Headers::default();
        let (head, size) = parse_request(bytes, &mut headers).unwrap().expect("a head is sent whole");
        let mut fields = FieldList::default();
        let is_websocket = head.header("upgrade").is_some();
        fields.push(b":method", if is_websocket { b"CONNECT" } else { head.method.as_bytes() });
        if is_websocket {
            fields.push(b":protocol", b"websocket");
        }
        fields.push(b":scheme", b"http");
        fields.push(b":path", head.target.as_bytes());
        fields.push(b":authority", head.header("host").unwrap().as_bytes());
        for (name, value) in head.fields().chain(head.cookies().map(|cookie| ("cookie", cookie))) {
            let is_of_connection = ["host", "upgrade", "connection", "sec-websocket-key"];
            if !is_of_connection.iter().any(|other| name.eq_ignore_ascii_case(other)) {
                fields.push_in_lower_case(name.as_bytes(), value.trim().as_bytes());
            }
        }
        self.left = match head.body {
            _ if is_websocket => Left::Frames,
            BodyKind::Length(0) => Left::Nothing,
            BodyKind::Length(length) => Left::Body(length as usize),
            _ => panic!("a body of HTTP/2 has no chunks"),
        };
        self.number = self.open(&fields, self.left == Left::Nothing)?;
        if let Left::Body(length) = self.left {
            return self.send_body(&bytes[size..], length);
        }
        Ok(())
    }

    /// Opens a stream, as soon as the server allows one more.
    fn open(&self, fields: &FieldList, is_end: bool) -> io::Result<u32> {
        loop {
            let mut ends = self.http2.ends();
            match ends.protocol.open(0, fields, is_end) {
                Ok(number) => {
                    ends.protocol.set_owner(number, number);
                    ends.streams.insert(number, Incoming::default());
                    ends.send();
                    return Ok(number);
                }
                Err(Refused::Full) if !ends.has_ended => ends.receive(),
                Err(_) => return Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    fn send_body(&mut self, bytes: &[u8], left: usize) -> io::Result<()> {
        let left = left.checked_sub(bytes.len()).expect("a body is no longer than it says");
        self.left = Left::Body(left);
        self.send_data(bytes)?;
        if left == 0 {
            self.end();
        }
        Ok(())
    }

    /// Says that nothing more follows.
    pub fn end(&mut self) {
        self.left = Left::Nothing;
        let mut ends = self.http2.ends();
        ends.protocol.end(self.number);
        ends.send();
    }

    /// Sends bytes as the window allows.
    pub fn send_data(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ends = self.http2.ends();
            let Some(size) = ends.protocol.data(self.number, bytes).filter(|_| !ends.has_ended) else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            ends.send();
            bytes = &bytes[size..];
            if size == 0 {
                ends.receive();
                while ends.protocol.next_ready().is_some() {}
            }
        }
        Ok(())
    }

    /// Ends it in both directions.
    pub fn reset(&mut self, code: Code) {
        self.left = Left::Nothing;
        let mut ends = self.http2.ends();
        ends.protocol.reset(self.number, code);
        ends.send();
    }

    /// Tells the server nothing of what is used from now on: its window shuts.
    pub fn hold(&self) {
        self.with(|stream| stream.is_held = true);
    }

    /// Tells it that all was used, and goes on so.
    pub fn release(&self) {
        let mut ends = self.http2.ends();
        ends.streams.get_mut(&self.number).unwrap().is_held = false;
        ends.protocol.used(self.number, 65_535);
        ends.send();
    }

    fn with<T>(&self, with: impl FnOnce(&mut Incoming) -> T) -> T {
        with(self.http2.ends().streams.get_mut(&self.number).expect("a request was sent"))
    }

    /// Reads more of the body; says whether there was any before the end.
    pub fn fill(&mut self, buffer: &mut Vec<u8>) -> bool {
        let number = self.number;
        self.http2.wait("something comes on a stream", |ends| {
            let stream = &ends.streams[&number];
            !stream.body.is_empty() || stream.has_ended || stream.reset.is_some() || ends.has_ended
        });
        let body = self.with(|stream| std::mem::take(&mut stream.body));
        buffer.extend_from_slice(&body);
        !body.is_empty()
    }

    /// The next head as lines; `None` if the stream ends before it.
    pub fn head(&mut self) -> Option<(u16, String)> {
        let number = self.number;
        self.http2.wait("a head comes", |ends| {
            let stream = &ends.streams[&number];
            !stream.heads.is_empty() || stream.reset.is_some() || ends.has_ended
        });
        let head = self.with(|stream| (!stream.heads.is_empty()).then(|| stream.heads.remove(0)))?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let lines: String = head.iter().map(|(name, value)| format!("{}: {}\r\n", text(name), text(value))).collect();
        Some((text(head.get(":status").unwrap()).parse().unwrap(), lines))
    }

    /// Whether the server has ended it properly.
    pub fn is_complete(&self) -> bool {
        self.with(|stream| stream.has_ended)
    }

    /// Waits until it was reset; says why.
    pub fn expect_reset(&self) -> Code {
        let number = self.number;
        self.http2.wait("the stream is reset", |ends| ends.streams[&number].reset.is_some());
        self.with(|stream| stream.reset.unwrap())
    }
}

/// Frames, by their numbers.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// The setting of that name.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    [&size[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a CONNECT has more that begins a WebSocket.
pub const WEBSOCKET: [(&str, &str); 2] = [(":protocol", "websocket"), ("sec-websocket-version", "13")];

/// A client that writes frames as it likes.
pub struct Raw {
    pub http: Http,
    pub encoder: pushlab_http2::hpack::Encoder,
    decoder: pushlab_http2::hpack::Decoder,
}

/// A frame: its kind, flags, stream and payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

impl Raw {
    /// One that has said what comes first.
    pub fn connect(server: &Subject, settings: &[(u16, u32)]) -> Self {
        let mut raw = Self::silent(server);
        let entry = |&(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let settings = settings.iter().map(entry).collect::<Vec<_>>().concat();
        raw.send(&[pushlab_http2::frame::PREFACE, &frame(kind::SETTINGS, 0, 0, &settings)].concat()).unwrap();
        raw
    }

    /// One that has said nothing.
    pub fn silent(server: &Subject) -> Self {
        let (encoder, decoder) = (pushlab_http2::hpack::Encoder::new(), pushlab_http2::hpack::Decoder::new(4096));
        Self { http: Http::connect(server.address()), encoder, decoder }
    }

    /// Sends to a server that may have closed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.http.try_send(bytes)
    }

    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.send(&frame(kind, flags, stream, payload)).unwrap();
    }

    /// The block of a request's head: its method and path, then other fields.
    pub fn block(&mut self, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let mut fields = FieldList::default();
        let own = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "h")];
        // Those that begin with a colon stand before all others.
        let (pseudo, more): (Vec<_>, Vec<_>) = more.iter().partition(|&&(name, _)| name.starts_with(':'));
        let all = own.into_iter().chain(pseudo).chain(more);
        all.for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        let mut block = Vec::new();
        self.encoder.encode(fields.iter(), &mut block);
        block
    }

    /// The HEADERS of a GET.
    pub fn get(&mut self, stream: u32, path: &str) -> Vec<u8> {
        let block = self.block("GET", path, &[]);
        frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// The next frame; `None` at the end.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let buffer = &mut self.http.buffer;
            if let Some(&[a, b, c, kind, flags, ref stream @ ..]) = buffer.first_chunk::<9>() {
                let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
                if buffer.len() >= end {
                    let stream = u32::from_be_bytes(*stream);
                    let payload = buffer[9..end].to_vec();
                    buffer.drain(..end);
                    return Some((kind, flags, stream, payload));
                }
            }
            if !self.http.fill() {
                return None;
            }
        }
    }

    /// The next frame of a kind; those before it are passed over.
    pub fn next_of(&mut self, wanted: u8) -> Frame {
        loop {
            let frame = self.next().expect("the connection ended");
            if frame.0 == wanted {
                return frame;
            }
        }
    }

    /// The fields of a head.
    pub fn decode(&mut self, block: &[u8]) -> FieldList {
        let mut head = FieldList::default();
        assert!(!self.decoder.decode(block, 1 << 20, &mut head).unwrap().is_cut);
        head
    }

    /// Waits for the end of the connection, and the GOAWAY before it, behind which nothing may stand; gives its code. A
    /// server that closed while more came may have been cut before it.
    pub fn farewell(&mut self) -> Option<Code> {
        let mut code = None;
        while let Some((kind, _, _, payload)) = self.next() {
            assert!(code.is_none(), "something comes behind GOAWAY: {kind}");
            if kind == kind::GOAWAY {
                code = Some(Code::from_number(u32::from_be_bytes(payload[4..8].try_into().unwrap())));
            }
        }
        code
    }
}
