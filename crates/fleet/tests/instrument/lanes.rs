//! Clients of the real loop over connections that carry many streams together: what HTTP/2 will be to it.
//!
//! A frame is a lane's number, a kind and the length of what follows, 4, 1 and 4 bytes. Each lane carries HTTP/1.1.

use crate::native_server::NativeServer;
use pushlab_load::clients::LoopConfig;
use pushlab_load::connection::{Http1, Incoming, Outgoing, Owner, Protocol, Received};
use pushlab_load::cut::Cut;
use pushlab_load::dial::Dialler;
use pushlab_load::run_state::RunState;
use pushlab_load::threads::spawn_clients;
use pushlab_load::transport::long_polling::LongPolling;
use pushlab_load::transport::sse::Sse;
use pushlab_load::transport::websocket::WebSocket;
use pushlab_load::transport::{Receiver, Requests, Sending};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::stamp::Stamp;
use pushlab_workload::audience::Audience;
use pushlab_workload::check::Schedule;
use pushlab_workload::errors::ErrorTally;
use pushlab_workload::pacing::Pacing;
use pushlab_workload::payload::Payload;
use pushlab_workload::plan::Target;
use pushlab_workload::result::Part;
use pushlab_workload::timeline::Timeline;
use pushlab_workload::traffic::{HostLimit, Traffic};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
/// The lane ends.
const END: u8 = 1;

fn head(lane: u32, kind: u8, size: usize) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&lane.to_be_bytes());
    head[4] = kind;
    head[5..].copy_from_slice(&(size as u32).to_be_bytes());
    head
}

/// The first frame's lane and kind, and where it ends; `None` while it is not all there.
fn frame(input: &[u8]) -> Option<(u32, u8, usize)> {
    let (head, rest) = input.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    let size = number(5) as usize;
    (rest.len() >= size).then(|| (number(0), head[4], HEAD_BYTES + size))
}

/// The clients' end of a connection.
#[derive(Debug, Default)]
struct Lanes {
    opened: u32,
    open: HashMap<u32, Lane>,
}

#[derive(Debug)]
struct Lane {
    owner: Owner,
    http1: Http1,
    held: Vec<u8>,
}

impl Protocol for Lanes {
    const IS_SHARED: bool = true;
    type Owners = Vec<Owner>;

    fn open(&mut self, owner: Owner) -> Option<u32> {
        let mut http1 = Http1::default();
        http1.open(owner);
        self.opened += 1;
        self.open.insert(self.opened, Lane { owner, http1, held: Vec::new() });
        Some(self.opened)
    }

    fn has_room(&self) -> bool {
        true
    }

    fn owners(&self) -> Vec<Owner> {
        self.open.values().map(|lane| lane.owner).collect()
    }

    fn close(&mut self, lane: u32, _: bool, out: &mut Outgoing) -> bool {
        if self.open.remove(&lane).is_some() {
            out.bytes_mut().extend_from_slice(&head(lane, END, 0));
        }
        true
    }

    fn has_sent(&mut self, lane: u32, out: &mut Outgoing) {
        self.open.get_mut(&lane).unwrap().http1.has_sent(0, out);
        let head = head(lane, DATA, out.bytes().len());
        out.bytes_mut().splice(..0, head);
    }

    fn receive(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<Received, Cut> {
        let Some((number, kind, end)) = frame(input) else {
            return Ok(Received { consumed: 0, owner: None, ended: None, is_freed: false, has_more: false });
        };
        let received = |owner, ended| Received { consumed: end, owner, ended, is_freed: false, has_more: true };
        if kind == END {
            let ended = self.open.remove(&number);
            return Ok(received(ended.map(|lane| lane.owner), Some(Cut::Closed)));
        }
        // We may have ended it while this was on its way.
        let Some(Lane { owner, http1, held }) = self.open.get_mut(&number) else { return Ok(received(None, None)) };
        held.extend_from_slice(&input[HEAD_BYTES..end]);
        match http1.receive(held, incoming) {
            Ok(Received { consumed, .. }) => {
                held.drain(..consumed);
                Ok(received(Some(*owner), None))
            }
            Err(cut) => Ok(received(Some(*owner), Some(cut))),
        }
    }
}

/// The server's end of all connections: each lane becomes a connection to a server.
struct Front {
    address: SocketAddr,
    trunks: Arc<Mutex<Vec<TcpStream>>>,
    /// Lanes so far.
    lanes: Arc<AtomicUsize>,
}

impl Front {
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = Self { address: listener.local_addr().unwrap(), trunks: Arc::default(), lanes: Arc::default() };
        let (trunks, lanes) = (Arc::clone(&front.trunks), Arc::clone(&front.lanes));
        std::thread::spawn(move || {
            for trunk in listener.incoming() {
                let (trunk, lanes) = (trunk.unwrap(), Arc::clone(&lanes));
                trunks.lock().unwrap().push(trunk.try_clone().unwrap());
                std::thread::spawn(move || serve(&trunk, server, &lanes));
            }
        });
        front
    }

    fn connections(&self) -> usize {
        self.trunks.lock().unwrap().len()
    }

    /// Cuts all connections that there are.
    fn cut(&self) {
        // One that the client has closed is not connected any more.
        self.trunks.lock().unwrap().iter().for_each(|trunk| drop(trunk.shutdown(Shutdown::Both)));
    }
}

fn serve(mut trunk: &TcpStream, server: SocketAddr, lanes: &AtomicUsize) {
    let (mut backs, mut held, mut buffer) = (HashMap::<u32, TcpStream>::new(), Vec::new(), [0; 4096]);
    let writer = Arc::new(Mutex::new(trunk.try_clone().unwrap()));
    while let Some(size) = trunk.read(&mut buffer).ok().filter(|&size| size > 0) {
        held.extend_from_slice(&buffer[..size]);
        while let Some((lane, kind, end)) = frame(&held) {
            if kind == END {
                backs.remove(&lane).map(|back| back.shutdown(Shutdown::Both));
            } else {
                let back = backs.entry(lane).or_insert_with(|| {
                    lanes.fetch_add(1, SeqCst);
                    let back = TcpStream::connect(server).unwrap();
                    let (reader, writer) = (back.try_clone().unwrap(), Arc::clone(&writer));
                    std::thread::spawn(move || carry(reader, lane, &writer));
                    back
                });
                // Its end is on its way to the client.
                let _ = back.write_all(&held[HEAD_BYTES..end]);
            }
            held.drain(..end);
        }
    }
    backs.into_values().for_each(|back| drop(back.shutdown(Shutdown::Both)));
}

/// Brings what the server says on a lane, in random pieces.
fn carry(mut back: TcpStream, lane: u32, trunk: &Mutex<TcpStream>) -> Option<()> {
    let (mut rng, mut buffer) = (fastrand::Rng::new(), [0; 700]);
    loop {
        let most = rng.usize(1..=buffer.len());
        let size = back.read(&mut buffer[..most]).unwrap_or(0);
        let kind = if size == 0 { END } else { DATA };
        let bytes = [&head(lane, kind, size), &buffer[..size]].concat();
        let (first, rest) = bytes.split_at(rng.usize(..=bytes.len()));
        let mut trunk = trunk.lock().unwrap();
        trunk.write_all(first).and_then(|()| trunk.write_all(rest)).ok()?;
        drop(trunk);
        if size == 0 {
            return None;
        }
    }
}

const CLIENTS: u32 = 10;
/// Two connections for all.
const LIMIT: HostLimit = HostLimit { connections_max: 1, clients: 5 };

fn config(front: &Front, traffic: Traffic, sources: u32) -> LoopConfig {
    let payload = (traffic != Traffic::Silent).then(|| Payload::new(71).unwrap());
    let are_sources_clients = payload.is_some();
    LoopConfig {
        dialler: Dialler::new(front.address),
        hosts: Some(LIMIT),
        clients: CLIENTS,
        lane: 0,
        lanes: 1,
        progress: 0,
        requests: Requests::new(&Target::plain(front.address), "a", "a", 5),
        traffic,
        payload,
        audience: Audience::Everybodys { sources, receivers: Some(CLIENTS), are_sources_clients },
        ignores_arrays: false,
        publishers: 0,
        has_receipts: false,
        storm: None,
        counts_drain: true,
        connect_rate: 1_000,
        poll_interval_ns: 20 * MS,
        poll_phase_ns: 0,
        turns: None,
        seed: 7,
        gather_ns: 0,
        injected_delay_ns: 0,
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it has taken too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a loop of one transport until each client has received so many publications. `during` the run they are made, if
/// it is not clients that make them.
fn run<R: Receiver>(config: LoopConfig, count: u64, during: impl FnOnce(&Pacing)) -> Part {
    let sources = config.audience.sources();
    let state = Arc::new(RunState::new(monotonic_ns(), 1));
    let shared = Arc::clone(&state);
    let thread = spawn_clients::<R, Lanes>(config, shared, || {}).unwrap();
    wait_until(|| state.subscribed() == CLIENTS);
    let start_ns = (monotonic_ns() + 20 * MS) / 100 * 100;
    let pacing = Pacing { count, ..Pacing::endless(start_ns, 20 * MS, sources) };
    let schedule = Some(Schedule::Open { pacing: pacing.clone(), load_from: 0 });
    let load_end_ns = start_ns + 60_000 * MS;
    state.begin(Timeline {
        idle_ns: start_ns,
        warm_up_ns: start_ns,
        load_ns: start_ns,
        load_end_ns,
        schedule,
        upstream: None,
        polls: None,
    });
    during(&pacing);
    wait_until(|| state.sum(|progress| &progress.load_delivered) == count * u64::from(CLIENTS));
    state.set_after(monotonic_ns());
    state.set_end(monotonic_ns());
    thread.join().unwrap().unwrap()
}

fn is_whole(part: &Part, count: u64) {
    let right = (part.delivered, part.duplicated + part.reordered + part.unknown + part.gaps);
    assert_eq!(right, (count * u64::from(CLIENTS), 0), "{:?}", part.errors);
}

/// Everybody receives what is published, though all connections are cut in between.
fn is_resumed<R: Receiver>() {
    const COUNT: u64 = 40;
    let server = NativeServer::start(None);
    let front = Front::start(server.address);
    let publish = server.publisher();
    let part = run::<R>(config(&front, Traffic::Silent, 1), COUNT, |pacing| {
        for k in 0..COUNT {
            let instant_ns = pacing.due_ns(k);
            let stamp = Stamp { source: 0, sequence: k as u32, instant_ns }.encode();
            wait_until(|| monotonic_ns() > instant_ns);
            publish("a", &format!("{{\"stamp\":\"{}\"}}", str::from_utf8(&stamp).unwrap()));
            if k == COUNT / 2 {
                front.cut();
            }
        }
    });
    is_whole(&part, COUNT);
    assert_eq!((front.connections(), part.reconnects), (4, u64::from(CLIENTS)), "{:?}", part.errors);
}

#[test]
fn all_streams_of_a_connection_end_with_it_and_resume() {
    is_resumed::<WebSocket>();
    is_resumed::<Sse>();
}

/// Everybody posts to everybody, on the connection that all of a host receive on.
fn is_shared<R: Receiver>(posts: bool) {
    const COUNT: u64 = 5 * CLIENTS as u64;
    let server = NativeServer::start(None);
    let front = Front::start(server.address);
    let part = run::<R>(config(&front, Traffic::Paced(Sending::Publish), CLIENTS), COUNT, |_| ());
    is_whole(&part, COUNT);
    assert_eq!((front.connections(), part.published), (2, COUNT), "{:?}", part.errors);
    assert_eq!(part.errors, ErrorTally::default());
    assert!(front.lanes.load(SeqCst) > if posts { 2 * CLIENTS as usize } else { CLIENTS as usize - 1 });
    // A lane's frames are what is neither head nor payload nor text.
    let up = part.bytes_whole.up;
    assert!(up.framing >= HEAD_BYTES as u64 * COUNT && up.payload == COUNT * 71, "{up:?}");
}

#[test]
fn both_sides_of_all_clients_share_a_connection() {
    is_shared::<WebSocket>(false);
    is_shared::<Sse>(true);
    is_shared::<LongPolling>(true);
}

#[test]
fn a_stream_may_end_alone() {
    const COUNT: u64 = 5 * CLIENTS as u64;
    let server = NativeServer::start(Some(9));
    let front = Front::start(server.address);
    let part = run::<Sse>(config(&front, Traffic::Paced(Sending::Publish), CLIENTS), COUNT, |_| ());
    is_whole(&part, COUNT);
    assert_eq!((front.connections(), part.published), (2, COUNT), "{:?}", part.errors);
    assert!(part.reconnects >= u64::from(CLIENTS), "{}", part.reconnects);
}
