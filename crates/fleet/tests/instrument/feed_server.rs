//! A subject that relays its back end's publications to WebSocket clients, with known faults.

use pushlab_os::clock::{monotonic_ns, sleep_until};
use pushlab_wire::http::{Headers, parse_request};
use pushlab_wire::native::ClientFrame;
use pushlab_wire::receipt::Receipt;
use pushlab_wire::stamp::Stamp;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, handshake};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// After this long without a publication, what is held back for the next one is sent.
const QUIET: Duration = Duration::from_millis(200);

/// What it does wrong, in tenths of a per cent of all deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub delay_ns: u64,
    /// Says it received each publication so long after its intended instant, which need not be so.
    pub receipt_ns: Option<u64>,
    pub lost: u32,
    pub doubled: u32,
    pub swapped: u32,
}

/// What it did wrong: the intended instant of each publication and what became of one delivery of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Lost,
    Doubled,
    Swapped,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// A frame and its intended instant, to be sent after the next one.
    held: Option<(Vec<u8>, u64)>,
}

pub struct FeedServer {
    pub address: SocketAddr,
    clients: Arc<Mutex<Vec<Client>>>,
    done: Arc<Mutex<Vec<(u64, Fault)>>>,
}

impl FeedServer {
    /// Serves clients, and relays what the back end sends.
    pub fn start(back_end: SocketAddr, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), clients: Arc::default(), done: Arc::default() };
        let clients = Arc::clone(&server.clients);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let clients = Arc::clone(&clients);
                std::thread::spawn(move || serve(stream.unwrap(), &clients));
            }
        });
        let (sender, queue) = channel();
        std::thread::spawn(move || {
            each_text(&mut connect(back_end), Role::Client, |text| {
                let _ = sender.send(text.to_owned());
                None
            });
        });
        let (clients, done) = (Arc::clone(&server.clients), Arc::clone(&server.done));
        std::thread::spawn(move || release(&queue, faults, &clients, &done));
        server
    }

    /// How often it did something wrong to publications intended in a span.
    pub fn count(&self, fault: Fault, span: std::ops::Range<u64>) -> u64 {
        self.done.lock().unwrap().iter().filter(|(instant, did)| *did == fault && span.contains(instant)).count() as u64
    }
}

/// Sends each publication at its intended instant and the delay, waiting the last 200 µs awake.
fn release(queue: &Receiver<String>, faults: Faults, clients: &Mutex<Vec<Client>>, done: &Mutex<Vec<(u64, Fault)>>) {
    pushlab_os::clock::set_precise_wakeups();
    let mut rng = fastrand::Rng::with_seed(11);
    let mut offset = 0;
    loop {
        let data = match queue.recv_timeout(QUIET) {
            Ok(data) => data,
            Err(RecvTimeoutError::Timeout) => {
                for client in clients.lock().unwrap().iter_mut() {
                    client.held.take().map(|(held, _)| client.stream.write_all(&held));
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        offset += 1;
        // Control frames are arrays; publications are not.
        if data.starts_with('[') {
            continue;
        }
        let stamp = Stamp::find(data.as_bytes()).unwrap();
        let due = stamp.instant_ns + faults.delay_ns;
        if faults.delay_ns > 0 {
            sleep_until(due - 200_000);
            while monotonic_ns() < due {
                std::hint::spin_loop();
            }
        }
        let mut frame = Vec::new();
        let mut text = format!("[\"msg\",\"a\",\"e.{offset}\",{data}]").into_bytes();
        if let Some(receipt_ns) = faults.receipt_ns {
            Receipt { instant_ns: stamp.instant_ns + receipt_ns }.fill(&mut text);
        }
        encode(&mut frame, Opcode::Text, &text, None);
        for client in clients.lock().unwrap().iter_mut() {
            let did = |instant, fault| done.lock().unwrap().push((instant, fault));
            let now = stamp.instant_ns;
            let bytes = match (client.held.take(), rng.u32(0..1000)) {
                (Some((held, instant)), _) => {
                    did(instant, Fault::Swapped);
                    [frame.as_slice(), &held].concat()
                }
                (None, dice) if dice < faults.lost => {
                    did(now, Fault::Lost);
                    continue;
                }
                (None, dice) if dice < faults.lost + faults.doubled => {
                    did(now, Fault::Doubled);
                    frame.repeat(2)
                }
                (None, dice) if dice < faults.lost + faults.doubled + faults.swapped => {
                    client.held = Some((frame.clone(), now));
                    continue;
                }
                _ => frame.clone(),
            };
            let _ = client.stream.write_all(&bytes);
        }
    }
}

fn serve(mut stream: TcpStream, clients: &Mutex<Vec<Client>>) {
    stream.set_nodelay(true).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let mut headers = Headers::default();
    let (request, _) = parse_request(&head, &mut headers).unwrap().unwrap();
    let mut out = Vec::new();
    handshake::encode_response(&mut out, &handshake::accept(&request).unwrap());
    encode(&mut out, Opcode::Text, b"[\"cursor\",\"e.0\"]", None);
    stream.write_all(&out).unwrap();
    if request.target.starts_with("/ws?channel=a ") || request.target == "/ws?channel=a" {
        clients.lock().unwrap().push(Client { stream: stream.try_clone().unwrap(), held: None });
    }
    each_text(&mut stream, Role::Server, |text| match ClientFrame::parse(text).unwrap() {
        ClientFrame::Echo(data) => Some(format!("[\"echo\",{data}]")),
        other => panic!("{other:?}"),
    });
}

pub fn connect(back_end: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(back_end).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut request = Vec::new();
    handshake::encode_request(&mut request, "back-end", "/", [3; 16]);
    stream.write_all(&request).unwrap();
    let mut tail = [0; 4];
    while tail != *b"\r\n\r\n" {
        tail.rotate_left(1);
        stream.read_exact(&mut tail[3..]).unwrap();
    }
    stream
}

/// Calls `answer` for each text until the connection ends, and sends what it returns.
pub fn each_text(stream: &mut TcpStream, role: Role, mut answer: impl FnMut(&str) -> Option<String>) {
    let (mut decoder, config) = (Decoder::default(), Config::new(role));
    let (mut held, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let size = match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(size) => size,
        };
        held.extend_from_slice(&buffer[..size]);
        while let Ok(Decoded::Frame { consumed, event }) = decoder.decode(&mut held, &config) {
            if let Some(Event::Text(text)) = event
                && let Some(text) = answer(text)
            {
                let mut out = Vec::new();
                encode(&mut out, Opcode::Text, text.as_bytes(), None);
                if stream.write_all(&out).is_err() {
                    return;
                }
            }
            held.drain(..consumed);
        }
    }
}
