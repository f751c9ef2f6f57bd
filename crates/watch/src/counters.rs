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

/// Which process may be read; locked during a reading.
enum Turn {
    /// The one that was read before.
    Same,
    /// None: it is being replaced.
    Nobody,
    /// Another, which has not been read yet.
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

    /// Reads nothing until [`CounterWatch::begin_anew`], so that a new process's counts are not taken for the old one's.
    /// Waits for a reading that is under way.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;

    /// A server that has accepted as many connections as `accepted` says, and tells the number of each request on its
    /// connection.
    fn serve(accepted: Arc<AtomicU64>) -> (SocketAddr, mpsc::Receiver<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, tell, accepted) = (stream.unwrap(), tell.clone(), accepted.clone());
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    for (number, _) in lines.map_while(Result::ok).filter(String::is_empty).enumerate() {
                        let sample =
                            CounterSample { accepted: accepted.load(Ordering::Relaxed), ..CounterSample::default() };
                        let body = serde_json::to_string(&sample).unwrap();
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                        // The test may be over.
                        let _ = (tell.send(number), stream.write_all(answer.as_bytes()));
                    }
                });
            }
        });
        (address, asked)
    }

    #[test]
    fn nothing_is_read_while_another_process_takes_the_servers_place() {
        let accepted = Arc::new(AtomicU64::new(8));
        let (address, asked) = serve(accepted.clone());
        let reader = CounterReader::new(&Target::plain(address), None).unwrap();
        let watch = CounterWatch::start(reader, Duration::from_millis(1), Duration::ZERO);
        // A second request on a connection comes behind the first answer.
        let until_read = || while asked.recv_timeout(Duration::from_secs(30)).unwrap() == 0 {};
        until_read();
        watch.pause();
        while asked.try_recv().is_ok() {}
        accepted.store(2, Ordering::Relaxed);
        assert!(asked.recv_timeout(Duration::from_millis(100)).is_err(), "it is not asked before it is announced");
        watch.begin_anew();
        until_read();
        let read: Vec<u64> = watch.finish().iter().map(|sample| sample.accepted).collect();
        assert!(read.is_sorted() && read.first() == Some(&8) && read.last() == Some(&10), "{read:?}");
    }
}
