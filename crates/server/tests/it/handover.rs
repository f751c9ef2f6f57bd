//! One server takes the place of another, while clients of every transport are connected and publish.

use crate::harness::client::{Client, Frame, Kind, PUSHED};
use crate::harness::http::Http;
use crate::harness::meeting::Meeting;
use crate::harness::{PATIENCE, Seam, Subject, seam, until};
use pushlab_handover::frame::{Frame as Word, VERSION};
use pushlab_handover::taking::{Predecessor, started};
use pushlab_server::{Config, Handover};
use pushlab_wire::native::{ServerFrame, parse_reply};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn at(path: &Path) -> impl Fn(&mut Config) {
    let path = path.to_owned();
    move |config| config.handover = Some(Handover { path: path.clone(), tell: |_| {} })
}

/// Only a log in memory can be handed over, and lanes lead to one server.
fn can_hand_over() -> bool {
    matches!(seam(), Seam::Plain | Seam::Uring)
}

/// The data after which nothing comes.
const LAST: &str = "\"last\"";

/// What a subscriber received: offsets and data.
type Received = Vec<(u64, String)>;

/// How far everybody is.
#[derive(Default)]
struct Progress {
    subscribed: AtomicU64,
    published: AtomicU64,
    received: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    /// Whether subscribers are so far behind that the slowest might be closed for it.
    fn is_ahead(&self) -> bool {
        let subscribed = self.subscribed.load(Ordering::Relaxed);
        let due = self.published.load(Ordering::Relaxed) * subscribed;
        due > self.received.load(Ordering::Relaxed) + 100 * subscribed
    }
}

/// Subscribes until the last has come, again with its cursor whenever the connection ends.
fn subscribe(address: SocketAddr, kind: Kind, progress: &Progress) -> (Received, u32) {
    let mut client = Client::open(address, kind, "channel=a&v=2");
    progress.subscribed.fetch_add(1, Ordering::Relaxed);
    let (mut received, mut returns) = (Vec::new(), 0);
    loop {
        match client.next() {
            Some(Frame::Message(_, offset, data)) => {
                let is_last = data == LAST;
                received.push((offset, data));
                progress.received.fetch_add(1, Ordering::Relaxed);
                if is_last {
                    return (received, returns);
                }
            }
            Some(Frame::Gap(from, to)) => panic!("{kind:?}: a gap from {from} to {to}"),
            Some(_) => {}
            None => {
                returns += 1;
                // Somebody listens already; an event source keeps what it is told for longer.
                let longest = if matches!(kind, Kind::Sse | Kind::PlainSse) { 500 } else { 0 };
                assert_eq!(client.return_after_ms, Some(longest), "{kind:?}");
                client = Client::resume(address, kind, "channel=a&v=2", &client.cursor.clone());
            }
        }
    }
}

/// The same by polls.
fn poll(address: SocketAddr, wait: u32, progress: &Progress) -> (Received, u32) {
    let (mut received, mut cursor): (Received, _) = (Vec::new(), String::new());
    let mut http = Http::connect(address);
    let mut returns = 0;
    loop {
        // The first says where it begins.
        let wait = if cursor.is_empty() { 0 } else { wait };
        http.send(&format!("GET /poll?channel=a&wait={wait}&after={cursor}&v=2 HTTP/1.1\r\nHost: h\r\n\r\n"));
        let Some(response) = http.try_response() else {
            // It was idle, and another one is taken.
            http = Http::connect(address);
            continue;
        };
        assert_eq!(response.status, 200, "{response:?}");
        if cursor.is_empty() {
            progress.subscribed.fetch_add(1, Ordering::Relaxed);
        }
        parse_reply(&response.body, |frame| match frame {
            ServerFrame::Message { cursor, data, .. } => {
                received.push((crate::harness::offset(&cursor.unwrap()), data.to_owned()));
                progress.received.fetch_add(1, Ordering::Relaxed);
            }
            ServerFrame::Cursor(now) => cursor = now.into_owned(),
            ServerFrame::Gap { .. } => panic!("{}", response.body),
            _ => {}
        })
        .unwrap();
        if received.last().is_some_and(|(_, data)| data == LAST) {
            return (received, returns);
        }
        if response.head.contains("Connection: close\r\n") {
            http = Http::connect(address);
            returns += 1;
        }
    }
}

fn clients_move_without_loss(before: usize, after: usize) {
    if !can_hand_over() {
        return;
    }
    let path = Meeting::new(&format!("moves-{before}-{after}"));
    let old = Subject::start(before, |config| {
        at(&path)(config);
        config.limits.drain_window = Some(Duration::from_millis(400));
    });
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let address = old.address();
    let progress = &Progress::default();
    std::thread::scope(|scope| {
        let pushed = PUSHED.into_iter().flat_map(|kind| [kind; 2]).chain([Kind::WebSocketPolling]);
        let mut clients: Vec<_> =
            pushed.map(|kind| scope.spawn(move || (format!("{kind:?}"), subscribe(address, kind, progress)))).collect();
        for wait in [0, 20, 20] {
            clients.push(scope.spawn(move || (format!("poll {wait}"), poll(address, wait, progress))));
        }
        let count = clients.len() as u64;
        until("all are there", || progress.subscribed.load(Ordering::Relaxed) == count);
        // Two publish one after the other, each over a new connection: none may be refused.
        let publish = |publisher: u32| {
            let mut published = Vec::new();
            while !progress.is_over.load(Ordering::Relaxed) {
                let data = format!("\"{publisher}.{}\"", published.len());
                published.push((Http::connect(address).publish("a", &data), data));
                progress.published.fetch_add(1, Ordering::Relaxed);
                until("the others follow", || !progress.is_ahead());
            }
            published
        };
        let publishers: Vec<_> = (0..2).map(|publisher| scope.spawn(move || publish(publisher))).collect();
        until("some is published", || old.stats().received > 100);
        let new = Subject::start_at(address, after, at(&path));
        until("all have moved", || !old.is_running());
        let moved = new.stats().received;
        until("more is published", || new.stats().received > moved + 100);
        progress.is_over.store(true, Ordering::Relaxed);
        let mut published: Received = publishers.into_iter().flat_map(|it| it.join().unwrap()).collect();
        published.push((Http::connect(address).publish("a", LAST), LAST.to_owned()));
        published.sort_unstable();
        assert!(published.iter().map(|(offset, _)| *offset).eq(1..=published.len() as u64), "each has its place");
        for client in clients {
            let (who, (received, returns)) = client.join().unwrap();
            assert_eq!(received, published, "{who}");
            assert!(returns > 0 || who.starts_with("poll"), "{who} has not moved");
        }
        old.end();
        drop(new);
    });
    assert!(!path.exists(), "who stops leaves nothing behind");
}

#[test]
fn clients_of_every_transport_move_without_loss() {
    clients_move_without_loss(2, 2);
}

#[test]
fn clients_move_to_more_event_loops() {
    clients_move_without_loss(1, 3);
}

#[test]
fn clients_move_to_fewer_event_loops() {
    clients_move_without_loss(3, 1);
}

/// What the old process holds is the new one's: history, and the clock by which it grows old.
#[test]
fn history_is_taken_over() {
    if !can_hand_over() {
        return;
    }
    let path = Meeting::new("history");
    let old = Subject::start(1, at(&path));
    let mut http = Http::connect(old.address());
    let first = old.stats().cursor;
    let last = http.publish_times(100, "a", "1");
    let new = Subject::start_at(old.address(), 1, at(&path));
    until("it has ended", || !old.is_running());
    let mut client = Client::resume(new.address(), Kind::Lines, "channel=a", &first);
    assert_eq!(client.next(), Some(Frame::Cursor(first)));
    assert_eq!(client.offsets(100), (1..=last).collect::<Vec<_>>());
    assert_eq!(Http::connect(new.address()).publish("a", "2"), last + 1);
}

/// Whatever comes to the socket, or goes away again at any step, the old server goes on as if nothing had been.
#[test]
fn who_does_not_take_over_changes_nothing() {
    if !can_hand_over() {
        return;
    }
    let path = Meeting::new("nothing");
    let server = Subject::start(2, at(&path));
    let limits = pushlab_log::Limits::default;
    let mut client = Client::open(server.address(), Kind::WebSocket, "channel=a");
    let mut expect = 0;
    let mut is_as_before = |what: &str| {
        expect += 1;
        assert_eq!(Http::connect(server.address()).publish("a", "1"), expect, "{what}");
        assert_eq!(client.message().1, expect, "{what}");
    };
    let says = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&*path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let word = |word: Word| {
        let mut bytes = Vec::new();
        word.encode(&mut bytes);
        bytes
    };
    assert!(says(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").is_empty());
    is_as_before("garbage");
    assert!(says(&word(Word::Started)).is_empty());
    is_as_before("the wrong word");
    let answer = says(&word(Word::Hello { version: VERSION + 1 }));
    assert!(String::from_utf8_lossy(&answer).contains("version"), "{answer:?}");
    is_as_before("another version");
    drop(UnixStream::connect(&*path).unwrap());
    is_as_before("nothing");
    let asked = Predecessor::ask(&path, limits(), PATIENCE).unwrap().unwrap();
    is_as_before("one that has asked");
    drop(asked);
    is_as_before("one that has asked and gone");
    let asked = Predecessor::ask(&path, limits(), PATIENCE).unwrap().unwrap();
    let (log, talk) = asked.take().unwrap();
    // From here on nothing is appended here; what is published waits.
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.publisher().publish("a", "1").is_ok());
        until("it waits", || server.stats().cursor == log.head().to_string());
        drop(talk);
        waiting.join().unwrap()
    });
    assert!(waiting, "what waited is published");
    expect += 1;
    assert_eq!(client.message().1, expect);
    let mut client = Client::open(server.address(), Kind::Sse, "channel=a");
    assert_eq!(Http::connect(server.address()).publish("a", "1"), expect + 1);
    assert_eq!(client.message().1, expect + 1);
}

/// Two must never append: a server whose successor lives, but cannot be reached any more, ends.
#[test]
fn without_the_link_the_old_server_ends() {
    if !can_hand_over() {
        return;
    }
    let path = Meeting::new("link");
    let server = Subject::start(1, at(&path));
    let client = Client::open(server.address(), Kind::WebSocket, "channel=a&v=2");
    let asked = Predecessor::ask(&path, pushlab_log::Limits::default(), PATIENCE).unwrap().unwrap();
    let (_, mut talk) = asked.take().unwrap();
    started(&mut talk).unwrap();
    drop(talk);
    until("it has ended", || !server.is_running());
    let mut client = client;
    while client.next().is_some() {}
    assert_eq!((client.close_code, client.return_after_ms), (Some(1001), Some(0)));
}
