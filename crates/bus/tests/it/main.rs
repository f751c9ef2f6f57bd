//! A connection to a real broker: TLS, users, long messages, and a broker that goes away and comes back.

#![expect(clippy::unwrap_used, reason = "what cannot be is a failed test")]

use pushlab_bus::words::{Presence, Role};
use pushlab_bus::{
    Access, Address, Broker, BusError, Connection, Crew, CrewError, JoinConfig, JoinsAs, Watcher, clock_of, join,
};
use pushlab_fleet::clock::{ClockAddress, ClockPort};
use pushlab_subjects::install::Cache;
use pushlab_subjects::process::Process;
use pushlab_wire::pieces::{Cutter, PieceDecoder};
use pushlab_workload::clock::Reading;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest time that anything awaited may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that vanishes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pushlab-bus-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // One that stays behind hurts nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A broker with a configuration of the test's own.
fn start(folder: &Folder, address: SocketAddr, settings: &str) -> Process {
    let installed = Broker::install(&Cache::of_user(), &mut || false).unwrap();
    let file = folder.0.join("broker.conf");
    fs::write(&file, format!("listen: \"{address}\"\n{settings}")).unwrap();
    let mut command = Command::new(installed.folder.join("nats-server"));
    command.arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(&mut command, &[]).unwrap();
    wait_for("the broker", || TcpStream::connect(address).is_ok());
    process
}

/// An address that stays free for a while: its port is below those that the kernel gives out.
fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = std::iter::repeat_with(|| {
        20_000 + (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000
    });
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    addresses.find(|address| TcpListener::bind(address).is_ok()).unwrap()
}

#[test]
fn only_who_is_known_is_let_in_and_only_by_a_broker_that_is_known() {
    let folder = Folder::new("tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.0.join(name));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let address = free();
    let tls = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n");
    let broker = start(&folder, address, &format!("{tls}authorization {{ user: ann, password: secret }}\n"));
    let open = |user: &str, access: &Access| {
        let address = Address::parse(&format!("tls://{user}localhost:{}", address.port())).unwrap();
        Connection::open(&address, access, "test").map(drop)
    };
    let trusting = Access { tls_ca: Some(certificate.clone()), ..Access::default() };
    open("ann:secret@", &trusting).unwrap();
    for user in ["", "ann:wrong@", "word@"] {
        let error = open(user, &trusting).unwrap_err();
        assert!(matches!(error, BusError::Refused { .. }), "{user}: {error}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
    let error = open("ann:secret@", &Access::default()).unwrap_err();
    assert!(matches!(error, BusError::Unreachable { .. }), "{error}");
    let missing = Access { tls_ca: Some(folder.0.join("nothing.pem")), ..Access::default() };
    assert!(matches!(open("ann:secret@", &missing), Err(BusError::File { .. })));
    broker.stop(PATIENCE);
}

#[test]
fn messages_of_any_length_come_and_a_broker_that_comes_back_is_found_again() {
    let folder = Folder::new("back");
    let address = free();
    // Less than it takes by default, and than a piece is.
    let settings = "max_payload: 65536\n";
    let broker = start(&folder, address, settings);
    let open =
        |name| Connection::open(&Address::parse(&format!("nats://{address}")).unwrap(), &Access::default(), name);
    let [one, other] = ["one", "other"].map(|name| open(name).unwrap());
    assert_eq!(one.message_bytes_max(), 65_536);
    let (sender, came) = mpsc::channel();
    other
        .subscribe("pieces.*".to_owned(), move |subject, piece| drop(sender.send((subject.to_owned(), piece.to_vec()))))
        .unwrap();
    other.answer("question".to_owned(), |question| [question, b"!"].concat()).unwrap();
    other.flush();
    let message: Vec<u8> = (0..1_000_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let (mut cutter, mut decoder) = (Cutter::new(1), PieceDecoder::default());
    let mut send = || {
        for piece in cutter.cut(&message, one.message_bytes_max()).unwrap() {
            one.publish("pieces.one".to_owned(), piece).unwrap();
        }
    };
    let mut receive = || loop {
        let (subject, piece) = came.recv_timeout(PATIENCE).unwrap();
        assert_eq!(subject, "pieces.one");
        if let Some(message) = decoder.take(&piece).unwrap() {
            return message;
        }
    };
    send();
    assert!(receive() == message);
    assert_eq!(one.ask("question".to_owned(), b"who".to_vec(), PATIENCE).as_deref(), Some(&b"who!"[..]));
    assert_eq!(one.ask("nobody".to_owned(), Vec::new(), PATIENCE), None);

    broker.stop(PATIENCE);
    wait_for("both to notice", || one.away_for().is_some() && other.away_for().is_some());
    assert!(matches!(one.publish("pieces.one".to_owned(), Vec::new()), Err(BusError::Unsent { .. })));
    let broker = start(&folder, address, settings);
    wait_for("both to be back", || one.away_for().is_none() && other.away_for().is_none());
    // What they subscribed to, they still do.
    other.flush();
    send();
    assert!(receive() == message);
    drop((one, other));
    broker.stop(PATIENCE);
}

#[test]
fn a_clock_is_asked_directly_and_through_the_broker_where_no_datagram_comes_through() {
    let folder = Folder::new("clock");
    let at = free();
    let broker = start(&folder, at, "");
    let address = Address::parse(&format!("nats://{at}")).unwrap();
    let lab = Connection::open(&address, &Access::default(), "lab").unwrap();
    // No clock shows so little.
    let through_broker = Reading { received_ns: 1, answered_ns: 2 };
    let text = serde_json::to_vec(&through_broker).unwrap();
    lab.answer(address.names.clock("lab"), move |_| text.clone()).unwrap();
    lab.flush();
    let ask = |port| clock_of(&address, &Access::default(), "lab", port).unwrap();

    let port = ClockPort::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let mut direct = ask(Some(port.address()));
    // One may find its thread asleep for long.
    wait_for("an answer from the port", || direct(PATIENCE).is_some_and(|answer| answer.read != through_broker));
    assert_eq!(ask(None)(PATIENCE).unwrap().read, through_broker);

    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let closed: ClockAddress = format!("{} {:032x}", silent.local_addr().unwrap(), 1).parse().unwrap();
    let mut detour = ask(Some(closed));
    let answers: Vec<_> = (0..40).filter_map(|_| detour(PATIENCE)).map(|answer| answer.read).collect();
    assert_eq!(answers, [through_broker; 34]);
    silent.set_nonblocking(true).unwrap();
    let asked = std::iter::from_fn(|| silent.recv(&mut [0; 64]).ok());
    assert_eq!(asked.collect::<Vec<_>>(), [24; 6], "it is tried again, ever more rarely");
    drop((direct, detour, lab));
    broker.stop(PATIENCE);
}

/// Whoever waits for workers, and hears of them.
struct Nobody;

impl Watcher for Nobody {
    fn tell(&mut self, _: &str) {}
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

/// Why a lab gets no worker soon.
fn refused(crew: &Crew) -> String {
    match crew.gather(1, Duration::from_secs(2), &|_| Ok(()), &mut Nobody) {
        Err(error @ CrewError::TooFew { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_is_one_labs_until_that_lets_it_go() {
    let folder = Folder::new("crew");
    let at = free();
    let broker = start(&folder, at, "");
    let address = Address::parse(&format!("nats://{at}/racks")).unwrap();
    let open = || Crew::open(&address, &Access::default()).unwrap();
    let [one, other] = [open(), open()];
    assert!(refused(&one).starts_with("0 of 1 workers are there after 2 s: start more"));
    let is_over = Arc::new(AtomicBool::new(false));
    let worker = std::thread::spawn({
        let (address, is_over) = (address.clone(), Arc::clone(&is_over));
        move || {
            let config = JoinConfig {
                address,
                access: Access::default(),
                name: "joined".to_owned(),
                joins_as: JoinsAs::Worker { ip: None, spare_cores: 0 },
                host: Box::new(|_, _| Command::new("true")),
            };
            join(&config, &mut |_| {}, &mut || is_over.load(Ordering::Relaxed)).unwrap();
        }
    });
    one.gather(1, PATIENCE, &|_| Ok(()), &mut Nobody).unwrap();
    let Presence { name, role, .. } = one.own().remove(0);
    let Role::Worker { cores, descriptors, .. } = role else { panic!("{role:?}") };
    assert_eq!((name.as_str(), cores, descriptors), ("joined", one.seats().cores, one.seats().descriptors));
    assert_eq!([one.share_here(), other.share_here()], [1.0, 0.0], "both are of this machine, and one has no workers");
    assert!(refused(&other).contains("; joined is another lab's"));

    // What one of an earlier version would say.
    let earlier = Connection::open(&address, &Access::default(), "earlier").unwrap();
    let presence = Presence { id: "-.1".to_owned(), name: "old".to_owned(), lab: None, ..one.own().remove(0) };
    let presence = Presence { version: "0.0.9".to_owned(), ..presence };
    earlier.publish(address.names.presence("-.1"), serde_json::to_vec(&presence).unwrap()).unwrap();
    let why = refused(&other);
    assert!(why.contains("; old has version 0.0.9, and this is"), "{why}");

    drop(one);
    other.gather(1, PATIENCE, &|_| Ok(()), &mut Nobody).unwrap();
    is_over.store(true, Ordering::Relaxed);
    worker.join().unwrap();
    wait_for("its leaving", || other.own().is_empty());
    drop((earlier, other));
    broker.stop(PATIENCE);
}
