//! What clients say.

use super::{Asked, Client, Expected, Form, Mode, Peer};
use crate::truth::{CHANNELS, Reception, Truth};
use fastrand::Rng;
use pushlab_session::queue::Policy;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::fields::FieldList;
use pushlab_wire::native::{json_string, single_line};
use pushlab_wire::websocket::{Opcode, encode, encode_close, handshake};

/// Far beyond everything that is published in a test.
const FUTURE: u64 = 1_000_000_000;
/// Requests and frames that a client does not wait for.
const PIPELINED_MAX: usize = 6;

/// A request's parts.
struct Request {
    method: &'static str,
    target: String,
    fields: String,
    body: Vec<u8>,
    is_old: bool,
    is_last: bool,
    expected: Expected,
}

impl Client {
    /// Says something, or not.
    pub fn act(&mut self, truth: &Truth) {
        let Some(mut peer) = self.peer.take() else { return };
        if !peer.is_last && !peer.is_ending && peer.expected.len() < PIPELINED_MAX {
            for _ in 0..self.rng.u32(1..4) {
                match &peer.mode {
                    Mode::Http(_) if peer.is_last || peer.is_ending => {}
                    Mode::Http(_) => self.request(&mut peer, truth),
                    Mode::WebSocket { .. } => self.frame(&mut peer, truth),
                    Mode::Stream { .. } | Mode::Over => {}
                }
            }
        }
        self.peer = Some(peer);
    }

    /// Where it resumes: mostly where it was; any cursor that it was told will do.
    fn after(&mut self, truth: &Truth) -> Option<Cursor> {
        match self.rng.u32(..20) {
            0 => None,
            1 => Some(truth.cursor(FUTURE)),
            2 => Some(truth.cursor(0)),
            3..6 => self.rng.choice(&self.memory.told).copied().or(self.memory.cursor),
            _ => self.memory.cursor,
        }
    }

    fn query(&self, channels: &[usize], after: Option<Cursor>) -> String {
        let mut query = String::from("?");
        for &channel in channels {
            query.push_str("channel=");
            query.push_str(CHANNELS[channel]);
            query.push('&');
        }
        if let Some(after) = after {
            query.push_str(&format!("after={after}&"));
        }
        query
    }

    fn request(&mut self, peer: &mut Peer, truth: &Truth) {
        let request = match self.rng.u32(..100) {
            0..40 => self.poll(truth),
            40..50 => self.publish(truth, false),
            50..60 => self.publish(truth, true),
            60..64 => {
                let body = some_data(&mut self.rng).into_bytes();
                request("POST", "/echo", Asked::Echo(body.clone())).with_body(body)
            }
            64..70 => self.small(),
            70..78 => self.refused(),
            78..87 => return self.web_socket(peer, truth),
            _ => self.stream(truth),
        };
        self.write(peer, request);
    }

    /// The only request of a stream of HTTP/2.
    fn write_stream(&mut self, peer: &mut Peer, mut request: Request) {
        let mut fields = fields_of(request.method, &request.target);
        for (name, value) in request.fields.lines().filter_map(|line| line.split_once(": ")) {
            fields.push(name.to_ascii_lowercase().as_bytes(), value.as_bytes());
        }
        if self.rng.u32(..4) == 0 {
            fields.push(b"origin", b"http://other.example");
            request.expected.has_origin = true;
        }
        if request.method == "POST" && self.rng.u32(..8) == 0 {
            fields.push(b"expect", b"100-continue");
            request.expected.expects_continue = true;
        }
        if request.target.contains(' ') {
            // The list is what it says, and that path is not known.
            request.expected.asked = Asked::Status(404);
            request.expected.is_head = request.method == "HEAD";
        }
        peer.head = Some((fields, request.body.is_empty() && self.rng.bool()));
        peer.out.extend_from_slice(&request.body);
        peer.is_ending = true;
        peer.is_last = true;
        peer.expected.push_back(request.expected);
    }

    fn write(&mut self, peer: &mut Peer, mut request: Request) {
        if self.rng.u32(..3) == 0 {
            request.fields.push_str("Accept-Encoding: br, gzip;q=0.5\r\n");
            request.expected.takes_gzip = !request.is_old || peer.is_http2;
        }
        if peer.is_http2 {
            return self.write_stream(peer, request);
        }
        let is_persistent = !request.is_old && self.rng.u32(..20) > 0;
        let version = if request.is_old { "1.0" } else { "1.1" };
        let mut text =
            format!("{} {} HTTP/{version}\r\nHost: example.org\r\n{}", request.method, request.target, request.fields);
        if !is_persistent && !request.is_old {
            text.push_str("Connection: close\r\n");
        }
        if self.rng.u32(..4) == 0 {
            text.push_str("Origin: http://other.example\r\n");
            request.expected.has_origin = true;
        }
        if request.method == "POST" && !request.is_old && self.rng.u32(..4) == 0 {
            text.push_str("Transfer-Encoding: chunked\r\n");
            let (one, two) = request.body.split_at(self.rng.usize(..request.body.len()));
            let mut body = Vec::new();
            for part in [one, two].into_iter().filter(|part| !part.is_empty()) {
                body.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                body.extend_from_slice(part);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            request.body = body;
        } else if request.method == "POST" {
            text.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
        }
        if request.method == "POST" && !request.is_old && self.rng.u32(..8) == 0 {
            text.push_str("Expect: 100-continue\r\n");
            request.expected.expects_continue = true;
        }
        text.push_str("\r\n");
        peer.out.extend_from_slice(text.as_bytes());
        peer.out.extend_from_slice(&request.body);
        peer.is_last |= request.is_last || !is_persistent;
        peer.expected.push_back(request.expected);
    }

    fn reception(&self, channels: &[usize], after: Option<Cursor>, conflates: bool, truth: &Truth) -> Reception {
        Reception::new(channels, after, conflates && self.policy == Policy::Conflate, truth.head())
    }

    fn poll(&mut self, truth: &Truth) -> Request {
        let after = self.after(truth);
        let channels = self.memory.channels.clone();
        let wait = *self.rng.choice(["", "wait=0", "wait=0.5", "wait=4", "wait=100"].iter()).expect("there are some");
        let target = format!("/poll{}{wait}", self.query(&channels, after));
        let reception = self.reception(&channels, after, false, truth);
        let mut request = request("GET", &target, Asked::Poll(reception));
        request.expected.may_wait = !matches!(wait, "" | "wait=0");
        request.is_old = self.rng.u32(..10) == 0;
        request
    }

    fn publish(&mut self, truth: &Truth, polls: bool) -> Request {
        let channel = self.rng.usize(..CHANNELS.len());
        let is_text = self.rng.u32(..4) == 0;
        let body = if is_text { "it's <b>\n\\text".to_owned() } else { some_data(&mut self.rng) };
        let data = if is_text { json_string(&body) } else { single_line(&body).into_owned() };
        let after = self.after(truth).filter(|_| polls);
        let known = &self.memory.channels;
        let channel = if known.len() < self.max_channels { channel } else { known[0] };
        let mut channels = vec![channel];
        let asked = match after {
            None => Asked::Publish(channel, data),
            Some(_) => {
                channels.extend(self.memory.channels.iter().filter(|&&c| c != channel));
                Asked::PublishAndPoll(self.reception(&channels, after, false, truth))
            }
        };
        let target = format!("/publish{}", self.query(&channels, after));
        let mut request = request("POST", &target, asked).with_body(body.into_bytes());
        if is_text {
            request.fields.push_str("Content-Type: text/plain\r\n");
        }
        request.is_old = self.rng.u32(..10) == 0;
        request
    }

    fn small(&mut self) -> Request {
        let (method, target, status) = *self
            .rng
            .choice(
                [
                    ("GET", "/healthz", 200),
                    ("HEAD", "/healthz", 200),
                    ("GET", "/stats", 200),
                    ("HEAD", "/metrics", 200),
                    ("OPTIONS", "/publish", 204),
                ]
                .iter(),
            )
            .expect("there are some");
        let mut request = request(method, target, Asked::Status(status));
        request.expected.is_head = method == "HEAD";
        request
    }

    fn refused(&mut self) -> Request {
        let (method, target, status) = *self
            .rng
            .choice(
                [
                    ("GET", "/nothing", 404),
                    ("HEAD", "/poll?channel=a", 405),
                    ("GET", "/poll?channel=a&after=no", 400),
                    ("GET", "/poll?channel=.a", 400),
                    ("GET", "/sse", 400),
                    ("GET", "/stream?channel=a&channel=b-1&channel=c.2&channel=d:3&channel=e_4", 400),
                    ("GET", "/ws?channel=a", 426),
                    ("POST", "/publish?channel=.a", 400),
                    ("POST", "/publish?channel=a", 400),
                ]
                .iter(),
            )
            .expect("there are some");
        let mut request = request(method, target, Asked::Status(status)).with_body(b"no JSON".to_vec());
        request.expected.is_head = method == "HEAD";
        if method != "POST" {
            request.body.clear();
        } else if target.contains(".a") {
            request.body = b"1".to_vec();
        }
        if self.rng.u32(..10) == 0 {
            // Nothing can be understood behind that.
            request.target = "/two words".to_owned();
            request.expected.asked = Asked::Status(400);
            request.expected.is_head = false;
            request.is_last = true;
        }
        request
    }

    fn stream(&mut self, truth: &Truth) -> Request {
        let after = self.after(truth);
        let channels = self.memory.channels.clone();
        let form = *self.rng.choice([Form::Events, Form::Events, Form::Lines, Form::Script].iter()).expect("some");
        let (path, more) = match form {
            Form::Events => ("/sse", ""),
            Form::Lines => ("/stream", "format=ndjson&"),
            Form::Script => ("/stream", "format=script&"),
        };
        let is_told = self.rng.bool();
        let by_field = form == Form::Events && after.is_some() && self.rng.bool();
        let query = self.query(&channels, after.filter(|_| !by_field));
        let mut target = format!("{path}{query}{more}");
        if is_told {
            target.push_str("v=2&");
        }
        if self.rng.u32(..4) == 0 {
            target.push_str("early=1");
        }
        let reception = self.reception(&channels, after, true, truth);
        let reception = if form == Form::Events { reception.of_events() } else { reception };
        let mut request = request("GET", &target, Asked::Stream { form, is_told, reception });
        if let Some(after) = after.filter(|_| by_field) {
            request.fields = format!("Last-Event-ID: {after}\r\n");
        }
        request.is_old = self.rng.u32(..4) == 0;
        request.is_last = true;
        request
    }

    fn web_socket(&mut self, peer: &mut Peer, truth: &Truth) {
        let is_polling = self.rng.u32(..3) == 0;
        let is_told = self.rng.bool();
        let after = self.after(truth);
        if self.rng.u32(..10) == 0 {
            self.memory.channels.clear();
        }
        let channels = self.memory.channels.clone();
        let mut target = format!("/ws{}", self.query(&channels, after));
        if is_polling {
            target.push_str("mode=poll&");
        }
        if is_told {
            target.push_str("v=2");
        }
        let key = std::array::from_fn(|_| self.rng.u8(..));
        peer.takes_compressed = self.rng.u32(..3) == 0;
        if peer.is_http2 {
            let mut fields = fields_of("CONNECT", &target);
            fields.push(b":protocol", b"websocket");
            fields.push(b"sec-websocket-version", b"13");
            if peer.takes_compressed {
                fields.push(b"sec-websocket-extensions", b"permessage-deflate; client_max_window_bits");
            }
            peer.head = Some((fields, false));
        } else {
            let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
            let offer = if peer.takes_compressed { offer } else { "" };
            handshake::encode_request_with(&mut peer.out, "example.org", &target, key, offer);
        }
        let reception = (!is_polling).then(|| self.reception(&channels, after, true, truth));
        peer.expected.push_back(Expected::frame(Asked::WebSocket { key, channels, is_told, reception }));
        // Other frames wait for the answer.
        peer.is_last = true;
        if self.rng.u32(..4) == 0 {
            self.pings += 1;
            self.write_text(peer, &format!("[\"ping\",{}]", self.pings));
            peer.expected.push_back(Expected::frame(Asked::Ping(self.pings)));
        }
    }

    fn frame(&mut self, peer: &mut Peer, truth: &Truth) {
        let Mode::WebSocket { reception, channels, .. } = &mut peer.mode else { return };
        let is_polling = reception.is_none();
        let (text, asked) = match self.rng.u32(..100) {
            0..20 => {
                let channel = self.rng.usize(..CHANNELS.len());
                (format!("[\"pub\",\"{}\",{}]", CHANNELS[channel], some_data(&mut self.rng)), Asked::Frame)
            }
            20..35 => {
                let channel = self.rng.usize(..CHANNELS.len());
                let is_new = !channels.contains(&channel);
                let asked = if is_new && channels.len() == self.max_channels {
                    Asked::Refusal("too-many-channels")
                } else {
                    channels.extend(is_new.then_some(channel));
                    Asked::Subscribe(channel)
                };
                (format!("[\"sub\",\"{}\"]", CHANNELS[channel]), asked)
            }
            35..45 => {
                let channel = self.rng.usize(..CHANNELS.len());
                channels.retain(|&c| c != channel);
                (format!("[\"unsub\",\"{}\"]", CHANNELS[channel]), Asked::Unsubscribe(channel))
            }
            45..55 => {
                self.pings += 1;
                (format!("[\"ping\",{}]", self.pings), Asked::Ping(self.pings))
            }
            55..62 => {
                let data = some_data(&mut self.rng);
                (format!("[\"echo\",{data}]"), Asked::Echo(data.into_bytes()))
            }
            62..68 => {
                let payload: Vec<u8> = (0..self.rng.usize(..20)).map(|_| self.rng.u8(..)).collect();
                encode(&mut peer.out, Opcode::Ping, &payload, Some(self.rng.u32(..).to_be_bytes()));
                peer.expected.push_back(Expected::frame(Asked::Probe(payload)));
                return;
            }
            68..72 => self.refused_frame(is_polling, channels.len() == self.max_channels),
            72 => {
                let code = pushlab_wire::codes::CloseCode::Normal;
                encode_close(&mut peer.out, code, "", Some(self.rng.u32(..).to_be_bytes()));
                peer.expected.push_back(Expected::frame(Asked::Close));
                peer.is_last = true;
                return;
            }
            _ if is_polling => {
                let channels = channels.clone();
                let after = self.after(truth);
                let text = after.map_or(String::new(), |after| after.to_string());
                (format!("[\"poll\",\"{text}\"]"), Asked::Poll(self.reception(&channels, after, false, truth)))
            }
            _ => return,
        };
        self.write_text(peer, &text);
        peer.expected.push_back(Expected::frame(asked));
    }

    /// A frame that is answered by an error.
    fn refused_frame(&mut self, is_polling: bool, is_full: bool) -> (String, Asked) {
        let (text, code) = *self
            .rng
            .choice(
                [
                    ("[\"pub\",\".no\",1]", "bad-channel"),
                    ("[\"sub\",\"\"]", if is_full { "too-many-channels" } else { "bad-channel" }),
                    ("{}", "bad-frame"),
                    ("[\"poll\",\"no\"]", if is_polling { "bad-cursor" } else { "bad-frame" }),
                ]
                .iter(),
            )
            .expect("there are some");
        (text.to_owned(), Asked::Refusal(code))
    }

    /// One text message, whole or in two fragments.
    fn write_text(&mut self, peer: &mut Peer, text: &str) {
        let mask = Some(self.rng.u32(..).to_be_bytes());
        if self.rng.u32(..8) > 0 {
            return encode(&mut peer.out, Opcode::Text, text.as_bytes(), mask);
        }
        let (one, two) = text.as_bytes().split_at(self.rng.usize(..text.len()));
        let start = peer.out.len();
        encode(&mut peer.out, Opcode::Text, one, mask);
        peer.out[start] &= 0x7f;
        encode(&mut peer.out, Opcode::Continuation, two, mask);
    }
}

impl Request {
    fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }
}

/// The pseudo-header fields of a request over HTTP/2.
fn fields_of(method: &str, target: &str) -> FieldList {
    let mut fields = FieldList::default();
    for (name, value) in [(":method", method), (":scheme", "https"), (":authority", "example.org"), (":path", target)] {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn request(method: &'static str, target: &str, asked: Asked) -> Request {
    let expected = Expected::frame(asked);
    let (target, fields, body) = (target.to_owned(), String::new(), Vec::new());
    Request { method, target, fields, body, is_old: false, is_last: false, expected }
}

/// JSON that some framings have to escape.
pub fn some_data(rng: &mut Rng) -> String {
    let number = rng.u32(..);
    match rng.u32(..8) {
        0 => format!("{{\"n\":{number},\"t\":\"it's <b>\\\\</b>\"}}"),
        1 => format!("[{number},\n2]"),
        2 => format!("\"{number}{}\"", "x".repeat(rng.usize(..150))),
        _ => number.to_string(),
    }
}
