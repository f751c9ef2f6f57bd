//! One server takes the place of another under load: who is refused, what is lost, and how late deliveries are meanwhile.
//!
//! WebSockets subscribe to one channel, and a publication is due at fixed intervals, each over a new connection: nobody
//! may be refused. In the middle of that a second server starts with the path of the first. Latency counts from the
//! instant at which a publication was due; that of the handover, from the second server's start until the first has ended.

use crate::connect::{self, PATIENCE, open_blocking, read_until};
use crate::figure::{Figure, rounded};
use crate::frames::{stamped, stamps_in};
use crate::processor::Cores;
use crate::scale::Scale;
use crate::subject::{FanOut, Role, Serve, Subject};
use anyhow::{Context as _, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pushlab_os::clock::{monotonic_ns, sleep_until};
use pushlab_os::folder::TemporaryFolder;
use pushlab_stats::{Histogram, median};
use pushlab_wire::cursor::Cursor;
use pushlab_wire::native::ServerFrame;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Role as Side, handshake};
use serde_json::json;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Family of source addresses: see [`crate::connect`].
const FAMILY: u8 = 60;
/// Connections opened before their greetings are awaited.
const OPENED_AT_ONCE: usize = 200;

/// What one repeat came to.
struct Outcome {
    quiet_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    refused: u64,
    lost: u64,
    seconds: f64,
    deliveries_per_s: f64,
}

/// Measures a handover; gives those of its figures that are among `names`.
pub fn measure(names: &[&'static str], scale: &Scale, cores: Cores) -> anyhow::Result<Vec<Figure>> {
    let repeat = |_| take_place(scale, cores);
    let outcomes = (0..scale.repeats).map(repeat).collect::<anyhow::Result<Vec<Outcome>>>()?;
    let all = |figure: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(figure).collect::<Vec<_>>();
    let middle = |figure: &dyn Fn(&Outcome) -> f64| median(&all(figure)).map(rounded);
    let detail = json!({
        "headline": "from the second server's start until the first has ended; medians of the repeats",
        "clients": scale.movers,
        "deliveries_per_s": middle(&|o| o.deliveries_per_s),
        "seconds": middle(&|o| o.seconds),
        "quiet_p99_ms": middle(&|o| o.quiet_ms),
        "longest_ms": middle(&|o| o.longest_ms),
    });
    let figures = names.iter().filter_map(|&name| {
        let values = match name.strip_prefix("handover/")? {
            "refused" => all(&|o| o.refused as f64),
            "lost" => all(&|o| o.lost as f64),
            _ => all(&|o| o.p99_ms),
        };
        Some(Figure::of_repeats(name, &values, detail.clone()))
    });
    figures.collect()
}

fn take_place(scale: &Scale, cores: Cores) -> anyhow::Result<Outcome> {
    let folder = TemporaryFolder::make("pushlab-bench")?;
    let path = folder.path().join("handover.sock");
    let serve = Serve { handover: Some(path), ..Serve::plain(cores.subject, FanOut::Auto) };
    let start = || Subject::start(Role::Server(serve.clone()));
    let mut old = start()?;
    let address = old.address();
    let mut crowd = Crowd::gather(address, scale.movers)?;
    let run = Run::default();
    std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(address, scale.movers_rate, &run));
        let told = &run;
        let reader = scope.spawn(move || crowd.follow(told).map(|parts| (parts, crowd)));
        // Here, as a subject ends with the thread that started it.
        let moved = (|| {
            std::thread::sleep(scale.quiet);
            let begin = Instant::now();
            run.parts.store(1, Ordering::Relaxed);
            let new = start()?;
            ensure!(new.address() == address, "the second server listens elsewhere");
            while !old.has_ended()? {
                ensure!(begin.elapsed() < PATIENCE, "the first server does not end");
                std::thread::sleep(Duration::from_millis(1));
            }
            run.parts.store(2, Ordering::Relaxed);
            std::thread::sleep(scale.quiet);
            Ok((begin.elapsed().saturating_sub(scale.quiet), new))
        })();
        run.is_over.store(true, Ordering::Relaxed);
        let refused = publisher.join();
        run.is_published.store(true, Ordering::Release);
        let refused = refused.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let parts = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (time, _new) = moved?;
        let (refused, (parts, crowd)) = (refused?, parts?);
        let [(quiet, before), (moving, after), ..] = &parts[..] else { bail!("no publication came in time") };
        let ms = |latency: &Histogram, q| latency.quantile(q).map(|ns| ns as f64 / 1e6).context("nothing came");
        Ok(Outcome {
            quiet_ms: ms(quiet, 0.99)?,
            p99_ms: ms(moving, 0.99)?,
            longest_ms: ms(moving, 1.0)?,
            refused: crowd.refused + refused,
            lost: crowd.lost + crowd.missing(run.published.load(Ordering::Relaxed)),
            seconds: time.as_secs_f64(),
            deliveries_per_s: (after - before) as f64 / time.as_secs_f64(),
        })
    })
}

/// What the threads of a repeat tell each other.
#[derive(Default)]
struct Run {
    /// Parts that are over: before the handover, and the handover.
    parts: AtomicUsize,
    is_over: AtomicBool,
    /// Whether the last publication, which may have been under way when it was over, is counted.
    is_published: AtomicBool,
    published: AtomicU64,
}

/// Publishes when it is due, or as soon as the one before has its place; gives how many were refused.
fn publish(address: SocketAddr, rate: u32, run: &Run) -> anyhow::Result<u64> {
    let (begin_ns, interval_ns) = (monotonic_ns(), 1_000_000_000 / u64::from(rate));
    let mut refused = 0;
    for n in 0.. {
        let due_ns = begin_ns + n * interval_ns;
        sleep_until(due_ns);
        if run.is_over.load(Ordering::Relaxed) {
            break;
        }
        let Ok(mut socket) = open_blocking(address) else {
            refused += 1;
            continue;
        };
        let data = stamped(due_ns);
        let head = "POST /publish?channel=a HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Length: ";
        write!(socket, "{head}{}\r\n\r\n{data}", data.len())?;
        let answer = read_until(&mut socket, |found| found.ends_with(b"\"]"));
        ensure!(answer?.starts_with(b"HTTP/1.1 200 "), "a publication was refused");
        run.published.fetch_add(1, Ordering::Relaxed);
    }
    Ok(refused)
}

struct Mover {
    /// None while it waits to try again.
    socket: Option<TcpStream>,
    decoder: Decoder,
    held: Vec<u8>,
    cursor: Option<Cursor>,
}

/// Subscribers that come again when they are sent away, each with its cursor.
struct Crowd {
    address: SocketAddr,
    poll: Poll,
    events: Events,
    movers: Vec<Mover>,
    buffer: Vec<u8>,
    latency: Histogram,
    delivered: u64,
    /// Messages that were passed over, or came twice.
    lost: u64,
    refused: u64,
}

impl Crowd {
    fn gather(address: SocketAddr, count: usize) -> anyhow::Result<Self> {
        let mut crowd = Self {
            address,
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            movers: Vec::new(),
            buffer: vec![0; 64 * 1024],
            latency: Histogram::new(),
            delivered: 0,
            lost: 0,
            refused: 0,
        };
        while crowd.movers.len() < count {
            for index in crowd.movers.len()..count.min(crowd.movers.len() + OPENED_AT_ONCE) {
                let decoder = Decoder::default();
                crowd.movers.push(Mover { socket: None, decoder, held: Vec::new(), cursor: None });
                crowd.connect(index)?;
            }
            let until = Instant::now() + PATIENCE;
            while crowd.movers.iter().any(|mover| mover.cursor.is_none()) {
                crowd.read_for(Duration::from_millis(5))?;
                ensure!(Instant::now() < until, "the server does not greet");
            }
        }
        Ok(crowd)
    }

    /// Reads until all has come that was published, or will not. Gives latency, and the deliveries until then, of each part.
    fn follow(&mut self, run: &Run) -> anyhow::Result<Vec<(Histogram, u64)>> {
        let mut parts = Vec::new();
        let mut until = None;
        loop {
            self.read_for(Duration::from_millis(5))?;
            if run.parts.load(Ordering::Relaxed) > parts.len() {
                parts.push((self.take_latency(), self.delivered));
            }
            if run.is_published.load(Ordering::Acquire) {
                let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
                if self.seen_least() >= run.published.load(Ordering::Relaxed) || Instant::now() >= until {
                    return Ok(parts);
                }
            }
        }
    }

    fn connect(&mut self, index: usize) -> anyhow::Result<()> {
        let mover = &mut self.movers[index];
        let after = mover.cursor.map(|cursor| cursor.to_string()).unwrap_or_default();
        let mut request = Vec::new();
        let target = format!("/ws?channel=a&v=2&after={after}");
        handshake::encode_request(&mut request, "bench", &target, *b"0123456789abcdef");
        (mover.decoder, mover.socket) = (Decoder::default(), None);
        mover.held.clear();
        match connect::open(self.address, FAMILY, index, &request) {
            Ok(mut socket) => {
                self.poll.registry().register(&mut socket, Token(index), Interest::READABLE)?;
                mover.socket = Some(socket);
            }
            Err(_) => self.refused += 1,
        }
        Ok(())
    }

    /// Reads what comes for some time.
    fn read_for(&mut self, duration: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + duration;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.poll.poll(&mut self.events, Some(left)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other?,
            }
            let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
            for index in ready {
                self.read(index)?;
            }
            if Instant::now() >= end {
                break;
            }
        }
        for index in 0..self.movers.len() {
            if self.movers[index].socket.is_none() {
                self.connect(index)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> anyhow::Result<()> {
        loop {
            let Some(socket) = &mut self.movers[index].socket else { return Ok(()) };
            match socket.read(&mut self.buffer) {
                Ok(0) => return self.connect(index),
                Ok(n) => {
                    self.movers[index].held.extend_from_slice(&self.buffer[..n]);
                    self.take(index)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return self.connect(index),
            }
        }
    }

    fn take(&mut self, index: usize) -> anyhow::Result<()> {
        let Self { movers, latency, delivered, lost, .. } = self;
        let Mover { held, decoder, cursor, .. } = &mut movers[index];
        if held.starts_with(b"HTTP/1.1 ") {
            let Some(end) = held.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(()) };
            ensure!(held.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(held));
            held.drain(..end + 4);
        }
        let config = Config::new(Side::Client);
        let mut at = 0;
        while let Decoded::Frame { consumed, event } = decoder.decode(&mut held[at..], &config)? {
            if let Some(Event::Text(text)) = event {
                match ServerFrame::parse(text)? {
                    ServerFrame::Message { cursor: Some(text), data, .. } => {
                        let now = Cursor::parse(&text)?;
                        let before = cursor.replace(now).map_or(0, |before| before.offset);
                        *lost += now.offset.abs_diff(before + 1);
                        *delivered += 1;
                        let now_ns = monotonic_ns();
                        stamps_in(data.as_bytes()).for_each(|ns| latency.record(now_ns.saturating_sub(ns)));
                    }
                    ServerFrame::Cursor(text) => *cursor = Some(Cursor::parse(&text)?),
                    // What is gone shows as lost with the next message.
                    _ => {}
                }
            }
            at += consumed;
        }
        held.drain(..at);
        Ok(())
    }

    fn take_latency(&mut self) -> Histogram {
        std::mem::replace(&mut self.latency, Histogram::new())
    }

    /// How far the slowest has come.
    fn seen_least(&self) -> u64 {
        self.movers.iter().map(|mover| mover.cursor.map_or(0, |cursor| cursor.offset)).min().unwrap_or(0)
    }

    /// What has not come to somebody.
    fn missing(&self, published: u64) -> u64 {
        let seen = |mover: &Mover| mover.cursor.map_or(0, |cursor| cursor.offset);
        self.movers.iter().map(|mover| published.saturating_sub(seen(mover))).sum()
    }
}
