//! Subscribers on every transport, read alike.

use super::Dial;
use super::http::Http;
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, Version, parse_response};
use pushlab_wire::lines::{LineDecoder, unwrap_script};
use pushlab_wire::native::{Announcement, ServerFrame, parse_reply};
use pushlab_wire::websocket::{self, Decoded, Decoder, Event, Opcode, Role, handshake};
use std::collections::VecDeque;

/// A transport and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    WebSocket,
    Sse,
    Lines,
    Script,
    /// HTTP/1.0, which has no chunks.
    PlainSse,
    PlainLines,
    PlainScript,
    LongPolling,
    Polling,
    WebSocketPolling,
}

/// Those that are told.
pub const PUSHED: [Kind; 7] =
    [Kind::WebSocket, Kind::Sse, Kind::Lines, Kind::Script, Kind::PlainSse, Kind::PlainLines, Kind::PlainScript];
/// Those that HTTP/2 has streams for.
pub const STREAMED: [Kind; 4] = [Kind::WebSocket, Kind::Sse, Kind::Lines, Kind::Script];
/// Those that ask.
pub const ASKING: [Kind; 3] = [Kind::LongPolling, Kind::Polling, Kind::WebSocketPolling];

/// The version of HTTP/1 that it speaks.
pub fn version_of(kind: Kind) -> Version {
    let is_plain = matches!(kind, Kind::PlainSse | Kind::PlainLines | Kind::PlainScript);
    if is_plain { Version::Http10 } else { Version::Http11 }
}

pub fn all_kinds() -> impl Iterator<Item = Kind> {
    PUSHED.into_iter().chain(ASKING)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Offset and data.
    Message(String, u64, String),
    Cursor(String),
    Server(Announcement),
    Reconnect(u64),
    Gap(String, String),
    Pong(u64),
    Echo(String),
    Error(String),
    Auth(u64),
    TokenExpires(u64),
}

enum Codec {
    WebSocket(Decoder),
    Sse(BodyDecoder, EventStreamDecoder),
    Lines(BodyDecoder, LineDecoder),
    None,
}

/// A subscriber.
pub struct Client {
    kind: Kind,
    http: Http,
    codec: Codec,
    query: String,
    ready: VecDeque<Frame>,
    /// A poll over a WebSocket is on its way.
    has_asked: bool,
    /// Where to resume.
    pub cursor: String,
    /// The connection may end inside a frame.
    pub may_be_torn: bool,
    /// Code of a close frame that came.
    pub close_code: Option<u16>,
    /// After how many milliseconds it was told to come back.
    pub return_after_ms: Option<u64>,
}

impl Client {
    /// Subscribes to `query`, which is `channel=a&channel=b`, from now on; the subscription has begun on return.
    pub fn open(to: impl Into<Dial>, kind: Kind, query: &str) -> Self {
        let mut client = Self::resume(to, kind, query, "");
        while client.cursor.is_empty() {
            let frame = client.next().expect("a subscription begins with its position");
            assert!(matches!(frame, Frame::Cursor(_) | Frame::Server(_)), "{frame:?}");
        }
        client
    }

    /// The same as [`Self::open`] with these fields in its request, `Host` among them.
    pub fn open_with(to: impl Into<Dial>, kind: Kind, query: &str, fields: &str) -> Self {
        let mut client = Self::resume_with(to, kind, query, "", fields);
        super::until("it has begun", || matches!(client.next(), Some(Frame::Cursor(_))));
        client
    }

    /// Subscribes after a cursor.
    pub fn resume(to: impl Into<Dial>, kind: Kind, query: &str, cursor: &str) -> Self {
        Self::resume_with(to, kind, query, cursor, "Host: h\r\n")
    }

    /// The same with these fields in its request, `Host` among them.
    pub fn resume_with(to: impl Into<Dial>, kind: Kind, query: &str, cursor: &str, fields: &str) -> Self {
        let mut client = Self {
            kind,
            http: Http::connect(to),
            codec: Codec::None,
            query: query.to_owned(),
            ready: VecDeque::new(),
            has_asked: false,
            cursor: cursor.to_owned(),
            may_be_torn: false,
            close_code: None,
            return_after_ms: None,
        };
        let (path, format, version) = match kind {
            Kind::WebSocket => ("/ws", "", 1),
            Kind::WebSocketPolling => ("/ws", "&mode=poll", 1),
            Kind::Sse => ("/sse", "", 1),
            Kind::PlainSse => ("/sse", "", 0),
            Kind::Lines => ("/stream", "", 1),
            Kind::PlainLines => ("/stream", "", 0),
            Kind::Script => ("/stream", "&format=script", 1),
            Kind::PlainScript => ("/stream", "&format=script", 0),
            Kind::Polling | Kind::LongPolling => return client,
        };
        let target = format!("{path}?{query}{format}&after={cursor}");
        if path == "/ws" {
            let mut request = Vec::new();
            handshake::encode_request(&mut request, "h", &target, [7; 16]);
            client.http.send(&String::from_utf8(request).unwrap().replace("Host: h\r\n", fields));
        } else {
            client.http.send(&format!("GET {target} HTTP/1.{version}\r\n{fields}\r\n"));
        }
        client.read_head();
        client
    }

    fn read_head(&mut self) {
        let (size, body) = loop {
            if let Some(stream) = &mut self.http.stream {
                let (status, head) = stream.head().expect("reset before it answered");
                assert_eq!(status, 200, "{head}");
                break (0, BodyKind::UntilClose);
            }
            let mut headers = Headers::default();
            if let Some((head, size)) = parse_response(&self.http.buffer, &mut headers).unwrap() {
                assert!(matches!(head.status, 101 | 200), "{}", String::from_utf8_lossy(&self.http.buffer));
                break (size, head.body);
            }
            assert!(self.http.fill(), "closed before it answered");
        };
        self.http.buffer.drain(..size);
        let max = 1 << 20;
        self.codec = match self.kind {
            Kind::WebSocket | Kind::WebSocketPolling => Codec::WebSocket(Decoder::default()),
            Kind::Sse | Kind::PlainSse => Codec::Sse(BodyDecoder::new(body), EventStreamDecoder::new(max)),
            _ => Codec::Lines(BodyDecoder::new(body), LineDecoder::new(max)),
        };
    }

    /// The next frame; `None` when the connection has ended. Those that ask do so as long as nothing is new.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            self.decode();
            if let Some(frame) = self.ready.pop_front() {
                match &frame {
                    Frame::Message(_, offset, _) => {
                        let epoch = self.cursor.split('.').next().unwrap();
                        self.cursor = format!("{epoch}.{offset}");
                    }
                    Frame::Cursor(cursor) | Frame::Gap(_, cursor) => self.cursor.clone_from(cursor),
                    Frame::Reconnect(after_ms) => self.return_after_ms = Some(*after_ms),
                    _ => {}
                }
                return Some(frame);
            }
            match self.kind {
                Kind::Polling | Kind::LongPolling => self.ask(),
                _ => {
                    if self.kind == Kind::WebSocketPolling && !self.has_asked {
                        self.send(&format!("[\"poll\",\"{}\"]", self.cursor));
                        self.has_asked = true;
                    }
                    self.http.may_be_cut = self.may_be_torn;
                    if !self.http.fill() {
                        let rest = self.http.buffer.len();
                        assert!(rest == 0 || self.may_be_torn, "a frame torn after {rest} bytes");
                        return None;
                    }
                }
            }
        }
    }

    /// The next message; a reply's cursor is passed over.
    pub fn message(&mut self) -> (String, u64, String) {
        loop {
            match self.next().expect("the connection ended") {
                Frame::Message(channel, offset, data) => return (channel, offset, data),
                Frame::Cursor(_) => {}
                other => panic!("{:?}: {other:?}", self.kind),
            }
        }
    }

    /// The offsets of the next messages.
    pub fn offsets(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.message().1).collect()
    }

    /// Sends a text message.
    pub fn send(&mut self, text: &str) {
        self.try_send(text).unwrap();
    }

    /// Sends a text message to a server that may have closed.
    pub fn try_send(&mut self, text: &str) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        websocket::encode(&mut bytes, Opcode::Text, text.as_bytes(), Some([1, 2, 3, 4]));
        self.http.try_send(&bytes)
    }

    /// The connection itself.
    pub fn socket(&self) -> &std::net::TcpStream {
        &self.http.socket
    }

    /// Asks once; what came is ready then.
    pub fn ask(&mut self) {
        let wait = if self.kind == Kind::LongPolling && !self.cursor.is_empty() { 10 } else { 0 };
        let response = self.http.get(&format!("/poll?{}&wait={wait}&after={}", self.query, self.cursor));
        assert_eq!(response.status, 200, "{response:?}");
        let ready = &mut self.ready;
        parse_reply(&response.body, |frame| ready.push_back(frame.into())).unwrap();
    }

    fn decode(&mut self) {
        let (buffer, ready) = (&mut self.http.buffer, &mut self.ready);
        match &mut self.codec {
            Codec::None => {}
            Codec::WebSocket(decoder) => {
                let config = websocket::Config { max_message_bytes: 1 << 22, ..websocket::Config::new(Role::Client) };
                let mut at = 0;
                while let Decoded::Frame { consumed, event } = decoder.decode(&mut buffer[at..], &config).unwrap() {
                    match event {
                        Some(Event::Text(text)) if text.starts_with("[[") => {
                            parse_reply(text, |frame| ready.push_back(frame.into())).unwrap();
                            self.has_asked = false;
                        }
                        Some(Event::Text(text)) => ready.push_back(ServerFrame::parse(text).unwrap().into()),
                        Some(Event::Close(close)) => self.close_code = close.map(|(code, _)| code),
                        _ => {}
                    }
                    at += consumed;
                }
                buffer.drain(..at);
            }
            Codec::Sse(body, events) => {
                for piece in unchunk(body, buffer) {
                    events
                        .decode(&piece, |event| {
                            let frame = match ServerFrame::parse(event.data).unwrap() {
                                ServerFrame::Message { channel, data, .. } => {
                                    Frame::Message(channel.into(), super::offset(event.id), data.to_owned())
                                }
                                other => other.into(),
                            };
                            ready.push_back(frame);
                        })
                        .unwrap();
                }
                self.return_after_ms = events.take_retry_ms().map(u64::from).or(self.return_after_ms);
                // The first event has an id and no data; only what was asked for and what is refused stands before it.
                if !self.cursor.contains('.') && !events.last_id().is_empty() {
                    let is_before = |frame: &Frame| matches!(frame, Frame::Server(_) | Frame::Error(_));
                    let at = ready.iter().position(|frame| !is_before(frame)).unwrap_or(ready.len());
                    ready.insert(at, Frame::Cursor(events.last_id().to_owned()));
                }
            }
            Codec::Lines(body, lines) => {
                let is_script = matches!(self.kind, Kind::Script | Kind::PlainScript);
                for piece in unchunk(body, buffer) {
                    lines
                        .decode(&piece, |line| {
                            let json = if is_script { unwrap_script(line) } else { Some(line.into()) };
                            if let Some(json) = json {
                                ready
                                    .push_back(ServerFrame::parse(std::str::from_utf8(&json).unwrap()).unwrap().into());
                            }
                        })
                        .unwrap();
                }
            }
        }
    }

    /// Whether it says frames as well.
    pub fn is_websocket(&self) -> bool {
        matches!(self.kind, Kind::WebSocket | Kind::WebSocketPolling)
    }

    /// The stream of HTTP/2 that it is.
    pub fn stream(&mut self) -> &mut super::http2::Stream {
        self.http.stream()
    }

    /// Whether a chunked stream, or one of HTTP/2, came to its proper end.
    pub fn is_complete(&self) -> bool {
        if let Some(stream) = &self.http.stream {
            return stream.is_complete();
        }
        match &self.codec {
            Codec::Sse(body, _) | Codec::Lines(body, _) => body.is_done(),
            _ => false,
        }
    }
}

fn unchunk(body: &mut BodyDecoder, buffer: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < buffer.len() && !body.is_done() {
        let step = body.decode(&buffer[at..]).unwrap();
        at += step.consumed;
        pieces.push(step.data.to_vec());
    }
    buffer.drain(..at);
    pieces
}

impl From<ServerFrame<'_>> for Frame {
    fn from(frame: ServerFrame<'_>) -> Self {
        match frame {
            ServerFrame::Message { channel, cursor, data } => Self::Message(
                channel.into(),
                super::offset(&cursor.expect("only events leave it out")),
                data.to_owned(),
            ),
            ServerFrame::Cursor(cursor) => Self::Cursor(cursor.into()),
            ServerFrame::Server(announcement) => Self::Server(announcement),
            ServerFrame::Reconnect(after_ms) => Self::Reconnect(after_ms),
            ServerFrame::Gap { from, to } => Self::Gap(from.into(), to.into()),
            ServerFrame::Pong(n) => Self::Pong(n),
            ServerFrame::Echo(data) => Self::Echo(data.to_owned()),
            ServerFrame::Error { code, .. } => Self::Error(code.into()),
            ServerFrame::Auth(seconds) => Self::Auth(seconds),
            ServerFrame::TokenExpires(seconds) => Self::TokenExpires(seconds),
        }
    }
}
