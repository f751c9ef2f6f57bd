//! Plays scripted answers to a receiver, cut into pieces, as a loop with its leftovers would.

use super::tally::WayTally;
use super::{Cut, Event, Receiver, Requests, Tally};
use fastrand::Rng;
use pushlab_wire::http::{CHUNK_END, Headers, encode_chunk_head, parse_request};
use pushlab_wire::websocket::handshake;
use pushlab_workload::plan::Target;
use pushlab_workload::result::ByteUses;

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

/// Opens a connection and feeds it `answer(request)` in pieces of the given sizes (the last repeats).
pub fn play(client: &mut impl Receiver, cuts: &[usize], answer: &dyn Fn(&str) -> Vec<u8>) -> Result<Outcome, Cut> {
    let mut rng = Rng::with_seed(7);
    let mut out = Vec::new();
    client.open(&requests(), &mut rng, &mut out);
    let request = String::from_utf8(std::mem::take(&mut out)).unwrap();
    let bytes = answer(&request);
    let (mut tally, mut payload) = (Tally::default(), 0);
    (tally.down.all, tally.up.heads) = (bytes.len() as u64, request.len() as u64);
    let (mut events, mut held, mut start) = (Vec::new(), Vec::new(), 0);
    let mut sink = |event: Event<'_>| {
        if let Event::Message(data) | Event::Echo(data) = event {
            payload += data.len() as u64;
        }
        events.push(short(&event));
    };
    for i in 0.. {
        if start == bytes.len() {
            break;
        }
        let end = (start + cuts[i.min(cuts.len() - 1)]).min(bytes.len());
        held.extend_from_slice(&bytes[start..end]);
        start = end;
        // The loop calls again only with new bytes, so whole frames must never be left over.
        let consumed = client.receive(&mut rng, &mut held, &mut out, &mut tally, &mut sink)?;
        held.drain(..consumed);
        if start == bytes.len() && !held.is_empty() {
            client.receive(&mut rng, &mut held, &mut out, &mut tally, &mut sink)?;
        }
    }
    (tally.down.payload, tally.up.all) = (payload, (request.len() + out.len()) as u64);
    let [down, up] = [tally.down, tally.up].map(|way| way.uses_since(&WayTally::default()));
    Ok(Outcome { request, events, written: out, down, up })
}

fn short(event: &Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match event {
        Event::Subscribed => "subscribed".into(),
        Event::Message(data) => format!("message {}", text(data)),
        Event::Echo(data) => format!("echo {}", text(data)),
        Event::Gap => "gap".into(),
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
    ByteUses { payload, dialect, framing, heads, tls: 0 }
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
