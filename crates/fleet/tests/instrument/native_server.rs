//! The native protocol in its simplest form, a thread a connection, with writes cut into random pieces.

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::deflate::{Deflater, InflateDecoder};
use pushlab_wire::event_stream;
use pushlab_wire::http::{BodyKind, CHUNK_END, Headers, encode_chunk_head, parse_request, split_target};
use pushlab_wire::native::{ClientFrame, MessageText};
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, encode_compressed, handshake};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

pub struct NativeServer {
    pub address: SocketAddr,
    log: Arc<Log>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `GET /poll`: method and path.
    pub what: String,
    pub channel: String,
    /// All of its head.
    pub head: String,
}

#[derive(Default)]
struct Log {
    /// Channel and data; the offset is the place, from 1.
    messages: Mutex<Vec<(String, String)>>,
    grown: Condvar,
    asked: Mutex<Vec<Asked>>,
    /// Peers of all connections so far.
    peers: Mutex<Vec<SocketAddr>>,
    /// Connections that are open now, and the most that were together.
    open: AtomicUsize,
    open_max: AtomicUsize,
    /// What every path begins with.
    path: &'static str,
    /// Cut a stream after so many messages.
    cut_after: Option<usize>,
    carried: Mutex<Vec<Arc<Carried>>>,
    is_silent: AtomicBool,
    /// What it answers to the offer of compressed messages, if it compresses at all.
    agreement: Option<&'static str>,
    /// Publications that came compressed.
    compressed: AtomicUsize,
    /// Deliveries handed to connections so far, and what that was when each publication came.
    delivered: AtomicUsize,
    delivered_before: Mutex<Vec<usize>>,
    /// Deliveries that are still to be lost.
    to_lose: AtomicUsize,
    /// What is done to clients that resume, and to how many of them still.
    spoil: Mutex<Option<(Spoil, usize)>>,
    /// How many messages were sent again that clients had before.
    repeated: AtomicUsize,
    /// What clients were told that they do not get, for each of them.
    withheld: Mutex<Vec<String>>,
    refuses: Option<Refuse>,
}

/// What a publication in a frame is answered that is refused.
const REFUSED: &str = "[\"error\",\"forbidden\",\"not for you\"]";

/// What a server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuse {
    /// Every publication.
    Publications,
    /// Whatever is asked, with this status.
    Everything(u16),
}

/// What a server may do to a client that resumes a stream or a WebSocket.
#[derive(Debug, Clone, Copy)]
pub enum Spoil {
    /// Leaves so many out of the messages that it missed, and says nothing.
    Loses(usize),
    /// Sends so many again that it had before.
    Doubles(usize),
    /// Begins anew, and says so.
    TellsGap,
}

/// What one connection carried.
#[derive(Default)]
struct Carried {
    first: OnceLock<Asked>,
    read: AtomicU64,
    written: AtomicU64,
}

impl Asked {
    fn new(method: &str, target: &str, head: &[u8]) -> Self {
        let (path, mut parameters) = split_target(target);
        let channel = parameters.find(|(name, _)| name == "channel").unwrap_or_default().1.into_owned();
        Self { what: format!("{method} {path}"), channel, head: String::from_utf8(head.to_vec()).unwrap() }
    }
}

impl NativeServer {
    pub fn start(cut_after: Option<usize>) -> Self {
        Self::with(Log { cut_after, ..Log::default() })
    }

    /// One whose paths all begin with this.
    pub fn below(path: &'static str) -> Self {
        Self::with(Log { path, ..Log::default() })
    }

    pub fn refusing(what: Refuse) -> Self {
        Self::with(Log { refuses: Some(what), ..Log::default() })
    }

    /// One that compresses whatever clients ask for, and answers this where they offer compressed messages.
    pub fn compressing(agreement: &'static str) -> Self {
        Self::with(Log { agreement: Some(agreement), ..Log::default() })
    }

    /// Publications that came compressed.
    pub fn compressed(&self) -> usize {
        self.log.compressed.load(SeqCst)
    }

    fn with(log: Log) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(log);
        let server = Self { address, log: Arc::clone(&log) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, stream) = (Arc::clone(&log), stream.unwrap());
                log.peers.lock().unwrap().push(stream.peer_addr().unwrap());
                log.open_max.fetch_max(log.open.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::spawn(move || {
                    Connection::new(stream, Arc::clone(&log)).serve();
                    log.open.fetch_sub(1, SeqCst);
                });
            }
        });
        server
    }

    /// The data of all publications so far.
    pub fn published(&self) -> Vec<String> {
        self.log.messages.lock().unwrap().iter().map(|(_, data)| data.clone()).collect()
    }

    /// The channels of all publications so far.
    pub fn published_to(&self) -> Vec<String> {
        self.log.messages.lock().unwrap().iter().map(|(channel, _)| channel.clone()).collect()
    }

    /// Most publications that were under way to so many subscribers, one that is half delivered counting as half.
    pub fn under_way_max(&self, subscribers: usize) -> f64 {
        let delivered_before = self.log.delivered_before.lock().unwrap();
        let under_way = delivered_before.iter().enumerate().map(|(k, delivered)| (k + 1) * subscribers - delivered);
        under_way.max().unwrap_or(0) as f64 / subscribers as f64
    }

    /// Loses the next so many deliveries.
    pub fn lose(&self, deliveries: usize) {
        self.log.to_lose.store(deliveries, SeqCst);
    }

    /// Does this to the next so many clients that resume a stream or a WebSocket.
    pub fn spoil(&self, spoil: Spoil, clients: usize) {
        *self.log.spoil.lock().unwrap() = Some((spoil, clients));
    }

    /// How many messages were sent again that clients had before.
    pub fn repeated(&self) -> u64 {
        self.log.repeated.load(SeqCst) as u64
    }

    /// What clients were told that they do not get, for each of them.
    pub fn withheld(&self) -> Vec<String> {
        self.log.withheld.lock().unwrap().clone()
    }

    /// What publishes to a channel without a connection.
    pub fn publisher(&self) -> impl Fn(&str, &str) + Send + 'static {
        let log = Arc::clone(&self.log);
        move |channel, data| {
            log.publish(channel, data);
        }
    }

    /// Who has connected so far.
    pub fn peers(&self) -> Vec<SocketAddr> {
        self.log.peers.lock().unwrap().clone()
    }

    /// The most connections that were open together.
    pub fn open_max(&self) -> usize {
        self.log.open_max.load(SeqCst)
    }

    /// Answers no poll from now on.
    pub fn fall_silent(&self) {
        self.log.is_silent.store(true, SeqCst);
    }

    /// Bytes read and written so far, on the connections whose first request is such a one.
    pub fn carried(&self, is_counted: impl Fn(&Asked) -> bool) -> (u64, u64) {
        let carried = self.log.carried.lock().unwrap();
        let counted = carried.iter().filter(|connection| connection.first.get().is_some_and(&is_counted));
        counted.fold((0, 0), |(read, written), c| (read + c.read.load(SeqCst), written + c.written.load(SeqCst)))
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.log.asked.lock().unwrap().clone()
    }
}

/// All messages but the last ones, of which as many are left out as still are to be. The first ones may be from before the
/// cut, and still on their way then.
fn leave_out<'a>(left_out: &mut usize, messages: &'a [MessageText]) -> &'a [MessageText] {
    let skipped = messages.len().min(*left_out);
    *left_out -= skipped;
    &messages[..messages.len() - skipped]
}

impl Log {
    fn publish(&self, channel: &str, data: &str) -> usize {
        let mut messages = self.messages.lock().unwrap();
        messages.push((channel.to_owned(), data.to_owned()));
        self.delivered_before.lock().unwrap().push(self.delivered.load(SeqCst));
        self.grown.notify_all();
        messages.len()
    }

    /// Where a client that resumes goes on, how much of what it missed it does not get, and the gap that it is told.
    fn resume(&self, after: Option<usize>) -> (usize, usize, Option<String>) {
        let now = self.len();
        let Some(after) = after else { return (now, 0, None) };
        let mut spoil = self.spoil.lock().unwrap();
        let taken = spoil.as_mut().filter(|(_, left)| *left > 0).map(|(spoil, left)| {
            *left -= 1;
            *spoil
        });
        match taken {
            None => (after, 0, None),
            Some(Spoil::Loses(count)) => (after, count, None),
            Some(Spoil::Doubles(count)) => {
                let from = after.saturating_sub(count);
                self.repeated.fetch_add(after - from, SeqCst);
                (from, 0, None)
            }
            Some(Spoil::TellsGap) => {
                let messages = self.messages.lock().unwrap();
                self.withheld.lock().unwrap().extend(messages[after..now].iter().map(|(_, data)| data.clone()));
                (now, 0, Some(format!("[\"gap\",\"{}\",\"{}\"]", cursor(after), cursor(now))))
            }
        }
    }

    fn len(&self) -> usize {
        self.messages.lock().unwrap().len()
    }

    /// What follows an offset in some channels, and the new offset; waits for the first.
    fn after(&self, offset: usize, channels: &[String], wait: Duration) -> (Vec<MessageText>, usize) {
        let news = |messages: &Vec<(String, String)>| {
            let texts = messages.iter().enumerate().skip(offset).filter(|(_, (to, _))| channels.contains(to));
            texts.map(|(i, (to, data))| MessageText::new(to, &cursor(i + 1), data)).collect::<Vec<_>>()
        };
        let messages = self.messages.lock().unwrap();
        let (messages, _) = self.grown.wait_timeout_while(messages, wait, |all| news(all).is_empty()).unwrap();
        let mut news = news(&messages);
        // Under the lock, and before they are written: nobody can have received more than was counted.
        self.delivered.fetch_add(news.len(), SeqCst);
        if !news.is_empty() && self.to_lose.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            news.remove(0);
        }
        (news, messages.len())
    }
}

fn cursor(offset: usize) -> Cursor {
    Cursor { epoch: Epoch::parse("e").unwrap(), offset: offset as u64 }
}

struct Connection {
    stream: TcpStream,
    log: Arc<Log>,
    carried: Arc<Carried>,
    rng: fastrand::Rng,
    held: Vec<u8>,
    /// Whether the last request takes gzip, and whether it offers compressed messages.
    takes_gzip: bool,
    is_offered: bool,
    stream_gzip: Option<GzEncoder<Vec<u8>>>,
    /// Compresses messages, with context or without.
    deflate: Option<(Compress, bool)>,
}

impl Connection {
    fn new(stream: TcpStream, log: Arc<Log>) -> Self {
        stream.set_nodelay(true).unwrap();
        let carried = Arc::new(Carried::default());
        log.carried.lock().unwrap().push(Arc::clone(&carried));
        let (rng, held) = (fastrand::Rng::new(), Vec::new());
        let (takes_gzip, is_offered) = (false, false);
        Self { stream, log, carried, rng, held, takes_gzip, is_offered, stream_gzip: None, deflate: None }
    }

    /// Writes in random pieces; `None` when the client has gone.
    fn write(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let size = self.rng.usize(1..=bytes.len().min(150));
            self.stream.write_all(&bytes[..size]).ok()?;
            self.carried.written.fetch_add(size as u64, SeqCst);
            bytes = &bytes[size..];
        }
        Some(())
    }

    fn read_more(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let size = self.stream.read(&mut buffer).ok().filter(|&size| size > 0)?;
        self.carried.read.fetch_add(size as u64, SeqCst);
        self.held.extend_from_slice(&buffer[..size]);
        Some(())
    }

    fn serve(mut self) -> Option<()> {
        loop {
            let (method, target, body, accept) = self.request()?;
            let (path, parameters) = split_target(&target);
            let parameters: Vec<_> = parameters.collect();
            let value = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
            let channels = parameters.iter().filter(|(name, _)| name == "channel");
            let channels: Vec<String> = channels.map(|(_, value)| value.to_string()).collect();
            let after = value("after").map(|text| Cursor::parse(&text).unwrap().offset as usize);
            match (method.as_str(), path) {
                _ if matches!(self.log.refuses, Some(Refuse::Everything(_))) => self.refuse()?,
                ("POST", "/publish") if self.log.refuses.is_some() => self.refuse()?,
                ("GET", "/ws") => {
                    let mut out = Vec::new();
                    handshake::encode_response(&mut out, &accept?);
                    if let Some(agreement) = self.log.agreement.filter(|_| self.is_offered) {
                        out.truncate(out.len() - 2);
                        out.extend_from_slice(format!("Sec-WebSocket-Extensions: {agreement}\r\n\r\n").as_bytes());
                        let keeps_context = !agreement.contains("server_no_context_takeover");
                        self.deflate = Some((Compress::new(Compression::fast(), false), keeps_context));
                    }
                    self.write(&out)?;
                    return self.websocket(&channels, after, value("mode").is_some());
                }
                ("GET", "/sse") => return self.stream(&channels, after, "text/event-stream", sse_text),
                ("GET", "/stream") => return self.stream(&channels, after, "application/x-ndjson", line_text),
                ("GET", "/poll") => {
                    let wait = value("wait").map_or(0, |text| text.parse().unwrap());
                    let reply = reply(&self.log, &channels, after, Duration::from_secs(wait));
                    while self.log.is_silent.load(SeqCst) {
                        self.read_more()?;
                    }
                    self.answer(&reply)?;
                }
                ("POST", "/publish") => {
                    let offset = self.log.publish(&channels[0], &body);
                    self.answer(&format!("[\"cursor\",\"{}\"]", cursor(offset)))?;
                }
                ("POST", "/echo") => self.answer(&body)?,
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
                    let accept = handshake::accept(&head).ok();
                    let is_compressing = self.log.agreement.is_some();
                    self.takes_gzip = is_compressing && head.header("accept-encoding") == Some("gzip");
                    self.is_offered = head.header("sec-websocket-extensions").is_some();
                    let target = head.target.strip_prefix(self.log.path).unwrap().to_owned();
                    let method = head.method.to_owned();
                    let body = String::from_utf8(self.held[size..end].to_vec()).unwrap();
                    let asked = Asked::new(&method, &target, &self.held[..size]);
                    self.carried.first.get_or_init(|| asked.clone());
                    self.log.asked.lock().unwrap().push(asked);
                    self.held.drain(..end);
                    return Some((method, target, body, accept));
                }
            }
            self.read_more()?;
        }
    }

    fn refuse(&mut self) -> Option<()> {
        let status = if let Some(Refuse::Everything(status)) = self.log.refuses { status } else { 403 };
        let place = if status < 400 { "Location: http://elsewhere/\r\n" } else { "" };
        let answer = format!("HTTP/1.1 {status} No\r\n{place}Content-Length: 11\r\n\r\nnot for you");
        // In one piece: of a body that is not read to its end, what comes with the head is told.
        self.stream.write_all(answer.as_bytes()).ok()
    }

    fn answer(&mut self, body: &str) -> Option<()> {
        let mut coded = body.as_bytes().to_vec();
        let mut coding = "";
        if self.takes_gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&coded).unwrap();
            (coded, coding) = (encoder.finish().unwrap(), "Content-Encoding: gzip\r\n");
        }
        let head = format!("HTTP/1.1 200 OK\r\n{coding}Content-Length: {}\r\n\r\n", coded.len());
        self.write(&[head.as_bytes(), &coded].concat())
    }

    fn stream(&mut self, channels: &[String], after: Option<usize>, kind: &str, text: StreamText) -> Option<()> {
        let (mut offset, mut left_out, gap) = self.log.resume(after);
        let coding = if self.takes_gzip { "Content-Encoding: gzip\r\n" } else { "" };
        self.stream_gzip = self.takes_gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        self.write(
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{coding}Transfer-Encoding: chunked\r\n\r\n").as_bytes(),
        )?;
        if let Some(gap) = gap {
            self.chunk(&if kind == "text/event-stream" { format!("data:{gap}\n\n") } else { gap + "\n" }.into_bytes())?;
        }
        self.chunk(&text(None, &cursor(offset)))?;
        let mut sent = 0;
        loop {
            let (messages, next) = self.log.after(offset, channels, Duration::from_secs(5));
            offset = next;
            for message in leave_out(&mut left_out, &messages) {
                self.chunk(&text(Some(message), &cursor(0)))?;
                sent += 1;
                if self.log.cut_after == Some(sent) {
                    return None;
                }
            }
        }
    }

    fn chunk(&mut self, data: &[u8]) -> Option<()> {
        let mut out = Vec::new();
        let mut coded = None;
        if let Some(encoder) = &mut self.stream_gzip {
            encoder.write_all(data).unwrap();
            // It never ends: what has come so far can be read.
            encoder.flush().unwrap();
            coded = Some(std::mem::take(encoder.get_mut()));
        }
        let data = coded.as_deref().unwrap_or(data);
        encode_chunk_head(&mut out, data.len());
        out.extend_from_slice(data);
        out.extend_from_slice(CHUNK_END);
        self.write(&out)
    }

    fn frame(&mut self, text: &str) -> Option<()> {
        let mut out = Vec::new();
        match &mut self.deflate {
            None => encode(&mut out, Opcode::Text, text.as_bytes(), None),
            Some((context, true)) => {
                let mut small = Vec::with_capacity(text.len() + 100);
                context.compress_vec(text.as_bytes(), &mut small, FlushCompress::Sync).unwrap();
                encode_compressed(&mut out, Opcode::Text, &small[..small.len() - 4], None);
            }
            Some((_, false)) => match Deflater::default().deflate(text.as_bytes()) {
                Some(small) => encode_compressed(&mut out, Opcode::Text, &small, None),
                None => encode(&mut out, Opcode::Text, text.as_bytes(), None),
            },
        }
        self.write(&out)
    }

    fn websocket(&mut self, channels: &[String], after: Option<usize>, is_polled: bool) -> Option<()> {
        let (mut offset, mut left_out, gap) = self.log.resume(after);
        if let Some(gap) = gap {
            self.frame(&gap)?;
        }
        self.frame(&format!("[\"cursor\",\"{}\"]", cursor(offset)))?;
        // Reading and pushing take turns on one thread.
        self.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let config = Config { takes_compressed: self.deflate.is_some(), ..Config::new(Role::Server) };
        let (mut decoder, mut inflater, mut sent) = (Decoder::default(), InflateDecoder::default(), 0);
        let mut is_cut = false;
        loop {
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(size) => {
                    self.carried.read.fetch_add(size as u64, SeqCst);
                    self.held.extend_from_slice(&buffer[..size]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
            let mut answers = Vec::new();
            while let Decoded::Frame { consumed, event } = decoder.decode(&mut self.held, &config).unwrap() {
                let text = match event {
                    Some(Event::Text(text)) => Some(text),
                    Some(Event::Compressed { payload, .. }) => {
                        self.log.compressed.fetch_add(1, SeqCst);
                        Some(str::from_utf8(inflater.inflate(payload, 1 << 20).unwrap()).unwrap())
                    }
                    _ => None,
                };
                if let Some(text) = text {
                    match ClientFrame::parse(text).unwrap() {
                        ClientFrame::Publish { .. } if self.log.refuses.is_some() => answers.push(REFUSED.to_owned()),
                        ClientFrame::Publish { channel, data } => drop(self.log.publish(&channel, data)),
                        ClientFrame::Echo(data) => answers.push(format!("[\"echo\",{data}]")),
                        ClientFrame::Poll(_) if self.log.is_silent.load(SeqCst) => {}
                        ClientFrame::Poll(from) => {
                            let from = Cursor::parse(&from).map(|cursor| cursor.offset as usize).ok();
                            answers.push(reply(&self.log, channels, from, Duration::ZERO));
                        }
                        other => panic!("{other:?}"),
                    }
                }
                self.held.drain(..consumed);
            }
            if is_cut {
                continue;
            }
            for answer in answers {
                self.frame(&answer)?;
            }
            if is_polled {
                continue;
            }
            let (messages, next) = self.log.after(offset, channels, Duration::ZERO);
            offset = next;
            for message in leave_out(&mut left_out, &messages) {
                self.frame(std::str::from_utf8(message.as_bytes()).unwrap())?;
                sent += 1;
                if self.log.cut_after == Some(sent) {
                    // What the client has sent before it learns of the cut is still read: a cut loses nothing.
                    self.stream.shutdown(Shutdown::Write).ok()?;
                    is_cut = true;
                    break;
                }
            }
        }
    }
}

type StreamText = fn(Option<&MessageText>, &Cursor) -> Vec<u8>;

fn sse_text(message: Option<&MessageText>, start: &Cursor) -> Vec<u8> {
    let mut out = Vec::new();
    match message {
        None => out.extend_from_slice(format!("id:{start}\n\n").as_bytes()),
        Some(message) => event_stream::encode(&mut out, message.cursor(), &message.without_cursor()),
    }
    out
}

fn line_text(message: Option<&MessageText>, start: &Cursor) -> Vec<u8> {
    match message {
        None => format!("[\"cursor\",\"{start}\"]\n").into_bytes(),
        Some(message) => [message.as_bytes(), b"\n"].concat(),
    }
}

fn reply(log: &Log, channels: &[String], after: Option<usize>, wait: Duration) -> String {
    let (messages, offset) = match after {
        None => (Vec::new(), log.len()),
        Some(after) => log.after(after, channels, wait),
    };
    let mut out = String::from("[");
    for message in &messages {
        out.push_str(std::str::from_utf8(message.as_bytes()).unwrap());
        out.push(',');
    }
    out.push_str(&format!("[\"cursor\",\"{}\"]]", cursor(offset)));
    out
}
