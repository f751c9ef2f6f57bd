//! Our server's own counters, read while a run goes on.

use pushlab_link::namespace::Namespace;
use pushlab_load::tls::{BadCertificate, TlsClient};
use pushlab_record::CounterSample;
use pushlab_wire::http::{BodyKind, Headers, parse_response};
use pushlab_workload::plan::{Http, Target};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks our server for its counters, over one connection that stays open and beside the link, if there is one.
pub struct CounterReader {
    address: SocketAddr,
    request: String,
    tls: Option<TlsClient>,
    namespace: Option<Namespace>,
    stream: Option<Box<dyn Stream>>,
    /// Bytes that it has sent and received: they are in the server's counts.
    sent_bytes: u64,
    received_bytes: u64,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl CounterReader {
    /// A reader of a server that is reached so, from within a namespace if it is in one; connects when first used.
    ///
    /// # Errors
    /// When its certificate cannot be trusted.
    pub fn new(target: &Target, namespace: Option<Namespace>) -> Result<Self, BadCertificate> {
        let Target { address, authority, path, tls } = target;
        Ok(Self {
            address: *address,
            request: format!("GET {path}/stats HTTP/1.1\r\nHost: {authority}\r\n\r\n"),
            tls: tls.as_ref().map(|tls| TlsClient::of(tls, Http::Http11)).transpose()?,
            namespace,
            stream: None,
            sent_bytes: 0,
            received_bytes: 0,
        })
    }

    /// Asks another server from now on, at the same address.
    pub fn begin_anew(&mut self) {
        (self.stream, self.sent_bytes, self.received_bytes) = (None, 0, 0);
    }

    /// The counters now; `None` when the server did not answer in time. Bytes are without the reader's own, but over
    /// TLS, where it does not see them all.
    pub fn read(&mut self) -> Option<CounterSample> {
        let sample = self.try_read().ok();
        if sample.is_none() {
            self.stream = None;
        }
        sample
    }

    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let address = self.address;
        let connect = || TcpStream::connect_timeout(&address, TIMEOUT);
        let stream = match &self.namespace {
            None => connect()?,
            Some(namespace) => namespace.in_it(connect).map_err(io::Error::other)??,
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(tls.over_blocking(stream)?)),
        }
    }

    fn try_read(&mut self) -> io::Result<CounterSample> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = self.connect()?;
                self.stream.insert(stream)
            }
        };
        stream.write_all(self.request.as_bytes())?;
        self.sent_bytes += self.request.len() as u64;
        // What it is answered now is written after the server has counted.
        let received_before = self.received_bytes;
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received_bytes += n as u64;
            bytes.extend_from_slice(&buffer[..n]);
            let mut headers = Headers::default();
            let head = parse_response(&bytes, &mut headers).map_err(io::Error::other)?;
            let Some((head, size)) = head else { continue };
            let BodyKind::Length(length) = head.body else { return Err(io::ErrorKind::InvalidData.into()) };
            if let Some(body) = bytes.get(size..size + length as usize) {
                let mut sample: CounterSample = serde_json::from_slice(body)?;
                sample.bytes_received = sample.bytes_received.saturating_sub(self.sent_bytes);
                sample.bytes_sent = sample.bytes_sent.saturating_sub(received_before);
                return Ok(sample);
            }
        }
    }
}

/// Reads the server's counters in a thread of its own.
pub struct CounterWatch {
    stop: Arc<AtomicBool>,
    turn: Arc<Mutex<Turn>>,
    thread: JoinHandle<Vec<CounterSample>>,
}

/// Who may be read; held while somebody is.
#[derive(Clone, Copy)]
enum Turn {
    /// The process that was read before.
    Same,
    /// Nobody: it is being replaced.
    Nobody,
    /// Another process, which was not read yet.
    Another,
}

impl CounterWatch {
    /// Begins to read, for the first time after a delay.
    pub fn start(mut reader: CounterReader, interval: Duration, delay: Duration) -> Self {
        let (stop, turn) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Turn::Same)));
        let (stopped, turns) = (stop.clone(), turn.clone());
        let thread = std::thread::spawn(move || {
            let (mut samples, mut before) = (Vec::<CounterSample>::new(), CounterSample::default());
            let mut next = Instant::now() + delay;
            while !stopped.load(Ordering::Relaxed) {
                // A wake-up before its time is no reading.
                let wait = next.saturating_duration_since(Instant::now());
                if !wait.is_zero() {
                    std::thread::park_timeout(wait);
                    continue;
                }
                let mut turn = turns.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*turn, Turn::Another) {
                    reader.begin_anew();
                    before = samples.last().copied().unwrap_or_default();
                    *turn = Turn::Same;
                }
                if matches!(*turn, Turn::Same) {
                    samples.extend(reader.read().map(|sample| sample.after(&before)));
                }
                next = (next + interval).max(Instant::now());
            }
            samples
        });
        Self { stop, turn, thread }
    }

    /// Reads no more until [`CounterWatch::begin_anew`]: what a new process counts is not taken for the old one's.
    pub fn pause(&self) {
        self.set(Turn::Nobody);
    }

    /// Another process has taken the server's place: its counters begin at zero, and go on from where those were.
    pub fn begin_anew(&self) {
        self.set(Turn::Another);
    }

    fn set(&self, turn: Turn) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    /// Ends it.
    pub fn finish(self) -> Vec<CounterSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
