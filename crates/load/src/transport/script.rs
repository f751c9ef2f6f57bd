//! Plays scripted answers to a receiver, cut into pieces, as a loop with its leftovers would.

use super::{Event, Hearing, Receiver, Requests};
use crate::connection::{Head, Http1, Incoming, Outgoing, Owner, Protocol as _};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::deflate::InflateDecoder;
use pushlab_wire::http::{CHUNK_END, Headers, encode_chunk_head, parse_request};
use pushlab_wire::websocket::handshake;
use pushlab_wire::websocket::permessage_deflate::Agreement;
use pushlab_workload::plan::Target;
use pushlab_workload::result::ByteUses;
use pushlab_workload::tally::{Tally, WayTally};

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What the receiver asked first.
    pub request: String,
    /// Events in short.
    pub events: Vec<String>,
    /// What it wrote besides.
    pub written: Vec<u8>,
    /// What the answer's bytes were for.
    pub down: ByteUses,
    /// What its own bytes were for.
    pub up: ByteUses,
}

/// Requests of channel `a`.
pub fn requests() -> Requests {
    Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 25)
}

/// A client that is told what its stream brought.
pub struct Told<'a, R, S> {
    pub client: &'a mut R,
    pub rng: Rng,
    pub inflater: InflateDecoder,
    pub out: Outgoing,
    pub tally: WayTally,
    pub sink: S,
}

impl<'a, R: Receiver, S: FnMut(Event<'_>)> Told<'a, R, S> {
    pub fn new(client: &'a mut R, sink: S) -> Self {
        let (out, tally) = (Outgoing::default(), WayTally::default());
        Self { client, rng: Rng::with_seed(7), inflater: InflateDecoder::default(), out, tally, sink }
    }
}

impl<R: Receiver, S: FnMut(Event<'_>)> Incoming for Told<'_, R, S> {
    fn turn_to(&mut self, _: Owner) {}

    fn head_bytes(&mut self, size: usize) {
        self.tally.heads += size as u64;
    }

    fn frame_bytes(&mut self, size: usize) {
        self.tally.frames += size as u64;
    }

    fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let Self { client, rng, inflater, out, tally, sink } = self;
        client.head(head, &mut Hearing { rng, inflater, out, texts: &mut tally.texts, sink })
    }

    fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
        let Self { client, rng, inflater, out, tally, sink } = self;
        client.body(data, is_last, &mut Hearing { rng, inflater, out, texts: &mut tally.texts, sink })
    }

    fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let fields: Vec<&str> = head.headers("sec-websocket-extensions").collect();
        if let Some(agreement) = Agreement::of(fields.into_iter(), true)? {
            self.client.agree(agreement);
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
        let Self { client, rng, inflater, out, tally, sink } = self;
        client.frames(bytes, &mut Hearing { rng, inflater, out, texts: &mut tally.texts, sink })
    }
}

/// Opens a stream and feeds it `answer(request)` in pieces of the given sizes (the last repeats).
pub fn play(client: &mut impl Receiver, cuts: &[usize], answer: &dyn Fn(&str) -> Vec<u8>) -> Result<Outcome, Cut> {
    let (mut payload, mut events) = (0, Vec::new());
    let sink = |event: Event<'_>| {
        if let Event::Message(data) | Event::Relayed(data) | Event::Echo(data) = event {
            payload += data.len() as u64;
        }
        events.push(short(&event));
    };
    let (mut told, mut http1) = (Told::new(client, sink), Http1::default());
    told.client.open(&requests(), &mut told.rng, &mut told.out);
    http1.has_sent(0, &mut told.out);
    let request = String::from_utf8(told.out.bytes().to_vec()).unwrap();
    let mut tally = Tally { up: told.out.tally(), ..Tally::default() };
    told.out.clear();
    let bytes = answer(&request);
    let (mut held, mut start) = (Vec::new(), 0);
    for i in 0.. {
        if start == bytes.len() {
            break;
        }
        let end = (start + cuts[i.min(cuts.len() - 1)]).min(bytes.len());
        held.extend_from_slice(&bytes[start..end]);
        start = end;
        // The loop calls again only with new bytes, so whole frames must never be left over.
        let consumed = http1.receive(&mut held, &mut told)?.consumed;
        held.drain(..consumed);
        if start == bytes.len() && !held.is_empty() {
            http1.receive(&mut held, &mut told)?;
        }
    }
    tally.up += told.out.tally();
    tally.down = WayTally { all: bytes.len() as u64, ..told.tally };
    let written = told.out.bytes().to_vec();
    tally.down.payload = payload;
    let [down, up] = [tally.down, tally.up].map(|way| way.uses_since(&WayTally::default()));
    Ok(Outcome { request, events, written, down, up })
}

fn short(event: &Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match event {
        Event::Subscribed => "subscribed".into(),
        Event::Message(data) => format!("message {}", text(data)),
        Event::Relayed(data) => format!("relayed {}", text(data)),
        Event::Echo(data) => format!("echo {}", text(data)),
        Event::ComeBack { after_ms } => format!("come back after {after_ms}"),
        Event::Gap => "gap".into(),
        Event::Compressed { .. } => "compressed".into(),
        Event::Uncompressed => "uncompressed".into(),
        Event::Asked => "asked".into(),
        Event::Error { code, text } => format!("error {code} {text}"),
        Event::Answered { keeps_alive: true } => "answered".into(),
        Event::Answered { keeps_alive: false } => "answered and closed".into(),
    }
}

/// The answer that accepts a WebSocket handshake.
pub fn upgrade(request: &str) -> Vec<u8> {
    let mut headers = Headers::default();
    let (head, _) = parse_request(request.as_bytes(), &mut headers).unwrap().unwrap();
    let mut out = Vec::new();
    handshake::encode_response(&mut out, &handshake::accept(&head).unwrap());
    out
}

/// An endless answer in chunks of a size.
pub fn chunked(kind: &str, body: &[u8], chunk: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut out = head.into_bytes();
    for piece in body.chunks(chunk) {
        encode_chunk_head(&mut out, piece.len());
        out.extend_from_slice(piece);
        out.extend_from_slice(CHUNK_END);
    }
    out
}

/// The uses of so many bytes, in the order that the layers have in a message.
pub fn uses([heads, framing, dialect, payload]: [usize; 4]) -> ByteUses {
    let [heads, framing, dialect, payload] = [heads, framing, dialect, payload].map(|bytes| bytes as u64);
    ByteUses { payload, dialect, framing, heads, ..ByteUses::default() }
}

/// Size of the head of an answer.
pub fn head_bytes(answer: &[u8]) -> usize {
    answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4
}

/// What chunks of a size add to a body.
pub fn chunk_bytes(body: usize, chunk: usize) -> usize {
    let rest = body % chunk;
    let of_one = |size: usize| if size < 16 { 5 } else { 6 };
    body / chunk * of_one(chunk) + if rest > 0 { of_one(rest) } else { 0 }
}
