//! A gate in front of a subject: while it is shut, clients' connections are cut and no new ones come through, but those
//! of one address do.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Most connections through a gate at once; more are refused. Each costs two threads, sleeping, of about 20 KiB.
const MAX_CONNECTIONS: usize = 256;

/// A connection through the gate: both of its ends.
struct Through {
    id: u64,
    is_exempt: bool,
    ends: [TcpStream; 2],
}

impl Through {
    fn cut(&self) {
        for end in &self.ends {
            // It may have ended by itself.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Default)]
struct State {
    is_shut: bool,
    is_over: bool,
    through: Vec<Through>,
}

struct Shared {
    subject: SocketAddr,
    exempt: Ipv4Addr,
    state: Mutex<State>,
    /// Connections of clients that were cut or refused.
    turned_away: AtomicU64,
}

/// A gate that is open until it is shut; it and all connections through it end when it is dropped.
pub struct Gate {
    /// Where clients find it.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Gate {
    /// A gate on the loopback interface; connections from `exempt` pass even while it is shut.
    ///
    /// # Errors
    /// When there is no port or thread left.
    pub fn before(subject: SocketAddr, exempt: Ipv4Addr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Mutex::default();
        let shared = Arc::new(Shared { subject, exempt, state, turned_away: AtomicU64::new(0) });
        let accepting = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("gate".to_owned()).spawn(move || shared.accept(&listener))?
        };
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Cuts every client's connection, and refuses new ones until it is opened.
    pub fn shut(&self) {
        let mut state = self.shared.state();
        state.is_shut = true;
        for through in state.through.iter().filter(|through| !through.is_exempt) {
            through.cut();
            self.shared.turned_away.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets everybody through again.
    pub fn open(&self) {
        self.shared.state().is_shut = false;
    }

    /// Connections of clients that were cut or refused so far.
    pub fn turned_away(&self) -> u64 {
        self.shared.turned_away.load(Ordering::Relaxed)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.is_over = true;
            state.through.iter().for_each(Through::cut);
        }
        // Wakes the thread that accepts.
        let is_awake = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| is_awake) {
            // It has nothing to say, and a panic in it was printed.
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for id in 0.. {
            let Ok((client, from)) = listener.accept() else {
                // No descriptor left, for now.
                std::thread::sleep(std::time::Duration::from_millis(10));
                continue;
            };
            if self.state().is_over {
                return;
            }
            self.admit(id, client, from);
        }
    }

    /// Carries a connection, or closes it at once.
    fn admit(self: &Arc<Self>, id: u64, client: TcpStream, from: SocketAddr) {
        let is_exempt = from.ip() == self.exempt;
        let is_refused = |state: &State| state.is_over || (state.is_shut && !is_exempt);
        let refuse = || self.turned_away.fetch_add(1, Ordering::Relaxed);
        if is_refused(&self.state()) {
            refuse();
            return;
        }
        let (server, ends) = match self.reach_subject(&client) {
            Ok(reached) => reached,
            Err(_) => {
                refuse();
                return;
            }
        };
        {
            let mut state = self.state();
            if is_refused(&state) || state.through.len() >= MAX_CONNECTIONS {
                refuse();
                return;
            }
            state.through.push(Through { id, is_exempt, ends });
        }
        let shared = Arc::clone(self);
        let carry = move || {
            std::thread::scope(|scope| {
                scope.spawn(|| pump(&client, &server));
                pump(&server, &client);
            });
            shared.forget(id);
        };
        if std::thread::Builder::new().name("gate".to_owned()).spawn(carry).is_err() {
            self.forget(id);
        }
    }

    /// A connection to the subject, and a second handle of it and of the client's.
    fn reach_subject(&self, client: &TcpStream) -> io::Result<(TcpStream, [TcpStream; 2])> {
        let server = TcpStream::connect(self.subject)?;
        // What clients and subject send is to leave as they send it.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ends = [client.try_clone()?, server.try_clone()?];
        Ok((server, ends))
    }

    fn forget(&self, id: u64) {
        self.state().through.retain(|through| through.id != id);
    }
}

/// Carries bytes one way until there are no more; then the other side is told so.
fn pump(mut from: &TcpStream, mut to: &TcpStream) {
    let is_whole = io::copy(&mut from, &mut to).is_ok();
    // A side that takes no more ends both ways, or the other would write for nobody.
    let how = if is_whole { Shutdown::Write } else { Shutdown::Both };
    let _ = to.shutdown(how);
    if !is_whole {
        let _ = from.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A server that returns what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || io::copy(&mut &stream, &mut &stream));
            }
        });
        address
    }

    fn is_echoed(mut stream: &TcpStream, text: &[u8]) -> bool {
        let mut back = vec![0; text.len()];
        let exchanged = stream.write_all(text).and_then(|()| stream.read_exact(&mut back));
        exchanged.is_ok() && back == text
    }

    fn connect(gate: &Gate) -> TcpStream {
        let stream = TcpStream::connect(gate.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    #[test]
    fn shut_it_cuts_and_refuses_and_open_it_lets_through() {
        let gate = Gate::before(echo(), Ipv4Addr::new(127, 0, 0, 9)).unwrap();
        let [mut one, another] = [connect(&gate), connect(&gate)];
        assert!(is_echoed(&one, b"hello") && is_echoed(&another, &[7; 100_000][..]));
        gate.shut();
        let end = one.read(&mut [0; 9]);
        let is_reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
        assert!(matches!(&end, Ok(0)) || end.as_ref().is_err_and(is_reset), "cut, not silent: {end:?}");
        assert!(!is_echoed(&another, b"again"));
        assert!(!is_echoed(&connect(&gate), b"refused"));
        assert_eq!(gate.turned_away(), 3);
        gate.open();
        assert!(is_echoed(&connect(&gate), b"open"));
        assert!(!is_echoed(&one, b"gone for good"));
    }

    #[test]
    fn who_is_exempt_passes_all_the_same() {
        let gate = Gate::before(echo(), Ipv4Addr::LOCALHOST).unwrap();
        let publisher = connect(&gate);
        assert!(is_echoed(&publisher, b"before"));
        gate.shut();
        assert!(is_echoed(&publisher, b"while") && is_echoed(&connect(&gate), b"new"));
        assert_eq!(gate.turned_away(), 0);
        drop(gate);
        assert!(!is_echoed(&publisher, b"after"));
    }

    #[test]
    fn a_half_that_is_closed_leaves_the_other_open() {
        let gate = Gate::before(echo(), Ipv4Addr::LOCALHOST).unwrap();
        let mut stream = connect(&gate);
        stream.write_all(b"last").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back, b"last");
    }

    #[test]
    fn more_connections_than_it_may_carry_are_refused() {
        let gate = Gate::before(echo(), Ipv4Addr::LOCALHOST).unwrap();
        let carried: Vec<TcpStream> = (0..MAX_CONNECTIONS).map(|_| connect(&gate)).collect();
        assert!(carried.iter().all(|stream| is_echoed(stream, b"in")));
        assert!(!is_echoed(&connect(&gate), b"one too many"));
    }
}
