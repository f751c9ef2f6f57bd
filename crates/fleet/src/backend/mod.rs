//! The back end of a feed: a WebSocket server that subjects connect to, and that publishes on a schedule.
//!
//! To a subject it sends `["info",{"interval_us":…,"count":…,"payload_bytes":…}]` at once, `["getReady"]` when a
//! feed begins, then each publication as a text message (JSON, but never an array). The subject publishes what is no
//! array, as it came, on the feed's channel. Nothing follows the last publication: a server that publishes arrays too
//! would take whatever followed for the newest message. A connection to the path `/control` is no subject: its
//! `["go"]` begins a feed.
//!
//! A socket that is full delays publications, drops none and queues none: what is due is a number.

mod feed;
mod server;

pub use feed::{Announcement, Feed, FeedReport, MAX_PEERS};

use feed::{Command, Shared, Status};
use mio::Waker;
use pushlab_os::clock::CpuClock;
use pushlab_workload::payload::{BadPayloadSize, Payload};
use server::Server;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A back end that could not start.
#[derive(Debug, thiserror::Error)]
pub enum BackEndError {
    /// See there.
    #[error(transparent)]
    Payload(#[from] BadPayloadSize),
    /// No socket, descriptor or thread.
    #[error("the back end cannot start: {0}")]
    Io(#[from] io::Error),
    /// No publication could ever be due.
    #[error("the feed's interval_us is 0: it must be at least 1")]
    NoInterval,
}

/// A running back end: a thread with its sockets.
#[derive(Debug)]
pub struct BackEnd {
    address: SocketAddr,
    shared: Arc<Shared>,
    commands: Sender<Command>,
    waker: Waker,
    thread: JoinHandle<io::Result<FeedReport>>,
}

impl BackEnd {
    /// Serves subjects and controllers on a listener.
    ///
    /// # Errors
    /// See [`BackEndError`].
    pub fn start(listener: std::net::TcpListener, announcement: Announcement) -> Result<Self, BackEndError> {
        let payload = Payload::of(announcement.form)?;
        if announcement.interval_us == 0 {
            return Err(BackEndError::NoInterval);
        }
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (commands, inbox) = channel();
        let (mut server, waker) = Server::new(listener, announcement, payload, inbox, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new().name("back-end".into()).spawn(move || server.run())?;
        Ok(Self { address, shared, commands, waker, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Subjects connected now.
    pub fn subjects(&self) -> usize {
        self.status().subjects
    }

    /// Publications of the current or last feed that were sent, counted or not.
    pub fn published(&self) -> u64 {
        self.status().published
    }

    /// Its thread's CPU time, once it runs.
    pub fn cpu(&self) -> Option<CpuClock> {
        self.status().cpu
    }

    /// Begins a feed to all subjects that are connected. One that runs already is broken off.
    pub fn begin(&self, feed: Feed) {
        self.command(Command::Begin(feed));
    }

    /// Waits for the end of a feed; `None` when the time is up.
    pub fn wait_for_report(&self, timeout: Duration) -> Option<FeedReport> {
        let status = self.status();
        let wait = self.shared.changed.wait_timeout_while(status, timeout, |status| status.reports.is_empty());
        let (mut status, _) = wait.unwrap_or_else(PoisonError::into_inner);
        status.reports.pop()
    }

    /// Closes all connections. Returns the report of the feed that was running or, if none was, an empty one.
    ///
    /// # Errors
    /// What made the thread end before.
    pub fn stop(self) -> io::Result<FeedReport> {
        self.command(Command::Stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn status(&self) -> std::sync::MutexGuard<'_, Status> {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, command: Command) {
        // A thread that has ended needs no command; `stop` reports why.
        if self.commands.send(command).is_ok() {
            let _ = self.waker.wake();
        }
    }
}
