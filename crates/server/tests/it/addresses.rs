//! What one address may take up, by whichever way its clients come.

use crate::access::{UPGRADE, access};
use crate::application;
use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::harness::http2::{self, Http2};
use crate::harness::{Dial, Subject, connect, until};
use pushlab_http2::frame::Code;
use pushlab_server::access::LiveAccess;
use pushlab_server::access::proxies::TrustedProxies;
use std::io::Read;
use std::sync::Arc;

const RULES: &str = "[[rule]]\nwho = \"everybody\"\nchannels = [\"*\"]\nmay = [\"subscribe\", \"publish\"]\n";

/// How clients reach the server.
#[derive(Debug, Clone, Copy)]
struct Way {
    is_http2: bool,
    is_secure: bool,
    /// Through a proxy that is believed.
    is_proxied: bool,
}

fn ways() -> impl Iterator<Item = Way> {
    (0..8).map(|n| Way { is_http2: n & 1 > 0, is_secure: n & 2 > 0, is_proxied: n & 4 > 0 })
}

impl Way {
    fn start(self, limits: &str) -> Subject {
        Subject::start_either(self.is_secure, 2, |config| {
            config.access = Some(Arc::new(LiveAccess::new(access(&format!("{RULES}[limits.address]\n{limits}\n")))));
            let proxies = self.is_proxied.then(|| "127.0.0.1".parse().unwrap());
            config.trusted_proxies = TrustedProxies::new(proxies.into_iter().collect());
        })
    }

    /// Where clients connect: over HTTP/2, on streams of one socket. Who is refused before a lane begins hears nothing.
    fn dial(self, server: &Subject) -> Dial {
        if self.is_http2 {
            return Http2::connect(server, self.is_secure).streams();
        }
        Dial { address: server.listens_at(), ..server.dial(self.is_secure) }
    }

    /// What a client at this address sends in its head; one that comes directly is where it is.
    fn fields(self, address: &str) -> String {
        let made_up = "X-Forwarded-For: 198.51.100.9\r\n";
        let told = if self.is_proxied { format!("X-Forwarded-For: 203.0.113.7, {address}\r\n") } else { String::new() };
        format!("Host: h\r\n{made_up}{told}")
    }

    /// Whether who is beyond a limit is told so: a new socket is not where it would take a handshake of TLS.
    fn tells(self) -> bool {
        !self.is_secure || self.is_http2 || self.is_proxied
    }

    /// Asks for what lasts; `None`: the limit is reached.
    fn ask(self, server: &Subject, to: &Dial, target: &str, fields: &str) -> Option<Http> {
        if !self.tells() {
            assert!(is_turned_away(server), "{self:?}");
            return None;
        }
        let upgrade = if target.starts_with("/ws") { UPGRADE } else { "" };
        let mut http = Http::connect(to.clone());
        http.send(&format!("GET {target} HTTP/1.1\r\n{fields}{upgrade}\r\n"));
        let status = if self.is_http2 { http.stream().head().unwrap().0 } else { http.head_or_refusal().status };
        assert!(matches!(status, 101 | 200 | 429), "{status}, {self:?}");
        (status != 429).then_some(http)
    }
}

/// Whether a new socket is closed without an answer.
fn is_turned_away(server: &Subject) -> bool {
    !matches!(connect(server.listens_at()).read(&mut [0]), Ok(1..))
}

#[test]
fn connections_are_limited_whatever_carries_them() {
    for way in ways() {
        let server = way.start("connections = 3");
        let (to, fields) = (way.dial(&server), way.fields("192.0.2.1"));
        let open = |kind, fields: &str| Client::open_with(to.clone(), kind, "channel=a", fields);
        let (socket, mut events) = (open(Kind::WebSocket, &fields), open(Kind::Sse, &fields));
        let mut poll = Http::connect(to.clone());
        poll.send(&format!("GET /poll?channel=a&wait=60 HTTP/1.1\r\n{fields}\r\n"));
        until("the poll is held", || server.stats().held_polls == 1);
        for target in ["/ws?", "/ws?mode=poll&", "/sse?", "/stream?", "/stream?format=script&", "/poll?wait=9&"] {
            assert!(way.ask(&server, &to, &format!("{target}channel=a"), &fields).is_none(), "{way:?} {target}");
        }
        if way.is_proxied {
            open(Kind::Sse, &way.fields("192.0.2.2"));
        } else if way.is_secure {
            assert!(is_turned_away(&server), "{way:?}");
        } else {
            assert_eq!(Http::connect(server.listens_at()).get("/healthz").status, 429, "{way:?}");
        }
        // Who leaves makes room for one.
        if way.is_http2 {
            events.stream().reset(Code::Cancel);
        }
        drop(events);
        if way.tells() {
            let mut lines = None;
            until("there is room", || {
                lines = way.ask(&server, &to, "/stream?channel=a", &fields);
                lines.is_some()
            });
            assert!(way.ask(&server, &to, "/sse?channel=a", &fields).is_none(), "{way:?}");
        }
        drop((socket, poll));
    }
}

#[test]
fn publications_are_limited_whatever_carries_them() {
    for way in ways() {
        let server = way.start("publications_per_s = 1");
        let fields = way.fields("192.0.2.1");
        let post = |to: &Dial, fields: &str| {
            let mut http = Http::connect(to.clone());
            http.send(&format!("POST /publish?channel=a HTTP/1.1\r\n{fields}Content-Length: 1\r\n\r\n1"));
            http.response().status
        };
        // Two sockets have no more than one.
        let sockets = [way.dial(&server), way.dial(&server)];
        let taken = (0..50).filter(|n| post(&sockets[n % 2], &fields) == 200).count();
        assert!((1..50).contains(&taken), "{taken} of 50 requests, {way:?}");
        let [to, _] = sockets;
        let mut socket = Client::open_with(to.clone(), Kind::WebSocket, "channel=b", &fields);
        (0..50).for_each(|_| socket.send("[\"pub\",\"a\",1]"));
        socket.send("[\"ping\",1]");
        let answers: Vec<Frame> =
            std::iter::from_fn(|| socket.next()).take_while(|frame| *frame != Frame::Pong(1)).collect();
        let refused = answers.iter().filter(|frame| **frame == Frame::Error("limit-reached".into())).count();
        assert!(refused > 0, "none of 50 frames, {way:?}");
        if way.is_proxied {
            assert_eq!(post(&to, &way.fields("192.0.2.2")), 200, "{way:?}");
        }
    }
}

/// Whatever stands in the field, a client is where the proxy says that it is, and what a proxy does not say is its own.
#[test]
fn a_forged_address_takes_nothing_from_others() {
    let way = Way { is_http2: false, is_secure: false, is_proxied: true };
    let server = way.start("connections = 1");
    let open = |forwarded: &[u8]| {
        let mut http = Http::connect(server.address());
        http.try_send(&[b"GET /sse?channel=a HTTP/1.1\r\nHost: h\r\n", forwarded, b"\r\n"].concat()).unwrap();
        (http.head_or_refusal().status, http)
    };
    let held: Vec<_> = [
        (&b"X-Forwarded-For: \xff, 192.0.2.1\r\n"[..], 200),
        (b"X-Forwarded-For: \xff, 192.0.2.1\r\n", 429),
        (b"X-Forwarded-For: 192.0.2.1\r\n", 429),
        (b"X-Forwarded-For: \xff\r\nX-Forwarded-For: 192.0.2.1\r\n", 429),
        (b"X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\n", 200),
        (b"X-Forwarded-For: 192.0.2.3, \xff\r\n", 200),
        (b"X-Forwarded-For: 192.0.2.4, \xff\r\n", 429),
        (b"X-Forwarded-For: 192.0.2.5, unknown\r\n", 429),
        (b"", 429),
        (b"X-Forwarded-For: 192.0.2.6\r\n", 200),
    ]
    .into_iter()
    .map(|(forwarded, expected)| {
        let (status, http) = open(forwarded);
        assert_eq!(status, expected, "{}", forwarded.escape_ascii());
        http
    })
    .collect();
    drop(held);
}

/// The application is told the same address.
#[test]
fn an_application_is_told_who_asks() {
    let (server, _) = application::start(1, false, |config| {
        config.trusted_proxies = TrustedProxies::new(vec!["127.0.0.1".parse().unwrap()]);
    });
    for (forwarded, peer) in [
        (&b"X-Forwarded-For: \xff, 192.0.2.1\r\n"[..], "192.0.2.1"),
        (b"X-Forwarded-For: \xff\r\nx-forwarded-for: 192.0.2.1\r\n", "192.0.2.1"),
        (b"X-Forwarded-For: 192.0.2.1, \xff\r\n", "127.0.0.1"),
        (b"", "127.0.0.1"),
    ] {
        let mut http = Http::connect(server.address());
        http.try_send(&[b"GET /request HTTP/1.1\r\nHost: h\r\n", forwarded, b"\r\n"].concat()).unwrap();
        let told = http.response().body;
        assert!(told.contains(&format!("peer: {peer}")), "{}: {told}", forwarded.escape_ascii());
    }
}

/// Limits that a new access file brings are for sockets too that were there before.
#[test]
fn new_limits_count_those_who_are_there() {
    let live = Arc::new(LiveAccess::new(access(RULES)));
    let server = Subject::start(1, |config| config.access = Some(live.clone()));
    let http2 = Http2::dial(http2::dial(&server, false));
    let held: Vec<Client> = (0..2).map(|_| Client::open(http2.streams(), Kind::Sse, "channel=a")).collect();
    live.replace(access(&format!("{RULES}[limits.address]\nconnections = 3\n")));
    let third = Client::open(http2.streams(), Kind::Sse, "channel=a");
    assert_eq!(http2.get("/sse?channel=a").head_or_refusal().status, 429);
    drop((held, third));
}
