//! Servers in this process, and what tests wait for.

pub mod client;
pub mod http;
pub mod http2;
pub mod lanes;
pub mod late;
pub mod meeting;
pub mod secure;

use pushlab_server::{Config, Guests, Io, Limits, MakeLog, Server, ServerError, Stats};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// How long anything may take before a test gives up: far more than it ever does.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that event loops may keep of what was missed, 2 MiB each.
const MAX_MISSED_BYTES: usize = 4 << 20;

/// Where to connect, and how.
#[derive(Clone)]
pub struct Dial {
    pub address: SocketAddr,
    /// With TLS, trusting what this trusts.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// On streams of this connection.
    pub http2: Option<http2::Http2>,
}

impl From<SocketAddr> for Dial {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None, http2: None }
    }
}

/// A server that is stopped at the end of its test.
pub struct Subject {
    server: Option<Arc<Server>>,
    lanes: Option<lanes::Lanes>,
}

impl Subject {
    /// A server with so many event loops, its configuration changed by `change`.
    pub fn start(cores: usize, change: impl FnOnce(&mut Config)) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), cores, change)
    }

    pub fn start_at(address: SocketAddr, cores: usize, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { cores, ..Config::new(address) };
        config.limits.drain_timeout = Duration::from_secs(3);
        without_hurry(&mut config.limits);
        config.io = Some(io());
        // What other sites may not do is `site`'s to test.
        config.site.guests = Guests::Everybody;
        config.min_uring_members = 1;
        config.log = (seam() == Seam::LateLog).then(|| Arc::new(late::Late) as Arc<dyn MakeLog>);
        change(&mut config);
        // What the lanes carry is not encrypted.
        let has_lanes = seam() == Seam::Lanes && config.tls.is_none();
        let server = Arc::new(Server::start(config).unwrap());
        let lanes = has_lanes.then(|| lanes::Lanes::new(&server));
        Self { server: Some(server), lanes }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.lanes.as_ref().map_or_else(|| Server::address(self), |lanes| lanes.address)
    }

    /// Where the server itself listens, until it stops.
    pub fn listens_at(&self) -> SocketAddr {
        Server::address(self)
    }

    /// Whether every event loop has stopped listening. One that closes its listener refuses whoever was on the way to it,
    /// while another may still accept.
    pub fn has_stopped_listening(&self) -> bool {
        (0..5).all(|_| TcpStream::connect(self.listens_at()).is_err())
    }

    /// A server that speaks TLS if `is_secure`, else as [`Self::start`] makes it.
    pub fn start_either(is_secure: bool, cores: usize, change: impl FnOnce(&mut Config)) -> Self {
        Self::start(cores, |config| {
            config.tls = is_secure.then(|| secure::identity().files());
            change(config);
        })
    }

    /// How to connect to one of [`Self::start_either`].
    pub fn dial(&self, is_secure: bool) -> Dial {
        Dial { tls: is_secure.then(|| secure::identity().client.clone()), ..self.address().into() }
    }

    /// Waits until a condition on its figures holds.
    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&Stats) -> bool) {
        assert!(comes_to(|| holds(&self.stats())), "waited in vain until {what}: {:?}", self.stats());
    }

    /// How often the event loops turn while a poll waits for half a second, and how often their clock ticks meanwhile, which
    /// it does ten times a second.
    pub fn turns_during_a_poll(&self) -> (u64, u64) {
        let mut http = http::Http::connect(self.address());
        let before = self.stats();
        let poll = http.get(&format!("/poll?channel=quiet&wait=0.5&after={}", before.cursor));
        let after = self.stats();
        let ticks = (after.t_ns - before.t_ns) / 100_000_000;
        assert!(poll.status == 200 && ticks >= 4, "it waits: {poll:?}");
        (after.turns - before.turns, ticks)
    }

    /// Stops it and waits for its end.
    pub fn end(mut self) {
        let server = self.server.take().unwrap();
        server.stop();
        join(server).unwrap();
    }
}

impl Deref for Subject {
    type Target = Server;
    fn deref(&self) -> &Server {
        self.server.as_ref().unwrap()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
            // A test that fails already says more than this could.
            assert!(join(server).is_ok() || std::thread::panicking());
        }
    }
}

/// No peer is let go because its machine is busy: how long each may take is for the tests that set it.
fn without_hurry(limits: &mut Limits) {
    let for_ever = Duration::from_secs(3600);
    (limits.head_timeout, limits.idle_timeout, limits.answer_timeout) = (for_ever, for_ever, for_ever);
    (limits.write_timeout, limits.take_timeout, limits.heartbeat) = (for_ever, for_ever, for_ever);
}

/// Waits for the end of a server.
fn join(mut server: Arc<Server>) -> Result<(), ServerError> {
    loop {
        // A lane that begins holds it for a moment.
        match Arc::try_unwrap(server) {
            Ok(server) => return server.join(),
            Err(shared) => server = shared,
        }
        std::thread::yield_now();
    }
}

/// What is behind the servers' seams: the suites `server` and `server-*` run the same tests with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seam {
    /// What a user gets.
    Plain,
    /// io_uring.
    Uring,
    /// A log that answers in later turns.
    LateLog,
    /// Connections that share one byte stream.
    Lanes,
}

/// The one of this run.
pub fn seam() -> Seam {
    match std::env::var("PUSHLAB_TEST_SEAM").as_deref() {
        Err(_) => Seam::Plain,
        Ok("uring") => Seam::Uring,
        Ok("late-log") => Seam::LateLog,
        Ok("lanes") => Seam::Lanes,
        Ok(other) => panic!("PUSHLAB_TEST_SEAM={other}: it is uring, late-log or lanes"),
    }
}

/// By what the servers fan out.
pub fn io() -> Io {
    if seam() == Seam::Uring { Io::Uring } else { Io::Write }
}

/// How often a condition is asked for, a millisecond apart at least. It is no span of time: on a machine that is busy or
/// stood still, what is waited for has as many chances.
const CHANCES: usize = 60_000;

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_to(holds), "waited in vain until {what}");
}

fn comes_to(mut holds: impl FnMut() -> bool) -> bool {
    (0..CHANCES).any(|_| {
        let does = holds();
        if !does {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        does
    })
}

/// Waits until no gauge of a server shows anything any more.
#[track_caller]
pub fn until_idle(server: &Server) {
    until("all gauges are zero", || {
        let stats = server.stats();
        let gauges =
            [stats.open, stats.http2, stats.held_polls, stats.awaiting, stats.queued_bytes, stats.slow_subscribers];
        assert!(gauges.iter().all(|&g| g >= 0), "{stats:?}");
        // What came last, and was missed by somebody, is kept for the next who misses it.
        gauges == [0; 6] && stats.kept_bytes <= MAX_MISSED_BYTES && stats.connections.values().all(|&n| n == 0)
    });
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// The offset of a cursor.
pub fn offset(cursor: &str) -> u64 {
    cursor.split_once('.').expect(cursor).1.parse().expect(cursor)
}
