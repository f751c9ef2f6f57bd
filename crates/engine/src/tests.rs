use super::*;
use fastrand::Rng;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connected sockets and their peers. An id is a place, the generation is 1.
struct Pairs {
    ours: Vec<UnixStream>,
    others: Vec<UnixStream>,
    sent: Vec<Vec<u8>>,
}

impl Pairs {
    fn new(count: usize) -> Self {
        let (ours, others) = (0..count).map(|_| UnixStream::pair().unwrap()).unzip();
        Self { ours, others, sent: vec![Vec::new(); count] }
    }

    /// Sends what stands behind some place to each; what the engine leaves is written.
    fn send(&mut self, engine: &mut Engine, bytes: &[u8], from: impl Fn(usize) -> usize) -> (bool, usize) {
        let mut sends: Vec<Send> = (0..self.ours.len()).map(|id| Send::new(id as u32, 1, 0, from(id))).collect();
        let goes_on = engine.send(bytes, &mut sends, |send| self.ours[send.id as usize].as_fd());
        let mut left = 0;
        for send in &sends {
            let (id, rest) = (send.id as usize, &bytes[send.from..]);
            match &send.outcome {
                Outcome::Taken(n) => assert_eq!(*n, rest.len()),
                Outcome::Left => {
                    left += 1;
                    self.ours[id].write_all(rest).unwrap();
                }
                Outcome::Failed(error) => panic!("{error}"),
            }
            self.sent[id].extend_from_slice(rest);
        }
        (goes_on, left)
    }

    /// Compares what each has received.
    fn compare(self) {
        let Self { ours, others, sent } = self;
        drop(ours);
        for (mut other, sent) in others.into_iter().zip(sent) {
            other.set_nonblocking(true).unwrap();
            let mut received = vec![0; sent.len() + 1];
            let n = read_some(&mut other, &mut received);
            assert!(received[..n] == sent, "{n} bytes of {}", sent.len());
        }
    }
}

/// What is there.
fn read_some(socket: &mut impl io::Read, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match socket.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    filled
}

/// An engine with a table of files, or without.
fn engine(slots: usize) -> Engine {
    let mut engine = Engine::open(slots).unwrap();
    if slots == 0 {
        engine.ring.drop_table();
        engine.files = Files::default();
    }
    engine
}

/// A connected pair over loopback whose first takes little.
fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let small = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    small.set_recv_buffer_size(4096).unwrap();
    small.connect(&listener.local_addr().unwrap().into()).unwrap();
    let ours = listener.accept().unwrap().0;
    SockRef::from(&ours).set_send_buffer_size(4096).unwrap();
    (ours, small.into())
}

fn send_one(engine: &mut Engine, bytes: &[u8], from: usize, socket: &TcpStream, generation: u32) -> Outcome {
    let mut sends = [Send::new(0, generation, 0, from)];
    assert!(engine.send(bytes, &mut sends, |_| socket.as_fd()));
    let [send] = sends;
    send.outcome
}

#[test]
fn thousands_of_sockets_get_everything_in_order() {
    // Each pair takes two descriptors.
    let most = usize::try_from(limits::descriptors().soft).unwrap_or(usize::MAX).saturating_sub(200) / 2;
    for slots in [10_000, 100, 0] {
        let mut engine = engine(slots);
        let mut pairs = Pairs::new(most.min(3000));
        let mut random = Rng::with_seed(slots as u64);
        for round in 0..4 {
            let bytes: Vec<u8> = (0..300).map(|_| random.u8(..)).collect();
            assert_eq!(pairs.send(&mut engine, &bytes, |id| (id * 7 + round) % 300), (true, 0));
        }
        assert_eq!(engine.files.is_used(), slots > 0);
        pairs.compare();
    }
}

#[test]
fn what_a_socket_does_not_take_is_told_to_the_byte() {
    let bytes: Vec<u8> = (0..1_000_000).map(|n: u32| (n % 251) as u8).collect();
    for slots in [8, 0] {
        let mut engine = engine(slots);
        let (ours, mut other) = tcp_pair();
        other.set_nonblocking(true).unwrap();
        let (mut sent, mut received, mut blocked, mut parts) = (0, Vec::new(), 0, 0);
        let until = Instant::now() + PATIENCE;
        while received.len() < bytes.len() {
            if sent < bytes.len() {
                match send_one(&mut engine, &bytes, sent, &ours, 1) {
                    Outcome::Taken(0) => blocked += 1,
                    Outcome::Taken(n) => {
                        parts += usize::from(sent + n < bytes.len());
                        sent += n;
                    }
                    other => panic!("{other:?}"),
                }
            }
            // Every other time it is asked for more than there can be room for.
            if blocked % 2 == 1 || sent == bytes.len() {
                let mut buffer = [0; 20_000];
                let n = read_some(&mut other, &mut buffer);
                received.extend_from_slice(&buffer[..n]);
            }
            assert!(Instant::now() < until, "{sent} sent, {} received", received.len());
        }
        assert!(received == bytes && blocked > 0 && parts > 0, "{blocked} {parts}");
    }
}

#[test]
fn a_broken_socket_fails_and_its_neighbours_do_not() {
    for slots in [8, 0] {
        let mut engine = engine(slots);
        let all: Vec<(TcpStream, TcpStream)> = (0..3).map(|_| tcp_pair()).collect();
        SockRef::from(&all[1].1).set_linger(Some(Duration::ZERO)).unwrap();
        let mut all: Vec<(TcpStream, Option<TcpStream>)> = all.into_iter().map(|(a, b)| (a, Some(b))).collect();
        all[1].1 = None;
        let until = Instant::now() + PATIENCE;
        loop {
            let mut sends = [0, 1, 2].map(|id| Send::new(id, 1, 0, 0));
            assert!(engine.send(b"x", &mut sends, |send| all[send.id as usize].0.as_fd()));
            assert!(matches!(sends[0].outcome, Outcome::Taken(1)) && matches!(sends[2].outcome, Outcome::Taken(1)));
            if let Outcome::Failed(error) = &sends[1].outcome {
                assert!(matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{error}");
                break;
            }
            assert!(Instant::now() < until, "{sends:?}");
        }
        // Our own end of it breaks a socket too, without a signal.
        all[0].0.shutdown(std::net::Shutdown::Write).unwrap();
        let outcome = send_one(&mut engine, b"x", 0, &all[0].0, 1);
        assert!(matches!(&outcome, Outcome::Failed(e) if e.kind() == io::ErrorKind::BrokenPipe), "{outcome:?}");
    }
}

/// Whatever the kernel has taken when a ring breaks: nothing is lost, nothing comes twice.
#[test]
fn a_ring_that_breaks_leaves_the_rest_to_be_written() {
    for room in [0, 1, 7, 19, 20] {
        let mut engine = engine(64);
        let mut pairs = Pairs::new(20);
        assert_eq!(pairs.send(&mut engine, b"first ", |_| 0), (true, 0));
        for nth in 1..=MAX_BROKEN {
            engine.ring.breaks_after = Some(room);
            let (goes_on, left) = pairs.send(&mut engine, b"second ", |id| id % 7);
            assert_eq!((goes_on, left), (nth < MAX_BROKEN, 20 - room as usize));
            if goes_on {
                assert_eq!(pairs.send(&mut engine, b"third ", |_| 0), (true, 0), "there is a new ring");
            }
        }
        pairs.compare();
    }
}

#[test]
fn a_socket_that_was_closed_leaves_the_table() {
    let mut engine = engine(8);
    let (ours, mut other) = tcp_pair();
    assert!(matches!(send_one(&mut engine, b"old", 0, &ours, 1), Outcome::Taken(3)));
    assert!(!engine.forget(0, 2) && !engine.forget(1, 1), "nobody else stands there");
    assert!(engine.forget(0, 1));
    drop(ours);
    // The next one in its place comes in the same turn.
    let (next, mut next_other) = tcp_pair();
    assert!(matches!(send_one(&mut engine, b"new", 0, &next, 2), Outcome::Taken(3)));
    engine.end_turn();
    let mut received = Vec::new();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    other.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"old");
    let mut received = [0; 3];
    next_other.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"new");
    assert!(engine.files.has(0, 2));
    // And where nobody comes.
    assert!(engine.forget(0, 2));
    drop(next);
    engine.end_turn();
    next_other.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(next_other.read(&mut received).unwrap(), 0);
}

/// Connections come and go at random, in places that others had: each gets its own bytes.
#[test]
fn each_slot_is_its_connections() {
    let seed = 26;
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut engine = engine(300);
    let mut places: Vec<Option<(u32, UnixStream, UnixStream)>> = (0..350).map(|_| None).collect();
    let mut generation = 0;
    for round in 0..200u32 {
        for _ in 0..random.usize(..60) {
            let id = random.usize(..places.len());
            if let Some((generation, ..)) = places[id].take() {
                let _ = engine.forget(id as u32, generation);
            }
            if random.bool() {
                generation += 1;
                let (ours, other) = UnixStream::pair().unwrap();
                places[id] = Some((generation, ours, other));
            }
        }
        if random.bool() {
            engine.end_turn();
        }
        let mut sends: Vec<Send> = places
            .iter()
            .enumerate()
            .filter_map(|(id, place)| place.as_ref().map(|(generation, ..)| Send::new(id as u32, *generation, 0, 0)))
            .filter(|_| random.u8(..4) > 0)
            .collect();
        let socket = |send: &Send| places[send.id as usize].as_ref().unwrap().1.as_fd();
        assert!(engine.send(&round.to_le_bytes(), &mut sends, socket));
        for send in &sends {
            assert!(matches!(send.outcome, Outcome::Taken(4)), "{send:?}");
            let mut bytes = [0; 4];
            let mut other = &places[send.id as usize].as_ref().unwrap().2;
            other.read_exact(&mut bytes).unwrap();
            assert_eq!(u32::from_le_bytes(bytes), round);
        }
    }
    assert!(engine.files.is_used(), "the kernel refused no change");
}

#[test]
fn what_refuses_is_named_with_a_way_out() {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::Unsupported, io::ErrorKind::OutOfMemory] {
        let text = NoUring(kind.into()).to_string();
        assert!(text.starts_with("cannot use io_uring: ") && text.ends_with("plain writes (--io write)"), "{text}");
    }
}
