//! The back end's thread: its sockets and its schedule.

use super::feed::{Announcement, Command, Feed, FeedReport, MAX_PEERS, Shared, Status};
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use pushlab_load::socket::{Read, Socket};
use pushlab_os::clock::{CpuClock, monotonic_ns, set_precise_wakeups, thread_cpu_ns};
use pushlab_os::timer::Timer;
use pushlab_wire::http::{Headers, parse_request};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode, handshake};
use pushlab_workload::busy::{BusyWatch, LoadThread};
use pushlab_workload::pacing::Pacing;
use pushlab_workload::payload::Payload;
use pushlab_workload::seconds::MAX_SECONDS;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Pause between `getReady` and the first publication of a feed that a controller begins, ns.
const GET_READY_NS: u64 = 100_000_000;
const MAX_HEAD_BYTES: usize = 16 * 1024;
const TIMER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);

#[derive(Debug)]
struct Peer {
    connection: Socket,
    decoder: Decoder,
    role: PeerRole,
    /// The next publication for it.
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerRole {
    Unknown,
    Subject,
    Controller,
}

struct Running {
    feed: Feed,
    /// Publications before it have reached all subjects, or nobody ever will send them.
    frontier: u64,
    busy: BusyWatch,
    report: FeedReport,
}

impl Running {
    /// A feed of which nothing has been sent.
    fn new(feed: Feed) -> Self {
        let mut busy = BusyWatch::new(LoadThread::BackEnd, 0);
        let [from_ns, end_ns] = [feed.count_from, feed.pacing.count].map(|k| feed.pacing.due_ns(k));
        busy.set_load(from_ns..end_ns);
        Self { feed, frontier: 0, busy, report: FeedReport::default() }
    }
}

pub(super) struct Server {
    poll: Poll,
    timer: Timer,
    listener: TcpListener,
    inbox: Receiver<Command>,
    shared: Arc<Shared>,
    announcement: Announcement,
    payload: Payload,
    peers: Vec<Option<Peer>>,
    feed: Option<Running>,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Server {
    pub fn new(
        listener: std::net::TcpListener,
        announcement: Announcement,
        payload: Payload,
        inbox: Receiver<Command>,
        shared: Arc<Shared>,
    ) -> io::Result<(Self, Waker)> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let timer = Timer::new()?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let (peers, buffer) = (Vec::new(), vec![0; 16 * 1024]);
        let server = Self {
            poll,
            timer,
            listener,
            inbox,
            shared,
            announcement,
            payload,
            peers,
            feed: None,
            buffer,
            out: Vec::new(),
        };
        Ok((server, waker))
    }

    pub fn run(&mut self) -> io::Result<FeedReport> {
        set_precise_wakeups();
        self.status().cpu = Some(CpuClock::of_this_thread());
        let mut events = Events::with_capacity(MAX_PEERS);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                match event.token() {
                    TIMER => self.timer.has_expired(),
                    LISTENER => self.accept()?,
                    WAKER => {}
                    Token(index) => self.ready(index),
                }
            }
            while let Ok(command) = self.inbox.try_recv() {
                match command {
                    Command::Begin(feed) => self.begin(feed),
                    Command::Stop => return Ok(self.finish().unwrap_or_default()),
                }
            }
            self.publish()?;
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer was gone before we came to it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let free = self.peers.iter().position(Option::is_none);
            let index = match free {
                Some(index) => index,
                None if self.peers.len() < MAX_PEERS => {
                    self.peers.push(None);
                    self.peers.len() - 1
                }
                None => continue,
            };
            stream.set_nodelay(true)?;
            self.poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
            let connection = Socket::from_stream(stream);
            let role = PeerRole::Unknown;
            self.peers[index] = Some(Peer { connection, decoder: Decoder::default(), role, next: 0 });
        }
    }

    fn ready(&mut self, index: usize) {
        loop {
            let Some(peer) = self.peers.get_mut(index).and_then(Option::as_mut) else { return };
            let read = peer.connection.flush().and_then(|_| peer.connection.read(&mut self.buffer));
            let went_on = match read {
                Ok(Read::Blocked) => return,
                Ok(Read::Bytes { held, .. }) => self.decode(index, held),
                Ok(Read::Established) => true,
                Ok(Read::Closed) | Err(_) => false,
            };
            if !went_on {
                return self.drop_peer(index);
            }
        }
    }

    /// `false` when the connection is to be closed.
    fn decode(&mut self, index: usize, held: usize) -> bool {
        let Some(peer) = self.peers[index].as_mut() else { return true };
        let mut at = 0;
        let mut role = peer.role;
        self.out.clear();
        if role == PeerRole::Unknown {
            let mut headers = Headers::default();
            let (head, size) = match parse_request(&self.buffer[..held], &mut headers) {
                Ok(Some(parsed)) => parsed,
                Ok(None) => {
                    peer.connection.keep(&self.buffer[..held]);
                    return held <= MAX_HEAD_BYTES;
                }
                Err(_) => return false,
            };
            let Ok(accept) = handshake::accept(&head) else { return false };
            role = if head.target == "/control" { PeerRole::Controller } else { PeerRole::Subject };
            handshake::encode_response(&mut self.out, &accept);
            at = size;
        }
        let is_new_subject = peer.role != role && role == PeerRole::Subject;
        peer.role = role;
        let config = Config::new(Role::Server);
        let mut has_go = false;
        loop {
            match peer.decoder.decode(&mut self.buffer[at..held], &config) {
                Ok(Decoded::Incomplete { .. }) => break,
                Ok(Decoded::Frame { consumed, event }) => {
                    at += consumed;
                    match event {
                        Some(Event::Text(text)) => has_go |= is_go(text),
                        Some(Event::Ping(payload)) => encode(&mut self.out, Opcode::Pong, payload, None),
                        Some(Event::Close(_)) => return false,
                        _ => {}
                    }
                }
                Err(_) => return false,
            }
        }
        peer.connection.keep(&self.buffer[at..held]);
        if is_new_subject {
            self.send_info(index);
        }
        if has_go && role == PeerRole::Controller {
            self.begin_announced();
        }
        let Some(peer) = self.peers[index].as_mut() else { return true };
        self.out.is_empty() || peer.connection.send(&self.out).is_ok()
    }

    /// Appends what a new subject is told. In the middle of a feed it joins with the next publication.
    fn send_info(&mut self, index: usize) {
        let Announcement { interval_us, count, form } = self.announcement;
        let payload_bytes = form.bytes;
        let info =
            format!("[\"info\",{{\"interval_us\":{interval_us},\"count\":{count},\"payload_bytes\":{payload_bytes}}}]");
        encode(&mut self.out, Opcode::Text, info.as_bytes(), None);
        let others = self.peers.iter().flatten().filter(|peer| peer.role == PeerRole::Subject).count() - 1;
        let mut next = 0;
        if let Some(running) = &mut self.feed {
            encode(&mut self.out, Opcode::Text, GET_READY, None);
            next = running.feed.pacing.first_at(monotonic_ns());
            if others == 0 {
                running.frontier = running.frontier.max(next);
            }
        }
        if let Some(peer) = &mut self.peers[index] {
            peer.next = next;
        }
        self.status().subjects = others + 1;
    }

    fn drop_peer(&mut self, index: usize) {
        let was_subject = self.peers[index].take().is_some_and(|peer| peer.role == PeerRole::Subject);
        if was_subject {
            self.status().subjects -= 1;
            if let Some(running) = &mut self.feed {
                running.report.cuts += 1;
            }
        }
    }

    fn begin_announced(&mut self) {
        if self.feed.is_some() {
            return;
        }
        let start = monotonic_ns() + GET_READY_NS;
        let mut pacing = Pacing::endless(start, self.announcement.interval_us * 1000, 1);
        pacing.count = self.announcement.count;
        self.begin(Feed { pacing, count_from: 0, origin_ns: start });
    }

    fn begin(&mut self, feed: Feed) {
        self.finish();
        self.status().published = 0;
        let out = std::mem::take(&mut self.out);
        let mut ready = Vec::new();
        encode(&mut ready, Opcode::Text, GET_READY, None);
        for index in 0..self.peers.len() {
            if let Some(peer) = self.peers[index].as_mut().filter(|peer| peer.role == PeerRole::Subject) {
                peer.next = 0;
                if peer.connection.send(&ready).is_err() {
                    self.drop_peer(index);
                }
            }
        }
        self.out = out;
        self.feed = Some(Running::new(feed));
    }

    /// Sends what is due, as far as the sockets take it, and arms the timer for what is not.
    fn publish(&mut self) -> io::Result<()> {
        let Some(mut running) = self.feed.take() else { return Ok(()) };
        let now = monotonic_ns();
        if running.busy.is_due(now) {
            running.busy.note(now, thread_cpu_ns());
        }
        let due = running.feed.pacing.first_at(now + 1);
        for index in 0..self.peers.len() {
            if !self.publish_to(index, due, &mut running) {
                running.report.cuts += 1;
                self.drop_peer(index);
            }
        }
        self.advance(&mut running);
        let subjects = self.peers.iter().flatten().filter(|peer| peer.role == PeerRole::Subject);
        let pacing = &running.feed.pacing;
        let is_done = due == pacing.count && subjects.clone().all(|peer| peer.next == pacing.count);
        if is_done && subjects.count() > 0 {
            self.feed = Some(running);
            if let Some(report) = self.finish() {
                self.status().reports.push(report);
                self.shared.changed.notify_all();
            }
            return Ok(());
        }
        if due < pacing.count {
            self.timer.arm(pacing.due_ns(due))?;
        }
        self.feed = Some(running);
        Ok(())
    }

    /// `false` when the connection is broken.
    fn publish_to(&mut self, index: usize, due: u64, running: &mut Running) -> bool {
        let Some(peer) = self.peers[index].as_mut().filter(|peer| peer.role == PeerRole::Subject) else { return true };
        let Running { feed: Feed { pacing, count_from, .. }, report, .. } = running;
        while peer.next < due {
            let instant_ns = pacing.due_ns(peer.next);
            let stamp = Stamp { source: 0, sequence: peer.next as u32, instant_ns };
            self.out.clear();
            encode(&mut self.out, Opcode::Text, self.payload.stamped(&stamp), None);
            let now = monotonic_ns();
            match peer.connection.offer(&self.out) {
                Ok(0) => return true,
                Ok(_) => {
                    if peer.next >= *count_from {
                        report.lateness.record(now.saturating_sub(instant_ns));
                    }
                    peer.next += 1;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Counts what has reached all subjects by now.
    fn advance(&mut self, running: &mut Running) {
        let subjects = self.peers.iter().flatten().filter(|peer| peer.role == PeerRole::Subject);
        let Some(reached) = subjects.map(|peer| peer.next).min() else { return };
        if reached <= running.frontier {
            return;
        }
        let feed = &running.feed;
        let new = reached - running.frontier;
        let counted = reached.saturating_sub(running.frontier.max(feed.count_from));
        running.report.published += counted;
        let now = monotonic_ns();
        if now >= feed.pacing.due_ns(feed.pacing.count) {
            running.report.published_after += counted;
        }
        running.frontier = reached;
        let second = (now.saturating_sub(feed.origin_ns) / 1_000_000_000) as usize;
        if second < MAX_SECONDS {
            if running.report.seconds.len() <= second {
                running.report.seconds.resize(second + 1, 0);
            }
            running.report.seconds[second] += new;
        }
        self.status().published += new;
    }

    fn finish(&mut self) -> Option<FeedReport> {
        let Running { feed, mut report, busy, .. } = self.feed.take()?;
        report.busiest = busy.finish();
        report.scheduled = feed.pacing.count.saturating_sub(feed.count_from);
        report.unsent = report.scheduled - report.published;
        Some(report)
    }
}

const GET_READY: &[u8] = b"[\"getReady\"]";

fn is_go(text: &str) -> bool {
    serde_json::from_str::<[&str; 1]>(text).is_ok_and(|[word]| word == "go")
}
