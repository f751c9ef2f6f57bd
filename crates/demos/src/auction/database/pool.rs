//! A few connections, made when they are needed, again after they broke.

use super::connection::{Connection, Failure, STATEMENT_WAIT};
use super::location::Location;
use crate::lock::lock;
use crate::telling::tell;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a request waits for a connection that others use: 15 s, half of what the server gives an application. If
/// the database hangs nobody waits that long: whoever uses a connection finds out, and all who wait are told.
const MAX_QUEUE: Duration = Duration::from_secs(15);
/// The database is asked again after 0.1 s, and after twice as long with each failure, up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// The database is asked again after 3 s at the latest.
pub const MAX_BACKOFF: Duration = Duration::from_secs(3);

/// Makes a new connection ready for use.
pub type Prepare = fn(&mut dyn Connection) -> Result<(), Failure>;

/// The connections to one database.
pub struct Pool {
    location: Location,
    prepare: Prepare,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Box<dyn Connection>>,
    /// Connections that are there or being made.
    open: usize,
    trouble: Option<Trouble>,
}

/// Since the database did not answer.
struct Trouble {
    why: String,
    backoff: Duration,
    retry_at: Instant,
    /// Somebody is trying already. One thread at most waits for a database that hangs; all others hear of it at once.
    is_tried: bool,
}

/// A connection that nobody else uses; without one while it is being made.
pub struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<Box<dyn Connection>>,
    is_new: bool,
    /// It finds out whether the trouble is over.
    is_probe: bool,
    is_lost: bool,
}

impl Pool {
    /// A pool without connections. Each new one is prepared.
    pub fn new(location: Location, prepare: Prepare) -> Self {
        Self { location, prepare, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Where the connections lead.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Does `work` over a connection. If the connection turns out to be lost and is not new, the database may have
    /// been restarted since it was made: then once more over a new one, unless it was lost by waiting in vain, as one
    /// would again. So `work` must not return [`Failure::Away`] after something that is not to be done twice.
    pub fn with<T>(&self, mut work: impl FnMut(&mut Lease<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        loop {
            let mut lease = self.lease()?;
            let begun = Instant::now();
            let failure = match work(&mut lease) {
                Err(failure @ Failure::Away(_)) => failure,
                done => {
                    if !lease.is_lost {
                        self.answered();
                    }
                    return done;
                }
            };
            lease.lose();
            self.forget_idle();
            // Half, because a kernel's timeouts may come a little early; nothing else takes that long.
            if lease.is_new || begun.elapsed() >= STATEMENT_WAIT / 2 {
                self.unanswered(&failure, lease.is_probe);
                return Err(failure);
            }
        }
    }

    fn lease(&self) -> Result<Lease<'_>, Failure> {
        let deadline = Instant::now() + MAX_QUEUE;
        let mut state = lock(&self.state);
        loop {
            if let Some(connection) = state.idle.pop() {
                let connection = Some(connection);
                return Ok(Lease { pool: self, connection, is_new: false, is_probe: false, is_lost: false });
            }
            if let Some(trouble) = state.trouble.as_ref().filter(|t| t.is_tried || Instant::now() < t.retry_at) {
                return Err(Failure::Away(trouble.why.clone().into()));
            }
            if state.open < self.location.connections() {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::Busy("all connections to it are in use".into()));
            }
            state = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open += 1;
        let is_probe = state.trouble.is_some();
        if let Some(trouble) = &mut state.trouble {
            trouble.is_tried = true;
        }
        drop(state);
        self.connect(is_probe)
    }

    /// A lease on a new connection, which is counted already.
    fn connect(&self, is_probe: bool) -> Result<Lease<'_>, Failure> {
        let mut lease = Lease { pool: self, connection: None, is_new: true, is_probe, is_lost: false };
        let connected = self.location.connect().and_then(|mut connection| {
            (self.prepare)(connection.as_mut())?;
            Ok(connection)
        });
        match connected {
            Ok(connection) => {
                lease.connection = Some(connection);
                Ok(lease)
            }
            Err(failure) => {
                self.unanswered(&failure, is_probe);
                Err(failure)
            }
        }
    }

    fn answered(&self) {
        if lock(&self.state).trouble.take().is_some() {
            tell(format_args!("auction: the database {} answers again", self.location.label()));
        }
    }

    /// From now on all hear of the trouble at once, but one that tries in a while. Whoever finds out later that there
    /// is trouble, because they began before, changes nothing of that.
    fn unanswered(&self, failure: &Failure, is_probe: bool) {
        let why = failure.to_string();
        let mut state = lock(&self.state);
        let backoff = match &state.trouble {
            Some(_) if !is_probe => return,
            Some(trouble) => (trouble.backoff * 2).min(MAX_BACKOFF),
            None => {
                tell(format_args!("auction: the database {}: {why}", self.location.label()));
                MIN_BACKOFF
            }
        };
        // Tried still, where it is, until the lease of whoever tried is dropped.
        let is_tried = is_probe;
        state.trouble = Some(Trouble { why, backoff, retry_at: Instant::now() + backoff, is_tried });
        self.freed.notify_all();
    }

    /// Whatever ended one connection has ended those that were idle beside it.
    fn forget_idle(&self) {
        let mut state = lock(&self.state);
        let idle = std::mem::take(&mut state.idle);
        state.open -= idle.len();
        drop(state);
        self.freed.notify_all();
    }
}

impl Lease<'_> {
    /// Undoes what was begun. A connection that does not even do that is closed, which has the database undo it.
    pub fn undo(&mut self) {
        if self.connection().rollback().is_err() {
            self.lose();
        }
    }

    /// The connection is not to be used again.
    pub fn lose(&mut self) {
        self.is_lost = true;
    }

    /// The connection.
    pub fn connection(&mut self) -> &mut dyn Connection {
        self.connection.as_mut().expect("a lease is given with its connection").as_mut()
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // After a panic a change may be under way.
        if std::thread::panicking() && self.connection.is_some() {
            self.undo();
        }
        let connection = self.connection.take().filter(|_| !self.is_lost);
        let mut state = lock(&self.pool.state);
        match connection {
            Some(connection) => state.idle.push(connection),
            None => state.open -= 1,
        }
        if let Some(trouble) = state.trouble.as_mut().filter(|_| self.is_probe) {
            trouble.is_tried = false;
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::{Row, Value};
    use super::super::location::MAX_CONNECTIONS;
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc;

    fn pool(url: &str) -> Pool {
        Pool::new(url.parse().expect("a good URL"), |_| Ok(()))
    }

    #[test]
    fn whoever_finds_all_connections_in_use_waits_for_one() {
        let pool = pool("sqlite::memory:");
        let (entered, entry) = mpsc::channel();
        let (release, released) = mpsc::channel();
        std::thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || {
                let hold = |lease: &mut Lease<'_>| {
                    lease.connection().create("held (id BIGINT)")?;
                    entered.send(()).expect("somebody listens");
                    released.recv().expect("somebody releases");
                    Ok(())
                };
                pool.with(hold).expect("in memory");
            });
            entry.recv().expect("the first is in");
            let second = scope.spawn(|| pool.with(|lease| lease.connection().run("SELECT id FROM held", &[])));
            release.send(()).expect("the first waits");
            assert_eq!(second.join().expect("no panic").expect("the same database"), []);
        });
    }

    /// A connection that takes everything and undoes nothing.
    struct Stubborn;

    impl Connection for Stubborn {
        fn begin(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn commit(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn rollback(&mut self) -> Result<(), Failure> {
            Err(Failure::Refused("on purpose".into()))
        }

        fn run(&mut self, _: &'static str, _: &[Value]) -> Result<Vec<Row>, Failure> {
            Ok(Vec::new())
        }

        fn create(&mut self, _: &str) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_connection_whose_change_cannot_be_undone_is_closed() {
        let pool = pool("sqlite::memory:");
        let fail = |lease: &mut Lease<'_>| {
            lease.connection = Some(Box::new(Stubborn));
            lease.undo();
            Ok(())
        };
        pool.with(fail).expect("it is no failure of what was asked");
        let state = lock(&pool.state);
        assert_eq!((state.idle.len(), state.open), (0, 0), "closed, and another takes its place");
        drop(state);
        pool.with(|lease| lease.connection().begin()).expect("in memory");
        assert_eq!(lock(&pool.state).idle.len(), 1);
    }

    /// A connection that broke is made anew at once; after one that kept somebody waiting, all hear of the trouble.
    #[test]
    fn who_has_waited_in_vain_does_not_wait_again() {
        for (wait, tries) in [(Duration::ZERO, 2), (STATEMENT_WAIT / 2, 1)] {
            let pool = pool("sqlite::memory:");
            pool.with(|_| Ok(())).expect("a connection that is not new the next time");
            let mut tried = 0;
            let asked = pool.with(|lease| {
                tried += 1;
                if lease.is_new {
                    return Ok(());
                }
                std::thread::sleep(wait);
                Err(Failure::Away("on purpose".into()))
            });
            assert_eq!((tried, asked.is_ok()), (tries, tries == 2), "after {wait:?}");
            assert_eq!(lock(&pool.state).trouble.is_some(), tries == 1);
            assert_eq!(lock(&pool.state).idle.len(), tries - 1, "what broke is closed");
        }
    }

    /// A database that takes connections and says nothing: so many threads wait for it, and all others hear of it.
    #[test]
    fn a_database_that_hangs_is_waited_for_by_few() {
        const ASKERS: usize = 24;
        std::thread::scope(|scope| {
            for scheme in ["mysql", "postgres"] {
                scope.spawn(move || {
                    // The kernel takes the connections, and nobody reads from them.
                    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
                    let port = listener.local_addr().expect("bound").port();
                    let pool = pool(&format!("{scheme}://ada:secret@127.0.0.1:{port}/house"));
                    std::thread::scope(|scope| {
                        for _ in 0..ASKERS {
                            scope.spawn(|| {
                                let asked = pool.with(|lease| lease.connection().run("SELECT 1", &[]));
                                assert!(matches!(asked, Err(Failure::Away(_))), "{asked:?}");
                            });
                        }
                    });
                    listener.set_nonblocking(true).expect("a listener");
                    let tried = std::iter::from_fn(|| listener.accept().ok()).count();
                    // One more may have begun to find out whether it is over.
                    assert!((1..=MAX_CONNECTIONS + 1).contains(&tried), "{scheme}: {tried}");
                });
            }
        });
    }

    #[test]
    fn a_panic_leaves_no_change_half_done() {
        let pool = pool("sqlite::memory:");
        pool.with(|lease| lease.connection().create("things (id BIGINT)")).expect("in memory");
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: Result<(), Failure> = pool.with(|lease| {
                let connection = lease.connection();
                connection.begin()?;
                connection.run("INSERT INTO things (id) VALUES (1)", &[])?;
                panic!("on purpose");
            });
        }));
        assert!(caught.is_err());
        let left = pool.with(|lease| {
            let connection = lease.connection();
            connection.begin()?;
            let rows = connection.run("SELECT id FROM things", &[])?;
            connection.commit()?;
            Ok(rows)
        });
        assert_eq!(left.expect("the same connection"), []);
    }

    #[test]
    fn a_database_that_is_away_is_left_alone_for_a_while() {
        for scheme in ["mysql", "postgres"] {
            let pool = pool(&format!("{scheme}://ada:secret@127.0.0.1:1/house"));
            let ask = || pool.with(|lease| lease.connection().run("SELECT 1", &[]));
            for _ in 0..3 {
                assert!(matches!(ask(), Err(Failure::Away(_))));
            }
            let state = lock(&pool.state);
            let trouble = state.trouble.as_ref().expect("noticed");
            assert!(state.open == 0 && !trouble.is_tried && trouble.backoff >= MIN_BACKOFF, "{}", trouble.why);
        }
    }
}
