//! The prober: a client of its own that measures response time at random instants, while the others make the load.
//!
//! Open loop, unless a plan wants otherwise: a ping counts from its intended instant, and is sent whether or not the one
//! before was answered, so that neither a stall nor a long way can hide by delaying the measurement. Over HTTP/1.1 that
//! takes pipelining (RFC 9112, section 9.3.2), over HTTP/2 a stream for each.

mod echo_path;

pub use echo_path::{EchoPath, OverFrames, OverPosts, OverStreams};

use crate::connection::{Connection, Head, Incoming, Outgoing, Owner, Protocol, Side};
use crate::cut::Cut;
use crate::dial::Dialler;
use crate::run_state::RunState;
use crate::socket::Read;
use crate::transport::{Hearing, Requests};
use fastrand::Rng;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pushlab_os::clock::{CpuClock, monotonic_ns, set_precise_wakeups, thread_cpu_ns};
use pushlab_os::timer::Timer;
use pushlab_stats::histogram::Histogram;
use pushlab_wire::deflate::InflateDecoder;
use pushlab_wire::stamp::{MAX_SOURCE, Stamp};
use pushlab_wire::websocket::permessage_deflate::Agreement;
use pushlab_workload::busy::{BusiestSecond, BusyWatch, LoadThread};
use pushlab_workload::errors::ErrorTally;
use pushlab_workload::payload::{MIN_PAYLOAD_BYTES, Payload};
use pushlab_workload::ping_times::PingTimes;
use pushlab_workload::timeline::Timeline;
use pushlab_workload::turns::Turns;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Most pings under way at once; 24 bytes each. Further ones wait, and their waiting counts.
pub const MAX_OUTSTANDING: usize = 1 << 16;

const TIMER: Token = Token(0);
const SOCKET: Token = Token(1);
const TICK_NS: u64 = 5_000_000;
const RECONNECT_PAUSE_NS: u64 = 100_000_000;

/// A path that is told what its connection brought. Its bytes are not counted.
struct Told<'a, P, S> {
    path: &'a mut P,
    rng: &'a mut Rng,
    out: &'a mut Outgoing,
    sink: S,
}

impl<P: EchoPath, S: FnMut(&[u8])> Incoming for Told<'_, P, S> {
    fn turn_to(&mut self, owner: Owner) {
        self.path.turn_to(owner.client());
    }

    fn head_bytes(&mut self, _: usize) {}

    fn frame_bytes(&mut self, _: usize) {}

    fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let Self { path, rng, out, sink } = self;
        let inflater = &mut InflateDecoder::default();
        path.head(head, Hearing { rng, inflater, out, texts: &mut 0, sink })
    }

    fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
        let Self { path, rng, out, sink } = self;
        // Pings are not compressed, and nothing is made until something is.
        let inflater = &mut InflateDecoder::default();
        path.body(data, is_last, Hearing { rng, inflater, out, texts: &mut 0, sink })
    }

    fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        let fields: Vec<&str> = head.headers("sec-websocket-extensions").collect();
        Ok(Agreement::of(fields.into_iter(), false).map(drop)?)
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
        let Self { path, rng, out, sink } = self;
        let inflater = &mut InflateDecoder::default();
        path.frames(bytes, Hearing { rng, inflater, out, texts: &mut 0, sink })
    }
}

/// What a prober is to do.
#[derive(Debug, Clone)]
pub struct ProberConfig {
    /// How the subject is reached.
    pub dialler: Dialler,
    /// What it asks.
    pub requests: Requests,
    /// Mean time between two pings, ns; in a closed loop, between an answer and the next ping.
    pub interval_ns: u64,
    /// Whether a ping waits for the answer to the last.
    pub in_closed_loop: bool,
    /// The run's turns, where it takes turns with others.
    pub turns: Option<Turns>,
    /// Seed of masks, keys and instants.
    pub seed: u64,
}

/// How far a prober is.
#[derive(Debug, Default)]
pub struct ProberProgress {
    /// Whether its connection stands.
    pub is_connected: AtomicBool,
    /// Pings due and unanswered.
    pub unanswered: AtomicUsize,
    /// Whether it was refused for good before it was connected.
    pub is_refused: AtomicBool,
}

/// What a prober measured.
#[derive(Debug, Default)]
pub struct ProberReport {
    /// Response times of the idle phase.
    pub response_idle: Histogram,
    /// Response times of the load phase.
    pub response_load: Histogram,
    /// How long pings of the load phase were waited for that were unanswered at the end.
    pub response_unanswered: Histogram,
    /// What of the latter was its own: from the intended instant to the writing, as far as nothing was in the way, and from
    /// the answer's receipt by the kernel to the reading. Of answered pings, where the kernel notes receipts.
    pub response_own: Histogram,
    /// Connections opened again.
    pub reconnects: u64,
    /// Errors.
    pub errors: ErrorTally,
    /// Those of them with which it was refused before it was connected.
    pub refused: ErrorTally,
    /// Its thread's busiest second.
    pub busiest: Option<BusiestSecond>,
}

/// A ping that is under way.
struct Outstanding {
    sequence: u64,
    due_ns: u64,
    /// How late it was sent by the prober's own fault, ns.
    late_ns: u64,
}

struct ProberLoop<E, P> {
    config: ProberConfig,
    poll: Poll,
    path: E,
    connection: Option<Connection<P>>,
    /// Its only stream, unless each ping has its own.
    number: u32,
    reconnect_ns: u64,
    is_connected: bool,
    /// Pings to come; known with the phases.
    pings: Option<(PingTimes, Timeline)>,
    /// Instants of pings that were due and could not be sent yet; 8 bytes each.
    waiting: VecDeque<u64>,
    sent: u64,
    outstanding: VecDeque<Outstanding>,
    /// When it last found something in the way of a ping.
    blocked_ns: u64,
    payload: Payload,
    rng: Rng,
    buffer: Vec<u8>,
    out: Outgoing,
    busy: BusyWatch,
    report: ProberReport,
}

/// Probes on the calling thread until the run ends.
///
/// # Errors
/// When the kernel refuses an epoll or timer descriptor.
pub fn run<E: EchoPath, P: Protocol>(
    config: ProberConfig,
    state: &Arc<RunState>,
    progress: &ProberProgress,
) -> io::Result<ProberReport> {
    set_precise_wakeups();
    state.count_thread(CpuClock::of_this_thread());
    let poll = Poll::new()?;
    let mut timer = Timer::new()?;
    poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
    let mut this = ProberLoop::<E, P> {
        path: E::new(),
        connection: None,
        number: 0,
        reconnect_ns: 0,
        is_connected: false,
        pings: None,
        waiting: VecDeque::new(),
        sent: 0,
        outstanding: VecDeque::new(),
        blocked_ns: 0,
        payload: Payload::new(MIN_PAYLOAD_BYTES).expect("the smallest size is allowed"),
        rng: Rng::with_seed(config.seed),
        buffer: vec![0; 16 * 1024],
        out: P::outgoing(),
        busy: BusyWatch::new(LoadThread::Prober, 0),
        report: ProberReport::default(),
        poll,
        config,
    };
    this.connect();
    let mut events = Events::with_capacity(16);
    let mut is_settled = false;
    loop {
        timer.arm(this.next_wake(state))?;
        match this.poll.poll(&mut events, None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        }
        for event in &events {
            match event.token() {
                TIMER => timer.has_expired(),
                _ => this.ready(event.is_writable()),
            }
        }
        let now = monotonic_ns();
        this.read_phases(state);
        if this.busy.is_due(now) {
            this.busy.note(now, thread_cpu_ns());
        }
        if this.connection.is_none() && now >= this.reconnect_ns && now < state.after_ns() {
            this.report.reconnects += 1;
            this.connect();
        }
        this.send_due(now);
        progress.is_connected.store(this.is_connected && this.path.is_free(), Ordering::Relaxed);
        progress.unanswered.store(this.unanswered(), Ordering::Relaxed);
        progress.is_refused.store(this.report.refused != ErrorTally::default(), Ordering::Relaxed);
        if !is_settled && now >= state.after_ns() {
            is_settled = true;
            this.count_unanswered(state.after_ns());
        }
        if now >= state.end_ns() {
            if !is_settled {
                this.count_unanswered(now);
            }
            return Ok(ProberReport { busiest: this.busy.finish(), ..this.report });
        }
    }
}

impl<E: EchoPath, P: Protocol> ProberLoop<E, P> {
    fn connect(&mut self) {
        (self.is_connected, self.reconnect_ns) = (false, 0);
        self.out.clear();
        self.path.open(&self.config.requests, &mut self.rng, &mut self.out);
        let opened = self.config.dialler.dial(None).and_then(|mut socket| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(socket.stream_mut(), SOCKET, interest)?;
            socket.note_receipts();
            let (mut connection, number) = Connection::new(socket, Owner::new(0, Side::Down));
            self.number = number;
            connection.send(number, &mut self.out)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.cut(&Cut::Io(error)),
        }
    }

    fn cut(&mut self, why: &Cut) {
        let error = format_args!("prober: {why}");
        self.report.errors.add(&error);
        if why.is_final() && self.pings.is_none() {
            self.report.refused.add(&error);
        }
        self.connection = None;
        self.is_connected = false;
        let now = monotonic_ns();
        self.reconnect_ns = now + RECONNECT_PAUSE_NS;
        if let Some((times, _)) = self.pings.as_mut().filter(|_| self.waiting.is_empty()) {
            times.answered(now);
        }
    }

    /// Gives up a connection that has served its only ping; the next one opens another.
    fn hang_up(&mut self) {
        (self.connection, self.is_connected, self.reconnect_ns) = (None, false, u64::MAX);
    }

    fn ready(&mut self, is_writable: bool) {
        if is_writable && let Some(connection) = &mut self.connection {
            match connection.socket.flush() {
                Ok(_) => self.is_connected = !connection.socket.is_handshaking(),
                Err(error) => return self.cut(&Cut::Io(error)),
            }
        }
        while let Some(connection) = &mut self.connection {
            match connection.socket.read(&mut self.buffer) {
                Ok(Read::Blocked) => return,
                Ok(Read::Established) => self.is_connected = true,
                Ok(Read::Closed) => return self.cut(&Cut::Closed),
                Err(error) => return self.cut(&Cut::Io(error)),
                Ok(Read::Bytes { held, .. }) => {
                    if let Err(cut) = self.decode(held, monotonic_ns()) {
                        return self.cut(&cut);
                    }
                    if self.path.is_done() {
                        return self.hang_up();
                    }
                }
            }
        }
    }

    fn decode(&mut self, held: usize, now: u64) -> Result<(), Cut> {
        let Self { path, connection, number, rng, buffer, out, outstanding, pings, report, .. } = self;
        let Some(connection) = connection else { return Ok(()) };
        out.clear();
        let waited_ns = connection.socket.waited_ns();
        let sink = |data: &[u8]| {
            let Some((times, timeline)) = &mut *pings else { return };
            // Clients count from 0 as well.
            let stamp = Stamp::find(data).filter(|stamp| stamp.source == MAX_SOURCE);
            let sequence = stamp.map(|stamp| u64::from(stamp.sequence));
            let place = sequence.and_then(|sequence| outstanding.iter().position(|ping| ping.sequence == sequence));
            match place.and_then(|place| outstanding.remove(place)) {
                Some(Outstanding { due_ns, late_ns, .. }) => {
                    count(report, timeline, due_ns, now, true);
                    times.answered(now);
                    if let Some(waited_ns) = waited_ns.filter(|_| due_ns >= timeline.load_ns) {
                        report.response_own.record(late_ns + waited_ns);
                    }
                }
                None => report.errors.add(&"prober: an answer to no ping"),
            }
        };
        let (mut told, mut at) = (Told { path, rng, out, sink }, 0);
        loop {
            let received = connection.protocol.receive(&mut buffer[at..held], &mut told)?;
            at += received.consumed;
            received.ended.map_or(Ok(()), Err)?;
            if let Some(answered) = told.path.take_answered() {
                let mut goodbye = P::outgoing();
                connection.protocol.close(answered, true, &mut goodbye);
                connection.socket.send(goodbye.bytes())?;
            }
            if !received.has_more {
                break;
            }
        }
        connection.socket.keep(&buffer[at..held]);
        if !out.is_empty() {
            connection.send(*number, out)?;
        }
        if P::IS_SHARED {
            connection.speak(out)?;
        }
        Ok(())
    }

    fn read_phases(&mut self, state: &RunState) {
        if self.pings.is_none()
            && let Some(timeline) = state.timeline()
        {
            let seed = self.config.seed ^ 0x70_69_6e_67;
            let turns = self.config.turns.map(|turns| (timeline.warm_up_ns, turns));
            let pings =
                PingTimes::between(timeline.idle_ns, timeline.load_end_ns, self.config.interval_ns, turns, seed);
            let pings = if self.config.in_closed_loop { pings.in_closed_loop() } else { pings };
            self.busy.set_load(timeline.load_ns..timeline.load_end_ns);
            self.pings = Some((pings, timeline.clone()));
        }
    }

    fn send_due(&mut self, now: u64) {
        let Some((times, _)) = &mut self.pings else { return };
        self.waiting.extend(std::iter::from_fn(|| times.take_due(now)));
        while let Some(&due_ns) = self.waiting.front() {
            if self.connection.is_none() && self.reconnect_ns == u64::MAX {
                self.connect();
            }
            let Some(connection) = &mut self.connection else {
                self.blocked_ns = now;
                return;
            };
            let may_send = self.is_connected
                && self.path.is_free()
                && !(if E::HAS_STREAMS { connection.socket.is_blocked() } else { connection.is_blocked(self.number) });
            if !may_send || self.outstanding.len() >= MAX_OUTSTANDING {
                self.blocked_ns = now;
                return;
            }
            if E::HAS_STREAMS {
                let Some(number) = connection.open(Owner::new(self.path.place(), Side::Up)) else { return };
                self.path.has_opened(number);
                self.number = number;
            }
            let stamp = Stamp { source: MAX_SOURCE, sequence: self.sent as u32, instant_ns: due_ns };
            self.out.clear();
            let data = self.payload.stamped(&stamp);
            self.path.encode(&self.config.requests, &mut self.rng, data, &mut self.out);
            let late_ns = monotonic_ns().saturating_sub(due_ns.max(self.blocked_ns));
            self.outstanding.push_back(Outstanding { sequence: self.sent, due_ns, late_ns });
            self.waiting.pop_front();
            self.sent += 1;
            if let Err(error) = connection.send(self.number, &mut self.out) {
                return self.cut(&Cut::Io(error));
            }
        }
    }

    fn unanswered(&self) -> usize {
        self.outstanding.len() + self.waiting.len()
    }

    fn count_unanswered(&mut self, now: u64) {
        let Some((times, timeline)) = &mut self.pings else { return };
        self.waiting.extend(std::iter::from_fn(|| times.take_due(now)));
        // Those that would be due later never are.
        while times.take_due(u64::MAX).is_some() {}
        for due_ns in self.outstanding.drain(..).map(|ping| ping.due_ns).chain(self.waiting.drain(..)) {
            count(&mut self.report, timeline, due_ns, now, false);
        }
    }

    fn next_wake(&self, state: &RunState) -> u64 {
        let tick = monotonic_ns() + TICK_NS;
        // A ping that cannot be sent yet wakes nobody: the socket or the tick does.
        let next = self.pings.as_ref().and_then(|(times, _)| times.next_ns()).unwrap_or(u64::MAX);
        tick.min(next).min(state.end_ns())
    }
}

fn count(report: &mut ProberReport, timeline: &Timeline, intended_ns: u64, now: u64, is_answered: bool) {
    let waited = now.saturating_sub(intended_ns);
    if intended_ns < timeline.warm_up_ns {
        report.response_idle.record(waited);
    } else if intended_ns >= timeline.load_ns {
        let load = if is_answered { &mut report.response_load } else { &mut report.response_unanswered };
        load.record(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::echo_path::MAX_POSTS;
    use super::*;
    use crate::connection::Http1;
    use crate::transport::Sending;
    use crate::transport::foreign::{Foreign, TwoWay};
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
    use pushlab_dialects::Dialect;
    use pushlab_wire::http::{Headers, parse_request};
    use pushlab_wire::transport::Transport;
    use pushlab_workload::plan::{Speaks, Target};
    use std::io::{Read as _, Write as _};

    proptest! {
        #[test]
        fn posts_do_not_wait_for_one_another(cuts in prop::collection::vec(1usize..60, 1..8)) {
            let requests = Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 0);
            let (mut path, mut rng, mut out) = (OverPosts::new(), Rng::with_seed(1), Outgoing::default());
            let mut http1 = Http1::default();
            let mut answers = Vec::new();
            for ping in ["1", "22", "333"] {
                prop_assert!(path.is_free());
                path.encode(&requests, &mut rng, ping.as_bytes(), &mut out);
                answers.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{ping}", ping.len()).into_bytes());
            }
            http1.has_sent(0, &mut out);
            let (mut heard, mut held, mut start) = (Vec::new(), Vec::new(), 0);
            for i in 0.. {
                let end = (start + cuts[i % cuts.len()]).min(answers.len());
                held.extend_from_slice(&answers[start..end]);
                let sink = |data: &[u8]| heard.push(data.len());
                let mut told = Told { path: &mut path, rng: &mut rng, out: &mut out, sink };
                let done = http1.receive(&mut held, &mut told).unwrap().consumed;
                held.drain(..done);
                start = end;
                if start == answers.len() {
                    break;
                }
            }
            prop_assert_eq!(heard, [1, 2, 3]);
            prop_assert_eq!(path.under_way, 0);
            let mut told = Told { path: &mut path, rng: &mut rng, out: &mut out, sink: |_: &[u8]| () };
            let unasked = http1.receive(b"HTTP".to_vec().as_mut_slice(), &mut told);
            prop_assert!(matches!(unasked, Err(Cut::Unasked)));
        }
    }

    #[test]
    fn a_dialect_may_ask_for_a_session_before_it_opens_its_websocket() {
        let (dialect, path) = (Dialect::SocketIo09, "/socket.io".to_owned());
        let speaks = Speaks { dialect, path, how: String::new(), recording: None };
        let requests = Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 0);
        let requests = requests.in_dialect(Transport::WebSocket, &speaks, Some(Sending::Echo));
        let (mut path, mut rng, mut out) =
            (OverFrames::<Foreign<TwoWay>>::new(), Rng::with_seed(1), Outgoing::default());
        let mut http1 = Http1::default();
        path.open(&requests, &mut rng, &mut out);
        http1.has_sent(0, &mut out);
        out.clear();
        let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\ns-1:60:60:xhr-polling".to_vec();
        let mut told = Told { path: &mut path, rng: &mut rng, out: &mut out, sink: |_: &[u8]| () };
        http1.receive(&mut answer, &mut told).unwrap();
        assert!(out.bytes().starts_with(b"GET /socket.io/1/websocket/s-1 HTTP/1.1\r\n"));
    }

    /// Answers every POST at once, or after so long.
    fn echo_server(delay_ns: u64) -> std::net::SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let (mut held, mut room) = (Vec::new(), [0; 4096]);
                while let Ok(size @ 1..) = stream.read(&mut room) {
                    held.extend_from_slice(&room[..size]);
                    loop {
                        let mut headers = Headers::default();
                        let Some((head, head_bytes)) = parse_request(&held, &mut headers).unwrap() else { break };
                        let body_bytes: usize = head.header("content-length").unwrap().parse().unwrap();
                        if held.len() < head_bytes + body_bytes {
                            break;
                        }
                        let whole: Vec<u8> = held.drain(..head_bytes + body_bytes).collect();
                        pushlab_os::clock::sleep_until(monotonic_ns() + delay_ns);
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n");
                        stream.write_all(&[answer.as_bytes(), &whole[head_bytes..]].concat()).unwrap();
                    }
                }
            }
        });
        address
    }

    /// A path on which every ping takes the prober so long.
    struct Slow<const NS: u64>(OverPosts);

    impl<const NS: u64> EchoPath for Slow<NS> {
        fn new() -> Self {
            Self(OverPosts::new())
        }

        fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing) {
            self.0.open(requests, rng, out);
        }

        fn is_free(&self) -> bool {
            self.0.is_free()
        }

        fn encode(&mut self, requests: &Requests, rng: &mut Rng, data: &[u8], out: &mut Outgoing) {
            let begun = monotonic_ns();
            while monotonic_ns() < begun + NS {
                std::hint::spin_loop();
            }
            self.0.encode(requests, rng, data, out);
        }

        fn head<S: FnMut(&[u8])>(&mut self, head: &Head<'_>, hearing: Hearing<'_, S>) -> Result<(), Cut> {
            self.0.head(head, hearing)
        }

        fn body<S: FnMut(&[u8])>(&mut self, data: &[u8], is_last: bool, hearing: Hearing<'_, S>) -> Result<(), Cut> {
            self.0.body(data, is_last, hearing)
        }
    }

    /// What a prober measures in a second and a half of load, with a ping every 20 ms.
    fn probed<E: EchoPath>(delay_ns: u64) -> ProberReport {
        probed_as::<E>(delay_ns, false, true)
    }

    /// The same in a closed loop, and on a connection for each ping.
    fn probed_as<E: EchoPath>(delay_ns: u64, in_closed_loop: bool, keeps_alive: bool) -> ProberReport {
        let target = Target::plain(echo_server(delay_ns));
        let (origin_ns, s) = (monotonic_ns(), 1_000_000_000);
        let state = Arc::new(RunState::new(origin_ns, 1));
        let load_ns = origin_ns + s / 2;
        let load_end_ns = load_ns + 3 * s / 2;
        state.begin(Timeline {
            idle_ns: load_ns,
            warm_up_ns: load_ns,
            load_ns,
            load_end_ns,
            schedule: None,
            upstream: None,
            polls: None,
        });
        state.set_after(load_end_ns + s / 2);
        state.set_end(load_end_ns + s / 2);
        let config = ProberConfig {
            dialler: Dialler::new(target.address),
            requests: Requests::new(&target, "a", "a", 0).with_keep_alive(keeps_alive),
            interval_ns: 20_000_000,
            in_closed_loop,
            turns: None,
            seed: 5,
        };
        std::thread::spawn(move || run::<E, Http1>(config, &state, &ProberProgress::default())).join().unwrap().unwrap()
    }

    #[test]
    fn a_slow_prober_knows_what_is_its_own_and_a_slow_server_is_none_of_it() {
        const SLOW_NS: u64 = 8_000_000;
        let share = |report: &ProberReport| {
            report.response_own.quantile_ms(0.5).unwrap() / report.response_load.quantile_ms(0.5).unwrap()
        };
        let slow_prober = probed::<Slow<SLOW_NS>>(0);
        assert!(slow_prober.response_own.count() > 20, "{} answers", slow_prober.response_own.count());
        assert!(slow_prober.response_own.min().unwrap() >= SLOW_NS - SLOW_NS / 500, "a bucket is a thousandth wide");
        assert!(share(&slow_prober) > 0.5, "{}", share(&slow_prober));
        let slow_server = probed::<Slow<0>>(SLOW_NS);
        assert!(slow_server.response_load.quantile(0.5).unwrap() >= SLOW_NS);
        assert!(share(&slow_server) < share(&slow_prober) / 2.0, "{} {}", share(&slow_server), share(&slow_prober));
    }

    #[test]
    fn pings_without_an_answer_are_told_from_those_with_one() {
        const NEVER_NS: u64 = 60_000_000_000;
        let silent = probed::<Slow<0>>(NEVER_NS);
        assert_eq!(silent.response_load.count(), 0);
        assert!(silent.response_unanswered.count() > 20, "{} pings", silent.response_unanswered.count());
        let answering = probed::<Slow<0>>(0);
        assert!(answering.response_load.count() > 20 && answering.response_unanswered.is_empty());
    }

    #[test]
    fn in_a_closed_loop_pings_wait_for_answers_and_each_may_have_a_connection() {
        const SLOW_NS: u64 = 30_000_000;
        for keeps_alive in [true, false] {
            let slow = probed_as::<OverPosts>(SLOW_NS, true, keeps_alive);
            // A ping every 20 ms would be 75 of them; with 30 ms for the answer there is time for 30.
            assert!((10..=31).contains(&slow.response_load.count()), "{}", slow.response_load.count());
            assert!(slow.response_load.quantile(0.5).unwrap() >= SLOW_NS);
            assert!(slow.response_unanswered.count() <= 1 && slow.reconnects == 0);
            assert_eq!(slow.errors, ErrorTally::default());
        }
        let open = probed_as::<OverPosts>(0, false, false);
        assert!(open.response_load.count() > 20, "{}", open.response_load.count());
        assert_eq!(open.errors, ErrorTally::default());
    }

    #[test]
    fn posts_under_way_are_bounded() {
        let requests = Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 0);
        let (mut path, mut rng) = (OverPosts::new(), Rng::with_seed(1));
        for _ in 0..MAX_POSTS {
            assert!(path.is_free());
            path.encode(&requests, &mut rng, b"1", &mut Outgoing::default());
        }
        assert!(!path.is_free());
    }
}
