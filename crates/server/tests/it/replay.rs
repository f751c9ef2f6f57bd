//! Recorded conversations, replayed: to the same bytes the server answers the same bytes, however they are cut.
//!
//! A server's words are compared exactly, connection by connection. Between connections only causes have an order: a
//! client says what comes next when everything recorded before it has been heard.

use crate::harness::{PATIENCE, Seam, Subject, connect, seam};
use crate::recording::{EPOCH_BYTES, Part, Recording, Step, shown};
use fastrand::Rng;
use pushlab_server::Config;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Recordings that are replayed at a time: some of them wait for a limit of time.
const AT_A_TIME: usize = 8;
/// The longest conversation that is said byte by byte, in bytes of clients.
const MAX_BYTE_BY_BYTE: usize = 4 * 1024;

/// How a client's turn is cut into pieces, each of which the server reads before the next is sent.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Nowhere,
    AtRandom(u64),
    Everywhere,
}

/// One replay.
struct Replay<'a> {
    recording: &'a Recording,
    server: Subject,
    epoch: String,
    connections: Vec<Connection>,
    random: Rng,
    cut: Cut,
}

/// A client's end.
struct Connection {
    socket: TcpStream,
    heard: Vec<u8>,
    /// So much of it was compared.
    at: usize,
    expected: VecDeque<Part>,
    /// The number last heard where one was expected.
    length: usize,
    has_ended: bool,
    is_end_expected: bool,
}

impl Connection {
    /// Reads what is there.
    fn pump(&mut self) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        while !self.has_ended {
            match self.socket.read(&mut bytes) {
                Ok(0) => self.has_ended = true,
                Ok(n) => self.heard.extend_from_slice(&bytes[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::ConnectionReset => self.has_ended = true,
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// Compares what has come; says whether all that is expected has.
    fn compare(&mut self, epoch: &str) -> Result<bool, String> {
        while let Some(part) = self.expected.front() {
            let fresh = &self.heard[self.at..];
            let (size, differs) = match part {
                Part::Bytes(bytes) => (bytes.len(), differs(bytes, fresh)),
                Part::Epoch(_) => (EPOCH_BYTES, differs(epoch.as_bytes(), fresh)),
                Part::Receipt => {
                    let is_mark = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
                    (9, fresh.iter().take(9).position(|b| !is_mark(b)))
                }
                Part::Length => {
                    let digits = fresh.iter().take_while(|b| b.is_ascii_digit()).count();
                    self.length = std::str::from_utf8(&fresh[..digits]).unwrap().parse().unwrap_or(0);
                    // It goes on until something else follows.
                    let size = if digits < fresh.len() { digits } else { digits + 1 };
                    (size, (digits == 0 && !fresh.is_empty()).then_some(0))
                }
                Part::Body => (self.length, None),
            };
            if let Some(at) = differs {
                return Err(self.difference(at, part));
            }
            if fresh.len() < size {
                return Ok(false);
            }
            self.at += size;
            self.expected.pop_front();
        }
        Ok(true)
    }

    fn difference(&self, at: usize, part: &Part) -> String {
        let wanted = match part {
            Part::Bytes(bytes) => shown(&bytes[at..]),
            other => format!("{other:?}"),
        };
        let before = shown(&self.heard[..self.at + at]);
        format!("behind\n{before}\nwas expected\n{wanted}\nbut there came\n{}", shown(&self.heard[self.at + at..]))
    }
}

/// Where bytes that came differ first from those that were expected.
fn differs(expected: &[u8], fresh: &[u8]) -> Option<usize> {
    expected.iter().zip(fresh).position(|(a, b)| a != b)
}

impl<'a> Replay<'a> {
    fn run(recording: &'a Recording, cut: Cut) -> Result<(), String> {
        let server = Subject::start(1, |config| configure(config, recording));
        let epoch = server.stats().cursor.split('.').next().unwrap().to_owned();
        assert_eq!(epoch.len(), EPOCH_BYTES, "{epoch}");
        let seed = if let Cut::AtRandom(seed) = cut { seed } else { 0 };
        let random = Rng::with_seed(seed);
        let mut replay = Self { recording, server, epoch, connections: Vec::new(), random, cut };
        for (n, step) in recording.steps.iter().enumerate() {
            replay.step(step).map_err(|error| format!("step {n}, {}: {error}", kind(step)))?;
        }
        replay.hear_all().map_err(|error| format!("at the end: {error}"))?;
        replay.expect_nothing_more().map_err(|error| format!("behind all: {error}"))
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if !matches!(step, Step::Hears(..) | Step::HearsEnd(..)) {
            self.hear_all()?;
        }
        match step {
            Step::Opens(id) => {
                assert_eq!(*id, self.connections.len(), "connections are numbered as they open");
                self.open()
            }
            Step::Says(id, parts) => {
                let bytes = self.bytes(parts);
                self.say(*id, &bytes)
            }
            Step::Ends(id) => {
                // Who was reset already has ended.
                let _ = self.connections[*id].socket.shutdown(Shutdown::Write);
                Ok(())
            }
            Step::Hears(id, parts) => {
                self.connections[*id].expected.extend(parts.iter().cloned());
                Ok(())
            }
            Step::HearsEnd(id) => {
                self.connections[*id].is_end_expected = true;
                Ok(())
            }
            Step::Stop => {
                self.server.stop();
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Result<(), String> {
        let accepted = self.server.stats().accepted;
        let socket = connect(self.server.address());
        socket.set_nonblocking(true).unwrap();
        self.connections.push(Connection {
            socket,
            heard: Vec::new(),
            at: 0,
            expected: VecDeque::new(),
            length: 0,
            has_ended: false,
            is_end_expected: false,
        });
        self.wait("the server takes the connection", |replay| Ok(replay.server.stats().accepted > accepted))
    }

    /// What a client says to this server.
    fn bytes(&self, parts: &[Part]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(known) => bytes.extend_from_slice(known),
                Part::Epoch(mask) => bytes.extend(self.epoch.bytes().zip(mask.iter().cycle()).map(|(b, m)| b ^ m)),
                _ => unreachable!("a client's bytes are known"),
            }
        }
        bytes
    }

    fn say(&mut self, id: usize, bytes: &[u8]) -> Result<(), String> {
        let pieces: Vec<&[u8]> = match self.cut {
            Cut::Nowhere => vec![bytes],
            Cut::Everywhere => bytes.chunks(1).collect(),
            Cut::AtRandom(_) => self.cut_at_random(bytes),
        };
        for piece in pieces {
            let received = self.server.stats().bytes_received;
            let socket = &mut self.connections[id].socket;
            // A server that has refused what came before may hear no more.
            if socket.write_all(piece).is_err() {
                break;
            }
            self.wait("the server reads what is said", |replay| {
                let has_read = replay.server.stats().bytes_received >= received + piece.len() as u64;
                Ok(has_read || replay.connections[id].has_ended)
            })?;
            if self.connections[id].has_ended {
                break;
            }
        }
        Ok(())
    }

    fn cut_at_random<'b>(&mut self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut pieces = Vec::new();
        // What is long is cut into hundreds of pieces all the same, not into tens of thousands.
        let longest = [3, 20, 200][self.random.usize(..3)].max(bytes.len() / 500);
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.random.usize(1..=longest).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }

    /// Waits until everything that was recorded so far has been heard.
    fn hear_all(&mut self) -> Result<(), String> {
        self.wait("all is heard", |replay| {
            let mut is_all = true;
            for (id, connection) in replay.connections.iter_mut().enumerate() {
                let is_complete =
                    connection.compare(&replay.epoch).map_err(|error| format!("connection {}: {error}", id + 1))?;
                if connection.has_ended && !is_complete {
                    return Err(format!("connection {} ended too early: {}", id + 1, missing(connection)));
                }
                is_all &= is_complete && (connection.has_ended || !connection.is_end_expected);
            }
            Ok(is_all)
        })
    }

    /// Nothing but what was recorded has come, and does when the clients leave.
    fn expect_nothing_more(&mut self) -> Result<(), String> {
        if !self.recording.steps.contains(&Step::Stop) {
            // When another is answered, or refused, everything before has been said.
            let mut other = connect(self.server.address());
            let _ = other.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
            let _ = other.read(&mut [0; 16]);
            self.pump()?;
            for (id, connection) in self.connections.iter().enumerate() {
                if connection.has_ended != connection.is_end_expected {
                    return Err(format!("the server ended connection {}", id + 1));
                }
            }
        }
        for connection in &self.connections {
            // Who has ended already needs not be told.
            let _ = connection.socket.shutdown(Shutdown::Write);
        }
        self.wait("all have ended", |replay| Ok(replay.connections.iter().all(|c| c.has_ended)))?;
        for (id, Connection { heard, at, .. }) in self.connections.iter().enumerate() {
            if *at < heard.len() {
                return Err(format!("connection {}: there came, too,\n{}", id + 1, shown(&heard[*at..])));
            }
        }
        Ok(())
    }

    fn pump(&mut self) -> Result<(), String> {
        self.connections.iter_mut().try_for_each(Connection::pump)
    }

    fn wait(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> Result<bool, String>) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        for round in 0.. {
            self.pump()?;
            if holds(self)? {
                break;
            }
            if Instant::now() > until {
                let missing: Vec<_> = self.connections.iter().map(missing).collect();
                return Err(format!("waited in vain until {what}; missing: {}", missing.join("; ")));
            }
            // Most of what is waited for comes within microseconds.
            if round < 50 { std::thread::yield_now() } else { std::thread::park_timeout(Duration::from_micros(200)) }
        }
        Ok(())
    }
}

fn kind(step: &Step) -> String {
    match step {
        Step::Opens(id) => format!("{} opens", id + 1),
        Step::Says(id, _) => format!("{} says", id + 1),
        Step::Ends(id) => format!("{} ends", id + 1),
        Step::Hears(id, _) | Step::HearsEnd(id) => format!("{} hears", id + 1),
        Step::Stop => "stop".into(),
    }
}

/// What a connection still has to hear.
fn missing(connection: &Connection) -> String {
    match connection.expected.front() {
        Some(Part::Bytes(bytes)) => shown(bytes),
        Some(other) => format!("{other:?}"),
        None if connection.is_end_expected && !connection.has_ended => "the end".into(),
        None => "nothing".into(),
    }
}

/// Configures a server as the options of `pushlab serve` do.
fn configure(config: &mut Config, recording: &Recording) {
    let limits = &mut config.limits;
    // Whatever a client that asks for it says within the first second, it says before it.
    limits.first_heartbeat = if recording.has_early_heartbeat { Duration::from_millis(50) } else { limits.heartbeat };
    for (option, value) in &recording.options {
        let number = || value.parse::<usize>().expect(option);
        match option.as_str() {
            "--mark-receipts" => config.mark_receipts = true,
            "--max-connections" => limits.max_connections = number(),
            "--max-head-bytes" => limits.max_head_bytes = number(),
            "--max-body-bytes" => limits.max_body_bytes = number(),
            "--max-message-bytes" => limits.max_message_bytes = number(),
            "--history-messages" => limits.max_history_messages = number(),
            "--history-bytes" => limits.max_history_bytes = number(),
            "--heartbeat" => limits.heartbeat = duration(value),
            // What is said in time is in time on a busy machine, too.
            "--head-timeout" => limits.head_timeout = 3 * duration(value),
            "--idle-timeout" => limits.idle_timeout = duration(value),
            "--poll-wait" => limits.max_poll_wait = duration(value),
            _ => panic!("{}: {option} is no option that replays know", recording.name),
        }
    }
}

fn duration(text: &str) -> Duration {
    Duration::from_millis(text.strip_suffix("ms").and_then(|ms| ms.parse().ok()).expect("milliseconds, as 300ms"))
}

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths.iter().map(|path| Recording::read(path)).collect()
}

/// Replays recordings and says which of them were answered otherwise.
fn replay(recordings: &[Recording], cut: impl Fn(usize) -> Cut + Sync) {
    let next = Mutex::new(recordings.iter().enumerate());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some((n, recording)) = next.lock().unwrap().next() else { break };
                    let cut = cut(n);
                    if let Err(error) = Replay::run(recording, cut) {
                        failures.lock().unwrap().push(format!("{}, cut {cut:?}: {error}", recording.name));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), recordings.len(), failures.join("\n\n"));
}

#[test]
fn every_recording_is_answered_as_it_was() {
    let mut all = recordings();
    assert!(all.len() > 50, "only {} recordings were found", all.len());
    // A log that answers later is a cut as well.
    all.retain(|recording| recording.cut_matters.is_none() || seam() != Seam::LateLog);
    replay(&all, |_| Cut::Nowhere);
}

#[test]
fn every_recording_is_answered_as_it_was_however_it_is_cut() {
    let mut all = recordings();
    all.retain(|recording| recording.cut_matters.is_none());
    let seed = 20_261_129_u64;
    println!("seed {seed}");
    replay(&all, |n| Cut::AtRandom(seed.wrapping_add(n as u64)));
}

#[test]
fn every_small_recording_is_answered_as_it_was_byte_by_byte() {
    let mut all = recordings();
    all.retain(|recording| recording.cut_matters.is_none() && recording.said() <= MAX_BYTE_BY_BYTE);
    replay(&all, |_| Cut::Everywhere);
}
