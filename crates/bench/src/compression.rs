//! permessage-deflate: processor time per delivery and bytes per delivery, compressed divided by plain.
//!
//! Publications are JSON, each of them another. A publication is compressed once for all subscribers, so what it costs
//! depends on how many there are. Both servers run as for their users: they write to many through io_uring, where the
//! kernel allows it.

use crate::audience::{Audience, Came, Peer, Tally};
use crate::connect::{self, open_blocking};
use crate::figure::{Figure, rounded};
use crate::frames::CHANNEL;
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::{Load, Scale};
use crate::side::{Side, Terms, compare, details};
use crate::subject::{FanOut, Role, Serve, Subject};
use anyhow::Context as _;
use fastrand::Rng;
use mio::net::TcpStream;
use pushlab_stats::median;
use pushlab_wire::websocket::handshake;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::net::SocketAddr;

/// Different publications, sent in turn.
const PUBLICATIONS: usize = 64;
/// Size of a publication where processor time is measured, bytes.
const SIZE: usize = 1024;
/// Source addresses: plain, compressed.
const FAMILIES: [u8; 2] = [32, 33];
/// What a browser offers.
const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

/// Measures what the name says: processor time with so many subscribers, or bytes with publications of such a size.
pub fn measure(name: &'static str, of: &str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let strange = || format!("nothing measures {name}");
    if let Some(size) = of.strip_prefix("bytes-") {
        return measure_bytes(name, size.parse().with_context(strange)?, scale, cores);
    }
    let subscribers = of.parse::<usize>().with_context(strange)?.min(scale.subscribers);
    // About as many deliveries a second whoever is there, as far as one publication a millisecond allows.
    let load = Load::PerSecond((50_000 / subscribers).clamp(1, 1000) as u32);
    let payloads = payloads(SIZE);
    let terms = Terms { baseline: "plain", ratio: &|plain, compressed| compressed / plain };
    let (mut ratios, mut pairs) = (Vec::new(), Vec::new());
    for _ in 0..scale.repeats {
        let [mut plain, mut compressed] = sides(&payloads, subscribers, cores)?;
        ratios.push(compare(&mut plain, &mut compressed, &[load], scale, &terms, &mut pairs)?);
    }
    let detail = json!({
        "headline": "CPU per delivery, compressed / plain; median of the repeats",
        "repeats": ratios.iter().copied().map(rounded).collect::<Vec<_>>(),
        "subscribers": subscribers,
        "payload_bytes": SIZE,
        "loads": details(&[load], &pairs, &terms),
    });
    Figure::of_repeats(name, &ratios, detail)
}

fn measure_bytes(name: &'static str, size: usize, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let [mut plain, mut compressed] = sides(&payloads(size), 1, cores)?;
    let bytes_of = |side: &mut Side<Frames>| -> anyhow::Result<f64> {
        // Whole rounds of all publications would be exact; this is long enough to come near.
        Ok(side.run(Load::PerSecond(1000), scale.segment)?.delivery_bytes())
    };
    let (mut plain_bytes, mut compressed_bytes, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.repeats {
        let pair = (bytes_of(&mut plain)?, bytes_of(&mut compressed)?);
        plain_bytes.push(pair.0);
        compressed_bytes.push(pair.1);
        ratios.push(pair.1 / pair.0);
    }
    let detail = json!({
        "headline": "bytes per delivery, compressed / plain; median of the repeats",
        "payload_bytes": size,
        "plain_bytes": median(&plain_bytes).map(rounded),
        "compressed_bytes": median(&compressed_bytes).map(rounded),
    });
    Figure::of_repeats(name, &ratios, detail)
}

/// A fresh pair: without compression, and with it for whatever gets smaller by it.
fn sides(payloads: &[String], subscribers: usize, cores: Cores) -> anyhow::Result<[Side<Frames>; 2]> {
    let side = |is_compressed: bool| {
        let serve = Serve::plain(cores.subject, FanOut::Auto);
        let subject = Subject::start(Role::Server(Serve { compression_from: is_compressed.then_some(1), ..serve }))?;
        let address = subject.address();
        let publisher = Publisher::of_payloads(open_blocking(address)?, payloads)?;
        let family = FAMILIES[usize::from(is_compressed)];
        let mut audience = Audience::new()?;
        audience.grow(subscribers, |index| Frames::open(address, family, index, is_compressed), None)?;
        anyhow::Ok(Side { subject, publisher, audience, subscribers })
    };
    Ok([side(false)?, side(true)?])
}

/// Publications of exactly this size, each of them another: orders as an exchange would tell them.
fn payloads(size: usize) -> Vec<String> {
    let mut random = Rng::with_seed(20_261_123);
    (0..PUBLICATIONS).map(|_| payload(size, &mut random)).collect()
}

fn payload(size: usize, random: &mut Rng) -> String {
    const SYMBOLS: [&str; 6] = ["AAPL", "AMZN", "GOOG", "META", "MSFT", "NVDA"];
    const SIDES: [&str; 2] = ["buy", "sell"];
    let mut json = format!("{{\"sequence\":{},\"orders\":[", random.u32(1_000_000..10_000_000));
    let mut between = "";
    loop {
        let order = format!(
            "{between}{{\"id\":\"{:08x}\",\"symbol\":\"{}\",\"side\":\"{}\",\"price\":{}.{:02},\"quantity\":{}}}",
            random.u32(..),
            SYMBOLS[random.usize(..SYMBOLS.len())],
            SIDES[random.usize(..SIDES.len())],
            random.u32(100..1000),
            random.u32(..100),
            random.u32(1..100) * 10,
        );
        // Room for the end, with an empty note.
        if json.len() + order.len() + "],\"note\":\"\"}".len() > size {
            break;
        }
        json.push_str(&order);
        between = ",";
    }
    json.push_str("],\"note\":\"");
    while json.len() + "\"}".len() < size {
        json.push(random.lowercase());
    }
    write!(json, "\"}}").expect("writing to a String cannot fail");
    json
}

/// A subscriber that counts WebSocket frames without looking into them.
struct Frames {
    socket: TcpStream,
    counter: Counter,
    /// The first frame is a greeting.
    is_greeted: bool,
}

/// Finds where frames end.
#[derive(Default)]
struct Counter {
    is_compressed: bool,
    /// What of the answer's head or of a frame's head has come.
    head: Vec<u8>,
    is_open: bool,
    /// What is left of the frame whose head was the last.
    left: usize,
}

impl Frames {
    fn open(address: SocketAddr, family: u8, index: usize, is_compressed: bool) -> anyhow::Result<Self> {
        let mut request = Vec::new();
        let offer = if is_compressed { OFFER } else { "" };
        let path = format!("/ws?channel={CHANNEL}");
        handshake::encode_request_with(&mut request, "bench", &path, *b"0123456789abcdef", offer);
        let socket = connect::open(address, family, index, &request)?;
        Ok(Self { socket, counter: Counter { is_compressed, ..Counter::default() }, is_greeted: false })
    }
}

impl Counter {
    /// Counts the frames that end in these bytes.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<u64> {
        let mut ended = 0;
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.left > 0 {
                let size = self.left.min(bytes.len());
                self.left -= size;
                bytes = &bytes[size..];
                ended += u64::from(self.left == 0);
                continue;
            }
            self.head.push(byte);
            bytes = rest;
            if !self.is_open {
                if self.head.ends_with(b"\r\n\r\n") {
                    self.accept()?;
                }
            } else if let Some(size) = payload_size(&self.head) {
                self.left = size;
                self.head.clear();
            }
        }
        Ok(ended)
    }

    /// The server's answer is there.
    fn accept(&mut self) -> io::Result<()> {
        let head = String::from_utf8_lossy(&self.head).to_ascii_lowercase();
        if !head.starts_with("http/1.1 101 ") || head.contains("permessage-deflate") != self.is_compressed {
            let text = format!("the subject agrees to something else: {head}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.is_open = true;
        self.head.clear();
        Ok(())
    }
}

/// The size of a frame's payload, once its head is there (RFC 6455, section 5.2). A server masks nothing, and has no
/// frame without payload here.
fn payload_size(head: &[u8]) -> Option<usize> {
    match *head {
        [_, 126, a, b] => Some(u16::from_be_bytes([a, b]).into()),
        [_, 127, a, b, c, d, e, f, g, h] => usize::try_from(u64::from_be_bytes([a, b, c, d, e, f, g, h])).ok(),
        [_, size @ 0..126] => Some(size.into()),
        _ => None,
    }
}

impl Peer for Frames {
    fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> io::Result<Came> {
        let bytes = self.socket.read(buffer)?;
        let mut frames = self.counter.take(&buffer[..bytes])?;
        if frames > 0 && !self.is_greeted {
            self.is_greeted = true;
            frames -= 1;
        }
        tally.deliveries += frames;
        Ok(Came { bytes, is_greeted: self.is_greeted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_json_of_their_size_and_differ() {
        for size in [100, SIZE, 16 * 1024] {
            let payloads = payloads(size);
            for payload in &payloads {
                assert_eq!(payload.len(), size);
                assert!(pushlab_wire::native::is_json(payload), "{payload}");
            }
            assert!(payloads[1..].iter().all(|payload| *payload != payloads[0]));
        }
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let mut bytes = b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec();
        for size in [1, 125, 126, 65_535, 65_536] {
            pushlab_wire::websocket::encode(&mut bytes, pushlab_wire::websocket::Opcode::Text, &vec![b'x'; size], None);
        }
        for split in (0..bytes.len()).step_by(97) {
            let mut counter = Counter::default();
            let counted = [&bytes[..split], &bytes[split..]].map(|part| counter.take(part).unwrap());
            assert_eq!(counted.iter().sum::<u64>(), 5, "{split}");
        }
    }
}
