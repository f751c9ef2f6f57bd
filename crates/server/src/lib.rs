//! The push server: every real-time transport on one port, with the same guarantees.
//!
//! ```no_run
//! use pushlab_server::{Config, Server};
//!
//! let server = Server::start(Config::new("127.0.0.1:8000".parse().unwrap()))?;
//! println!("listening on {}", server.address());
//! server.stop();
//! server.join()?;
//! # Ok::<(), pushlab_server::ServerError>(())
//! ```

mod carrier;
mod config;
mod connection;
mod distributor;
mod error;
mod event_loop;
mod handover;
mod http2;
mod inbox;
mod leaving;
mod listening;
mod metrics;
mod own_table;
mod presence;
mod rolling;
mod sources;
mod stage;
mod stats;
mod stream;
mod taking;

pub use carrier::{Carrier, Notify};
pub use config::{Config, Feed, Limits, MakeLog, Tick};
pub use error::ServerError;
pub use pushlab_access as access;
pub use pushlab_application::pool::THREADS;
pub use pushlab_engine::Io;
pub use pushlab_handover::HandoverError;
pub use pushlab_session::pass::Pass;
pub use pushlab_session::queue::Policy;
pub use pushlab_session::site::{BadOrigin, Guests, Origin, Site};
pub use pushlab_tls::certificate::{TlsError, TlsFiles};
pub use rolling::{Handover, Happened};
pub use stats::Stats;

use distributor::Distributor;
use event_loop::{EventLoop, Shared, WAKER};
use handover::{Following, Giver};
use inbox::{Inbox, lock};
use listening::{copies, listeners};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use presence::Presence;
use pushlab_access::Holder;
use pushlab_access::Refusals;
use pushlab_access::proxies::TrustedProxies;
use pushlab_application::pool::{self, Caller, Pool, Workers};
use pushlab_application::{Hub, Present, PublishError, Publisher};
use pushlab_os::clock;
use pushlab_session::reply;
use pushlab_tls::certificate::Tls;
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::Cursor;
use sources::Sources;
use stage::{SharedStage, Stage};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;
use taking::{Begun, Taking};

/// Bytes of history in one answer to an application.
const MAX_HISTORY_BYTES: usize = 256 * 1024;

/// What one event loop owns.
type Part = (Poll, Vec<TcpListener>, Arc<Inbox>, Option<Caller>);

/// A running server. Dropping it does not stop it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    inboxes: Vec<Arc<Inbox>>,
    adopted: AtomicUsize,
    threads: Vec<JoinHandle<io::Result<()>>>,
    workers: Option<Workers>,
    sources: Arc<Mutex<Sources>>,
    following: Option<Following>,
    giving: Option<(Arc<Giver>, JoinHandle<()>)>,
}

impl Server {
    /// Listens and serves in threads of its own.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        let tls = config.tls.as_ref().map(|files| Tls::load(files, config.speaks_http2)).transpose()?;
        if config.io == Some(Io::Uring) {
            pushlab_engine::check_uring()?;
        }
        let account = Arc::default();
        let predecessor = taking::predecessor(&config, &account)?;
        let existing = match &predecessor {
            Some(predecessor) => copies(&predecessor.listeners),
            None => copies(&config.listeners),
        };
        let (address, listeners) = existing
            .and_then(|existing| listeners(&config, existing))
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        let taking = Taking::prepare(&config, &listeners)?;
        let pool = config.whole_application().map(|application| Pool::new(application, config.limits.pool(), &account));
        let parts = parts(listeners, pool.as_ref()).map_err(ServerError::Loop)?;
        let inboxes: Vec<_> = parts.iter().map(|(_, _, inbox, _)| inbox.clone()).collect();
        // From here on it is this process that appends, if another one did.
        let Begun { log, start, talk } = taking::begin(&config, &account, predecessor)?;
        for (_, listeners, _, _) in &parts {
            listening::listen(listeners).map_err(|source| ServerError::Listen { address, source })?;
        }
        let shared = Arc::new(Shared {
            presence: config.access.clone().map(|access| Arc::new(Presence::new(access))),
            distributor: Distributor::new(
                log,
                Arc::clone(&account),
                config.limits.inbox(),
                config.limits.answer_timeout,
                config.mark_receipts,
                inboxes.clone(),
                start,
            ),
            account,
            rules: config.rules(),
            counters: (0..parts.len() + Sources::count(&config)).map(|_| Arc::default()).collect(),
            open: AtomicUsize::new(0),
            stage: SharedStage::new(),
            return_window: OnceLock::new(),
            tls,
            config,
        });
        let loops = parts.len();
        let following = taking::start(talk, &shared)?;
        let threads = spawn(&shared, parts)?;
        let mut server = Self {
            address,
            shared,
            inboxes,
            adopted: AtomicUsize::new(0),
            threads,
            workers: None,
            sources: Arc::default(),
            following,
            giving: None,
        };
        if let Err(error) = server.start_rest(pool, taking, loops) {
            server.stop();
            return Err(error);
        }
        Ok(server)
    }

    /// Starts what there is beside the event loops.
    fn start_rest(&mut self, pool: Option<Pool>, taking: Option<Taking>, loops: usize) -> Result<(), ServerError> {
        if let Some(pool) = pool {
            self.workers = Some(pool.start(self.publisher()).map_err(ServerError::Loop)?);
        }
        let Shared { config, distributor, counters, .. } = &*self.shared;
        lock(&self.sources).start(config, distributor, &counters[loops..]).map_err(ServerError::Loop)?;
        if let Some(Taking { handover, desk, listeners }) = taking {
            let (shared, inboxes, sources) = (self.shared.clone(), self.inboxes.clone(), self.sources.clone());
            let giver = Arc::new(Giver::new(handover, shared, inboxes, listeners, sources));
            let thread = giver.start(desk).map_err(|error| ServerError::Handover(error.into()))?;
            self.giving = Some((giver, thread));
        }
        Ok(())
    }

    /// Publishes from within this process.
    pub fn publisher(&self) -> Publisher {
        Publisher::new(Arc::new(Inside {
            distributor: self.shared.distributor.clone(),
            presence: self.shared.presence.clone(),
        }))
    }

    /// Serves a connection whose bytes the caller carries, like an accepted one, but never with TLS.
    pub fn adopt(&self, carrier: Box<dyn Carrier>) {
        let turn = self.adopted.fetch_add(1, Ordering::Relaxed);
        self.inboxes[turn % self.inboxes.len()].bring(carrier);
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counters.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Whether every event loop still runs.
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|t| !t.is_finished())
    }

    /// Reads the certificate and its key again: connections that come from now on get the new one. Without TLS it does
    /// nothing.
    ///
    /// # Errors
    /// Those of the files; the server then keeps the certificate that it has.
    pub fn reload_tls(&self) -> Result<(), TlsError> {
        self.shared.tls.as_ref().map_or(Ok(()), Tls::reload)
    }

    /// Asks it to stop: no new connections, open ones are ended properly within the drain timeout.
    pub fn stop(&self) {
        lock(&self.sources).stop();
        if let Some((giver, _)) = &self.giving {
            giver.stop();
        }
        if let Some(following) = &self.following {
            following.stop();
        }
        self.shared.stage.advance(Stage::Stopping);
        self.inboxes.iter().for_each(|i| i.wake());
    }

    /// Waits until it has stopped, and what the application is busy with has ended.
    pub fn join(self) -> Result<(), ServerError> {
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(ServerError::Failed(error.to_string())),
                Err(_) => return Err(ServerError::Failed("panic; the message stands above".to_owned())),
            }
        }
        lock(&self.sources).pause();
        if let Some((giver, thread)) = self.giving {
            giver.stop();
            // Nothing in it panics.
            let _ = thread.join();
        }
        if let Some(following) = self.following {
            following.join();
        }
        if let Some(workers) = self.workers {
            workers.join();
        }
        Ok(())
    }
}

impl Config {
    /// The defaults: one event loop, no feed, slow subscribers are closed.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            cores: 1,
            has_own_descriptor_tables: false,
            limits: Limits::default(),
            policy: Policy::Close,
            feed: None,
            tick: None,
            mark_receipts: false,
            nagle: false,
            splits_events: false,
            io: None,
            min_uring_members: pushlab_engine::MIN_MEMBERS,
            #[cfg(test)]
            uring_breaks_after: None,
            tls: None,
            speaks_http2: true,
            log: None,
            application: None,
            reserved_channels: Vec::new(),
            same_origin_channels: Vec::new(),
            site: Site::default(),
            pass: None,
            access: None,
            echoes: false,
            trusted_proxies: TrustedProxies::default(),
            compression_from: None,
            listeners: Vec::new(),
            handover: None,
        }
    }
}

/// What an application may do here. Not all that the event loops share: that has the application, which would then keep
/// itself alive.
struct Inside {
    distributor: Arc<Distributor>,
    presence: Option<Arc<Presence>>,
}

impl Hub for Inside {
    fn publish(&self, channel: &str, data: &str) -> Result<Cursor, PublishError> {
        self.distributor.publish(channel, data, Instant::now())
    }

    fn head(&self) -> Cursor {
        self.distributor.head()
    }

    fn history(&self, channel: &Channel, after: Option<Cursor>) -> Option<Vec<u8>> {
        let start = after.unwrap_or_else(|| self.distributor.cursor(0));
        let replay = self.distributor.read_now(std::slice::from_ref(channel), Some(start), MAX_HISTORY_BYTES)?;
        // Who asks for all that there is has lost nothing.
        let gap = replay.gap.filter(|_| after.is_some());
        Some(reply::body(&replay.messages, Some((gap, self.distributor.cursor(replay.up_to)))))
    }

    fn dismiss(&self, holder: &Holder) {
        self.distributor.dismiss(holder);
    }

    fn present(&self, channel: &Channel) -> Option<Present> {
        self.presence.as_ref()?.present(&self.distributor, channel)
    }
}

impl Shared {
    fn stats(&self) -> Stats {
        let mut stats = Stats { t_ns: clock::monotonic_ns(), ..Stats::default() };
        for counters in &self.counters {
            stats.add(counters);
        }
        stats.io = match stats.loops_with_uring {
            0 => Io::Write.name(),
            all if all == self.config.cores.max(1) => Io::Uring.name(),
            _ => "uring and write",
        };
        (stats.history_channels, stats.history_bytes) = self.distributor.history_size();
        stats.kept_bytes = self.account.beside_history();
        stats.cursor = self.distributor.head().to_string();
        // Each cause has its counter from the beginning, as Prometheus wants it.
        let none = Refusals::default();
        let refusals = self.config.access.as_ref().map_or(&none, |access| &access.refusals);
        stats.refused_tokens = refusals.by_cause().collect();
        stats
    }
}

/// Marks an event loop as ended however it ends, by a panic too: what is published goes on to the others.
struct Ending(Arc<Inbox>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Wakes the event loop of an inbox.
fn waking(inbox: &Arc<Inbox>) -> pool::Wake {
    let inbox = Arc::clone(inbox);
    Arc::new(move || inbox.wake())
}

/// What each event loop is to own.
fn parts(listeners: Vec<Vec<TcpListener>>, pool: Option<&Pool>) -> io::Result<Vec<Part>> {
    let part = |listeners| {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), WAKER)?));
        let caller = pool.map(|pool| pool.caller(waking(&inbox)));
        Ok((poll, listeners, inbox, caller))
    };
    listeners.into_iter().map(part).collect()
}

/// Starts the event loops.
fn spawn(shared: &Arc<Shared>, parts: Vec<Part>) -> Result<Vec<JoinHandle<io::Result<()>>>, ServerError> {
    let has_own_tables = parts.len() > 1 && shared.config.has_own_descriptor_tables;
    let mut threads = Vec::new();
    let mut moved = Vec::new();
    for (index, (poll, listeners, inbox, caller)) in parts.into_iter().enumerate() {
        let own = listening::numbers(&listeners);
        let poll_number = poll.as_raw_fd();
        let (kept, ending) = (own.clone(), Ending(inbox.clone()));
        let shared = shared.clone();
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            let _ending = ending;
            let mut event_loop = EventLoop::new(shared, index, poll, listeners, inbox, caller);
            // Refused, the table stays shared, which only means that the limit is reached earlier.
            let has_left = has_own_tables && own_table::leave(&kept);
            // A ring belongs to its thread's table of descriptors.
            let opened = event_loop.open_engine();
            // The receiver waits for this right below.
            let _ = sender.send(has_left);
            opened?;
            event_loop.run()
        };
        let name = format!("pushlab-loop-{index}");
        threads.push(std::thread::Builder::new().name(name).spawn(run).map_err(ServerError::Loop)?);
        if receiver.recv().unwrap_or(false) {
            moved.push(poll_number);
            moved.extend(own);
        }
    }
    own_table::close_left(moved);
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    /// If a ring breaks during a fan-out, every subscriber still gets every message, and gets it once.
    #[test]
    fn a_fan_out_whose_ring_breaks_reaches_everybody_once() {
        if pushlab_engine::check_uring().is_err() {
            return;
        }
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.io = Some(Io::Uring);
        config.min_uring_members = 1;
        config.uring_breaks_after = Some(5);
        let server = Server::start(config).unwrap();
        let subscribe = |_| {
            let mut socket = std::net::TcpStream::connect(server.address()).unwrap();
            socket.write_all(b"GET /sse?channel=a HTTP/1.0\r\nHost: h\r\n\r\n").unwrap();
            socket
        };
        let clients: Vec<_> = (0..12).map(subscribe).collect();
        while server.stats().connections["sse"] < 12 {
            std::thread::yield_now();
        }
        for n in 0..3 {
            server.publisher().publish("a", &format!("\"text {n}\"")).unwrap();
        }
        while server.stats().sent < 36 {
            std::thread::yield_now();
        }
        assert_eq!(server.stats().io, "uring", "there is a new ring");
        server.stop();
        for mut client in clients {
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            let told: Vec<&str> = text.lines().filter(|line| line.contains("\"text ")).collect();
            assert_eq!(told.len(), 3, "{text}");
            assert!((0..3).all(|n| told[n].contains(&format!("\"text {n}\""))), "{text}");
        }
        server.join().unwrap();
    }
}
